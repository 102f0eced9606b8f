"""From one executed operation to a verdict: answer, beliefs, state rules and ledger together.

Pure: the engine executes and looks, this module decides. Combinations are judged here too: parallel
commands must end as if they had been given in some order.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.advance import (
    OK,
    REFUSED,
    UNKNOWN,
    advance,
    ends_of_accept,
    injured,
    step,
)
from mutiny.contracts.workers.applicability import is_kept
from mutiny.contracts.workers.expect import expect
from mutiny.contracts.workers.invariants import INVARIANTS, Check, Unreadable, touched_workers
from mutiny.contracts.workers.ledger import audit
from mutiny.contracts.workers.model import AGENT_MOVES, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import classify as classifying
from mutiny.kit import faults
from mutiny.kit.classify import Judgement
from mutiny.model.expectation import Expectation
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, worst
from mutiny.model.violation import Violation

Patterns = Mapping[str, Sequence[str]]
PREFIX = "workers"


@dataclass(frozen=True)
class Answer:
    """What an operation's answer means, before anything is looked at."""

    judgement: Judgement
    model: WorkersModel
    expectation: Expectation
    others: tuple[WorkersModel, ...] = ()
    """Other beliefs that the answer leaves possible."""
    half_done: bool = False
    """A command was broken off: the target may still finish it or take it back."""


@dataclass(frozen=True)
class Moment:
    """What was seen before and after an operation, when that was, and the target's words."""

    before: Observation
    seen: Observation
    patterns: Patterns
    now: float


def judge_answer(
    model: WorkersModel,
    operation: Operation,
    result: OperationResult,
    before: Observation,
    seen: Observation,
    patterns: Patterns,
    now: float,
) -> Answer:
    """Classify an answer and advance the beliefs."""
    before, seen = before.believable(), seen.believable()
    moment = Moment(before, seen, patterns, now)
    if isinstance(operation, op.Parallel | op.Interleave):
        return _judge_parallel(model, operation, result, moment)
    if isinstance(operation, op.Trace):
        if not result.inner:
            return Answer(Judgement(Verdict.INCONCLUSIVE), model, Expectation(True))
        traced = result.inner[0]
        return judge_answer(model, operation.operation, traced, before, seen, patterns, now)
    if isinstance(operation, faults.KillDuring) and result.fired is False and result.inner:
        # It had ended before it could be killed: a command like any other.
        ended = result.inner[0]
        return judge_answer(model, operation.operation, ended, before, seen, patterns, now)
    if isinstance(operation, op.SweepPoint | faults.KillDuring):
        return _judge_sweep_point(model, operation, result, moment)
    if isinstance(operation, faults.LibraryFault) and operation.during is not None:
        return _judge_injury(model, operation, result, moment)
    if model.lasting and isinstance(operation, op.ExpectError):
        due = replace(expect(model, operation.inner, before), success=False)
        part = result.inner[0] if result.inner else result
        return _judge_hindered(model, operation.inner, part, due, moment)
    if model.lasting and operation.kind is Kind.COMMAND:
        due = expect(model, operation, before)
        return _judge_hindered(model, operation, result, due, moment)
    if isinstance(operation, op.ExpectError):
        return _judge_refusal(model, operation, result, moment)
    if isinstance(operation, op.PauseProcess) and operation.during is not None:
        return _judge_during(model, operation, result, moment)
    expectation = expect(model, operation, before)
    judgement = _classify(operation, result, expectation, patterns, model)
    after = advance(model, operation, _outcome(judgement), tokens=result.tokens, now=now, seen=seen)
    judgement = _judge_wait(model, operation, result, seen, judgement)
    return Answer(_add_honesty(judgement, operation, result, before, seen), after, expectation)


def _classify(
    operation: Operation,
    answer: OperationResult,
    expectation: Expectation,
    patterns: Patterns,
    model: WorkersModel,
) -> Judgement:
    """As the classifier says, for a target that promises what its profile says."""
    excused = model.profile.not_applicable
    return classifying.classify(operation, answer, expectation, patterns, PREFIX, excused)


def _outcome(judgement: Judgement) -> str:
    if judgement.verdict is Verdict.SUCCESS:
        return OK
    if judgement.verdict is Verdict.EXPECTED:
        return REFUSED
    if judgement.violation is not None and judgement.violation.rule.endswith("rejects_illegal"):
        return OK
    return UNKNOWN


