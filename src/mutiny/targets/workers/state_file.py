"""The target's state file, in the contract's words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mutiny.contracts.workers.observation import WorkerView
from mutiny.contracts.workers.operations import STATUSES
from mutiny.system.files import BoxPath, UnsafeFile


@dataclass(frozen=True)
class StateReading:
    """One look at the state file."""

    exists: bool = False
    error: str | None = None
    daemon_flag: bool | None = None
    workers: Mapping[str, WorkerView] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True)
class StateWords:
    """How the target names things; from its specification."""

    workers: str
    daemon_flag: str
    fields: Mapping[str, str]
    statuses: Mapping[str, str]


def read_state(path: BoxPath, words: StateWords) -> StateReading:
    """Read the file; whatever is wrong with it becomes `error`. One that cannot be looked at safely is
    not wrong but unknown: UnsafeFile.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return StateReading()
    except UnsafeFile:
        raise
    except (OSError, UnicodeDecodeError) as error:
        return StateReading(exists=True, error=str(error))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        return StateReading(exists=True, error=f"not valid JSON: {error}", text=text)
    try:
        return _interpret(data, words, text)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return StateReading(
            exists=True, error=f"field missing or of the wrong kind: {error}", text=text
        )


def _interpret(data: Any, words: StateWords, text: str) -> StateReading:
    raw = _at(data, words.workers)
    rows = {row["name"]: row for row in raw} if isinstance(raw, list) else dict(raw)
    workers = {name: _worker(name, row, words) for name, row in rows.items()}
    flag = _at(data, words.daemon_flag) if words.daemon_flag else None
    if flag is not None and not isinstance(flag, bool):
        raise TypeError(f"{words.daemon_flag} is {flag!r}, neither true nor false")
    return StateReading(True, None, flag, workers, text)


def _worker(name: str, row: Any, words: StateWords) -> WorkerView:
    def text(field_name: str) -> str:
        key = words.fields.get(field_name, "")
        return str(row.get(key) or "") if key else ""

    if not isinstance(name, str):
        raise TypeError(f"the worker's name {name!r} is no text")
    spoken = str(row[words.fields["status"]])
    status = words.statuses.get(spoken, spoken)
    if status not in STATUSES:
        raise KeyError(f"worker {name!r} has the unknown status {spoken!r}")
    return WorkerView(
        name=name,
        status=status,
        branch=text("branch"),
        worktree=text("worktree"),
        session=text("session"),
        prompt=text("prompt"),
        pending_prompt=text("pending_prompt"),
        commit_sha=text("commit_sha") or None,
        error_reason=text("error_reason") or None,
    )


def _at(data: Any, path: str) -> Any:
    """The value at a dotted path."""
    for key in path.split("."):
        data = data[key]
    return data
