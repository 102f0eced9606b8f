"""How an operation's outcome changes the beliefs.

`advance` is told what the operation did (`ok`, `refused` or `unknown`) and, when something was
looked at afterwards, what was seen. Symbolic use passes no observation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkerBelief, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import faults
from mutiny.model.operation import Operation

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


def advance(
    model: WorkersModel,
    operation: Operation,
    outcome: str,
    *,
    tokens: tuple[str, ...] = (),
    now: float = 0.0,
    seen: Observation | None = None,
) -> WorkersModel:
    """New beliefs after one operation (combinations are advanced part by part by the caller)."""
    after = step(model, operation, outcome, tokens=tokens, now=now, seen=seen)
    return after.see(seen) if seen is not None else after


def step(
    model: WorkersModel,
    operation: Operation,
    outcome: str,
    *,
    tokens: tuple[str, ...] = (),
    now: float = 0.0,
    seen: Observation | None = None,
) -> WorkersModel:
    """Like `advance`, but not narrowed by what was seen: more commands came before the look."""
    if model.state_damaged and _is_repair(operation):
        model = replace(model, repair_asked=True)
    if outcome == REFUSED:
        return model
    if outcome == UNKNOWN:
        return _unknown(model, operation, tokens, now)
    handler = _HANDLERS.get(type(operation))
    if handler is None or not _about_somebody_known(model, operation):
        return model
    return handler(model, operation, tokens, now, seen)


def _is_repair(operation: Operation) -> bool:
    """Is a target due to look after its own state when it is told this?"""
    return isinstance(operation, op.Up) or (isinstance(operation, op.Doctor) and operation.repair)


def _about_somebody_known(model: WorkersModel, operation: Operation) -> bool:
    """A target that claims to have served a worker that does not exist has changed nothing."""
    if isinstance(operation, op.Reject):
        return model.last_reviewed in model.workers
    if isinstance(operation, _ABOUT_A_WORKER):
        return operation.worker in model.workers
    return True


_ABOUT_A_WORKER = (
    op.Nuke,
    op.ResetWorker,
    op.Start,
    op.Message,
    op.Review,
    op.Rebase,
    op.Accept,
    op.WaitForPrompt,
)


def _unknown(
    model: WorkersModel, operation: Operation, tokens: tuple[str, ...], now: float
) -> WorkersModel:
    """The command may or may not have worked: every status of its worker is possible from here on."""
    name = model.last_reviewed if isinstance(operation, op.Reject) else op.worker_of(operation)
    if name is not None and name in model.workers:
        anything = frozenset(op.STATUSES) - {"offline"}
        model = model.with_worker(
            replace(model.workers[name], statuses=anything, offline_allowed=True)
        )
        for token in tokens:
            model = model.with_work(token, "unknown", name, sure=False)
    return replace(model, faults=(*model.faults, f"{operation.type} with unknown outcome"))


def _init(model: WorkersModel, *_: object) -> WorkersModel:
    return WorkersModel(
        model.profile, initialised=True, scripts=model.scripts, source_dirty=model.source_dirty
    )


def _up(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    after = replace(model, daemon=frozenset({True}), state_damaged=False, daemon_killed=False)
    for belief in model.workers.values():
        due = now if belief.tokens and belief.will_complete and _in_turn(belief) else None
        after = after.with_worker(
            replace(
                belief,
                offline_allowed=True,
                disturbed=belief.disturbed or "Up",
                disturbed_at=now,
                due_at=due,
                hits=belief.hits + (1 if model.profile.restarts_agents_on_up else 0),
            )
        )
    return after


def _in_turn(belief: WorkerBelief) -> bool:
    return bool(belief.statuses & {"working", "rejected", "rebasing", "reviewing"})


def _down(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    after = replace(model, daemon=frozenset({False}), daemon_killed=False)
    for belief in model.workers.values():
        after = after.with_worker(
            replace(
                belief,
                offline_allowed=True,
                disturbed="Down",
                disturbed_at=now,
                due_at=None,
                hits=belief.hits + 1,
            )
        )
    return after


def _add(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, op.Add)
    return model.with_worker(
        WorkerBelief(
            operation.worker,
            frozenset({"idle"}),
            offline_allowed=True,
            disturbed="Add",
            disturbed_at=now,
            behaviours=model.scripts.get(operation.worker, ("obey",)),
        )
    )


def _discard(model: WorkersModel, name: str) -> WorkersModel:
    open_tokens = tuple(
        token for token, work in model.work.items() if work.worker == name and work.fate != "merged"
    )
    return _review_over(model.with_fate(open_tokens, "discarded"), name)


def _review_over(model: WorkersModel, name: str) -> WorkersModel:
    """The task that was reviewed is merged or given up."""
    return replace(model, review_used=True) if model.last_reviewed == name else model


def _nuke(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    assert isinstance(operation, op.Nuke)
    return _discard(model, operation.worker).without_worker(operation.worker)


def _reset_worker(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, op.ResetWorker)
    belief = model.workers[operation.worker]
    return _discard(model, operation.worker).with_worker(
        replace(
            belief,
            statuses=frozenset({"idle"}),
            offline_allowed=True,
            disturbed="ResetWorker",
            disturbed_at=now,
            tokens=(),
            due_at=None,
            stale_base=False,
        )
    )


def _start(
    model: WorkersModel, operation: Operation, tokens: tuple[str, ...], now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, op.Start)
    belief = model.workers[operation.worker]
    before = frozenset({"idle"}) if not model.profile.start_is_immediate else frozenset()
    for token in tokens:
        model = model.with_work(token, "task", operation.worker, sure=True)
    return model.with_worker(
        replace(
            belief,
            statuses=frozenset({"working"}) | before,
            tokens=tokens,
            hits=0,
            received=False,
            stale_base=False,
            due_at=now if belief.will_complete else None,
        )
    )


def _told(
    model: WorkersModel,
    name: str,
    kind: str,
    statuses: frozenset[str],
    tokens: tuple[str, ...],
    now: float,
) -> WorkersModel:
    """A worker with a task was told something more."""
    belief = model.workers[name]
    for token in tokens:
        model = model.with_work(token, kind, name, sure=True)
    return model.with_worker(
        replace(
            belief,
            statuses=statuses,
            tokens=(*belief.tokens, *tokens),
            received=False,
            due_at=now if belief.will_complete else None,
        )
    )


def _message(
    model: WorkersModel, operation: Operation, tokens: tuple[str, ...], now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, op.Message)
    belief = model.workers[operation.worker]
    return _told(model, operation.worker, "message", belief.statuses | {"working"}, tokens, now)


def _reject(
    model: WorkersModel, operation: Operation, tokens: tuple[str, ...], now: float, seen: object
) -> WorkersModel:
    assert model.last_reviewed is not None
    return _told(model, model.last_reviewed, "reject", frozenset({"rejected"}), tokens, now)


def _rebased(model: WorkersModel, name: str, now: float, statuses: frozenset[str]) -> WorkersModel:
    """A rebase was asked for or may happen: with a stale base it can end in a conflict."""
    belief = model.workers[name]
    conflict = frozenset({"rebasing"}) if belief.stale_base else frozenset()
    return model.with_worker(
        replace(
            belief,
            statuses=statuses | conflict,
            due_at=now if conflict and belief.will_complete else belief.due_at,
            stale_base=belief.stale_base,
        )
    )


def _review(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, op.Review)
    after = replace(model, last_reviewed=operation.worker, review_used=False)
    return _rebased(after, operation.worker, now, frozenset({"needs_review"}))


def _rebase(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, op.Rebase)
    return _rebased(model, operation.worker, now, model.workers[operation.worker].statuses)


def _accept(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: Observation | None
) -> WorkersModel:
    assert isinstance(operation, op.Accept)
    name = operation.worker
    belief = model.workers[name]
    status = seen.status_of(name) if seen is not None else None
    if belief.stale_base and status not in ("idle", "offline", None):
        return _rebased(model, name, now, frozenset({"rebasing"}))
    merged = _review_over(model.with_fate(belief.tokens, "merged"), name)
    statuses = frozenset({"idle", "rebasing"} if belief.stale_base and seen is None else {"idle"})
    for other in model.workers.values():
        if other.name != name and other.tokens:
            merged = merged.with_worker(replace(other, stale_base=True))
    return merged.with_worker(
        replace(belief, statuses=statuses, tokens=(), due_at=None, stale_base=False, hits=0)
    )


def ends_of_accept(model: WorkersModel, operation: op.Accept, now: float) -> list[WorkersModel]:
    """How an accept that nobody saw end can have ended: merged, or a conflict is with the agent."""
    name, done = operation.worker, step(model, operation, OK, now=now)
    belief = model.workers.get(name)
    if belief is None or not belief.stale_base:
        return [done]
    merged = done.with_worker(replace(done.workers[name], statuses=frozenset({"idle"})))
    return [merged, _rebased(model, name, now, frozenset({"rebasing"}))]


def _behave(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    assert isinstance(operation, op.Behave)
    model = replace(model, scripts={**model.scripts, operation.worker: operation.turns})
    belief = model.workers.get(operation.worker)
    if belief is None:
        return model
    return model.with_worker(replace(belief, behaviours=operation.turns))


def _doctor(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    assert isinstance(operation, op.Doctor)
    return replace(model, state_damaged=False) if operation.repair else model


def _waited(
    model: WorkersModel,
    operation: Operation,
    tokens: object,
    now: float,
    seen: Observation | None,
) -> WorkersModel:
    name, status = op.worker_of(operation), op.awaited_status(operation)
    if name is None or name not in model.workers or status is None:
        return model
    belief = model.workers[name]
    if status == "offline":  # it is away, and may come back as what it was
        return model.with_worker(replace(belief, offline_allowed=True))
    done = status not in ("working", "rejected", "rebasing", "reviewing")
    # The state may say so before the agent is there; whether the worker is well, `see` decides.
    blind = seen is None
    return model.with_worker(
        replace(
            belief,
            statuses=frozenset({status}),
            offline_allowed=belief.offline_allowed and not blind,
            disturbed=None if done and blind else belief.disturbed,
            due_at=None if done else belief.due_at,
        )
    )


def _received(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    assert isinstance(operation, op.WaitForPrompt)
    return model.with_worker(replace(model.workers[operation.worker], received=True))


def _settle(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    if model.daemon_certain is not True:  # nobody was there who could have put anything right
        return replace(model, lasting=())
    after = replace(model, faults=(), state_damaged=False, lasting=())
    for belief in model.workers.values():
        ended = frozenset(s for s in model.closure(belief.statuses, belief) if s not in _BUSY)
        statuses = ended if belief.due_at is not None and ended else belief.statuses
        after = after.with_worker(
            replace(belief, statuses=statuses, offline_allowed=False, disturbed=None, due_at=None)
        )
    return after


_BUSY = ("working", "rejected", "rebasing", "reviewing")


def _kill_daemon(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    return replace(
        model,
        daemon=frozenset({False}),
        daemon_killed=True,
        faults=(*model.faults, str(operation)),
    )


def _hit_worker(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    name = op.worker_of(operation)
    return model.disturb(str(operation), (name,) if name else (), now)


def _hit_all(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    return model.disturb(str(operation), tuple(model.workers), now)


def _fault(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    return replace(model, faults=(*model.faults, str(operation)))


def _corrupt(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    damaged = replace(model, state_damaged=True, repair_asked=False)
    return replace(damaged, faults=(*model.faults, str(operation)))


def _dirty(model: WorkersModel, operation: Operation, *_: object) -> WorkersModel:
    assert isinstance(operation, op.DirtySource)
    return replace(model, source_dirty=not operation.undo)


def _move_source(model: WorkersModel, *_: object) -> WorkersModel:
    for belief in model.workers.values():
        if belief.tokens:
            model = model.with_worker(replace(belief, stale_base=True))
    return model


def injured(model: WorkersModel, operation: faults.LibraryFault, now: float) -> WorkersModel:
    """A fault was on, or is on from now on: those who feel it may be away for a while."""
    name = op.worker_of(operation.during) if operation.during is not None else None
    alone = operation.spares_others and name is not None
    after = model.disturb(str(operation), (name,) if alone and name else tuple(model.workers), now)
    if isinstance(operation, faults.DamageFile) and operation.file == "state":
        after = replace(after, state_damaged=True, repair_asked=False)
    killing = isinstance(operation, faults.LowerLimit) and operation.may_kill
    if killing or isinstance(operation.during, op.Up | op.Down):
        after = replace(after, daemon_killed=True)  # its flag may not have been written
    return replace(after, lasting=(*after.lasting, operation)) if operation.lasting else after


def _injured(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    assert isinstance(operation, faults.LibraryFault)
    return injured(model, operation, now)


def _heal(
    model: WorkersModel, operation: Operation, tokens: object, now: float, seen: object
) -> WorkersModel:
    """All deadlines begin anew: until now nothing had to happen by itself."""
    if not model.lasting:
        return model
    after = replace(model, lasting=())
    for belief in model.workers.values():
        after = after.with_worker(
            replace(
                belief,
                offline_allowed=True,
                disturbed="Heal",
                disturbed_at=now,
                due_at=None if belief.due_at is None else now,
            )
        )
    return after


Handler = Callable[[WorkersModel, Any, tuple[str, ...], float, Observation | None], WorkersModel]

_HANDLERS: dict[type[Operation], Handler] = {
    op.Init: _init,
    op.Up: _up,
    op.Down: _down,
    op.Add: _add,
    op.Nuke: _nuke,
    op.ResetWorker: _reset_worker,
    op.Start: _start,
    op.Message: _message,
    op.Reject: _reject,
    op.Review: _review,
    op.Rebase: _rebase,
    op.Accept: _accept,
    op.Behave: _behave,
    op.Doctor: _doctor,
    op.WaitForIdle: _waited,
    op.WaitForNeedsReview: _waited,
    op.WaitForState: _waited,
    op.Settle: _settle,
    op.WaitForPrompt: _received,
    op.KillDaemon: _kill_daemon,
    op.KillTmuxSession: _hit_worker,
    op.KillAgent: _hit_worker,
    op.KillTmuxServer: _hit_all,
    op.PauseProcess: _fault,
    op.CorruptState: _corrupt,
    op.DirtySource: _dirty,
    op.MoveSource: _move_source,
    faults.Heal: _heal,
    **dict.fromkeys(faults.INJURIES, _injured),
}