def _judge_refusal(
    model: WorkersModel,
    operation: op.ExpectError,
    result: OperationResult,
    moment: Moment,
) -> Answer:
    inner = operation.inner
    expectation = expect(model, inner, moment.before)
    if not expectation.rejections:
        expectation = replace(
            expectation, rejections=frozenset(moment.patterns), reason="the scenario expects it"
        )
    due = replace(expectation, success=False)
    part = result.inner[0] if result.inner else result
    judgement = _classify(inner, part, due, moment.patterns, model)
    after = advance(
        model, inner, _outcome(judgement), tokens=part.tokens, now=moment.now, seen=moment.seen
    )
    return Answer(judgement, after, due)


def _judge_during(
    model: WorkersModel,
    operation: op.PauseProcess,
    result: OperationResult,
    moment: Moment,
) -> Answer:
    """A command while a process hangs: it may be slow or say that it cannot, but it may not lie."""
    assert operation.during is not None
    expectation = expect(model, operation.during, moment.before)
    widened = replace(
        expectation, rejections=expectation.rejections | {"busy", "daemon_down", "unhealthy"}
    )
    if not result.fired or not result.inner:
        return Answer(Judgement(Verdict.INCONCLUSIVE), model, widened)
    judgement = _classify(operation.during, result.inner[0], widened, moment.patterns, model)
    paused = advance(model, operation, OK, now=moment.now)
    after = advance(
        paused,
        operation.during,
        _outcome(judgement),
        tokens=result.inner[0].tokens,
        now=moment.now,
        seen=moment.seen,
    )
    return Answer(judgement, after, widened)


def _judge_injury(
    model: WorkersModel,
    operation: faults.LibraryFault,
    result: OperationResult,
    moment: Moment,
) -> Answer:
    """A command while a fault was on."""
    assert operation.during is not None
    hit = injured(model, operation, moment.now)
    expectation = expect(hit, operation.during, moment.before)
    if result.harness_error is not None or not result.fired or not result.inner:
        after = step(model, operation.during, UNKNOWN, tokens=result.tokens, now=moment.now)
        lost = after if result.inner else model
        return Answer(Judgement(Verdict.INCONCLUSIVE), lost, expectation)
    answer = result.inner[0]
    return _judge_hindered(hit, operation.during, answer, expectation, moment)


def _judge_hindered(
    model: WorkersModel,
    inner: Operation,
    answer: OperationResult,
    expectation: Expectation,
    moment: Moment,
) -> Answer:
    """A command that a fault may have hindered: it succeeds and has happened, or it says clearly that
    it failed and has happened or not. It may neither hang nor crash nor lie.
    """
    judgement = _classify(inner, answer, expectation, moment.patterns, model)
    if judgement.verdict is Verdict.INCONCLUSIVE:
        return Answer(judgement, model, expectation)
    if isinstance(inner, op.Up | op.Down):
        model = replace(model, daemon_killed=True)  # its flag may not have been written
    not_done = model.see(moment.seen)
    if answer.exit_code == 0 and not answer.timed_out:
        done = step(model, inner, OK, tokens=answer.tokens, now=moment.now, seen=moment.seen).see(
            moment.seen
        )
        return Answer(
            _add_honesty(judgement, inner, answer, moment.before, moment.seen), done, expectation
        )
    rule = judgement.violation.rule if judgement.violation is not None else ""
    # Any text will do: which fault it was that hindered it, a command need not know.
    clear = bool((answer.stderr or answer.stdout).strip())
    if answer.timed_out or rule.endswith("no_crash") or not clear:
        return Answer(judgement, not_done, expectation)
    said = Judgement(Verdict.EXPECTED, None, judgement.matched)
    if not expectation.success:
        return Answer(said, not_done, expectation)
    done = step(model, inner, OK, tokens=answer.tokens, now=moment.now).see(moment.seen)
    return Answer(said, not_done, expectation, (done,), half_done=True)


