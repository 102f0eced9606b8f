"""One task of a board: its situations, what moves it from one to the next, what explains a refusal.

Where the meaning of a board leaves a choice (may a claimed task be completed before it is started?)
both ways are allowed: a checker that cries wolf is worse than one that misses a matter of taste.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

HELD = ("claimed", "in_progress")
TERMINAL = ("done", "failed", "cancelled")
UNTOLD = "untold"
"""A refusal whose words the target file assigns to no class."""
OUTSIDE = frozenset(
    {"rate_limited", "breaker_open", "unreadable", "busy", "no_space", "bad_input"}
    | {"not_initialised", "cycle", "dependency_missing", UNTOLD}
)
"""Refusals that say nothing about the task itself."""


class Task(NamedTuple):
    """One situation of one task."""

    status: str = "absent"
    owner: str | None = None
    epoch: int = 0
    epoch_known: bool = True
    """False after a claim without an answer: then `epoch` is only the least that it can be."""
    attempts: int = 0
    limit: int | None = None
    since: float = 0.0
    """When the present claim was asked for; only kept when leases run out."""
    depends: bool = False
    """It has dependencies, so that it may be blocked."""

    def __str__(self) -> str:
        if self.status not in HELD:
            return self.status
        epoch = self.epoch if self.epoch_known else f"{self.epoch} or more"
        return f"{self.status} by {self.owner}, epoch {epoch}"


class TaskAction(NamedTuple):
    """One operation on one task, with all that counts of its answer."""

    operation: str
    worker: str = ""
    epoch: int | None = None
    """Of a claim: the one that was given; otherwise the one that was named, if any."""
    error: str = ""
    answered: bool = True
    depends: bool = False
    limit: int | None = None
    row: tuple[object, object, object] | None = None
    """What `list` showed: status, owner, epoch; None when the task was not in the list."""
    invoked: float = 0.0
    latest: float = 0.0
    wider: bool = False
    """The board means more by this command than others do: `board.Meaning` says what."""
    edits: bool = False
    """A claim takes whatever it names."""
    again: bool = False
    """An owner may begin what it has begun."""
    guarded: bool = False
    """A claimed task cannot be cancelled."""


def with_silent(tasks: Iterable[Task]) -> frozenset[Task]:
    """Add what may happen without anybody naming the task: a dependency is met, or fails for good."""
    found = set(tasks)
    for task in tuple(found):
        if task.status == "blocked":
            found |= {task._replace(status="available"), task._replace(status="failed")}
    return frozenset(found)


def given_back(task: Task) -> tuple[Task, ...]:
    """After a failed attempt or a lease that ran out: available again, or failed for good."""
    attempts = task.attempts + 1
    free = task._replace(status="available", owner=None, attempts=attempts, since=0.0)
    over = free._replace(status="failed")
    if task.limit is None:
        # Nothing is counted, so that the situations do not multiply; one attempt is remembered
        # because a task may rest after it.
        return (free._replace(attempts=1), over._replace(attempts=1))
    return (over,) if attempts >= task.limit else (free,)


def moved(task: Task, action: TaskAction) -> tuple[Task, ...]:
    """Every situation that a success of the action may lead to; none when it cannot succeed."""
    return _MOVES[action.operation](task, action)


def explains(task: Task, action: TaskAction) -> bool:
    """Is the refusal true in this situation? A board that leaves open which of several it is says all
    of them, with bars between.
    """
    words = action.error.split("|")
    if any(word in OUTSIDE for word in words):
        return True
    found = (_REFUSALS.get(word) for word in words)
    return any(condition is not None and condition(task, action) for condition in found)


def shows(task: Task, row: tuple[object, object, object] | None) -> bool:
    """Could `list` have shown the task so?"""
    if row is None or task.status == "absent":
        return row is None and task.status == "absent"
    status, owner, epoch = row
    if status != task.status or (task.status in HELD and owner != task.owner):
        return False
    return not isinstance(epoch, int) or _same_epoch(task, epoch)


def _same_epoch(task: Task, epoch: int) -> bool:
    return epoch == task.epoch if task.epoch_known else epoch >= task.epoch


def _holds(task: Task, action: TaskAction) -> bool:
    """May this worker speak for the task? Where anybody may, `wider` says so."""
    if action.wider and task.status != "absent":
        return True
    if task.status not in HELD or task.owner != action.worker:
        return False
    return action.epoch is None or _same_epoch(task, action.epoch)


def _add(task: Task, action: TaskAction) -> tuple[Task, ...]:
    if task.status != "absent":
        return ()
    status = "blocked" if action.depends else "available"
    return (Task(status, limit=action.limit, depends=action.depends),)


def _claim(task: Task, action: TaskAction) -> tuple[Task, ...]:
    if action.wider and task.status in HELD and task.owner == action.worker:
        return (task,)  # its owner was told so again
    if task.status != "available" and not (action.edits and task.status != "absent"):
        return ()
    if action.epoch is not None and action.epoch <= task.epoch:
        return ()  # a fencing number that does not grow protects nobody
    return (
        task._replace(
            status="claimed",
            owner=action.worker,
            epoch=task.epoch + 1 if action.epoch is None else action.epoch,
            epoch_known=action.epoch is not None,
            since=action.invoked,
        ),
    )


def _start(task: Task, action: TaskAction) -> tuple[Task, ...]:
    repeated = action.wider or (action.again and task.status == "in_progress")
    if not _holds(task, action) or not (task.status == "claimed" or repeated):
        return ()
    return (_seen(task, action)._replace(status="in_progress"),)


def _complete(task: Task, action: TaskAction) -> tuple[Task, ...]:
    return (_seen(task, action)._replace(status="done"),) if _holds(task, action) else ()


def _fail(task: Task, action: TaskAction) -> tuple[Task, ...]:
    return given_back(_seen(task, action)) if _holds(task, action) else ()


def _release(task: Task, action: TaskAction) -> tuple[Task, ...]:
    if not _holds(task, action):
        return ()
    return (_seen(task, action)._replace(status="available", owner=None, since=0.0),)


def _cancel(task: Task, action: TaskAction) -> tuple[Task, ...]:
    if task.status == "failed" and action.wider:
        return (task._replace(status="cancelled", owner=None, since=0.0),)
    if task.status in ("absent", *TERMINAL) or (action.guarded and task.status in HELD):
        return ()
    return (task._replace(status="cancelled", owner=None, since=0.0),)


def _retry(task: Task, action: TaskAction) -> tuple[Task, ...]:
    if task.status != "failed":
        return ()
    free = task._replace(status="blocked" if task.depends else "available", owner=None)
    # By hand: whether the earlier attempts still count, and whether it rests, is left open.
    return (free, free._replace(attempts=0))


def _recover(task: Task, action: TaskAction) -> tuple[Task, ...]:
    return given_back(task) if task.status in HELD else ()


def _seen(task: Task, action: TaskAction) -> Task:
    """An epoch that was accepted is known from then on."""
    if action.epoch is None or task.epoch_known:
        return task
    return task._replace(epoch=action.epoch, epoch_known=True)


_Move = Callable[[Task, TaskAction], tuple[Task, ...]]
_MOVES: Mapping[str, _Move] = {
    "add": _add,
    "claim": _claim,
    "start": _start,
    "complete": _complete,
    "fail": _fail,
    "release": _release,
    "cancel": _cancel,
    "retry": _retry,
    "recover": _recover,
}
OPERATIONS = (*_MOVES, "list")


def _wrong_status(task: Task, action: TaskAction) -> bool:
    wanted: Mapping[str, tuple[str, ...]] = {
        "claim": ("available",),
        "start": ("claimed",),
        "complete": ("in_progress",),
        "fail": ("in_progress",),
        "release": HELD,
        "cancel": ("blocked", "available", *(() if action.guarded else HELD)),
        "retry": ("failed",),
    }
    return task.status != "absent" and task.status not in wanted.get(action.operation, ())


def _not_available(task: Task, action: TaskAction) -> bool:
    resting = task.status == "available" and task.attempts > 0
    return task.status != "absent" and (task.status != "available" or resting)


def _dependencies_open(task: Task, action: TaskAction) -> bool:
    failed_with_them = action.operation == "retry" and task.depends and task.status == "failed"
    return task.status == "blocked" or failed_with_them


def _not_owner(task: Task, action: TaskAction) -> bool:
    return task.status != "absent" and task.owner != action.worker


def _stale_epoch(task: Task, action: TaskAction) -> bool:
    if task.status == "absent":
        return False
    other = action.epoch is not None and (action.epoch != task.epoch or not task.epoch_known)
    return other or task.owner != action.worker


_REFUSALS: Mapping[str, Callable[[Task, TaskAction], bool]] = {
    "unknown_task": lambda task, action: task.status == "absent",
    "duplicate_id": lambda task, action: task.status != "absent",
    "wrong_status": _wrong_status,
    "task_not_available": _not_available,
    "nothing_to_claim": _not_available,
    "dependencies_open": _dependencies_open,
    "not_owner": _not_owner,
    "stale_epoch": _stale_epoch,
}
