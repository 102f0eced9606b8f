"""One small function for each promise about state: beliefs and observations in, violations out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.damage import damage_in
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.tasks import Task, has_cycle, hopeless
from mutiny.kit import checking
from mutiny.kit.beliefs import Span
from mutiny.kit.task_rules import more_attempts, wrong_numbers
from mutiny.model.operation import Kind, Operation, walk
from mutiny.model.violation import Violation


class Check(checking.Check[BoardModel, BoardObservation]):
    """What a rule may look at."""

    @property
    def inner(self) -> Operation:
        """The command that was given, without what was done to it."""
        given = self.operation
        held = given.during if isinstance(given, op.HoldBoardLock) else None
        return held or checking.inner_of(given)

    @property
    def exact(self) -> bool:
        """Nobody but us changes the board, so it is exactly as we left it."""
        return self.seen.tasks is not None and not self.model.loose

    def pairs(self) -> Iterator[tuple[Task, TaskView]]:
        """Every task that is believed in and seen."""
        for name, view in (self.seen.tasks or {}).items():
            if name in self.model.tasks:
                yield self.model.tasks[name], view

    def had(self, name: str) -> TaskView | None:
        """The task as it was before the operation."""
        return (self.before.tasks or {}).get(name)


def _found(rule: str, task: str, text: str, **evidence: object) -> Violation:
    return Violation(f"board.{rule}", text, task, evidence)


def state_readable(check: Check) -> Iterable[Violation]:
    """The board can be read, unless Mutiny itself has damaged it."""
    if check.seen.state_error is not None and not check.model.damaged and not check.model.lasting:
        yield _found("state_readable", "", f"The board cannot be read: {check.seen.state_error}.")


def no_crash(check: Check) -> Iterable[Violation]:
    """Whoever only asks how things are gets an answer, not a crash."""
    if check.seen.crash is not None and not check.model.damaged and not check.model.lasting:
        yield _found("no_crash", "", f"Asked for its tasks, {check.seen.crash}")


def answers_in_time(check: Check) -> Iterable[Violation]:
    """Whoever only asks how things are gets an answer at some time, unless somebody is in the way."""
    model = check.model
    hindered = model.damaged or model.lasting or model.faults or model.loose
    if check.seen.silent is not None and not hindered and check.operation.kind is Kind.COMMAND:
        text = f"Asked for its tasks, the board has no time, however often: {check.seen.silent}"
        yield _found("answers_in_time", "", text)


def add_kept(check: Check) -> Iterable[Violation]:
    """Every task that was acknowledged is there, and can be told from the others."""
    if check.seen.tasks is None or check.gave((op.Restore, op.Repair)):
        return
    batch = check.inner.named if isinstance(check.inner, op.AddBatch) else {}
    for name in check.model.tasks:
        if name not in check.seen.tasks and not (
            name in batch and set(batch) & set(check.seen.tasks)
        ):
            yield _found("add_kept", name, f"Task {name} was added but is not there.")
    known: dict[str, str] = {}
    for name, view in check.seen.tasks.items():
        other = None if view.own is None else known.setdefault(view.own, name)
        if other not in (None, name):
            text = (
                f"Tasks {other} and {name} have one id, {view.own}: only one of them can be named."
            )
            yield _found("add_kept", name, text)


def nothing_invented(check: Check) -> Iterable[Violation]:
    """A task that nobody has added, or whose adding was refused."""
    if check.seen.tasks is None or check.gave((op.Restore, op.Repair, op.AddBatch)):
        return
    for name in check.seen.tasks:
        if name not in check.model.tasks:
            text = f"Task {name} is there although nobody has successfully added it."
            yield _found("rejects_truthfully", name, text)


def batch_is_atomic(check: Check) -> Iterable[Violation]:
    """Of a batch all tasks are there, or none."""
    inner = check.inner
    if not isinstance(inner, op.AddBatch) or check.seen.tasks is None:
        return
    if not check.model.profile.batches:
        return
    fresh = [name for name in inner.named if check.had(name) is None]
    there = [name for name in fresh if name in check.seen.tasks]
    believed = [name for name in fresh if name in check.model.tasks]
    if there and (len(there) < len(fresh) or not believed):
        what = f"{len(there)} of {len(fresh)} new tasks are there ({', '.join(there)})"
        yield _found("batch_is_atomic", there[0], f"After {inner} {what}.")


def single_owner(check: Check) -> Iterable[Violation]:
    """What is held is held by somebody, and what waits for a worker belongs to nobody."""
    for view in (check.seen.tasks or {}).values() if check.model.profile.shows_owners else ():
        if view.status in op.HELD and not view.owner:
            yield _found("single_owner", view.id, f"Task {view.id} is {view.status} by nobody.")
        if check.model.profile.frees_owner and view.status == "available" and view.owner:
            text = f"Task {view.id} waits for somebody, and still belongs to {view.owner}."
            yield _found("single_owner", view.id, text)


def one_run(check: Check) -> Iterable[Violation]:
    """An agent that still works on a task is ended before another one gets it."""
    busy: dict[str, list[int]] = {}
    for run in check.seen.agents:
        if run.busy:
            busy.setdefault(run.task, []).append(run.identity[0])
    for task, pids in busy.items():
        if len(pids) > 1:
            shown = ", ".join(f"pid {pid}" for pid in pids)
            yield _found("one_run", task, f"{len(pids)} agents work on task {task} ({shown}).")


def answers_truly(check: Check) -> Iterable[Violation]:
    """What an agent of the board's own is told of its task is all that was given with it."""
    for run in check.seen.agents if check.model.profile.tells_payload else ():
        task = check.model.tasks.get(run.task)
        given = 0 if task is None else task.size or 0
        if run.told is not None and run.told < given:
            text = f"Task {run.task} has {given} characters, but its agent was told {run.told}."
            yield _found("answers_truly", run.task, text)


