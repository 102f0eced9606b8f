"""A run as it lies in its directory: what it was about, how far it came, whether it still goes on.

Insight: a directory outlives its process, so what is not finished is either under way or broken off, and
only the kernel knows which: the process that the directory names lives, or it does not. Everything is
read by the opener that follows no link, because whole boxes lie in there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mutiny.documents import DEEPEST, shallow
from mutiny.system.files import BoxPath
from mutiny.system.processes import is_alive

FINISHED, RUNNING, BROKEN_OFF = "finished", "running", "broken off"
LARGEST_DOCUMENT = 8 << 20
LARGEST_JOURNAL = 64 << 20
LARGEST_PART = 1 << 20
"""So much of a growing file is read at once."""
Lines = list[dict[str, Any]]


@dataclass(frozen=True)
class Record:
    """The documents of one run; each is None where there is none that can be read."""

    folder: BoxPath
    plan: Mapping[str, Any] | None
    progress: Mapping[str, Any] | None
    summary: Mapping[str, Any] | None
    names: frozenset[str] = frozenset()
    """Everything that lies in the directory."""

    @cached_property
    def state(self) -> str:
        """Finished, running or broken off."""
        told = self.progress or {}
        if self.summary is not None or told.get("verdict"):
            return FINISHED
        return RUNNING if _lives(told.get("process") or self.about("process")) else BROKEN_OFF

    @property
    def verdict(self) -> str:
        """The word of its verdict; empty while it has none."""
        return str((self.summary or self.progress or {}).get("verdict") or "")

    @property
    def error(self) -> Mapping[str, Any]:
        """What stopped it; empty when nothing did."""
        return table((self.summary or {}).get("error"))

    @property
    def first_violation(self) -> Mapping[str, Any]:
        """The most telling broken promise; empty where none was broken."""
        found = self.error.get("violations")
        return table(found[0]) if isinstance(found, list) and found else {}

    @property
    def kind(self) -> str:
        """What made it: scenario, explore, crash sweep, soak, ..."""
        return str((self.progress or {}).get("kind") or self.about("mode") or "run")

    def about(self, name: str) -> Any:
        """What plan or progress says of it."""
        found = (self.plan or {}).get(name)
        return (self.progress or {}).get(name) if found is None else found


def read_record(folder: BoxPath) -> Record | None:
    """What a directory holds; None when it is no run's."""
    try:
        there = frozenset(folder.names())
    except OSError:
        return None
    plan, progress, summary = (
        document(folder / name) if name in there else None
        for name in ("plan.json", "progress.json", "summary.json")
    )
    if plan is not None and "mode" not in plan:
        plan = None  # a trial: nothing but its box was written down
    if plan is None and progress is None:
        return None
    return Record(folder, plan, progress, summary, there)


def document(path: BoxPath) -> dict[str, Any] | None:
    """A JSON object in a file that another process may be writing or removing; None: there is none."""
    try:
        value = shallow(json.loads(path.read_bytes(LARGEST_DOCUMENT)))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def lines_since(path: BoxPath, offset: int) -> tuple[Lines, int]:
    """The whole lines that a growing file has got since, and where to go on; a line that is no object is
    passed over.
    """
    try:
        size = path.stat().st_size
        if size <= offset:
            return [], min(offset, size)
        data = _part(path, offset, size - offset)
    except OSError:
        return [], offset
    whole = data[: data.rfind(b"\n") + 1]
    return list(_objects(whole)), offset + len(whole)


def all_lines(path: BoxPath) -> Lines:
    """All whole lines of a journal; nothing when there is none."""
    try:
        return list(_objects(path.read_bytes(LARGEST_JOURNAL)))
    except OSError:
        return []


def table(value: object) -> Mapping[str, Any]:
    """A JSON object; an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def _part(path: BoxPath, offset: int, length: int) -> bytes:
    """The next bytes, and more of them when they are not even one line."""
    import os

    limit = LARGEST_PART
    descriptor = path.open_regular(os.O_RDONLY)
    try:
        while True:
            data = os.pread(descriptor, limit, offset)
            if b"\n" in data or limit >= min(length, LARGEST_DOCUMENT):
                return data
            limit *= 4
    finally:
        os.close(descriptor)


def _objects(data: bytes) -> Any:
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if line.count(b"[") + line.count(b"{") > DEEPEST:
                shallow(value)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _lives(process: object) -> bool:
    told = table(process)
    pid, start = told.get("pid"), told.get("start")
    return isinstance(pid, int) and isinstance(start, int) and pid > 0 and is_alive(pid, start)