def _judge_sweep_point(
    model: WorkersModel,
    operation: op.SweepPoint | faults.KillDuring,
    result: OperationResult,
    moment: Moment,
) -> Answer:
    """A command that was broken in the middle has happened or it has not; half is wrong.

    An answer of success is an acknowledgement: then it has happened. A refusal or a death leaves both open.
    """
    inner = operation.operation
    expectation = expect(model, inner, moment.before)
    if result.harness_error is not None or not result.fired or not result.inner:
        if not result.inner:
            return Answer(Judgement(Verdict.INCONCLUSIVE), model, expectation)
        said = OK if result.inner[0].exit_code == 0 else UNKNOWN  # it ran, unbroken
        lost = step(model, inner, said, tokens=result.tokens, now=moment.now, seen=moment.seen)
        return Answer(Judgement(Verdict.INCONCLUSIVE), lost, expectation)
    answer = result.inner[0]
    done = step(model, inner, OK, tokens=answer.tokens, now=moment.now)
    hit_done = _after_point(done, operation, moment.now)
    hit_not = _after_point(model, operation, moment.now)
    if operation.ends_world and answer.exit_code == 0 and expectation.success:
        return Answer(Judgement(Verdict.SUCCESS), hit_done.see(moment.seen), expectation)
    if not operation.ends_world and answer.signal is None:
        crash = _classify(inner, answer, expectation, moment.patterns, model)
        if crash.violation is not None and crash.violation.rule.endswith("no_crash"):
            broken_off = hit_not.see(moment.seen), hit_done.see(moment.seen)
            return Answer(crash, broken_off[0], expectation, broken_off[1:], half_done=True)
        if answer.timed_out or (answer.exit_code == 0 and not expectation.success):
            return Answer(crash, hit_done.see(moment.seen), expectation)
        if answer.exit_code == 0:
            return Answer(Judgement(Verdict.SUCCESS), hit_done.see(moment.seen), expectation)
    if not expectation.success:
        return Answer(Judgement(Verdict.SUCCESS), hit_not.see(moment.seen), expectation)
    ends = [done]
    if isinstance(inner, op.Accept):
        ends = ends_of_accept(model, inner, moment.now)
    return Answer(
        Judgement(Verdict.SUCCESS),
        hit_not.see(moment.seen),
        expectation,
        tuple(_after_point(end, operation, moment.now).see(moment.seen) for end in ends),
        half_done=True,
    )


def _after_point(
    model: WorkersModel, operation: op.SweepPoint | faults.KillDuring, now: float
) -> WorkersModel:
    """What the point itself does to the beliefs."""
    name = operation.type
    if isinstance(operation, op.TearAt) and operation.mode == "lie":
        model = replace(model, state_damaged=True)
    if not operation.ends_world:
        inner = operation.operation
        worker = model.last_reviewed if isinstance(inner, op.Reject) else op.worker_of(inner)
        hit = model.disturb(name, (worker,) if worker else (), now)
        if (
            worker is not None
            and worker in hit.workers
            and isinstance(inner, op.Rebase | op.Accept)
        ):
            # git could not write down where its rebase stands: the agent may not be able to end it.
            belief = hit.workers[worker]
            return hit.with_worker(replace(belief, behaviours=(*belief.behaviours, "give-up")))
        return hit
    hit = model.disturb(name, tuple(model.workers), now)
    return replace(hit, daemon=frozenset({False}), daemon_killed=True)


def _judge_parallel(
    model: WorkersModel,
    operation: op.Parallel | op.Interleave,
    result: OperationResult,
    moment: Moment,
) -> Answer:
    """Is there an order in which these answers are right? At most four parts, so at most 24 orders."""
    if result.timed_out and result.harness_error is None:
        text = f"{operation.type} never ended: {result.stderr}"
        hung = Violation("workers.answers_in_time", text)
        return Answer(Judgement(Verdict.TIMEOUT, hung), model, Expectation(True))
    parts = list(zip(operation.operations, result.inner, strict=False))
    if result.harness_error is not None or len(parts) < len(operation.operations):
        return Answer(Judgement(Verdict.INCONCLUSIVE), model, Expectation(True))
    worlds: list[WorkersModel] = []
    verdict = Verdict.SUCCESS
    for order in itertools.permutations(parts):
        current, judgements = model, []
        for index, (part, answer) in enumerate(order):
            expectation = expect(current, part, moment.before if index == 0 else None)
            judgement = _classify(part, answer, expectation, moment.patterns, model)
            judgements.append(judgement)
            if judgement.verdict.stops_run:
                break
            outcome = _outcome(judgement)
            current = step(
                current, part, outcome, tokens=answer.tokens, now=moment.now, seen=moment.seen
            )
        else:
            verdict = worst(judgement.verdict for judgement in judgements)
            worlds.append(current.see(moment.seen))
            continue
        if judgement.verdict in (Verdict.TIMEOUT, Verdict.INCONCLUSIVE):
            return Answer(judgement, current, expectation)
    if worlds:  # whichever order it was: what is seen now and later decides
        return Answer(Judgement(verdict), worlds[0], Expectation(True), tuple(worlds[1:]))
    alone = [
        _classify(part, answer, expect(model, part, moment.before), moment.patterns, model)
        for part, answer in parts
    ]
    crash = next((j for j in alone if j.violation and certain(j.violation.rule)), None)
    if crash is not None:
        return Answer(crash, model, Expectation(True))
    said = "; ".join(f"{part}: exit {answer.exit_code}" for part, answer in parts)
    if model.lasting:  # a fault may have made any of them fail: nothing is proved
        return Answer(Judgement(Verdict.INCONCLUSIVE), model, Expectation(True))
    violation = Violation("workers.parallel_is_serial", f"No order explains these answers: {said}.")
    return Answer(Judgement(Verdict.BUG, violation), model, Expectation(True))