def claim_kept(check: Check) -> Iterable[Violation]:
    """A claim stands until its owner ends it or its lease is over."""
    if not check.exact or check.gave((op.Restore, op.Repair)):
        return
    for task, view in check.pairs():
        other = check.model.profile.shows_owners and view.owner != task.owner
        if task.held and (view.status not in op.HELD or other):
            robbed = check.gave((op.Claim, op.Recover)) and check.had(task.id) is not None
            earlier = check.had(task.id)
            robbed = robbed and earlier is not None and earlier.status in op.HELD
            rule = "live_worker_kept" if robbed and view.status != "done" else "claim_kept"
            now = f"{view.status}, owner {view.owner or 'nobody'}"
            text = f"Task {task.id} is {now}, but {task.owner} holds it."
            yield _found(rule, task.id, text)


def no_stuck_claim(check: Check) -> Iterable[Violation]:
    """What a recover was due to return is returned; what its owner gave up beside it is another matter."""
    if not check.exact or not check.gave((op.Claim, op.Recover)):
        return
    given_up = {
        part.task
        for part in walk(check.operation)
        if isinstance(part, op.Fail | op.Release | op.Cancel | op.Retry)
    }
    for task, view in check.pairs():
        if task.id in given_up:
            continue
        if view.status in op.HELD and not task.held and task.status in ("available", "failed"):
            text = f"Task {task.id} is still held by {view.owner}, whose lease is over."
            yield _found("no_stuck_claim", task.id, text)


def completion_kept(check: Check) -> Iterable[Violation]:
    """What was completed is done, with its output."""
    if not check.exact or check.gave((op.Restore, op.Repair)):
        return
    for task, view in check.pairs():
        earlier = check.had(task.id)
        if task.status == "done" and view.status != "done":
            if earlier is None or earlier.status != "done":
                text = f"Task {task.id} was completed but is {view.status}."
                yield _found("completion_kept", task.id, text)
        elif task.status == "done" and task.output and view.output not in (None, task.output):
            text = f"The output of task {task.id} is not what its owner gave."
            yield _found("completion_kept", task.id, text, seen=(view.output or "")[:200])


def terminal_is_terminal(check: Check) -> Iterable[Violation]:
    """What was seen done, failed or cancelled stays so."""
    if check.gave((op.Restore, op.Repair, op.Retry, *_edits(check.model.profile))):
        return
    for name, view in (check.seen.tasks or {}).items():
        earlier = check.had(name)
        if earlier is None or earlier.status not in op.TERMINAL or view.status == earlier.status:
            continue
        cancelled = (earlier.status, view.status) == ("failed", "cancelled")
        if not (cancelled and check.model.profile.cancels_failed):
            text = f"Task {name} was {earlier.status} and is {view.status} now."
            yield _found("terminal_is_terminal", name, text)


def _edits(profile: BoardProfile) -> tuple[type[Operation], ...]:
    """Commands that set what they say, whatever was so before."""
    spoken = () if profile.owner_speaks else (op.Start, op.Complete, op.Fail, op.Release)
    return (*spoken, *(() if profile.claims_exclude else (op.Claim,)))


