"""What is believed after a step that is not said to the target: a wait, a fault, a change by the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import AGENT_MOVES, WorkerBelief, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.judging import Moment
from mutiny.model.operation import Operation

When = Moment[Observation]


def follows(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    """The beliefs after a step that was done."""
    if isinstance(operation, common.LibraryFault):
        return injured(model, operation, moment.now)
    handler = _TABLE.get(type(operation))
    return model if handler is None else handler(model, operation, moment)


def _behave(model: WorkersModel, operation: op.Behave, moment: When) -> WorkersModel:
    model = replace(model, scripts={**model.scripts, operation.worker: operation.turns})
    belief = model.workers.get(operation.worker)
    if belief is None:
        return model
    return model.with_worker(replace(belief, behaviours=operation.turns))


def _type_in(model: WorkersModel, operation: op.TypeIn, moment: When) -> WorkersModel:
    """It is a task where there is none, else more of it; until that is noticed nothing has changed."""
    belief = model.workers.get(operation.worker)
    if belief is None:
        return model
    sure = not belief.in_turn and belief.disturbed is None
    for token in moment.tokens:
        model = model.with_work(token, "typed", belief.name, sure=sure)
    return model.with_worker(
        replace(
            belief,
            statuses=belief.statuses | {"working"},
            tokens=(*belief.tokens, *moment.tokens),
            hits=belief.hits if belief.tokens else 0,
            received=False,
            typed=True,
            due_at=model.due(belief, moment.now),
        )
    )


# --- waits ----------------------------------------------------------------------------------------


def _waited(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    name, status = common.worker_of(operation), op.awaited_status(operation)
    if name is None or name not in model.workers or status is None:
        return model
    belief = model.workers[name]
    if status == "offline":  # it is away, and may come back as what it was
        return model.with_worker(replace(belief, offline_allowed=True))
    done = status not in AGENT_MOVES
    # The state may say so before the agent is there; whether the worker is well, `see` decides.
    blind = moment.seen is None
    return model.with_worker(
        replace(
            belief,
            statuses=frozenset({status}),
            offline_allowed=belief.offline_allowed and not blind,
            disturbed=None if done and blind else belief.disturbed,
            due_at=None if done else belief.due_at,
        )
    )


def _received(model: WorkersModel, operation: op.WaitForPrompt, moment: When) -> WorkersModel:
    belief = model.workers.get(operation.worker)
    return model if belief is None else model.with_worker(replace(belief, received=True))


def _settle(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    if model.daemon_certain is not True:  # nobody was there who could have put anything right
        return replace(model, lasting=())

    def at_rest(belief: WorkerBelief) -> WorkerBelief:
        ended = model.closure(belief.statuses, belief) - set(AGENT_MOVES)
        statuses = ended if belief.due_at is not None and ended else belief.statuses
        still = replace(belief, statuses=statuses, offline_allowed=False)
        return replace(still, disturbed=None, due_at=None)

    finished = replace(model, unfinished=model.unfinished - set(model.workers))
    return replace(finished, faults=(), state_damaged=False, lasting=()).with_all(at_rest)


# --- faults ---------------------------------------------------------------------------------------


def _kill_daemon(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    hit = model.fault(str(operation))
    return replace(hit, daemon=frozenset({False}), daemon_killed=True)


def _hit_worker(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    name = common.worker_of(operation)
    return model.disturb(str(operation), (name,) if name else (), moment.now)


def _hit_all(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    return model.disturb(str(operation), tuple(model.workers), moment.now)


def _fault(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    return model.fault(str(operation))


def _corrupt(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    return replace(model.fault(str(operation)), state_damaged=True, repair_asked=False)


def _dirty(model: WorkersModel, operation: op.DirtySource, moment: When) -> WorkersModel:
    return replace(model, source_dirty="" if operation.undo else operation.how)


def _move_source(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    return model.with_all(lambda one: replace(one, stale_base=True) if one.tokens else one)


def injured(model: WorkersModel, operation: common.LibraryFault, now: float) -> WorkersModel:
    """A fault was on, or is on from now on: those who feel it may be away for a while."""
    if operation.harmless:
        return model
    name = common.worker_of(operation.during) if operation.during is not None else None
    alone = operation.spares_others and name is not None
    after = model.disturb(str(operation), (name,) if alone and name else tuple(model.workers), now)
    if isinstance(operation, faults.DamageFile) and operation.file == "state":
        after = replace(after, state_damaged=True, repair_asked=False)
    if isinstance(operation, faults.Forbid):
        after = after.with_all(_may_have_failed)
    killing = isinstance(operation, faults.LowerLimit) and operation.may_kill
    if killing or isinstance(operation.during, op.Up | op.Down):
        after = replace(after, daemon_killed=True)  # its flag may not have been written
    return replace(after, lasting=(*after.lasting, operation)) if operation.lasting else after


def _may_have_failed(belief: WorkerBelief) -> WorkerBelief:
    """What everybody is forbidden hits an agent at its work, too: its turn may fail, and its word that it
    has ended may be lost.
    """
    if not belief.in_turn:
        return belief
    return replace(belief, behaviours=(*belief.behaviours, "no-stop"), due_at=None)


def _heal(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    """All deadlines begin anew: until now nothing had to happen by itself."""
    if not model.lasting:
        return model

    def anew(belief: WorkerBelief) -> WorkerBelief:
        due_at = None if belief.due_at is None else moment.now
        return belief.away("Heal", moment.now, due_at=due_at)

    return replace(model, lasting=()).with_all(anew)


_TABLE: dict[type[Operation], Callable[[WorkersModel, Any, When], WorkersModel]] = {
    op.Behave: _behave,
    op.TypeIn: _type_in,
    op.WaitForIdle: _waited,
    op.WaitForNeedsReview: _waited,
    op.WaitForState: _waited,
    common.Settle: _settle,
    op.WaitForPrompt: _received,
    op.KillDaemon: _kill_daemon,
    op.KillTmuxSession: _hit_worker,
    op.KillAgent: _hit_worker,
    op.KillTmuxServer: _hit_all,
    op.PauseProcess: _fault,
    op.CorruptState: _corrupt,
    op.DirtySource: _dirty,
    op.MoveSource: _move_source,
    common.Heal: _heal,
}
