"""Every right outcome of a command: its answer, and the board afterwards.

What is expected and what follows is one value. Where time is too close to tell there are several.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from mutiny.contracts.board import leaders
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.limits import (
    breaker_outcomes,
    fails,
    pays,
    rest_s,
    succeeds,
)
from mutiny.contracts.board.model import BoardModel, BoardOutcome
from mutiny.contracts.board.tasks import (
    Task,
    Tasks,
    as_good,
    attempt_over,
    due_status,
    has_cycle,
    settle_dependants,
)
from mutiny.contracts.board.texts import output_of
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import ANYTIME, Span
from mutiny.kit.outcome import Outcome, no, ok
from mutiny.model.operation import Operation

MOST_DOUBTFUL = 5
"""Of so many claims that may or may not be stale every combination is tried; of more not all."""
BROKEN_OFF = "broken_off"
"""No refusal that anybody says: how far a command may have come when it was killed."""
NOT_SERVING = ("server_down", "not_initialised")
Row = Callable[[BoardModel, Any, Span], Iterable[BoardOutcome]]
"""From what is believed, a command and its moment to its right outcomes."""


def outcomes(model: BoardModel, operation: Operation, when: Span) -> tuple[BoardOutcome, ...]:
    """All right outcomes of one command."""
    found = _served(model, operation, when)
    if model.damaged and not isinstance(operation, op.Repair | op.Up | op.Down):
        # A board whose file is gone may say so; only an empty board it may not be.
        found = (*found, no(model, "the state was damaged", "unreadable", "not_initialised"))
    if model.brings_server:
        found = (*found, no(model, "another command's server is there", "server_running", "busy"))
    return found


def _served(model: BoardModel, operation: Operation, when: Span) -> tuple[BoardOutcome, ...]:
    if isinstance(operation, op.Up | op.Down | op.RestartServer | op.StartSecondServer):
        return _LIFE[type(operation)](model)
    serving = model.serving
    down = no(model, "no server runs", *NOT_SERVING)
    if isinstance(operation, op.Init):
        again = no(model, "there is a board already", "already_initialised")
        made = Outcome(replace(model, initialised=True), reason="nothing is there yet")
        return (made, again) if model.initialised else (made,)
    if isinstance(operation, op.List) and model.profile.lists_files and serving is not True:
        return (ok(model, "its files can be read"), down)
    if serving is False:
        return (down,)
    if not model.initialised or (model.profile.made_by_first and not model.tasks):
        return _before_init(model, operation, when)
    found = tuple(_limited(model, operation, when))
    return (*found, down) if serving is None else found


def _before_init(model: BoardModel, operation: Operation, when: Span) -> tuple[BoardOutcome, ...]:
    """Too early: refused, or the command itself makes the board."""
    early = no(model, "there is no board yet", *NOT_SERVING)
    if not model.profile.opens_itself:
        return (early,)
    return (early, *_limited(replace(model, initialised=True), operation, when))


def learn(model: BoardModel, operation: Operation, answer: Answer) -> BoardModel:
    """Numbers that only the answer tells."""
    task = model.tasks.get(answer.task or "")
    if isinstance(operation, op.Claim) and task is not None:
        epoch = answer.number("epoch")
        if epoch is not None:
            key = (operation.worker, task.id)
            given = {**model.given, key: (*model.given.get(key, ()), epoch)}
            model = replace(model.with_task(replace(task, epoch=epoch)), given=given)
    if isinstance(operation, op.AddUnnamed) and answer.task and task is None:
        limit = int(model.profile.figures.max_attempts)
        model = model.with_task(Task(answer.task, 5, (), limit, model.next_order(), named=False))
    token = answer.number("token")
    if isinstance(operation, op.Elect) and token is not None and model.leader is not None:
        known = (*model.tokens.get(operation.node, ()), token)
        model = replace(
            model,
            tokens={**model.tokens, operation.node: known},
            leader=replace(model.leader, token=token),
            top_token=max(model.top_token, token),
        )
    return model


# --- the server -----------------------------------------------------------------------------------


def _up(model: BoardModel) -> tuple[BoardOutcome, ...]:
    if not model.profile.server:
        return (ok(model, "it needs no server"),)
    if model.serving is True:
        return (no(model, "a server runs already", "server_running", "busy"),)
    up = replace(model, initialised=True, up=frozenset({True}), undecided=_open_after_start(model))
    started = ok(up, "no server runs")
    if model.serving is None:
        return (started, no(model, "a server may run already", "server_running", "busy"))
    return (started,)


def _open_after_start(model: BoardModel) -> tuple[Tasks, ...]:
    """A server that starts well has decided what has happened, and keeps a copy of it."""
    return model.undecided if model.damaged else ()


def _down(model: BoardModel) -> tuple[BoardOutcome, ...]:
    if not model.profile.server:
        return (ok(model, "it needs no server"),)
    stopped = ok(_stopped(_in_good_order(model)), "a server runs")
    if model.serving is True:
        return (stopped,)
    return (stopped, no(model, "nothing may be running", "server_down"))


def _stopped(model: BoardModel) -> BoardModel:
    """A new server keeps every lease or gives a new one; breaker and buckets it may not remember."""
    blurred = model.all_blurred(leases_kept=True)
    return replace(blurred, up=frozenset({False}), breaker=replace(model.breaker, unsure=True))


def _in_good_order(model: BoardModel) -> BoardModel:
    held = {task.id: task.attempts for task in model.tasks.values() if task.held}
    return replace(model, at_stop=held if model.profile.works else {})


def _restart(model: BoardModel) -> tuple[BoardOutcome, ...]:
    if not model.profile.server:
        return (ok(model, "it needs no server"),)
    back = replace(
        _stopped(_in_good_order(model)), up=frozenset({True}), undecided=_open_after_start(model)
    )
    return (ok(back, "the server comes back"),)


def _second(model: BoardModel) -> tuple[BoardOutcome, ...]:
    if model.serving is True and model.profile.server:
        return (no(model, "a server runs already", "server_running", "busy"),)
    return (ok(model, "no server runs"),)


_LIFE: dict[type[Operation], Callable[[BoardModel], tuple[BoardOutcome, ...]]] = {
    op.Up: _up,
    op.Down: _down,
    op.RestartServer: _restart,
    op.StartSecondServer: _second,
}


def server_killed(model: BoardModel) -> BoardModel:
    """The server is gone without a word."""
    return _stopped(model)


# --- guards ---------------------------------------------------------------------------------------


def _limited(model: BoardModel, operation: Operation, when: Span) -> Iterator[BoardOutcome]:
    """A rate limit comes before everything else."""
    worker = common.worker_of(operation)
    found = _TABLE[type(operation)](model, operation, when)
    if model.profile.figures.rate_limit <= 0 or not isinstance(operation, op.WORKING):
        yield from found
        return
    assert worker is not None
    allowed, paid = pays(model, worker, when)
    if allowed is not False:
        for outcome in found:
            bucket = paid(outcome.success)
            buckets = {**outcome.after.buckets, worker: bucket}
            yield replace(outcome, after=replace(outcome.after, buckets=buckets))
    if allowed is not True:
        yield no(model.spoke(worker, when, sure=False), "the worker asks too often", "rate_limited")


# --- tasks come -----------------------------------------------------------------------------------


def _add(model: BoardModel, operation: op.AddTask, when: Span) -> Iterable[BoardOutcome]:
    wanted = {operation.task: operation.depends}
    return _added(model, wanted, operation.priority, operation.max_attempts, operation.size)


def _add_unnamed(model: BoardModel, operation: op.AddUnnamed, when: Span) -> Iterable[BoardOutcome]:
    """What it is called only the answer tells (`learn`)."""
    return (ok(model, "the board gives it a name of its own"),)


def _add_batch(model: BoardModel, operation: op.AddBatch, when: Span) -> Iterable[BoardOutcome]:
    pairs = [op.split_new_task(text) for text in operation.tasks]
    names = [name for name, _ in pairs]
    if not model.profile.batches:
        return _one_by_one(model, pairs)
    if len(set(names)) < len(names):
        return (no(model, "a task is in the batch twice", "duplicate_id", "bad_input"),)
    return _added(model, operation.named, 5, None, 0)


def _one_by_one(
    model: BoardModel, pairs: list[tuple[str, tuple[str, ...]]]
) -> Iterable[BoardOutcome]:
    """A batch that is no batch: what came before a refusal, or before a crash, is there."""
    on_the_way = [no(model, "nothing of it was added yet", BROKEN_OFF)]
    for name, depends in pairs:
        (outcome,) = _added(model, {name: depends}, 5, None)
        if not outcome.success:
            return (outcome, *on_the_way)
        model = outcome.after
        on_the_way.append(no(model, f"it was added up to {name}", BROKEN_OFF))
    return (ok(model, "the tasks are new"), *on_the_way[:-1])


def _add_many(model: BoardModel, operation: op.AddMany, when: Span) -> Iterable[BoardOutcome]:
    return _added(model, operation.named, 5, None)


def _added(
    model: BoardModel,
    wanted: dict[str, tuple[str, ...]],
    priority: int,
    most: int | None,
    size: int | None = None,
) -> tuple[BoardOutcome, ...]:
    wrong: set[str] = set()
    if any(name in model.tasks for name in wanted):
        wrong.add("duplicate_id")
    if has_cycle(wanted) or any(name in depends for name, depends in wanted.items()):
        wrong |= {"cycle", "dependency_missing", "bad_input"}
    if any(not {*depends} <= {*wanted, *model.tasks} for depends in wanted.values()):
        wrong |= {"dependency_missing", "unknown_task"}  # both are true of it
    if wrong:
        return (no(model, f"it is not possible: {', '.join(sorted(wrong))}", *wrong),)
    tasks = dict(model.tasks)
    for order, (name, depends) in enumerate(wanted.items(), model.next_order()):
        limit = most or int(model.profile.figures.max_attempts)
        status = "blocked" if depends else "available"
        after = tuple(dict.fromkeys(depends))
        tasks[name] = Task(name, priority, after, limit, order, status, size=size)
    named = next(iter(wanted)) if len(wanted) == 1 else None
    return (ok(_settled(replace(model, tasks=tasks)), "the tasks are new", named),)


# --- tasks are taken ------------------------------------------------------------------------------


def reaped(model: BoardModel, when: Span, speaker: str = "") -> Iterator[BoardModel]:
    """The board after what is stale was returned; several when that is too close to tell."""
    sure: list[str] = []
    doubtful: list[str] = []
    for name, task in model.tasks.items():
        stale = model.stale(task.owner, when) if task.held else False
        if stale and task.owner == speaker:
            stale = None  # it has just shown that it lives
        if stale is not False:
            (sure if stale else doubtful).append(name)
    choices: Iterable[tuple[str, ...]] = itertools.chain.from_iterable(
        itertools.combinations(doubtful, size) for size in range(len(doubtful) + 1)
    )
    guessed = model.guessed or len(doubtful) > MOST_DOUBTFUL
    if len(doubtful) > MOST_DOUBTFUL:
        choices = _together(model, doubtful)
    for also in choices:
        after = replace(model, guessed=guessed)
        for name in (*sure, *also):
            after = fails(after, model.tasks[name], when)
            held = after.tasks[name]
            free = held.free() if model.profile.fail_is_final else attempt_over(held, None)
            after = after.with_task(free)
        yield _settled(after)


def _together(model: BoardModel, doubtful: list[str]) -> Iterator[tuple[str, ...]]:
    """None, all, and all of one owner: who has been silent has been so for all that it holds."""
    yield ()
    yield tuple(doubtful)
    for owner in {model.tasks[name].owner for name in doubtful}:
        yield tuple(name for name in doubtful if model.tasks[name].owner == owner)


def _claim(model: BoardModel, operation: op.Claim, when: Span) -> Iterable[BoardOutcome]:
    for free in reaped(model, when, operation.worker):
        for through, guarded in breaker_outcomes(free, when):
            heard = guarded.spoke(operation.worker, when, sure=False)
            if not through:
                yield no(heard, "the circuit breaker is open", "breaker_open")
            elif operation.task is not None:
                yield from _take_named(heard, operation, operation.task, when)
            else:
                yield from _take_best(heard, operation, when)


def _taken(model: BoardModel, worker: str, task: Task, when: Span) -> BoardOutcome:
    claimed = replace(task, status="claimed", owner=worker, epoch=task.epoch + 1, rest=None)
    after = _settled(model.with_task(claimed)).spoke(worker, when, sure=True)
    if model.profile.breaker and after.breaker.opened is not None:
        probes = after.breaker.probes | {task.id}
        after = replace(after, breaker=replace(after.breaker, probes=probes))
    return ok(after, f"task {task.id} is the best one", task.id)


def _take_best(model: BoardModel, operation: op.Claim, when: Span) -> Iterable[BoardOutcome]:
    free = [task for task in model.tasks.values() if task.status == "available"]
    sure: Task | None = None
    for task in sorted(free, key=lambda one: (one.priority, one.order)):
        if sure is not None and not as_good(model.profile, sure, task):
            break
        rested = model.rested(task, when)
        if rested is not False:
            yield _taken(model, operation.worker, task, when)
        if rested:
            sure = sure or task
    if sure is None:
        yield no(model, "no task is available", "nothing_to_claim")
    if model.profile.owner_reclaims and not model.profile.names_tasks:
        own = (one for one in model.tasks.values() if one.held and one.owner == operation.worker)
        yield from (ok(model, "it is its owner's already", task.id) for task in own)
    if not model.profile.claims_exclude:  # somebody else may have taken what the worker was shown
        held = (task for task in model.tasks.values() if task.held)
        yield from (_taken(model, operation.worker, task, when) for task in held)


def _take_named(
    model: BoardModel, operation: op.Claim, name: str, when: Span
) -> Iterable[BoardOutcome]:
    task = model.tasks.get(name)
    if task is None:
        yield _unknown(model, name)
        return
    if not model.profile.claims_exclude and task.status != "available":
        yield _taken(model, operation.worker, task, when)
    if task.status == "blocked":
        yield no(model, f"task {name} is blocked", "dependencies_open", "task_not_available")
        return
    if task.owner == operation.worker and task.held and model.profile.owner_reclaims:
        yield ok(model, "its owner may ask again", name)
    classes = ("task_not_available", "nothing_to_claim", "wrong_status")
    if task.status != "available":
        yield no(model, f"task {name} is {task.status}", *classes)
        return
    rested = model.rested(task, when)
    if rested is not False:
        yield _taken(model, operation.worker, task, when)
    if not rested:
        yield no(model, f"task {name} rests", *classes)


def _owned(
    model: BoardModel, operation: op.OwnerCommand, statuses: tuple[str, ...]
) -> Task | BoardOutcome:
    """The task that a worker may speak for, or the refusal that is due."""
    task = model.tasks.get(operation.task)
    if task is None:
        return _unknown(model, operation.task)
    epoch = model.epoch_used(operation.worker, operation.task, stale=operation.stale)
    classes: set[str] = set()
    if task.owner != operation.worker:
        classes |= {"not_owner"}
    if epoch is not None and epoch != task.epoch:
        classes |= {"stale_epoch"}
    if not task.held:  # whether a free or finished task has an owner is the board's own business
        classes |= {"wrong_status", "not_owner"}
    elif task.status not in statuses:
        classes |= {"wrong_status"}
    if classes:
        what = f"{task.status}, owner {task.owner or 'nobody'}, epoch {task.epoch}"
        return no(model, f"task {task.id} is {what}", *classes)
    return task


Done = Callable[[BoardModel, Task, Any, Span], BoardModel]


def _by_owner(done: Done, why: str, statuses: tuple[str, ...] = op.HELD) -> Row:
    """What only the owner of a task in one of these statuses may say."""

    def row(model: BoardModel, operation: op.OwnerCommand, when: Span) -> Iterable[BoardOutcome]:
        # A board may or may not take any word of a worker for a sign of life.
        model = model.spoke(operation.worker, when, sure=False)
        task = _owned(model, operation, statuses)
        known = model.tasks.get(operation.task)
        if isinstance(task, Outcome) and known is not None and not model.profile.owner_speaks:
            said = ok(done(model, known, operation, when), "whoever says so may", known.id)
            return (said,) if known.status in statuses else (said, _not_ready(task, known))
        if isinstance(task, Outcome) and _says_again(model, operation):
            return (ok(model, "its owner may say it again", operation.task), task)
        if isinstance(task, Outcome):
            return (task,)
        return (ok(done(model, task, operation, when), why, task.id),)

    return row


def _says_again(model: BoardModel, operation: op.OwnerCommand) -> bool:
    """Does an owner begin what it has begun, on a board that takes that for no mistake?"""
    task = model.tasks.get(operation.task)
    begun = task is not None and task.status == "in_progress" and task.owner == operation.worker
    return begun and isinstance(operation, op.Start) and model.profile.owner_reclaims


def _not_ready(refusal: BoardOutcome, task: Task) -> BoardOutcome:
    """Nobody holds it: a board may still say so, or that it waits for others."""
    waits = {"dependencies_open"} if task.status == "blocked" else set[str]()
    return replace(refusal, refusals=refusal.refusals | waits)


def _begun(model: BoardModel, task: Task, operation: op.Start, when: Span) -> BoardModel:
    return model.with_task(replace(task, status="in_progress"))


def _completed(model: BoardModel, task: Task, operation: op.Complete, when: Span) -> BoardModel:
    done = replace(task, status="done", output=output_of(operation))
    return _settled(succeeds(model, task).with_task(done))


def _failed(model: BoardModel, task: Task, operation: op.Fail, when: Span) -> BoardModel:
    over = attempt_over(task, _rest(model, task.attempts, when))
    if model.profile.fail_is_final:
        over = replace(task, status="failed", attempts=task.attempts + 1)
    return _settled(fails(model, task, when).with_task(over))


def _rest(model: BoardModel, attempts: int, when: Span) -> Span:
    """When a task may be tried again."""
    least_s, most_s = rest_s(model, attempts)
    tolerance_s = model.profile.limits.tolerance_s
    return Span(when.earliest + least_s * 0.9, when.latest + most_s + tolerance_s)


def _released(model: BoardModel, task: Task, operation: op.Release, when: Span) -> BoardModel:
    free = task.free()
    if not model.profile.owner_speaks:  # it may be one that nobody could hold yet
        free = replace(free, status=due_status(model.tasks, task, model.profile))
    return _settled(_no_probe(model, task).with_task(free))


def _no_probe(model: BoardModel, task: Task) -> BoardModel:
    """A half-open breaker no longer waits for this task."""
    probes = model.breaker.probes - {task.id}
    return replace(model, breaker=replace(model.breaker, probes=probes))


def _settled(model: BoardModel) -> BoardModel:
    """What waits for others is blocked, free or hopeless, as they are now."""
    return replace(model, tasks=settle_dependants(model.tasks, model.profile))


def _heartbeat(model: BoardModel, operation: op.Heartbeat, when: Span) -> Iterable[BoardOutcome]:
    return (ok(model.spoke(operation.worker, when, sure=True), "everybody may say so"),)


def _cancel(model: BoardModel, operation: op.Cancel, when: Span) -> Iterable[BoardOutcome]:
    task = model.tasks.get(operation.task)
    if task is None:
        return (_unknown(model, operation.task),)
    if task.over and not (task.status == "failed" and model.profile.cancels_failed):
        return (no(model, f"task {task.id} is {task.status}", "wrong_status"),)
    if task.held and not model.profile.cancels_held:
        guarded = ("not_owner", "task_not_available", "wrong_status")
        return (no(model, f"{task.owner} holds it", *guarded),)
    cancelled = replace(task, status="cancelled", rest=None)
    after = _settled(_no_probe(model, task).with_task(cancelled))
    return (ok(after, "nobody needs it", task.id),)


def _unknown(model: BoardModel, task: str) -> BoardOutcome:
    return no(model, f"task {task} does not exist", "unknown_task")


def _retry(model: BoardModel, operation: op.Retry, when: Span) -> Iterable[BoardOutcome]:
    task = model.tasks.get(operation.task)
    if task is None:
        return (_unknown(model, operation.task),)
    if task.status != "failed":
        return (no(model, f"task {task.id} is {task.status}", "wrong_status"),)
    most = model.profile.figures.max_retries
    if most and task.retries >= most:
        return (no(model, f"it was retried {task.retries} times", "retries_used", "wrong_status"),)
    status = due_status(model.tasks, task, model.profile)
    if status == "failed":
        return (no(model, "a dependency has failed", "dependencies_open", "wrong_status"),)
    rest = _rest(model, task.retries, when) if model.profile.retry_rests else None
    again = replace(task.free(rest), status=status, attempts=0, retries=task.retries + 1)
    return (ok(model.with_task(again), "it gets all its attempts again", task.id),)


def _recover(model: BoardModel, operation: op.Recover, when: Span) -> Iterable[BoardOutcome]:
    return [ok(after, "what is stale is returned") for after in reaped(model, when)]


# --- copies ---------------------------------------------------------------------------------------


def _checkpoint(model: BoardModel, operation: op.Checkpoint, when: Span) -> Iterable[BoardOutcome]:
    kept = {**model.checkpoints, operation.name: model.tasks}
    name = frozenset({operation.name})
    vague = model.vague | name if model.loose else model.vague - name
    after = replace(model, checkpoints=kept, spoiled=model.spoiled - name, vague=vague)
    return (ok(after, "a copy can always be kept"),)


def _restore(model: BoardModel, operation: op.Restore, when: Span) -> Iterable[BoardOutcome]:
    saved = model.checkpoints.get(operation.name)
    if saved is None:
        return (no(model, "there is no such checkpoint", "unknown_checkpoint"),)
    tasks = {}
    for name, task in saved.items():
        now = model.tasks.get(name)
        epoch = max(task.epoch, 0 if now is None else now.epoch)
        task = replace(task, epoch=epoch, rest=_blurred(task.rest))
        free = task.held and not model.profile.restore_keeps_claims
        tasks[name] = task.free(task.rest) if free else task
    # Whether a copy has the writes of leaders in it is the board's own business.
    there = ok(replace(model, tasks=tasks, writes=None), "the checkpoint is there")
    if operation.name in model.spoiled:
        return (there, no(model, "the checkpoint was damaged", "unreadable"))
    return (there,)


def _blurred(rest: Span | None) -> Span | None:
    """A copy of an old moment: how a board reads it later is its own business."""
    return None if rest is None else ANYTIME


def _repair(model: BoardModel, operation: op.Repair, when: Span) -> Iterable[BoardOutcome]:
    if not model.damaged:
        return (ok(model, "nothing is wrong"),)
    mended = replace(model, damaged=False, undecided=())
    found = [
        ok(_from_copy(mended, tasks), "everything acknowledged comes back from a copy")
        for tasks in (model.tasks, *model.undecided)
    ]
    found.append(ok(mended, "the damage may have hit nothing that counts"))
    return found


def _from_copy(model: BoardModel, tasks: Tasks) -> BoardModel:
    """Claims of the lost time are void, or they still stand."""
    free = {
        name: replace(task.free() if task.held else task, rest=_blurred(task.rest))
        for name, task in tasks.items()
    }
    return replace(model, tasks=free, leader=None, writes=None)


def _look(model: BoardModel, operation: Operation, when: Span) -> Iterable[BoardOutcome]:
    return (ok(model, "looking is always answered"),)


_TABLE: dict[type[Operation], Row] = {
    op.AddTask: _add,
    op.AddUnnamed: _add_unnamed,
    op.AddBatch: _add_batch,
    op.AddMany: _add_many,
    op.Claim: _claim,
    op.Start: _by_owner(_begun, "the owner begins", ("claimed",)),
    op.Complete: _by_owner(_completed, "the owner has done it"),
    op.Fail: _by_owner(_failed, "the owner gives up"),
    op.Release: _by_owner(_released, "the owner gives it back"),
    op.Heartbeat: _heartbeat,
    op.Cancel: _cancel,
    op.Retry: _retry,
    op.Recover: _recover,
    op.Checkpoint: _checkpoint,
    op.Restore: _restore,
    op.Repair: _repair,
    op.Elect: leaders.elect,
    op.Renew: leaders.renew,
    op.StepDown: leaders.step_down,
    op.WriteAsLeader: leaders.write,
    op.Status: _look,
    op.List: _look,
}
COMMANDS: tuple[type[Operation], ...] = (op.Init, *_LIFE, *_TABLE)
"""Everything that is said to the board."""