def dependencies_respected(check: Check) -> Iterable[Violation]:
    """No task begins before its dependencies are done."""
    tasks = check.seen.tasks or {}
    for view in tasks.values():
        if view.status not in ("available", *op.HELD, "done"):
            continue
        for name in view.depends:
            if name in tasks and tasks[name].status != "done":
                text = f"Task {view.id} is {view.status} but {name} is {tasks[name].status}."
                yield _found("dependencies_respected", view.id, text)
    for run in check.seen.agents:
        view_of = tasks.get(run.task)
        for name in view_of.depends if view_of is not None else ():
            ends = [one.ended for one in check.seen.agents if one.task == name]
            if ends and not any(end is not None and end < run.begun for end in ends):
                text = f"An agent was given task {run.task} before {name} was done."
                yield _found("dependencies_respected", run.task, text)


def blocked_for_a_reason(check: Check) -> Iterable[Violation]:
    """A task whose dependencies are decided is not blocked any more."""
    tasks = check.seen.tasks or {}
    for view in tasks.values():
        states = [tasks[name].status for name in view.depends if name in tasks]
        if view.status == "blocked" and view.depends:
            never = any(status in hopeless(check.model.profile) for status in states)
            if never or (states and all(status == "done" for status in states)):
                text = f"Task {view.id} is blocked though its dependencies are {', '.join(states)}."
                yield _found("all_settle", view.id, text)


def cycles_refused(check: Check) -> Iterable[Violation]:
    """No tasks depend on each other in a circle."""
    tasks = check.seen.tasks or {}
    if tasks and has_cycle({name: view.depends for name, view in tasks.items()}):
        yield _found("cycles_refused", "", "Tasks depend on each other in a circle.")


def tokens_grow(check: Check) -> Iterable[Violation]:
    """Epochs and leader tokens never go down; a new owner has a new epoch."""
    tasks = check.seen.tasks or {}
    for name, view in tasks.items():
        earlier = check.had(name)
        if earlier is None or earlier.epoch is None or view.epoch is None:
            continue
        if view.epoch < earlier.epoch:
            text = f"The epoch of task {name} went down from {earlier.epoch} to {view.epoch}."
            yield _found("tokens_grow", name, text)
        taken = view.status in op.HELD and earlier.status in op.HELD
        if taken and view.owner != earlier.owner and view.epoch == earlier.epoch:
            text = f"Task {name} has a new owner, {view.owner}, with the old epoch {view.epoch}."
            yield _found("tokens_grow", name, text)
    if check.seen.token is not None and check.seen.token < check.model.top_token:
        text = f"The leader token is {check.seen.token} after it was {check.model.top_token}."
        yield _found("tokens_grow", "leader", text)


def attempts_bounded(check: Check) -> Iterable[Violation]:
    """No task is tried more often than allowed."""
    for task, view in check.pairs():
        most = view.max_attempts or task.max_attempts
        if view.attempts is None:
            continue
        again = view.status in ("available", *op.HELD) and view.attempts >= most
        # Where a failure is final only somebody by hand tries again.
        again = again and not check.model.profile.fail_is_final
        if view.attempts > most or again:
            text = f"Task {view.id} is {view.status} after {view.attempts} of {most} attempts."
            yield _found("attempts_bounded", view.id, text)


def stop_costs_nothing(check: Check) -> Iterable[Violation]:
    """An agent that is ended with its orderly stopped board has failed at nothing."""
    model = check.model
    if not isinstance(check.inner, op.Down | op.Up | op.RestartServer):
        return
    if model.faults or model.lasting or model.unruly or model.damaged:
        return
    for name, attempts in model.at_stop.items():
        view = (check.seen.tasks or {}).get(name)
        for message in more_attempts(name, attempts, None if view is None else view.attempts):
            yield _found("stop_costs_nothing", name, f"After {check.operation} {message}")


def no_double_effect(check: Check) -> Iterable[Violation]:
    """No task is completed twice."""
    for view in (check.seen.tasks or {}).values():
        earlier = check.had(view.id)
        before = 1 if earlier is None else max(1, earlier.completions or 0)
        if (view.completions or 0) > before:  # what was so before is nothing that was done now
            text = f"Task {view.id} was completed {view.completions} times."
            yield _found("no_double_effect", view.id, text)


def one_server(check: Check) -> Iterable[Violation]:
    """At most one server runs."""
    if (check.seen.servers or 0) > 1:
        yield _found("one_server", "", f"{check.seen.servers} servers of one board run.")


