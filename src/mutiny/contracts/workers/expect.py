"""Which outcomes of an operation are right, given the beliefs.

A success where a refusal was due is a bug; so is a refusal where success was due. Where the agents'
own pace decides, both are right. The model never guesses: it names the refusals that would be true.
"""

from __future__ import annotations

from dataclasses import replace

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit.domains import BAD_INPUT, strange
from mutiny.model.expectation import Expectation
from mutiny.model.operation import Operation

REJECTIONS = {
    "no_such_worker": "the worker does not exist",
    "not_idle": "the worker is not idle",
    "not_needs_review": "the worker has nothing to review",
    "already_exists": "the worker exists already",
    "nothing_reviewed": "no worker has been reviewed",
    "daemon_running": "the daemon runs already",
    "daemon_down": "the daemon does not run",
    "wrong_state": "the worker's status does not allow it",
    "source_dirty": "the user's checkout has uncommitted changes",
    "not_initialised": "there is no workspace yet",
    "already_initialised": "there is a workspace already",
    "unhealthy": "the health check found problems",
    "state_unreadable": "the state file cannot be read",
    "busy": "another command holds the lock",
    "session_missing": "the worker's session is not there",
    BAD_INPUT: "the target does not take such a value",
}
"""Classes of refusals; a target's profile maps its own texts to them."""


def _must(reason: str) -> Expectation:
    return Expectation(True, frozenset(), reason)


def _refuse(reason: str, *classes: str) -> Expectation:
    return Expectation(False, frozenset(classes), reason)


def _either(reason: str, *classes: str) -> Expectation:
    return Expectation(True, frozenset(classes), reason)


def expect(model: WorkersModel, operation: Operation, seen: Observation | None) -> Expectation:
    """The right outcomes of a command. Waits, faults and assertions are simply due to succeed."""
    if isinstance(operation, op.Init):
        if model.initialised:
            return _refuse("there is a workspace already", "already_initialised")
        return _must("nothing is there yet")
    if not isinstance(operation, _COMMANDS):
        return _must("it is Mutiny's own step")
    if not model.initialised:
        return _expect_uninitialised(operation)
    if model.doubtful:
        return _either("what the state says may be what a fault wrote", *REJECTIONS)
    base = _expect_initialised(model, operation, seen)
    if strange(operation, model.profile.names):
        base = replace(base, rejections=base.rejections | {BAD_INPUT})
    return _widen_for_damage(model, base)


_COMMANDS = (
    *(op.Up, op.Down, op.Add, op.Nuke, op.Start, op.Message, op.Attach, op.Review),
    *(op.Accept, op.Reject, op.Rebase, op.ResetWorker, op.Doctor, op.Status),
)


def _expect_uninitialised(operation: Operation) -> Expectation:
    """Some commands may do without a workspace, but none can find a worker there."""
    classes = ("not_initialised", "no_such_worker", "daemon_down")
    if isinstance(operation, op.Up | op.Down | op.Add | op.Doctor | op.Status):
        return _either("there is no workspace", *classes)
    return _refuse("there is no workspace", *classes, "nothing_reviewed")


def _widen_for_damage(model: WorkersModel, base: Expectation) -> Expectation:
    """After its state was damaged a target may refuse with a true word, but it may not invent
    success.
    """
    if not model.state_damaged:
        return base
    return Expectation(
        base.success,
        base.rejections | {"state_unreadable"},
        base.reason + "; the state was damaged",
    )


def _expect_initialised(
    model: WorkersModel, operation: Operation, seen: Observation | None
) -> Expectation:
    if isinstance(operation, op.Up):
        return _expect_up(model)
    if isinstance(operation, op.Down):
        if model.daemon_certain is True:
            return _must("the daemon runs")
        return _either("nothing may be running", "daemon_down")
    if isinstance(operation, op.Status):
        return _must("status is always answered")
    if isinstance(operation, op.Doctor):
        return _expect_doctor(model, operation)
    if isinstance(operation, op.Add):
        if operation.worker in model.workers:
            return _refuse(f"worker {operation.worker} exists", "already_exists")
        return _must(f"worker {operation.worker} is new")
    if isinstance(operation, op.Reject):
        return _expect_reject(model, seen)
    name = op.worker_of(operation)
    assert name is not None, operation
    daemon = _daemon_classes(model, operation)
    if name not in model.workers:
        return _refuse(f"worker {name} does not exist", "no_such_worker", *daemon.rejections)
    if isinstance(operation, op.Attach):
        return _either("the session may be away", "session_missing")
    return _both(daemon, _expect_status(model, operation, name, seen))


