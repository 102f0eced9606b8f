"""From one executed operation to a verdict and new beliefs: answers, combinations, faults and waits.

Pure: the engine executes and looks, this module decides, for every contract alike. What differs between
contracts are small methods that a contract's own judge replaces: what follows a step that is not said to
the target, which promise a wrong answer breaks, what a fault does to the beliefs, when a wait was due.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mutiny.kit import operations as common
from mutiny.kit.answer import MARKED, Answer, says
from mutiny.kit.beliefs import GIVEN_UP, ModelBase, distinct
from mutiny.kit.crash import how_it_died
from mutiny.kit.domains import BAD_INPUT, strange
from mutiny.kit.moments import At, InterruptOrchestrator, KillOrchestrator
from mutiny.kit.outcome import Outcome, reasons
from mutiny.kit.questions import CERTAIN, Heard, Judged, Moment, Questions
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, worst
from mutiny.model.violation import Violation

__all__ = ["CERTAIN", "Judge", "Judged", "Moment"]
Model = TypeVar("Model", bound=ModelBase)
Seen = TypeVar("Seen")


BESIDE_OTHERS = frozenset({"busy"})
"""Refusals that are true while another command runs: it may hold a lock."""
_NO_WORDS = "the target's file has no words for {} in [rejections]"


def without_words(classes: Collection[str]) -> str:
    """The note that a refusal was right although the target file does not give its words."""
    return _NO_WORDS.format(" or ".join(sorted(classes)))


def classes_in(told: str) -> tuple[str, ...]:
    """The classes of such a sentence; none of any other."""
    begin, end = _NO_WORDS.split("{}")
    head, found, rest = told.partition(begin)
    return tuple(rest.partition(end)[0].split(" or ")) if found and not head else ()


class Judge(Questions[Model, Seen]):
    """Judges one operation between two looks."""

    # --- one operation -------------------------------------------------------------------------------

    def judge(self, model: Model, operation: Operation, result: OperationResult) -> Judged[Model]:
        """Classify what came back, and advance the beliefs."""
        judged = self.part(self.prepared(model, operation), operation, result)
        return replace(judged, models=tuple(one.see(self.seen) for one in judged.models))

    def part(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        *,
        first: bool = True,
        alone: bool = True,
    ) -> Judged[Model]:
        """The same for a part of a combination: others may have come before it, or run beside it."""
        if result.harness_error is not None:
            return self._not_carried_out(model, operation, result)
        special = self.special(model, operation, result)
        if special is not None:
            return special
        if isinstance(operation, common.Parallel | common.Interleave):
            return self._at_once(model, operation, result)
        if isinstance(operation, At):
            return self._at_moment(model, operation, result)
        if isinstance(operation, common.Trace):
            return self._inner(model, operation.operation, result)
        if isinstance(operation, common.SweepPoint | common.KillDuring):
            return self._broken_off(model, operation, result)
        if isinstance(operation, common.ExpectError):
            return self._refusal(model, operation, result)
        if isinstance(operation, common.WrongSetting):
            return self._misset(model, operation, result)
        if isinstance(operation, common.Misuse):
            return self._misused(model, operation, result)
        if operation.kind is Kind.COMMAND:
            hindered = bool(model.lasting)
            excuses = frozenset[str]() if alone else BESIDE_OTHERS
            return self.command(
                model,
                operation,
                result,
                hindered=hindered,
                excuses=excuses,
                first=first,
                alone=alone,
            )
        if operation.kind in (Kind.WAIT, Kind.ASSERTION):
            return self._awaited(model, operation, result)
        if operation.kind is Kind.FAULT:
            return self.under_fault(model, operation, result)
        if not result.succeeded:
            return Judged(Verdict.INCONCLUSIVE, (model,))
        return Judged(Verdict.SUCCESS, tuple(self.follows(model, operation, self.moment(result))))

    def _not_carried_out(
        self, model: Model, operation: Operation, result: OperationResult
    ) -> Judged[Model]:
        """Mutiny itself failed: a command may have been given all the same."""
        told = result.harness_error or ""
        if operation.kind is not Kind.COMMAND:
            return Judged(Verdict.INCONCLUSIVE, (model,), None, told)
        models = self.unknown(model, operation, self.moment(result))
        return Judged(Verdict.INCONCLUSIVE, models, None, told, followed=False)

    def _inner(self, model: Model, inner: Operation, result: OperationResult) -> Judged[Model]:
        if not result.inner:
            return Judged(Verdict.INCONCLUSIVE, (model,))
        return self.part(model, inner, result.inner[0])

    # --- one command ---------------------------------------------------------------------------------

    def command(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        *,
        hindered: bool = False,
        excuses: frozenset[str] = frozenset(),
        first: bool = True,
        alone: bool = True,
    ) -> Judged[Model]:
        """A command and its answer.

        `hindered`: a fault may have kept it from what was due. `excuses`: refusals that a fault makes true.
        """
        model = self.hampered(model, operation) if hindered else model
        if result.harness_error is not None:
            return self._not_carried_out(model, operation, result)
        moment = self.moment(result, first=first)
        trouble = self._trouble(operation, result)
        if trouble is not None:
            verdict = Verdict.TIMEOUT if result.timed_out else Verdict.BUG
            return Judged(verdict, self.after_wrong_answer(model, operation, moment), trouble)
        answer = self.contract.read(result)
        told = self.unclear(model, operation, answer, moment)
        if told is not None:
            return told
        right = tuple(self.contract.outcomes(model, operation, moment))
        if excuses and not answer.ok:
            right = (*right, Outcome(model, excuses, None, "a fault is on"))
        reason = reasons(right)
        fitting = [one for one in right if one.fits(answer)]
        if fitting:
            after = tuple(
                self.contract.learn(model, one.after, operation, answer, moment) for one in fitting
            )
            lie = self._incomplete(operation, answer) or self._mismarked(operation, answer)
            if lie is None:
                heard = Heard(operation, result, answer, alone)
                lie = (self.dishonest if answer.ok else self.untrue_refusal)(model, heard)
            verdict = Verdict.SUCCESS if answer.ok else Verdict.EXPECTED
            return Judged(Verdict.BUG if lie else verdict, after, lie, reason)
        if hindered and not answer.ok and answer.clear:
            half_done = any(one.success for one in right)
            models = self.failed(model, operation, answer, moment)
            return Judged(Verdict.EXPECTED, models, None, reason, half_done=half_done)
        odd = strange(operation, taken=self.taken(model)) and answer.classes <= {BAD_INPUT}
        if odd and not answer.ok and answer.clear:
            return Judged(Verdict.EXPECTED, (model,), None, "it need not take such a value")
        return self._wrong(model, operation, result, right, moment)

    def _incomplete(self, operation: Operation, answer: Answer) -> Violation | None:
        """An answer of fields without one that the target's file says is always there."""
        told = answer.ok and set(answer.said) - {"ok"}
        due = self.contract.profile.answers.get(operation.type, ()) if told else ()
        missing = [name for name in due if not says(answer.said, name)]
        if not missing:
            return None
        text = f"The answer to {operation} does not say {', '.join(missing)}."
        return self.violation("answers_truly", text)

    def _mismarked(self, operation: Operation, answer: Answer) -> Violation | None:
        """A tool whose answer says one thing, and whose mark for every client says another."""
        marked = answer.said.get(MARKED)
        if not self.contract.profile.marks_refusals or marked in (None, not answer.ok):
            return None
        said, mark = ("ok", "an error") if answer.ok else (answer.shown, "no error")
        text = f"The answer to {operation} says {said!r}, but is marked as {mark}."
        return self.violation("answers_truly", text)

    def _trouble(self, operation: Operation, result: OperationResult) -> Violation | None:
        """What no outcome can explain: no end, a signal, a crash in whatever language."""
        evidence = {"exit_code": result.exit_code, "stderr": result.stderr[-2000:]}
        if result.timed_out:
            after = f" ({result.duration_ms / 1000:.1f}s)" if result.duration_ms else ""
            text = f"{operation} did not end within its time limit{after}."
            return self.violation("answers_in_time", text, "", evidence)
        died = how_it_died(operation, result)
        return None if died is None else self.violation("no_crash", died, "", evidence)

    def _wrong(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        right: Sequence[Outcome[Model]],
        moment: Moment[Seen],
    ) -> Judged[Model]:
        """An answer that is on no right outcome: a broken promise, unless the target does not give it.

        Who does not promise to refuse may serve, and whose refusals are unclear or untrue has refused all
        the same.
        """
        answer, reason = self.contract.read(result), reasons(right)
        if answer.ok:
            served = self.forced(model, operation, moment)
            if served is not None and self.excused("rejects_illegal"):
                return Judged(Verdict.SUCCESS, (served,), None, reason)
            models = (
                self.after_wrong_answer(model, operation, moment) if served is None else (served,)
            )
        else:
            refused = tuple(one.after for one in right if not one.success)
            unheard = self.contract.unheard(
                frozenset[str]().union(*(one.refusals for one in right if not one.success))
            )
            if unheard and answer.message and not answer.classes:
                told = f"{without_words(unheard)}, and it said: {answer.message}"
                return Judged(Verdict.INCONCLUSIVE, refused, None, told)
            if refused and self.excused(
                "rejects_truthfully" if answer.classes else "fails_clearly"
            ):
                return Judged(Verdict.EXPECTED, refused, None, reason)
            models, served = self.after_wrong_answer(model, operation, moment), None
        found = self.explain(model, operation, result, right, moment)
        if self.depends_on_beliefs(found) and any(one.after.guessed for one in right):
            return Judged(Verdict.INCONCLUSIVE, (model,), None, GIVEN_UP)
        return Judged(Verdict.BUG, models, found, reason, followed=served is not None)

    # --- combinations ----------------------------------------------------------------------------------

    def _refusal(
        self, model: Model, operation: common.ExpectError, result: OperationResult
    ) -> Judged[Model]:
        """A command that the scenario expects to be refused: with a true word, where one is known."""
        inner, part = operation.inner, result.inner[0] if result.inner else result
        judged = self.part(model, inner, part)
        wrong = judged.violation
        if judged.verdict is Verdict.SUCCESS and (model.doubted or self.came_late(model)):
            return replace(judged, verdict=Verdict.INCONCLUSIVE)
        if judged.verdict is Verdict.SUCCESS and model.misled:
            return judged
        if judged.verdict is Verdict.SUCCESS:
            text = f"{inner} succeeded but the scenario expects a refusal."
            broken = self.violation("rejects_illegal", text)
            return replace(judged, verdict=Verdict.BUG, violation=broken)
        if wrong is not None and wrong.rule.endswith(".serves_legal"):
            return Judged(Verdict.EXPECTED, (model,), None, "the scenario expects it")
        return judged

    def _misset(
        self, model: Model, operation: common.WrongSetting, result: OperationResult
    ) -> Judged[Model]:
        """A command while a setting is wrong: refused, with the setting's name, and nothing happens."""
        answer = result.inner[0] if result.inner else result
        trouble = self._trouble(operation, answer)
        if trouble is not None:
            verdict = Verdict.TIMEOUT if answer.timed_out else Verdict.BUG
            return Judged(verdict, (model,), trouble)
        name = str(result.details.get("due_name", ""))
        said = (answer.stderr or answer.stdout).strip()
        if not answer.succeeded and name in said:
            return Judged(Verdict.EXPECTED, (model,), None, f"{name} is wrong")
        text = f"{operation} was refused without a word about {name}: {said[:200]}"
        models: tuple[Model, ...] = (model,)
        if answer.succeeded:
            text = f"{operation} was served although a setting is wrong ({name})."
            models = self.unknown(model, operation.operation, self.moment(answer))
        return Judged(Verdict.BUG, models, self.violation("settings_checked", text, name))

    def _misused(
        self, model: Model, operation: common.Misuse, result: OperationResult
    ) -> Judged[Model]:
        """A command said wrongly: refused in some words and without effect, or taken as it was meant."""
        answer = result.inner[0] if result.inner else result
        moment = self.moment(answer)
        trouble = self._trouble(operation, answer)
        if trouble is not None:
            verdict = Verdict.TIMEOUT if answer.timed_out else Verdict.BUG
            return Judged(verdict, (model,), trouble)
        if answer.succeeded and operation.how == common.UNCONFIRMED:  # "cancelled" is a good end
            return Judged(Verdict.EXPECTED, (model,), None, "nobody has said yes")
        if answer.succeeded:
            models = self.after_wrong_answer(model, operation.operation, moment)
            heard = tuple(
                replace(self.misheard(model, one, operation.operation), misled=True)
                for one in models
            )
            return Judged(Verdict.SUCCESS, heard, None, "it may be taken as it was meant")
        if not (answer.stdout + answer.stderr).strip() and not self.excused("fails_clearly"):
            text = f"{operation} failed without a word (exit {answer.exit_code})."
            found = self.violation("fails_clearly", text, "", {"exit_code": answer.exit_code})
            return Judged(Verdict.BUG, (model,), found)
        return Judged(Verdict.EXPECTED, (model,), None, "it was said wrongly")

    def _at_once(
        self,
        model: Model,
        operation: common.Parallel | common.Interleave,
        result: OperationResult,
    ) -> Judged[Model]:
        """Commands at once must have answered as if given in some order."""
        parts = operation.operations
        if result.timed_out:
            text = f"{operation.type} did not end: {result.stderr}"
            return Judged(Verdict.TIMEOUT, (model,), self.violation("answers_in_time", text))
        if len(result.inner) != len(parts):
            return Judged(Verdict.INCONCLUSIVE, (model,))
        found: list[Model] = []
        verdicts: list[Verdict] = []
        stopped: list[tuple[int, int, Judged[Model]]] = []
        half_done = False
        for order in itertools.permutations(range(len(parts))):
            models: tuple[Model, ...] = (model,)
            for place, index in enumerate(order):
                answered = result.inner[index]
                judged = self._under_any(models, parts[index], answered, place == 0)
                # What Mutiny could not do itself says nothing, and takes nothing from what the others did.
                if judged.verdict.stops_run and answered.harness_error is None:
                    stopped.append((place, index, judged))
                    break
                models, half_done = judged.models, half_done or judged.half_done
                verdicts.append(judged.verdict)
            else:
                found += models
        if found:  # whichever order it was: what is seen now and later decides
            why = _mishap(result) or "some order explains it"
            return Judged(worst(verdicts), distinct(found), None, why, half_done=half_done)
        return self._unexplained(model, parts, result, stopped)

    def _under_any(
        self, models: Sequence[Model], part: Operation, result: OperationResult, first: bool
    ) -> Judged[Model]:
        """One part, under all models that its predecessors left."""
        return any_of([self.part(one, part, result, first=first, alone=False) for one in models])

    def _unexplained(
        self,
        model: Model,
        parts: Sequence[Operation],
        result: OperationResult,
        stopped: Sequence[tuple[int, int, Judged[Model]]],
    ) -> Judged[Model]:
        """No order explains the answers: a part that is wrong in any order says it best."""
        judged = [one for _, _, one in stopped]
        sure = [
            one for one in judged if one.violation and not self.depends_on_beliefs(one.violation)
        ]
        unsure = [one for one in judged if one.verdict is Verdict.INCONCLUSIVE]
        if sure or unsure:
            return replace((sure or unsure)[0], models=(model,), followed=False)
        if mishap := _mishap(result):
            return Judged(Verdict.INCONCLUSIVE, (model,), None, mishap, followed=False)
        deepest = max(stopped, key=lambda one: one[0])[2]
        if any(one.guessed for each in judged for one in each.models):
            return Judged(Verdict.INCONCLUSIVE, (model,), None, GIVEN_UP)
        same = {(index, one.violation.rule) for _, index, one in stopped if one.violation}
        if len(same) == 1 and all(one.violation for one in judged):
            return replace(deepest, models=(model,), followed=False)
        found = self.unordered(parts, result.inner, deepest)
        return Judged(Verdict.BUG, (model,), found, deepest.reason, followed=False)

    def _at_moment(self, model: Model, operation: At, result: OperationResult) -> Judged[Model]:
        """A command, and what was done at one of its moments: another command, its end, or a fault."""
        if len(result.inner) != 2:
            return Judged(Verdict.INCONCLUSIVE, (model,))
        answer, command, then = result.inner[0], operation.operation, operation.then
        if not result.fired:  # the moment never came
            ran = self.part(model, command, answer)
            return replace(ran, verdict=Verdict.INCONCLUSIVE, violation=None)
        if then.kind is Kind.COMMAND:
            return self._at_once(model, common.Parallel((command, then)), result)
        moment = self.moment(answer)
        if isinstance(then, InterruptOrchestrator):
            trouble = None if answer.signal is not None else self._trouble(command, answer)
            if trouble is not None:
                verdict = Verdict.TIMEOUT if answer.timed_out else Verdict.BUG
                return Judged(verdict, self.stopped(model, command, moment), trouble)
        if isinstance(then, InterruptOrchestrator | KillOrchestrator):
            models = self.stopped(model, command, moment)
            struck = distinct(self.struck(one, operation, moment) for one in models)
            return Judged(Verdict.SUCCESS, struck, None, "it was ended", half_done=True)
        hindered = self.excuses(then) is None
        return any_of(
            [
                self.command(one, command, answer, hindered=hindered)
                for one in self.follows(model, then, moment)
            ]
        )

    # --- faults ----------------------------------------------------------------------------------------

    def _broken_off(
        self,
        model: Model,
        operation: common.SweepPoint | common.KillDuring,
        result: OperationResult,
    ) -> Judged[Model]:
        """A command that was broken in the middle has happened or it has not; half is wrong.

        An answer of success is an acknowledgement: then it has happened.
        """
        inner = operation.operation
        if isinstance(operation, common.KillDuring) and result.fired is False:
            return self._inner(model, inner, result)  # it had ended before: like any other
        if not result.inner:
            return Judged(Verdict.INCONCLUSIVE, (model,))
        answer = result.inner[0]
        if not result.fired:  # it ran, unbroken
            ran = self.part(model, inner, answer)
            return replace(ran, verdict=Verdict.INCONCLUSIVE, violation=None)
        moment = self.moment(answer)
        if self._died(operation, answer):
            right = self.contract.outcomes(model, inner, moment)
            judged = Judged(
                Verdict.EXPECTED,
                self.unknown(model, inner, moment),
                None,
                "it may have happened",
                half_done=any(one.success for one in right),
            )
        else:
            judged = self.command(model, inner, answer, hindered=True)
        after = Verdict.SUCCESS if judged.verdict is Verdict.EXPECTED else judged.verdict
        models = distinct(self.struck(one, operation, moment) for one in judged.models)
        return replace(judged, verdict=after, models=models)

    @staticmethod
    def _died(operation: common.SweepPoint | common.KillDuring, answer: OperationResult) -> bool:
        """Did the command end because of the point, without an answer?"""
        if operation.ends_world:
            return answer.exit_code != 0
        if answer.signal is not None or (answer.exit_code is None and not answer.timed_out):
            return True
        killed = isinstance(operation, common.KillAt | common.KillDuring)
        silent = not (answer.stdout + answer.stderr).strip()
        return killed and silent and answer.exit_code != 0 and not answer.timed_out

    def under_fault(
        self, model: Model, operation: Operation, result: OperationResult
    ) -> Judged[Model]:
        """A fault: by itself, or while a command runs."""
        during = operation.children()
        if not result.fired:
            if not during or not result.inner:
                return Judged(Verdict.INCONCLUSIVE, (model,))
            ran = self.part(model, during[0], result.inner[0])  # it ran, and felt nothing
            return replace(ran, verdict=Verdict.INCONCLUSIVE, violation=None)
        worlds = tuple(self.follows(model, operation, self.moment(result)))
        if not during:
            done = Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE
            return Judged(done, worlds)
        if not result.inner:
            return Judged(Verdict.INCONCLUSIVE, worlds)
        excuses = self.excuses(operation)
        return any_of(
            [
                self.command(
                    one,
                    during[0],
                    result.inner[0],
                    hindered=excuses is None or bool(one.lasting),
                    excuses=excuses or frozenset(),
                )
                for one in worlds
            ]
        )

    # --- waits -------------------------------------------------------------------------------------------

    def _awaited(
        self, model: Model, operation: Operation, result: OperationResult
    ) -> Judged[Model]:
        """A wait that ran out, or an assertion that does not hold, is a broken promise when it was due."""
        if result.succeeded:
            models = tuple(self.follows(model, operation, self.moment(result)))
            return Judged(Verdict.SUCCESS, models, None, "it is due")
        if self.proves_nothing(model, operation, result):
            return Judged(Verdict.INCONCLUSIVE, (model,))
        if operation.kind is Kind.ASSERTION:
            text = f"{operation} does not hold: {result.stderr}"
            subject = self.contract.subject_of(operation, model) or ""
            found: Violation | None = self.violation("assertion", text, subject)
        else:
            found = self.overdue(model, operation, result)
        if found is None:
            return Judged(Verdict.INCONCLUSIVE, (model,))
        late = found.rule.endswith(".answers_in_time")
        return Judged(Verdict.TIMEOUT if late else Verdict.BUG, (model,), found, "it is due")


def _mishap(result: OperationResult) -> str:
    """What Mutiny itself could not do of several commands; empty: it gave them all."""
    return next((one.harness_error for one in result.inner if one.harness_error), "")


def any_of(judged: Iterable[Judged[Model]]) -> Judged[Model]:
    """What fits some model is right; what fits none proves nothing if models were given up."""
    listed: list[Judged[Any]] = list(judged)
    right = [one for one in listed if not one.verdict.stops_run]
    if not right:
        unsure = (one for one in listed if one.verdict is Verdict.INCONCLUSIVE)
        return next(unsure, listed[0])
    half_done = any(one.half_done for one in right)
    models = distinct(model for one in right for model in one.models)
    return replace(right[0], models=models, half_done=half_done)
