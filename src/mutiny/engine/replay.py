"""Replay files: a journal, a `minimal_replay.json`, or a bare list of operations.

    {"format": 1, "contract": "workers", "target": "longboat", "plant": "", "seed": 7,
     "expect": "workers.nothing_lost", "techniques": ["SIGKILL by handle"],
     "operations": [{"type": "Reset", "args": {}}, ...]}

A bare list `[{type, args}, ...]` is the form in which a user may write a scenario. What cannot be repeated
faithfully (a newer format, an unknown operation, a box technique that this machine lacks) is refused, never weakened.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutiny.codec import Registry, decode_operation
from mutiny.engine import journal
from mutiny.engine.rundir import FORMAT
from mutiny.errors import FormatError, UsageError
from mutiny.model.operation import Operation


@dataclass(frozen=True)
class Replay:
    """A sequence together with what it takes to repeat it."""

    operations: tuple[Operation, ...]
    contract: str = "workers"
    target: str | None = None
    plant: str = ""
    seed: int = 0
    expect: str | None = None
    isolation: str | None = None

    def as_json(self) -> dict[str, object]:
        """The form of `minimal_replay.json`."""
        return {
            "format": FORMAT,
            "contract": self.contract,
            "target": self.target,
            "plant": self.plant,
            "seed": self.seed,
            "expect": self.expect,
            "isolation": self.isolation,
            "operations": [operation.as_json() for operation in self.operations],
        }


_KEYS = {"format", "contract", "target", "plant", "seed", "expect", "isolation", "operations"}


def load(path: Path, registry: Registry) -> Replay:
    """Read any of the three forms; a directory means the run in it."""
    if path.is_dir():
        return _load_run(path, registry)
    if path.name.endswith(".jsonl"):
        return _from_journal(path, registry)
    return _load_json(path, registry)


def _load_run(path: Path, registry: Registry) -> Replay:
    for name in ("minimal_replay.json", "operations.jsonl"):
        if (path / name).exists():
            return load(path / name, registry)
    raise UsageError(f"{path}: no minimal_replay.json and no operations.jsonl in this directory")


def _from_journal(path: Path, registry: Registry) -> Replay:
    operations = tuple(journal.read_operations(path, registry))
    if not operations:
        raise UsageError(f"{path}: the journal has no operation")
    expect = None
    for record in journal.read_lines(path):
        for violation in record.get("violations", ()):
            expect = expect or str(violation["rule"])
    plan = _plan_of(path)
    return Replay(
        operations,
        str(plan.get("contract", "workers")),
        plan.get("target"),
        str(plan.get("plant") or ""),
        int(plan.get("seed") or 0),
        expect,
        (plan.get("box") or {}).get("technique"),
    )


def _plan_of(path: Path) -> dict[str, Any]:
    plan = path.parent / "plan.json"
    try:
        data = json.loads(plan.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _load_json(path: Path, registry: Registry) -> Replay:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot read the replay file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the replay file is not text: {error.reason}") from error
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(
            str(path), [f"line {error.lineno}: not valid JSON: {error.msg}"]
        ) from error
    if isinstance(data, list):
        return Replay(_operations(data, registry, path))
    if not isinstance(data, dict):
        raise FormatError(str(path), ["expected an object or a list of operations"])
    version = data.get("format")
    if not isinstance(version, int):
        raise FormatError(str(path), ["format: is missing or not a number"])
    if version > FORMAT:
        raise FormatError(
            str(path), [f"format {version} is newer than this Mutiny reads ({FORMAT})"]
        )
    unknown = sorted(set(data) - _KEYS)
    if unknown:
        raise FormatError(str(path), [f"{key}: unknown key" for key in unknown])
    return Replay(
        _operations(data.get("operations"), registry, path),
        str(data.get("contract") or "workers"),
        data.get("target"),
        str(data.get("plant") or ""),
        int(data.get("seed") or 0),
        data.get("expect"),
        data.get("isolation"),
    )


def _operations(data: object, registry: Registry, path: Path) -> tuple[Operation, ...]:
    if not isinstance(data, list) or not data:
        raise FormatError(str(path), ["operations: expected a list with at least one operation"])
    problems: list[str] = []
    operations: list[Operation] = []
    for index, item in enumerate(data, 1):
        try:
            operations.append(decode_operation(item, registry, where=f"operation {index}"))
        except FormatError as error:
            problems.extend(f"operation {index}: {problem}" for problem in error.problems)
    if problems:
        raise FormatError(str(path), problems)
    return tuple(operations)


def python_form(operations: Sequence[Operation], *, mark_last: bool) -> str:
    """The sequence as the seed prints it: one call a line, the last one marked."""
    lines = [str(operation) for operation in operations]
    if mark_last and lines:
        lines[-1] += "  # <- Error occurs here"
    return "\n".join(lines)