def _expect_up(model: WorkersModel) -> Expectation:
    if model.daemon_certain is True:
        return _refuse("the daemon runs already", "daemon_running")
    if model.daemon_certain is False:
        return _must("no daemon runs")
    return _either("it is not known whether the daemon runs", "daemon_running")


def _expect_doctor(model: WorkersModel, operation: op.Doctor) -> Expectation:
    troubled = (
        model.daemon_certain is not True
        or bool(model.faults)
        or model.state_damaged
        or any(
            belief.offline_allowed or "error" in belief.statuses
            for belief in model.workers.values()
        )
    )
    if not troubled:
        return _must("everything is well")
    return _either("something may be wrong", "unhealthy")


def _expect_reject(model: WorkersModel, seen: Observation | None) -> Expectation:
    daemon = _daemon_classes(model, op.Reject(""))
    name = model.last_reviewed
    if name is None:
        return _refuse("no worker was reviewed", "nothing_reviewed", *daemon.rejections)
    if name not in model.workers:
        return _refuse(
            f"the reviewed worker {name} is gone",
            "nothing_reviewed",
            "no_such_worker",
            *daemon.rejections,
        )
    status = _expect_status(model, op.Reject(""), name, seen)
    # A target may forget the review once the worker has left needs_review: then both are true.
    if status.rejections or model.review_used:
        rejections = status.rejections | {"nothing_reviewed"}
        status = Expectation(status.success, rejections, status.reason)
    return _both(daemon, status)


def _daemon_classes(model: WorkersModel, operation: Operation) -> Expectation:
    """What the daemon alone says about a command."""
    if operation.type not in model.profile.needs_daemon:
        return _must("it does not need the daemon")
    if model.daemon_certain is True:
        return _must("the daemon runs")
    if model.daemon_certain is False:
        return _refuse("the daemon does not run", "daemon_down")
    return _either("the daemon may be down", "daemon_down")


_STATUS_CLASS = {
    "Start": ("not_idle",),
    "Review": ("not_needs_review",),
    "Accept": ("not_needs_review",),
    "Reject": ("not_needs_review",),
    "Rebase": ("wrong_state",),
    "Message": ("wrong_state",),
}


def _expect_status(
    model: WorkersModel, operation: Operation, worker: str, seen: Observation | None
) -> Expectation:
    serves = model.profile.serves(operation.type)
    if serves is None:
        return _must("any status will do")
    possible = model.possible(worker, seen.status_of(worker) if seen else None)
    legal = possible & frozenset(serves)
    classes = _STATUS_CLASS[operation.type]
    shown = ", ".join(sorted(possible))
    if isinstance(operation, op.Accept) and model.source_dirty:
        refusal = ("source_dirty", *classes) if possible - legal else ("source_dirty",)
        if model.profile.dirty_source == "refuse" or not legal:
            return _refuse(f"the user's checkout is dirty, worker {worker} is {shown}", *refusal)
        return _either("the user's checkout is dirty", *refusal)
    if legal == possible:
        return _must(f"worker {worker} is {shown}")
    if not legal:
        return _refuse(f"worker {worker} is {shown}", *classes)
    return _either(f"worker {worker} is one of {shown}", *classes)


def _both(first: Expectation, second: Expectation) -> Expectation:
    """Both conditions must let the command pass; either may refuse it."""
    return Expectation(
        first.success and second.success,
        first.rejections | second.rejections,
        "; ".join(part.reason for part in (first, second) if part.rejections or not part.success)
        or second.reason,
    )
