"""Tasks, batches and runs as immutable values, and their one JSON form."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from longboat.errors import LongboatError, UsageError
from longboat.planting import planted

OPEN = ("pending", "running", "validated")
DONE = ("complete", "skipped")
TASK_STATUSES = (*OPEN, *DONE, "failed", "needs_review")
RUN_STATUSES = ("running", "paused", "failed", "complete")
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")
"""Names of runs and tasks: they become names of directories and of references."""


class StateUnreadable(LongboatError):
    """A run's state is no state; nothing is invented in its place."""

    exit_code = 2


class Task(NamedTuple):
    """One task of a plan, and how far it is."""

    id: str
    name: str
    prompt: str
    depends: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Patterns of the files that it may change."""
    status: str = "pending"
    attempts: int = 0
    """Attempts that failed. One that was broken off costs nothing."""
    generation: int = 0
    """How many workspaces it has had: each attempt gets a new one."""
    conflicts: int = 0
    rescoped: bool = False
    commit: str = ""
    """What passed its gates."""
    base: str = ""
    merged: str = ""
    """The commit of main that brought it."""
    tokens: int = 0
    error: str = ""

    @property
    def locks(self) -> tuple[frozenset[str], frozenset[str]]:
        """What it reads and what it writes."""
        return frozenset(self.reads), frozenset(self.writes)


class Batch(NamedTuple):
    """Tasks that run together and land together."""

    id: int
    tasks: tuple[str, ...]
    phase: str = "running"
    """running, merging, landing, landed, complete, failed."""
    base: str = ""
    target: str = ""
    """While landing: main goes from `base` to `target`."""


class Run(NamedTuple):
    """Everything that is known of a run."""

    id: str
    main: str
    status: str = "running"
    reason: str = ""
    tasks: dict[str, Task] = {}  # noqa: RUF012  replaced, never changed
    batches: tuple[Batch, ...] = ()

    @property
    def tokens(self) -> int:
        """What all tasks have used."""
        tasks = self.tasks.values()
        if planted("left-out-costs-nothing"):
            return sum(task.tokens for task in tasks if task.status != "skipped")
        return sum(task.tokens for task in tasks)

    def with_task(self, *tasks: Task) -> Run:
        """The same run with other tasks."""
        return self._replace(tasks={**self.tasks, **{task.id: task for task in tasks}})

    def with_batch(self, batch: Batch) -> Run:
        """The same run with one more batch, or with a changed one."""
        others = tuple(one for one in self.batches if one.id != batch.id)
        return self._replace(batches=(*others, batch))


def check_name(name: str, what: str) -> str:
    """Refuse a name that could leave its directory."""
    if not SAFE.match(name) or ".." in name or name.endswith((".lock", ".")):
        raise UsageError(f"{what} {name[:60]!r}: letters, digits, '.', '_' and '-', at most 40")
    return name


def to_json(run: Run) -> dict[str, Any]:
    """The form of `state.json`."""
    return {
        **run._asdict(),
        "tasks": {name: task._asdict() for name, task in run.tasks.items()},
        "batches": [batch._asdict() for batch in run.batches],
        "tokens": run.tokens,
    }


def from_json(data: Any, where: str) -> Run:
    """Read `state.json` again; what is no state is refused."""
    try:
        known = {key: data[key] for key in ("id", "main", "status", "reason")}
        tasks = {name: _task(value) for name, value in data["tasks"].items()}
        batches = tuple(
            Batch(**{**value, "tasks": tuple(value["tasks"])}) for value in data["batches"]
        )
        run = Run(**known, tasks=tasks, batches=batches)
        good = run.status in RUN_STATUSES and all(
            task.status in TASK_STATUSES and task.id == name for name, task in tasks.items()
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise StateUnreadable(f"{where} is no state of a run: {error!r}") from None
    if not good:
        raise StateUnreadable(f"{where} is no state of a run: unknown statuses")
    return run


def _task(value: dict[str, Any]) -> Task:
    lists = {key: tuple(value[key]) for key in ("depends", "reads", "writes", "files")}
    return Task(**{**value, **lists})
