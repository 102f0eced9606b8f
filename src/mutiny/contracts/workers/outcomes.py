"""Every right outcome of a command: what it answers, and what is believed afterwards.

Each command has one row in a table: when it is due to be served or refused, and what follows when it is
served. A success where a refusal was due is a bug; so is a refusal where success was due. Where the agents'
own pace decides, both are right. The model never guesses: it names the refusals that would be true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import ADDED, AGENT_MOVES, WorkerBelief, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import operations as common
from mutiny.kit.beliefs import ANYTIME
from mutiny.kit.domains import BAD_INPUT, strange
from mutiny.kit.judging import Moment
from mutiny.kit.outcome import Outcome, expected, no, ok
from mutiny.model.expectation import Expectation
from mutiny.model.operation import Operation

When = Moment[Observation]
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


def outcomes(
    model: WorkersModel, operation: Operation, moment: When
) -> tuple[Outcome[WorkersModel], ...]:
    """All right outcomes of one command."""
    due = _due(model, operation, moment.before)
    found: list[Outcome[WorkersModel]] = []
    if due.success:
        found += [
            ok(after, due.reason, name)
            for meant, name in _meant(model, operation, moment)
            for after in _ends(model, meant, moment)
        ]
    if due.rejections:
        found.append(no(refused(model, operation, moment), due.reason, *due.rejections))
    return tuple(found)


def _meant(
    model: WorkersModel, operation: Operation, moment: When
) -> tuple[tuple[Operation, str | None], ...]:
    """What a command without a name can mean, and whom its answer must name then."""
    if isinstance(operation, op.ReviewNext):
        names, _ = model.next_reviews(moment.before, moment.seen)
        return tuple((op.Review(name), name) for name in names) or ((operation, None),)
    if isinstance(operation, op.AcceptReviewed) and model.last_reviewed is not None:
        return ((op.Accept(model.last_reviewed), None),)
    return ((operation, None),)


def _ends(model: WorkersModel, operation: Operation, moment: When) -> tuple[WorkersModel, ...]:
    """How a command that was served can have ended: an accept that nobody saw end has merged, or a
    conflict is with the agent; a review that met a conflict has shown nothing yet.
    """
    done = served(model, operation, moment)
    belief = model.workers.get(common.worker_of(operation) or "")
    if belief is None or not belief.stale_base:
        return (done,)
    if isinstance(operation, op.Review):
        before = replace(done, last_reviewed=model.last_reviewed, review_used=model.review_used)
        return done, before
    if not isinstance(operation, op.Accept) or moment.seen:
        return (done,)
    merged = done
    if belief.name in done.workers:
        merged = done.with_worker(replace(done.workers[belief.name], statuses=frozenset({"idle"})))
    return merged, _rebased(model, belief.name, moment, frozenset({"rebasing"}))


def expect(
    model: WorkersModel, operation: Operation, seen: Observation | None = None
) -> Expectation:
    """What is expected of a command, without what follows."""
    return expected(outcomes(model, operation, Moment(seen)))


def served(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    """What is believed after a command that was served, whether that was due or not."""
    model = refused(model, operation, moment)
    if isinstance(operation, op.Add | op.Nuke | op.ResetWorker | op.Start):
        model = replace(model, unfinished=model.unfinished - {operation.worker})
    operation = _meant(model, operation, moment)[0][0]
    row = _TABLE.get(type(operation))
    if row is None or not _about_somebody_known(model, operation):
        return model
    return row[1](model, operation, moment)


def refused(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    """What is believed after a command was given and did nothing.

    A target is due to look after its own state when it is told to come up or to repair itself.
    """
    repairs = isinstance(operation, op.Up) or (
        isinstance(operation, op.Doctor) and operation.repair
    )
    return replace(model, repair_asked=True) if model.state_damaged and repairs else model


def _about_somebody_known(model: WorkersModel, operation: Operation) -> bool:
    """A target that claims to have served a worker that does not exist has changed nothing."""
    if isinstance(operation, op.Reject):
        return model.last_reviewed in model.workers
    return isinstance(operation, op.Add) or common.worker_of(operation) in (None, *model.workers)


# --- what is due ----------------------------------------------------------------------------------


def _must(reason: str) -> Expectation:
    return Expectation(True, frozenset(), reason)


def _refuse(reason: str, *classes: str) -> Expectation:
    return Expectation(False, frozenset(classes), reason)


def _either(reason: str, *classes: str) -> Expectation:
    return Expectation(True, frozenset(classes), reason)


def _both(first: Expectation, second: Expectation) -> Expectation:
    """Both conditions must let the command pass; either may refuse it."""
    return Expectation(
        first.success and second.success,
        first.rejections | second.rejections,
        "; ".join(part.reason for part in (first, second) if part.rejections or not part.success)
        or second.reason,
    )


def _due(model: WorkersModel, operation: Operation, seen: Observation | None) -> Expectation:
    if isinstance(operation, op.Init):
        return _due_init(model)
    row = _TABLE.get(type(operation))
    if row is None:
        return _must("it is Mutiny's own step")
    if not model.initialised:
        return _due_uninitialised(operation)
    if model.doubted:
        return _either("what the state says may be what a fault wrote", *REJECTIONS)
    base = row[0](model, operation, seen)
    known = () if isinstance(operation, op.Add) else model.workers
    if strange(operation, model.profile.names, known):
        base = replace(base, rejections=base.rejections | {BAD_INPUT})
    if not model.state_damaged:
        return base
    # It may refuse with a true word, but it may not invent success.
    reason = f"{base.reason}; the state was damaged"
    return Expectation(base.success, base.rejections | {"state_unreadable"}, reason)


def _due_uninitialised(operation: Operation) -> Expectation:
    """Some commands may do without a workspace, but none can find a worker there."""
    classes = ("not_initialised", "no_such_worker", "daemon_down")
    if isinstance(operation, op.Up | op.Down | op.Add | op.Doctor | op.Status):
        return _either("there is no workspace", *classes)
    return _refuse("there is no workspace", *classes, "nothing_reviewed")


def _due_init(model: WorkersModel, *_: object) -> Expectation:
    if model.initialised and model.profile.makes_workspace:
        return _refuse("there is a workspace already", "already_initialised")
    return _must("nothing is there yet")


def _due_up(model: WorkersModel, *_: object) -> Expectation:
    if model.daemon_certain is True:
        return _refuse("the daemon runs already", "daemon_running")
    if model.daemon_certain is False:
        return _must("no daemon runs")
    return _either("it is not known whether the daemon runs", "daemon_running")


def _due_down(model: WorkersModel, *_: object) -> Expectation:
    if model.daemon_certain is True:
        return _must("the daemon runs")
    return _either("nothing may be running", "daemon_down")


def _due_status(model: WorkersModel, *_: object) -> Expectation:
    return _must("status is always answered")


def _due_doctor(model: WorkersModel, *_: object) -> Expectation:
    away = (one.offline_allowed or "error" in one.statuses for one in model.workers.values())
    troubled = model.daemon_certain is not True or model.faults or model.state_damaged
    if troubled or any(away):
        return _either("something may be wrong", "unhealthy")
    return _must("everything is well")


def _due_add(model: WorkersModel, operation: op.Add, seen: object) -> Expectation:
    if operation.worker in model.workers and not model.profile.takes_names:
        return _must(
            f"worker {operation.worker} exists, and nobody else can be asked for by that name"
        )
    if operation.worker in model.workers:
        return _refuse(f"worker {operation.worker} exists", "already_exists")
    return _must(f"worker {operation.worker} is new")


def _due_review_next(
    model: WorkersModel, operation: op.ReviewNext, seen: Observation | None
) -> Expectation:
    names, sure = model.next_reviews(seen)
    daemon = _due_by_daemon(model, op.Review(""))
    shown = f"{', '.join(names) or 'nobody'} may have waited longest for a review"
    if sure:
        return _both(daemon, _must(shown))
    judged = _either if names else _refuse
    return _both(daemon, judged(shown, "not_needs_review"))


def _due_accept_reviewed(
    model: WorkersModel, operation: op.AcceptReviewed, seen: Observation | None
) -> Expectation:
    return _due_by_review(model, op.Accept(model.last_reviewed or ""), seen)


def _due_by_review(
    model: WorkersModel, operation: op.Reject | op.Accept, seen: Observation | None
) -> Expectation:
    """A command about whoever was reviewed last."""
    daemon = _due_by_daemon(model, operation)
    name = model.last_reviewed
    if name is None:
        return _refuse("no worker was reviewed", "nothing_reviewed", *daemon.rejections)
    if name not in model.workers:
        gone = ("nothing_reviewed", "no_such_worker", *daemon.rejections)
        return _refuse(f"the reviewed worker {name} is gone", *gone)
    if model.review_used and model.profile.review_per_task and not model.faults:
        over = ("nothing_reviewed", "not_needs_review", *daemon.rejections)
        return _refuse(f"what was reviewed of worker {name} is merged or given up", *over)
    status = _due_by_status(model, operation, name, seen)
    # A target may forget the review once the worker has left needs_review: then both are true.
    if status.rejections or model.review_used:
        rejections = status.rejections | {"nothing_reviewed"}
        status = Expectation(status.success, rejections, status.reason)
    return _both(daemon, status)


def _due_by_worker(
    model: WorkersModel, operation: Operation, seen: Observation | None
) -> Expectation:
    """A command about one worker: the daemon and the worker's status decide."""
    name = common.worker_of(operation)
    assert name is not None, operation
    daemon = _due_by_daemon(model, operation)
    gone = f"worker {name} does not exist"
    if name not in model.workers:
        if name in model.unfinished and isinstance(operation, op.Nuke):
            left = f"{gone}, or something of it is left"
            return _both(daemon, _either(left, "no_such_worker"))
        return _refuse(gone, "no_such_worker", *daemon.rejections)
    if isinstance(operation, op.Attach):
        return _either("the session may be away", "session_missing")
    return _both(daemon, _due_by_status(model, operation, name, seen))