def checkpoint_exact(check: Check) -> Iterable[Violation]:
    """After a restore the tasks are those of the checkpoint, and nobody holds any."""
    if check.seen.tasks is None or not isinstance(check.inner, op.Restore):
        return
    yield from _same_tasks(check, "checkpoint_exact", "The checkpoint held")


def repair_keeps_data(check: Check) -> Iterable[Violation]:
    """After a repair everything is there that was acknowledged."""
    if check.seen.tasks is None or not isinstance(check.inner, op.Repair):
        return
    yield from _same_tasks(check, "repair_keeps_data", "Acknowledged was")


def _same_tasks(check: Check, rule: str, source: str) -> Iterable[Violation]:
    seen = check.seen.tasks or {}
    for name, task in check.model.tasks.items():
        view = seen.get(name)
        if view is None:
            yield _found(rule, name, f"{source} task {name}, which is not there.")
        elif view.status != task.status and not check.model.loose:
            text = f"{source} task {name} {task.status}, which is {view.status} now."
            yield _found(rule, name, text)
    for name in seen:
        if name not in check.model.tasks:
            yield _found(rule, name, f"{source} no task {name}, which is there now.")


def status_is_honest(check: Check) -> Iterable[Violation]:
    """Everything else that the board shows is what the commands have done."""
    if not check.exact or check.gave((op.Restore, op.Repair)):
        return
    for task, view in check.pairs():
        if view.status != task.status:
            text = f"Task {task.id} is {view.status}, but was due to be {task.status}."
            yield _found("status_is_honest", task.id, text)
    given = check.operation
    if isinstance(given, op.Fail | op.Cancel) and check.succeeded:
        yield from _reason_shown(check, given)


def _reason_shown(check: Check, given: op.Fail | op.Cancel) -> Iterable[Violation]:
    view, why = (check.seen.tasks or {}).get(given.task), op.reason_of(given)
    if check.model.profile.keeps_reasons and view is not None and why not in (view.reason or ""):
        text = (
            f"{given} was told {why!r}, but task {given.task} shows {view.reason!r} as the reason."
        )
        yield _found("status_is_honest", given.task, text)


def numbers_are_true(check: Check) -> Iterable[Violation]:
    """What the board counts is what the acknowledged commands add up to."""
    if not check.exact:
        return
    for task, view in check.pairs():
        given = check.model.given.get((task.owner or "", task.id), ()) if task.held else ()
        due = {"attempts": task.attempts, "priority": task.priority}
        due |= {"max_attempts": task.max_attempts} | ({"epoch": given[-1]} if given else {})
        for message in wrong_numbers(f"Task {task.id}", due, vars(view)):
            yield _found("numbers_are_true", task.id, message)


Invariant = Callable[[Check], Iterable[Violation]]
OF_BELIEFS: tuple[Invariant, ...] = (
    *(batch_is_atomic, add_kept, nothing_invented, checkpoint_exact, repair_keeps_data),
    *(completion_kept, no_stuck_claim, claim_kept, status_is_honest, numbers_are_true),
)
"""Rules that hold what is seen against what is believed."""
OF_PROCESSES: tuple[Invariant, ...] = (one_server, one_run)
"""Rules about processes: no damage to a file excuses these."""
INVARIANTS: tuple[Invariant, ...] = (
    *(
        no_crash,
        answers_in_time,
        state_readable,
        one_server,
        batch_is_atomic,
        add_kept,
        nothing_invented,
    ),
    *(checkpoint_exact, repair_keeps_data, single_owner, one_run, answers_truly),
    *(tokens_grow, no_double_effect, dependencies_respected, cycles_refused, attempts_bounded),
    *(terminal_is_terminal, completion_kept, no_stuck_claim, claim_kept),
    *(blocked_for_a_reason, status_is_honest, stop_costs_nothing, numbers_are_true),
)
"""All of them, the most telling first."""


def healing(check: Check) -> tuple[Invariant, ...]:
    """What the board may still put right by itself: it has its lag for that."""
    return (one_server, blocked_for_a_reason) if check.model.loose else (one_server,)


def rules_for(check: Check) -> tuple[Invariant, ...]:
    """Those that can be asked now: what a fault has just written is nobody's promise."""
    if check.model.doubted or damage_in(check.operation) is not None:
        return OF_PROCESSES
    return INVARIANTS


def moment_of(before: BoardObservation, seen: BoardObservation) -> Span:
    """When something happened between two looks."""
    return Span(before.ended, seen.began)