def certain(rule: str) -> bool:
    """Is this wrong whatever the beliefs are?"""
    return rule.endswith(("no_crash", "fails_clearly", "answers_in_time"))


def _judge_wait(
    model: WorkersModel,
    operation: Operation,
    result: OperationResult,
    seen: Observation,
    judgement: Judgement,
) -> Judgement:
    """A wait that ran out, or an assertion that does not hold, is a broken promise when it was due."""
    if result.harness_error is not None:
        return judgement
    if _proves_nothing(model, operation, result):
        return Judgement(Verdict.INCONCLUSIVE)
    if isinstance(operation, op.Settle) and result.timed_out:
        waiting = "; ".join(model.pending(seen)) or result.stderr
        return _broken("workers.recovers", f"Not settled in time: {waiting}.", operation)
    if operation.kind is Kind.ASSERTION and not result.succeeded:
        return _broken(
            "workers.assertion", f"{operation} does not hold: {result.stderr}", operation
        )
    if operation.kind is not Kind.WAIT or result.succeeded:
        return judgement
    name, status = op.worker_of(operation), op.awaited_status(operation)
    belief = model.workers.get(name or "")
    if isinstance(operation, op.WaitForPrompt) and belief is not None and belief.due_at is not None:
        text = f"Worker {belief.name!r} was given work but its agent never received it."
        return _broken("workers.nothing_lost", text, operation, belief.name)
    if belief is None or status is None:
        return _not_due(judgement)
    now_status = seen.status_of(belief.name)
    if now_status == "error" and status != "error":
        if "error" in model.allowed(belief.name):
            return judgement  # it gave up and said so, which it may: nothing is proved
        view = seen.workers[belief.name]
        text = f"Worker {belief.name!r} entered error state while waiting: {view.error_reason}."
        return _broken("workers.completes", text, operation, belief.name)
    if model.daemon_certain is not True:
        return _not_due(judgement)
    ends_turn = status not in AGENT_MOVES and status != "offline"
    if ends_turn and belief.due_at is not None and (now_status in AGENT_MOVES or status != "idle"):
        text = f"Worker {belief.name!r} was due to finish, and to reach {status}, but stays {now_status}."
        return _broken("workers.completes", text, operation, belief.name)
    if status == "idle" and "idle" in belief.statuses and now_status in ("offline", None, "idle"):
        text = f"Worker {belief.name!r} was due to become idle but stays {now_status}."
        return _broken("workers.recovers", text, operation, belief.name)
    if status in AGENT_MOVES and status in belief.statuses:
        text = f"Worker {belief.name!r} was due to be {status} but is {now_status}."
        return _broken("workers.status_follows_model", text, operation, belief.name)
    return _not_due(judgement)


def _not_due(judgement: Judgement) -> Judgement:
    """What was waited for has not come, but nobody had promised it: a wait is no command that hangs."""
    return Judgement(Verdict.INCONCLUSIVE) if judgement.verdict is Verdict.TIMEOUT else judgement


