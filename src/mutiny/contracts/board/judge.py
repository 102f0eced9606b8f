"""From one executed operation to a verdict and new beliefs. Pure: the engine executes and looks.

A command whose outcome nobody learned leaves several beliefs; the next look at the board refutes all
but one of them, or all, and then a promise is broken.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.answers import Words, answer_of
from mutiny.contracts.board.background import control, judge_wait
from mutiny.contracts.board.damage import damage_in, hurt, mended
from mutiny.contracts.board.explain import KNOWN, explain
from mutiny.contracts.board.invariants import moment_of
from mutiny.contracts.board.load import driven, went_on, wrong_with_load
from mutiny.contracts.board.model import BoardModel, Span
from mutiny.contracts.board.observation import Answer, BoardObservation
from mutiny.contracts.board.outcome import Outcome
from mutiny.contracts.board.outcomes import COMMANDS, learn, outcomes, server_killed
from mutiny.contracts.board.worlds import GIVEN_UP, distinct
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.classify import how_it_died
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, worst
from mutiny.model.violation import Violation

EXACT = (
    *(op.Init, op.Up, op.Down, op.RestartServer, op.StartSecondServer, op.AddTask, op.AddBatch),
    *(op.AddMany, op.Checkpoint, op.Elect, op.Renew, op.StepDown, op.WriteAsLeader, op.Heartbeat),
    *(op.Status, op.List),
)
"""Commands whose outcome does not depend on what others do with the tasks meanwhile."""


LIFE = (op.Init, op.Up, op.Down, op.RestartServer, op.StartSecondServer)
"""Commands about the server, not about what the board holds."""
WITHOUT_BELIEFS = (
    *("board.fails_clearly", "board.one_server", "board.no_crash", "board.answers_in_time"),
    *("board.lock_respected", "board.no_growth", "board.linearizable", "board.tokens_grow"),
)
"""Rules that are broken whatever the board should hold."""
UNDER_ENGINE = (common.SweepPoint, common.Trace, common.Interleave, faults.KillDuring)
"""What goes through the system-call engine: the server is stopped, and the command brings its own."""


@dataclass(frozen=True)
class Judged:
    """What an answer means."""

    verdict: Verdict
    models: tuple[BoardModel, ...]
    violation: Violation | None = None
    reason: str = ""
    followed: bool = True
    """The beliefs know what happened, also where it was wrong."""


@dataclass(frozen=True)
class Look:
    """The observations around an operation, and how its words are read."""

    before: BoardObservation
    seen: BoardObservation
    words: Words

    def span(self, result: OperationResult) -> Span:
        """When the command was given and answered, on our own clock."""
        invoked, returned = result.details.get("invoked"), result.details.get("returned")
        if isinstance(invoked, float) and isinstance(returned, float):
            return Span(invoked, returned)
        return moment_of(self.before, self.seen)


def depends_on_beliefs(violation: Violation | None) -> bool:
    """Would another belief explain it?"""
    return violation is not None and violation.rule not in WITHOUT_BELIEFS


def judge(model: BoardModel, operation: Operation, result: OperationResult, look: Look) -> Judged:
    """Classify what came back, and advance the beliefs."""
    if isinstance(operation, UNDER_ENGINE) and model.profile.server:
        model = _served_anew(model)
    judged = _judge(model, operation, result, look)
    seen = tuple(one.see(look.seen) for one in judged.models)
    return replace(judged, models=seen)


def _judge(model: BoardModel, operation: Operation, result: OperationResult, look: Look) -> Judged:
    if result.harness_error is not None:
        return _nothing_known(model, operation, result, look)
    if isinstance(operation, common.Parallel | common.Interleave):
        return _parallel(model, operation, result, look)
    if isinstance(operation, common.Trace):
        return _inner(model, operation.operation, result, look)
    if isinstance(operation, common.SweepPoint | faults.KillDuring):
        return _broken_off(model, operation, result, look)
    if isinstance(operation, common.ExpectError):
        return _refusal(model, operation, result, look)
    if isinstance(operation, op.HoldBoardLock | faults.LibraryFault):
        return _injured(model, operation, result, look)
    if isinstance(operation, op.KillServer) and operation.after is not None:
        return _killed_after(model, operation, operation.after, result, look)
    if isinstance(operation, COMMANDS):
        hindered = bool(model.lasting)
        return command(model, operation, result, look, hindered=hindered)
    if isinstance(operation, op.Drive):
        return _driven(model, operation, result, look)
    if operation.kind in (Kind.WAIT, Kind.ASSERTION):
        verdict, violation = judge_wait(model, operation, result, look.seen)
        after = model
        if isinstance(operation, op.Settle) and verdict is Verdict.SUCCESS:
            after = replace(model.see(look.seen), faults=(), lasting=())
        return Judged(verdict, (after,), violation, "it is due")
    if not result.succeeded or (operation.kind is Kind.FAULT and not result.fired):
        return Judged(Verdict.INCONCLUSIVE, (model,))
    damage = damage_in(operation)
    if damage is not None:
        return Judged(Verdict.SUCCESS, hurt(model.fault(str(operation)), damage, look.seen))
    return Judged(Verdict.SUCCESS, (control(model, operation, look.seen),))


def _nothing_known(
    model: BoardModel, operation: Operation, result: OperationResult, look: Look
) -> Judged:
    return Judged(Verdict.INCONCLUSIVE, (model,), None, result.harness_error or "")


def _inner(model: BoardModel, inner: Operation, result: OperationResult, look: Look) -> Judged:
    if not result.inner:
        return Judged(Verdict.INCONCLUSIVE, (model,))
    return _judge(model, inner, result.inner[0], look)


# --- one command ----------------------------------------------------------------------------------


def command(
    model: BoardModel,
    operation: Operation,
    result: OperationResult,
    look: Look,
    *,
    hindered: bool = False,
) -> Judged:
    """A command and its answer; `hindered`: a fault may have kept it from what was due."""
    when = look.span(result)
    trouble = _trouble(operation, result)
    if trouble is not None:
        verdict = Verdict.TIMEOUT if result.timed_out else Verdict.BUG
        return Judged(verdict, _either(model, operation, when), trouble)
    answer = answer_of(result, look.words)
    if model.foreign and not isinstance(operation, LIFE):
        return _in_the_dark(model, operation, answer, look.seen)
    if model.loose and not isinstance(operation, EXACT):
        return _loosely(model, operation, answer, when, look.seen)
    right = outcomes(model, operation, when)
    reason = "; or ".join(dict.fromkeys(outcome.reason for outcome in right))
    matched = [outcome for outcome in right if _fits(outcome, answer)]
    if matched:
        backwards = _backwards(model, operation, answer)
        verdict = Verdict.SUCCESS if answer.ok else Verdict.EXPECTED
        after = tuple(learn(one.after, operation, answer).acknowledged(model) for one in matched)
        if isinstance(operation, op.Restore) and operation.name in model.vague:
            after = tuple(one.as_seen(look.seen) for one in after)
        if backwards is not None:
            return Judged(Verdict.BUG, after, backwards, reason)
        dishonest = _dishonest(operation, answer, look) if answer.ok else None
        return Judged(Verdict.BUG if dishonest else verdict, after, dishonest, reason)
    if hindered and not answer.ok and (answer.error or answer.message):
        return Judged(Verdict.EXPECTED, _perhaps(model, operation, answer, when), None, reason)
    found = explain(model, operation, answer, right, when)
    if depends_on_beliefs(found) and any(outcome.after.guessed for outcome in right):
        return Judged(Verdict.INCONCLUSIVE, (model,), None, GIVEN_UP)
    return Judged(Verdict.BUG, (model,), found, reason, followed=False)


def _in_the_dark(
    model: BoardModel, operation: Operation, answer: Answer, seen: BoardObservation
) -> Judged:
    """A fault has written what the board reads: what it should answer nobody knows."""
    after = model.adopt(seen)
    if answer.ok:
        if isinstance(operation, op.Repair | op.Restore):
            after = mended(after)
        return Judged(Verdict.SUCCESS, (learn(after, operation, answer),))
    if answer.classes and answer.classes <= KNOWN:
        return Judged(Verdict.EXPECTED, (after,))
    text = f"{operation} failed with an unknown error: {answer.message}"
    return Judged(Verdict.BUG, (model,), Violation("board.fails_clearly", text))


def _fits(outcome: Outcome, answer: Answer) -> bool:
    if answer.ok:
        return outcome.success and (outcome.task is None or answer.task in (None, outcome.task))
    return bool(answer.classes & outcome.refusals)


def _trouble(operation: Operation, result: OperationResult) -> Violation | None:
    """What no outcome can explain: no end, a signal, a traceback."""
    evidence = {"exit_code": result.exit_code, "stderr": result.stderr[-2000:]}
    if result.timed_out:
        return Violation(
            "board.answers_in_time", f"{operation} did not end within its time limit.", "", evidence
        )
    died = how_it_died(operation, result)
    return None if died is None else Violation("board.no_crash", died, "", evidence)


def _backwards(model: BoardModel, operation: Operation, answer: Answer) -> Violation | None:
    """A number that fences old owners or leaders must grow."""
    epoch, token = answer.number("epoch"), answer.number("token")
    if isinstance(operation, op.Claim) and answer.ok and epoch is not None:
        task = model.tasks.get(answer.task or "")
        if task is not None and epoch <= task.epoch:
            text = (
                f"{operation} was given epoch {epoch}, but task {task.id} had {task.epoch} before."
            )
            return Violation("board.tokens_grow", text, task.id)
    led = isinstance(operation, op.Elect) and answer.ok
    if led and token is not None and token <= model.top_token:
        text = f"{operation} was given token {token}, but {model.top_token} was given before."
        return Violation("board.tokens_grow", text, "leader")
    return None


def _dishonest(operation: Operation, answer: Answer, look: Look) -> Violation | None:
    """What status says of agents and of the numbers of tasks agrees with what was seen around it."""
    dead = _shown_alive(operation, answer, look)
    if dead is not None:
        return dead
    counts = answer.said.get("counts")
    steady = look.before.tasks is not None and look.before.tasks == look.seen.tasks
    if not isinstance(operation, op.Status) or not isinstance(counts, dict) or not steady:
        return None
    for status in op.STATUSES:
        real = sum(1 for view in (look.seen.tasks or {}).values() if view.status == status)
        if counts.get(status, 0) != real:
            text = f"Status counts {counts.get(status, 0)} {status} tasks, but there are {real}."
            return Violation("board.status_is_honest", text, status)
    return None


def _shown_alive(operation: Operation, answer: Answer, look: Look) -> Violation | None:
    """Status shows an agent as alive whose process had ended before anybody asked."""
    agents = answer.said.get("agents")
    if not isinstance(operation, op.Status) or not isinstance(agents, dict):
        return None
    ended = {run.identity[0] for run in look.before.agents if not run.alive}
    for name, shown in agents.items():
        if isinstance(shown, dict) and shown.get("alive") and shown.get("pid") in ended:
            text = f"Status shows {name} as alive, but its process {shown['pid']} has ended."
            return Violation("board.status_is_honest", text, str(name))
    return None


def _loosely(
    model: BoardModel, operation: Operation, answer: Answer, when: Span, seen: BoardObservation
) -> Judged:
    """Others work on the board: which outcome is right, only the whole history can tell."""
    if answer.ok and isinstance(operation, op.Restore):
        saved = model.checkpoints.get(operation.name, model.tasks)
        return Judged(Verdict.SUCCESS, (replace(model, tasks=saved).as_seen(seen),))
    if answer.ok:
        worker = op.worker_of(operation)
        heard = model if worker is None else model.spoke(worker, when, sure=True)
        return Judged(Verdict.SUCCESS, (learn(heard, operation, answer),))
    if answer.classes and answer.classes <= KNOWN:
        return Judged(Verdict.EXPECTED, (_at_least_heard(model, operation, when),))
    text = f"{operation} failed with an unknown error: {answer.message}"
    return Judged(Verdict.BUG, (model,), Violation("board.fails_clearly", text))


def _either(model: BoardModel, operation: Operation, when: Span) -> tuple[BoardModel, ...]:
    """It has happened or it has not."""
    after = (outcome.after for outcome in outcomes(model, operation, when))
    worlds = distinct((_at_least_heard(model, operation, when), *after))
    return tuple(world.or_else(worlds) for world in worlds)


def _at_least_heard(model: BoardModel, operation: Operation, when: Span) -> BoardModel:
    """Whatever became of its command, the worker may have been heard of."""
    worker = op.worker_of(operation)
    return model if worker is None else model.spoke(worker, when, sure=False)


def _perhaps(
    model: BoardModel, operation: Operation, answer: Answer, when: Span
) -> tuple[BoardModel, ...]:
    """A failure under a fault: a board that says that nothing happened is taken by its word."""
    if answer.said.get("happened") == "no":
        return (_at_least_heard(model, operation, when),)
    return _either(model, operation, when)


# --- combinations ---------------------------------------------------------------------------------


def _refusal(
    model: BoardModel, operation: common.ExpectError, result: OperationResult, look: Look
) -> Judged:
    part = result.inner[0] if result.inner else result
    judged = _judge(model, operation.inner, part, look)
    if judged.verdict is not Verdict.SUCCESS:
        return judged
    text = f"{operation.inner} succeeded but the scenario expects a refusal."
    return replace(judged, verdict=Verdict.BUG, violation=Violation("board.rejects_illegal", text))


def _parallel(
    model: BoardModel,
    operation: common.Parallel | common.Interleave,
    result: OperationResult,
    look: Look,
) -> Judged:
    """Commands at once must have answered as if given in some order."""
    parts = operation.operations
    if result.timed_out:
        text = f"{operation.type} did not end: {result.stderr}"
        return Judged(Verdict.TIMEOUT, (model,), Violation("board.answers_in_time", text))
    if len(result.inner) != len(parts):
        return Judged(Verdict.INCONCLUSIVE, (model,))
    found: list[BoardModel] = []
    best: tuple[int, Judged | None] = (-1, None)
    verdicts: list[Verdict] = []
    guessed = False
    for order in itertools.permutations(range(len(parts))):
        models: tuple[BoardModel, ...] = (model,)
        for place, index in enumerate(order):
            judged = _each(models, parts[index], result.inner[index], look)
            if judged.verdict.stops_run:
                if place > best[0]:
                    best = (place, judged)
                break
            models = judged.models
            guessed = guessed or any(one.guessed for one in models)
            verdicts.append(judged.verdict)
        else:
            found += models
    if found:  # two may have had a task one after the other, when a lease ended between them
        return Judged(worst(verdicts), distinct(found), None, "some order explains it")
    twice = _claimed_twice(parts, result.inner, look)
    if twice is not None:
        return Judged(Verdict.BUG, (model,), twice)
    assert best[1] is not None
    if guessed and depends_on_beliefs(best[1].violation):
        return Judged(Verdict.INCONCLUSIVE, (model,), None, GIVEN_UP)
    return best[1]


def _each(
    models: Sequence[BoardModel], operation: Operation, result: OperationResult, look: Look
) -> Judged:
    """One part, under all beliefs that its predecessors left."""
    return _any_of([_judge(model, operation, result, look) for model in models])


def _any_of(judged: Sequence[Judged]) -> Judged:
    """What fits some world is right; what fits none proves nothing if worlds were given up."""
    right = [one for one in judged if not one.verdict.stops_run]
    if not right:
        return next((one for one in judged if one.verdict is Verdict.INCONCLUSIVE), judged[0])
    return replace(right[0], models=distinct(m for one in right for m in one.models))


def _claimed_twice(
    parts: Sequence[Operation], results: Sequence[OperationResult], look: Look
) -> Violation | None:
    taken: dict[str, Operation] = {}
    for part, result in zip(parts, results, strict=True):
        answer = answer_of(result, look.words)
        if isinstance(part, op.Claim) and answer.ok and answer.task:
            other = taken.setdefault(answer.task, part)
            if other is not part and op.worker_of(other) != part.worker:
                text = f"{other} and {part} were both given task {answer.task}."
                return Violation("board.single_owner", text, answer.task)
    return None


def _driven(model: BoardModel, operation: op.Drive, result: OperationResult, look: Look) -> Judged:
    """A load: what it measured is judged, what it did is taken over as it is seen."""
    after = driven(model, operation, look.seen)
    violation = wrong_with_load(model, operation, result, look.seen)
    if violation is not None:
        return Judged(Verdict.BUG, (after,), violation)
    return Judged(Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE, (after,))


# --- faults ---------------------------------------------------------------------------------------


def _broken_off(
    model: BoardModel,
    operation: common.SweepPoint | faults.KillDuring,
    result: OperationResult,
    look: Look,
) -> Judged:
    """A command that was broken in the middle has happened or it has not; half is wrong.

    An answer of success is an acknowledgement: then it has happened.
    """
    inner = operation.operation
    if isinstance(operation, faults.KillDuring) and result.fired is False:
        return _inner(model, inner, result, look)  # it had ended before: a command like any other
    if not result.fired or not result.inner:
        return Judged(Verdict.INCONCLUSIVE, (model,))
    answer, when = result.inner[0], look.span(result.inner[0])
    died = answer.signal is not None or answer.exit_code is None
    if died and not answer.timed_out:
        judged = Judged(Verdict.EXPECTED, _either(model, inner, when), None, "it may have happened")
    else:
        judged = command(model, inner, answer, look, hindered=True)
    lied = isinstance(operation, common.TearAt) and operation.mode == "lie"
    hit = (one.fault(str(operation)) for one in judged.models)
    models = (_lied_to(one, inner) if lied else one for one in hit)
    if operation.ends_world:
        models = (_world_ended(one) for one in models)
    elif model.profile.server:  # it was stopped for the point, and has come back
        models = (_served_anew(one) for one in models)
    after = Verdict.SUCCESS if judged.verdict is Verdict.EXPECTED else judged.verdict
    return replace(judged, verdict=after, models=distinct(models))


def _lied_to(model: BoardModel, written: Operation) -> BoardModel:
    """The disk took half of a file and said that it has all."""
    if isinstance(written, op.Checkpoint):
        return replace(model, damaged=True, spoiled=model.spoiled | {written.name})
    return replace(model, damaged=True)


def _killed_after(
    model: BoardModel,
    operation: op.KillServer,
    first: Operation,
    result: OperationResult,
    look: Look,
) -> Judged:
    """What was answered before the kill has happened."""
    if not result.fired or not result.inner:
        return Judged(Verdict.INCONCLUSIVE, (model,))
    judged = command(model, first, result.inner[0], look)
    killed = tuple(server_killed(one).fault(str(operation)) for one in judged.models)
    return replace(judged, models=killed)


def _served_anew(model: BoardModel) -> BoardModel:
    """A new server came for one command: no lease is known, nor what the breaker remembers."""
    return replace(model.all_blurred(), breaker=replace(model.breaker, unsure=True))


def _world_ended(model: BoardModel) -> BoardModel:
    """All processes are gone, and nobody knows how long that took."""
    blurred = model.all_blurred()
    return replace(blurred, up=frozenset({False}), spawned={}, lasting=())


def _injured(
    model: BoardModel, operation: Operation, result: OperationResult, look: Look
) -> Judged:
    """A fault of the library: on during a command, for some time, or from now on."""
    if not result.fired:
        return Judged(Verdict.INCONCLUSIVE, (model,))
    hit = model.fault(str(operation))
    if isinstance(operation, faults.LibraryFault) and operation.lasting:
        hit = replace(hit, lasting=(*hit.lasting, operation))
    damage = damage_in(operation)
    worlds = (hit,) if damage is None else hurt(hit, damage, look.seen)
    during = operation.children()
    if not during:
        return Judged(Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE, worlds)
    if not result.inner:
        return Judged(Verdict.INCONCLUSIVE, worlds)
    judged = _any_of(
        [command(one, during[0], result.inner[0], look, hindered=True) for one in worlds]
    )
    unlocked = went_on(operation, result.inner[0], answer_of(result.inner[0], look.words))
    if unlocked is not None and not judged.verdict.stops_run:
        return replace(judged, verdict=Verdict.BUG, violation=unlocked)
    return judged