def _due_by_daemon(model: WorkersModel, operation: Operation) -> Expectation:
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


def _due_by_status(
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
        # An untracked file only matters to work that has a file of that name.
        certain = model.profile.dirty_source == "refuse" and model.source_dirty != "untracked"
        if certain or not legal:
            return _refuse(f"the user's checkout is dirty, worker {worker} is {shown}", *refusal)
        return _either("the user's checkout is dirty", *refusal)
    if legal == possible:
        return _must(f"worker {worker} is {shown}")
    if not legal:
        return _refuse(f"worker {worker} is {shown}", *classes)
    return _either(f"worker {worker} is one of {shown}", *classes)


# --- what follows ---------------------------------------------------------------------------------


def _same(model: WorkersModel, *_: object) -> WorkersModel:
    return model


def _init(model: WorkersModel, *_: object) -> WorkersModel:
    if model.initialised and not model.profile.makes_workspace:
        return model
    return WorkersModel(
        model.profile, initialised=True, scripts=model.scripts, source_dirty=model.source_dirty
    )


def _up(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    after = replace(
        model, daemon=frozenset({True}), state_damaged=False, daemon_killed=False, daemon_told=False
    )
    restarted = 1 if model.profile.restarts_agents_on_up else 0

    def come_up(belief: WorkerBelief) -> WorkerBelief:
        belief = _as_before(model, belief)
        due = belief.tokens and belief.will_complete and belief.in_turn
        due_at, hits = moment.now if due else None, belief.hits + restarted
        more = {"due_at": due_at, "hits": hits, **_owed(model, belief)}
        return belief.away(belief.disturbed or "Up", moment.now, **more)

    return after.with_all(come_up)


def _as_before(model: WorkersModel, belief: WorkerBelief) -> WorkerBelief:
    """Who was given up is tried again, and an old copy of the state tells of a turn that has ended since.

    Both are then at work as they were before.
    """
    if not model.state_damaged and "error" not in belief.statuses:
        return belief
    again = frozenset(AGENT_MOVES) if belief.tokens else frozenset({"idle"})
    return replace(belief, statuses=belief.statuses | again)


def _down(model: WorkersModel, operation: Operation, moment: When) -> WorkersModel:
    left = model.daemon_killed and model.profile.crash_flag
    after = replace(model, daemon=frozenset({False}), daemon_killed=left)
    cost = 0 if model.profile.stop_costs_nothing else 1
    return after.with_all(
        lambda one: one.away(
            "Down", moment.now, due_at=None, hits=one.hits + cost, **_owed(model, one)
        )
    )


def _owed(model: WorkersModel, belief: WorkerBelief) -> dict[str, object]:
    """What a worker is still owed after a stop, or a start."""
    kept = model.profile.keeps_wishes and not model.state_damaged
    return {"rebase_due": belief.rebase_due} if kept else {}


def _add(model: WorkersModel, operation: op.Add, moment: When) -> WorkersModel:
    if operation.worker in model.workers and not model.profile.takes_names:
        return model  # nothing was said to the target
    behaviours = model.scripts.get(operation.worker, ("obey",))
    new = WorkerBelief(
        operation.worker, frozenset({"idle"}), behaviours=behaviours, model=operation.model
    )
    added = model.with_worker(new.away(ADDED, moment.now))
    return _start(added, operation, moment) if operation.prompt else added


def _discard(model: WorkersModel, name: str, moment: When) -> WorkersModel:
    """Whoever is started from now on is told nothing of it; who comes up just now may have been."""
    looked, belief = moment.before, model.workers.get(name)
    agents = None
    if looked is not None and looked.agents is not None and belief is not None:
        steady = belief.disturbed is None and not model.faults
        agents = frozenset(one.identity for one in looked.agents) if steady else None
    return _review_over(model.given_up(name, agents), name)


def _review_over(model: WorkersModel, name: str) -> WorkersModel:
    """The task that was reviewed is merged or given up."""
    return replace(model, review_used=True) if model.last_reviewed == name else model


def _nuke(model: WorkersModel, operation: op.Nuke, moment: When) -> WorkersModel:
    return _discard(model, operation.worker, moment).without_worker(operation.worker)


def _reset_worker(model: WorkersModel, operation: op.ResetWorker, moment: When) -> WorkersModel:
    fresh = replace(
        model.workers[operation.worker],
        statuses=frozenset({"idle"}),
        tokens=(),
        due_at=None,
        stale_base=False,
        rebase_due="",
        put_off=False,
        typed=False,
    )
    given_up = _discard(model, operation.worker, moment)
    return given_up.with_worker(fresh.away("ResetWorker", moment.now))


def _start(model: WorkersModel, operation: op.Start | op.Add, moment: When) -> WorkersModel:
    belief = model.workers[operation.worker]
    before = frozenset({"idle"}) if not model.profile.start_is_immediate else frozenset()
    for token in moment.tokens:
        said = _plainly_said(model, operation, operation.prompt)
        model = model.with_work(token, "task", operation.worker, sure=True, said=said)
    return model.with_worker(
        replace(
            belief,
            statuses=frozenset({"working"}) | before,
            tokens=moment.tokens,
            hits=0,
            received=False,
            stale_base=False,
            rebase_due="",
            put_off=False,
            due_at=model.due(belief, moment.now),
        )
    )


def _plainly_said(model: WorkersModel, operation: Operation, text: str) -> str:
    """A text that has to arrive as it is; empty for one that a target may refuse."""
    return "" if strange(operation, model.profile.names) else text


def _told(
    model: WorkersModel, name: str, operation: op.Message | op.Reject, moment: When
) -> WorkersModel:
    """A worker with a task was told something more."""
    belief = model.workers[name]
    rejected = isinstance(operation, op.Reject)
    anew = model.profile.message_begins_anew and belief.statuses == {"error"}
    statuses = frozenset({"rejected"}) if rejected else belief.statuses | {"working"}
    kind, said = operation.type.lower(), _plainly_said(model, operation, operation.message)
    for token in moment.tokens:
        model = model.with_work(token, kind, name, sure=True, said=said)
    return model.with_worker(
        replace(
            belief,
            statuses=statuses,
            hits=0 if anew else belief.hits,
            tokens=(*belief.tokens, *moment.tokens),
            received=False,
            due_at=model.due(belief, moment.now),
        )
    )


def _message(model: WorkersModel, operation: op.Message, moment: When) -> WorkersModel:
    return _told(model, operation.worker, operation, moment)


def _reject(model: WorkersModel, operation: op.Reject, moment: When) -> WorkersModel:
    assert model.last_reviewed is not None
    return _told(model, model.last_reviewed, operation, moment)


def _rebased(
    model: WorkersModel, name: str, moment: When, statuses: frozenset[str]
) -> WorkersModel:
    """A rebase was asked for or may happen: with a stale base it can end in a conflict."""
    belief = model.workers[name]
    conflict = frozenset({"rebasing"}) if belief.stale_base else frozenset()
    due = moment.now if conflict and belief.will_complete else belief.due_at
    return model.with_worker(replace(belief, statuses=statuses | conflict, due_at=due))


def _review(model: WorkersModel, operation: op.Review, moment: When) -> WorkersModel:
    after = replace(model, last_reviewed=operation.worker, review_used=False)
    return _rebased(after, operation.worker, moment, frozenset({"needs_review"}))


def _rebase(model: WorkersModel, operation: op.Rebase, moment: When) -> WorkersModel:
    after = _rebased(model, operation.worker, moment, model.workers[operation.worker].statuses)
    belief = after.workers[operation.worker]
    known = moment.before.default_head if moment.before is not None else None
    waits = ANYTIME if belief.waits else None
    in_turn = model.workers[operation.worker].in_turn
    return after.with_worker(
        replace(belief, waits=waits, rebase_due=known or "", put_off=belief.put_off or in_turn)
    )


def _accept(model: WorkersModel, operation: op.Accept, moment: When) -> WorkersModel:
    name, seen = operation.worker, moment.seen
    belief = model.workers[name]
    status = seen.status_of(name) if seen is not None else None
    if belief.stale_base and status not in ("idle", "offline", None):
        return _rebased(model, name, moment, frozenset({"rebasing"}))
    merged = _review_over(model.with_fate(belief.tokens, "merged"), name)
    statuses = frozenset({"idle", "rebasing"} if belief.stale_base and seen is None else {"idle"})
    for other in model.workers.values():
        if other.name != name and other.tokens:
            merged = merged.with_worker(replace(other, stale_base=True))
    if model.profile.accept_removes:
        return merged.without_worker(name)
    return merged.with_worker(
        replace(
            belief,
            statuses=statuses,
            tokens=(),
            due_at=None,
            stale_base=False,
            rebase_due="",
            put_off=False,
            hits=0,
            typed=False,
        )
    )


def _doctor(model: WorkersModel, operation: op.Doctor, moment: When) -> WorkersModel:
    if not operation.repair:
        return model
    restored = model.with_all(lambda one: _as_before(model, one)) if model.state_damaged else model
    return replace(restored, state_damaged=False)


Due = Callable[[WorkersModel, Any, Observation | None], Expectation]
After = Callable[[WorkersModel, Any, When], WorkersModel]
_TABLE: dict[type[Operation], tuple[Due, After]] = {
    op.Init: (_due_init, _init),
    op.Up: (_due_up, _up),
    op.Down: (_due_down, _down),
    op.Add: (_due_add, _add),
    op.Status: (_due_status, _same),
    op.Doctor: (_due_doctor, _doctor),
    op.Reject: (_due_by_review, _reject),
    op.ReviewNext: (_due_review_next, _same),
    op.AcceptReviewed: (_due_accept_reviewed, _same),
    op.Start: (_due_by_worker, _start),
    op.Message: (_due_by_worker, _message),
    op.Review: (_due_by_worker, _review),
    op.Accept: (_due_by_worker, _accept),
    op.Rebase: (_due_by_worker, _rebase),
    op.ResetWorker: (_due_by_worker, _reset_worker),
    op.Nuke: (_due_by_worker, _nuke),
    op.Attach: (_due_by_worker, _same),
}