def _proves_nothing(model: WorkersModel, operation: Operation, result: OperationResult) -> bool:
    """Slow is not stuck; and nothing has to happen while a fault is on, or is known of a state that may
    be the fault's own.
    """
    watching = operation.kind in (Kind.WAIT, Kind.ASSERTION)
    unknown = bool(model.lasting or model.doubtful) and watching and not result.succeeded
    return bool(result.details.get("moving")) or unknown


def _broken(rule: str, message: str, operation: Operation, subject: str = "") -> Judgement:
    return Judgement(Verdict.BUG, Violation(rule, message, subject, {"operation": str(operation)}))


def _add_honesty(
    judgement: Judgement,
    operation: Operation,
    result: OperationResult,
    before: Observation,
    seen: Observation,
) -> Judgement:
    """What status and doctor claim must agree with what is true before and after them."""
    if judgement.verdict is not Verdict.SUCCESS:
        return judgement
    if isinstance(operation, op.Status):
        claimed = result.details.get("daemon_running")
        readable = before.daemons is not None and seen.daemons is not None
        steady = readable and before.daemon_alive == seen.daemon_alive
        if isinstance(claimed, bool) and steady and claimed != seen.daemon_alive:
            word = "runs" if claimed else "does not run"
            truth = "a daemon runs" if seen.daemon_alive else "no daemon runs"
            text = f"Status says that the daemon {word}, but {truth}."
            return Judgement(Verdict.BUG, Violation("workers.status_is_honest", text, "daemon"))
    if isinstance(operation, op.Doctor) and result.exit_code == 0:
        wrong = _visible_problem(before if not operation.repair else seen, seen)
        if wrong is not None:
            rule = "repair_is_honest" if operation.repair else "health_is_honest"
            text = f"{operation} says that all is well, but {wrong}."
            return Judgement(Verdict.BUG, Violation(f"workers.{rule}", text))
    return judgement


def _visible_problem(before: Observation, seen: Observation) -> str | None:
    """A problem that was there before and after the check; anything that changed meanwhile does not
    count.
    """
    if all(look.daemon_flag and look.daemons == () for look in (before, seen)):
        return "the daemon is dead though the state says that it runs"
    if before.state_error and seen.state_error:
        return f"the state file is unreadable: {seen.state_error}"
    return None


@dataclass(frozen=True)
class Broken:
    """A violation, and whether the target's lag may still heal it."""

    violation: Violation
    eventual: bool


def check_state(
    model: WorkersModel,
    operation: Operation,
    succeeded: bool,
    before: Observation,
    seen: Observation,
    profile_skips: Mapping[str, str],
) -> tuple[tuple[Broken, ...], tuple[str, ...]]:
    """All state rules and the ledger: what is broken, and which rules could not be evaluated."""
    names, everyone, daemon = touched_workers(
        operation, up_restarts=model.profile.restarts_agents_on_up
    )
    check = Check(model, seen, before, operation, succeeded, names, everyone, daemon)
    broken: list[Broken] = []
    unreadable: list[str] = []
    for rule, (function, eventual) in INVARIANTS.items():
        if rule in profile_skips or not is_kept(rule, model, seen):
            continue
        try:
            broken.extend(Broken(violation, eventual) for violation in function(check))
        except Exception as error:  # noqa: BLE001  a broken rule is inconclusive, never a dead run
            unreadable.append(f"{rule}: {_why(error)}")
    try:
        for violation, eventual in audit(check):
            if violation.rule not in profile_skips and is_kept(violation.rule, model, seen):
                broken.append(Broken(violation, eventual))
    except Exception as error:  # noqa: BLE001  likewise
        unreadable.append(f"ledger: {_why(error)}")
    # What a status should have been says least about a failure: every other rule comes before it.
    broken.sort(key=lambda item: item.violation.rule == "workers.status_follows_model")
    return _without_hope(broken), tuple(unreadable)


def _without_hope(broken: Sequence[Broken]) -> tuple[Broken, ...]:
    """No lag makes good that a worker is offline beside its agent when nothing explains the status."""
    strange = {
        item.violation.subject
        for item in broken
        if item.violation.rule == "workers.status_follows_model"
    }
    return tuple(
        replace(item, eventual=False)
        if item.violation.rule == "workers.offline_has_no_agent"
        and item.violation.subject in strange
        else item
        for item in broken
    )


def _why(error: Exception) -> str:
    if isinstance(error, Unreadable):
        return f"could not read {error}"
    return f"the rule itself failed with {error!r}"
