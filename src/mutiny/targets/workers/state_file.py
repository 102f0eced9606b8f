"""The state of a workers target, in the contract's words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mutiny.contracts.workers.observation import TaskView, WorkerView
from mutiny.contracts.workers.operations import STATUSES
from mutiny.probes.records import Raw, Row, StatusRule, at, rows_of, status_of
from mutiny.probes.sources import json_file
from mutiny.system.files import BoxPath


@dataclass(frozen=True)
class StateReading:
    """One look at the state file."""

    exists: bool = False
    error: str | None = None
    daemon_flag: bool | None = None
    workers: Mapping[str, WorkerView] = field(default_factory=dict)
    text: str = ""
    tasks: tuple[TaskView, ...] | None = None
    rows: Mapping[str, Row] = field(default_factory=dict)
    """All that is kept of each worker."""
    document: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class TaskWords:
    """Where and how the target keeps account of tasks."""

    path: str
    text: str
    fate: str
    commit: str
    fates: Mapping[str, str]
    """The target's words for what became of a task -> ours."""


@dataclass(frozen=True)
class StateWords:
    """How the target names things; from its specification."""

    workers: str
    daemon_flag: str
    fields: Mapping[str, str]
    statuses: Mapping[str, str]
    key: str = "name"
    """The field that names a worker in a list of them."""
    rules: tuple[StatusRule, ...] = ()
    tasks: TaskWords | None = None


def read_state(path: BoxPath, words: StateWords) -> StateReading:
    """Read the file; whatever is wrong with it becomes `error`."""
    return interpret(json_file(path), words)


def interpret(
    raw: Raw,
    words: StateWords,
    completed: Callable[[Mapping[str, Row]], Mapping[str, Row]] = lambda rows: rows,
) -> StateReading:
    """What a source gave, in the contract's words; `completed` adds what it does not show."""
    if not raw.exists or raw.error is not None:
        return StateReading(exists=raw.exists, error=raw.error, text=raw.text)
    try:
        rows = completed(rows_of(raw.data, words.workers, words.key))
        workers = {name: _worker(name, row, words) for name, row in rows.items()}
        tasks = None if words.tasks is None else _tasks(raw.data, words.tasks)
        document = raw.data if isinstance(raw.data, Mapping) else None
        flag = _flag(raw.data, words)
        return StateReading(True, None, flag, workers, raw.text, tasks, rows, document)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        text = f"field missing or of the wrong kind: {error}"
        return StateReading(exists=True, error=text, text=raw.text)


def _flag(data: Any, words: StateWords) -> bool | None:
    flag = at(data, words.daemon_flag) if words.daemon_flag else None
    if flag is not None and not isinstance(flag, bool):
        raise TypeError(f"{words.daemon_flag} is {flag!r}, neither true nor false")
    return flag


def _tasks(data: Any, words: TaskWords) -> tuple[TaskView, ...]:
    def view(name: str, row: Row) -> TaskView:
        fate = words.fates.get(str(row[words.fate]))
        if fate is None:
            raise KeyError(f"task {name!r} is {row[words.fate]!r}, which task_fates does not name")
        return TaskView(name, fate, str(row[words.text]), str(row.get(words.commit) or ""))

    return tuple(view(name, row) for name, row in rows_of(data, words.path, "id").items())


def _worker(name: str, row: Row, words: StateWords) -> WorkerView:
    def text(field_name: str) -> str:
        key = words.fields.get(field_name, "")
        return str(row.get(key) or "") if key else ""

    spoken = words.fields["status"]
    if not words.rules and spoken not in row:
        raise KeyError(spoken)
    status = status_of(row, spoken, words.statuses, words.rules)
    if status not in STATUSES:
        raise KeyError(f"worker {name!r} has the unknown status {status!r}")
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
