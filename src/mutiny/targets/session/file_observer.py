"""Look at sessions that are single files: the checkpoint, its backup, its deltas, and the user's directory.

Such a program writes no log. What it says of itself is the status in the checkpoint; what was done is seen
in the files that its tools have written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mutiny.box.results import ProcessInfo
from mutiny.contracts.session.checkpoints import Point
from mutiny.contracts.session.observation import Plan, SessionView
from mutiny.contracts.session.single_file import Form, Kept, kept_of
from mutiny.system.files import BoxPath
from mutiny.targets.session import damage
from mutiny.targets.session.observer import MEGABYTE, Looked, Observer, stamp_of, text_of

SUFFIX = ".json"
ENDS = {"complete": "session.complete", "failed": "session.failed", "stopped": "session.stop"}


class FileObserver(Observer):
    """Looks at one live target in one box."""

    def __init__(self, live: Looked) -> None:
        super().__init__(live)
        self._begins: dict[str, float] = {}
        self._read: dict[tuple[str, int], tuple[object, Kept]] = {}

    def names(self) -> tuple[str, ...]:
        """All sessions, the newest last; one of which only the backup is left is one."""
        place = self.place()
        files = place.names() if place.is_dir() else ()
        ends = (SUFFIX, f"{SUFFIX}.bak")
        found = {name.removesuffix(end) for name in files for end in ends if name.endswith(end)}
        return self._in_order({name: self._begun_at(name) for name in found})

    def _begun_at(self, name: str) -> float:
        """When it was begun, as far as that was ever readable."""
        if name not in self._begins:
            made = max((kept.created for kept in self._kept(name)), default=0.0)
            if not made:
                return float("inf")
            self._begins[name] = made
        return self._begins[name]

    def events(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """That it was begun, and how it has ended: its status tells no more."""
        whole = [kept for kept in self._kept(name) if kept.point.valid]
        told = whole[-1].status if whole else ""
        word = self._live.spec.statuses.get(told, told)
        begun = {"type": "session.start", "at": 0.0}
        return (begun, {"type": ENDS[word], "at": 0.0}) if word in ENDS else (begun,)

    def driving(self, drivers: list[ProcessInfo], name: str) -> int:
        """Sessions run side by side: those that were told its name, and one that may have begun it."""
        named = [one for one in drivers if name in one.argv]
        others = {known for known in self.names() if known != name}
        nameless = [one for one in drivers if not {name, *others} & set(one.argv)]
        return len(named) + min(1, len(nameless))

    def metrics(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """It keeps none."""
        return ()

    def touch(self, name: str) -> int:
        """A session has one file: there are no older ones."""
        return 0

    def leave_half(self, name: str, what: str) -> bool:
        """It has neither logs nor a git of its own."""
        return False

    def damage(self, name: str, part: str) -> tuple[str, ...]:
        """Damage a part of a session's checkpoints; the names of what was damaged."""
        kept = self._kept(name)
        if part == "delta":
            if not kept or len(kept[-1].point.states) < 2:
                return ()
            damage.last_line(self.place() / f"{name}.delta.jsonl")
            return (f"{kept[-1].point.number}.delta",)
        paths = self._paths(name)
        chosen = paths if part == "all" else paths[-1:]
        for path in chosen:
            damage.checkpoint(path, part, needed=self._form().messages, key=self._key())
        return tuple(str(len(paths) - len(chosen) + place) for place in range(len(chosen)))

    def _session(self, name: str) -> SessionView:
        spec = self._live.spec
        processes = self.processes(name)
        tasks = self._live.notes.tasks
        kept = self._kept(name)
        paths = self._all_paths(name)
        return SessionView(
            name=name,
            project=self._live.notes.project,
            plan=Plan(tasks={task: {"id": task, "path": path} for task, path in tasks.items()}),
            points=_chained([one.point for one in kept]),
            events=self.events(name),
            processes=processes,
            size_mb=sum(len(text_of(path)) for path in paths) / MEGABYTE,
            digest="" if processes.supervisors else _digest(paths),
            written=self._written(tasks) if spec.project else None,
        )

    def _written(self, tasks: Mapping[str, str]) -> dict[str, str]:
        place = self._live.outside(self._live.filled(self._live.spec.project))
        asked = {str(tool["path"]) for row in self._live.api.requests for tool in _tools(row)}
        found = {}
        for path in sorted({*tasks.values(), *asked}):
            try:
                found[path] = hashlib.sha256((place / path).read_bytes()).hexdigest()
            except (OSError, ValueError):
                continue  # not there, or not in there
        return found

    # --- files ---------------------------------------------------------------------------------------

    def _paths(self, name: str) -> list[BoxPath]:
        """The checkpoints that are there, the newest last."""
        both = (self.place() / f"{name}{SUFFIX}.bak", self.place() / f"{name}{SUFFIX}")
        return [path for path in both if path.is_file()]

    def _all_paths(self, name: str) -> list[BoxPath]:
        return [*self._paths(name), self.place() / f"{name}.delta.jsonl"]

    def _kept(self, name: str) -> tuple[Kept, ...]:
        """Its checkpoints, read again only where they have changed; deltas belong to the newest, also while
        only the backup of it is there.
        """
        paths = self._paths(name)
        return tuple(
            self._one(name, number, path, path == paths[-1]) for number, path in enumerate(paths)
        )

    def _one(self, name: str, number: int, path: BoxPath, newest: bool) -> Kept:
        deltas = self.place() / f"{name}.delta.jsonl"
        key, tasks = self._key(), self._live.notes.tasks
        stamp = (path.name, stamp_of(path), stamp_of(deltas) if newest else None, key, tuple(tasks))
        known = self._read.get((name, number))
        if known is None or known[0] != stamp:
            text = text_of(deltas) if newest else ""
            known = (stamp, kept_of(number, text_of(path), text, key, self._form(), tasks))
            self._read[name, number] = known
        return known[1]

    def _form(self) -> Form:
        return self._live.spec.form or Form()

    def _key(self) -> bytes | None:
        """What digests are made with; None: they are plain ones."""
        live = self._live
        return _bytes(live.outside(live.filled(live.spec.key))) if live.spec.key else None


def _chained(points: list[Point]) -> tuple[Point, ...]:
    """A copy is the one before by its place: it needs no name."""
    names = ["", *(point.digest for point in points)]
    return tuple(replace(point, previous=names[place]) for place, point in enumerate(points))


def _tools(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = [*(row.get("tools") or ()), *(row.get("meant") or ())]
    return [tool for tool in rows if tool.get("path")]


def _bytes(path: BoxPath) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _digest(paths: list[BoxPath]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(json.dumps([path.name, text_of(path)]).encode())
    return found.hexdigest()
