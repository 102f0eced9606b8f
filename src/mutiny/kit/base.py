"""A contract from its parts: what the engine asks is made here, once for all contracts.

A contract writes its model (`ModelBase`), its operations, its rules and scenarios, `outcomes` (what is
right and what follows) and its rules about state. Everything else has an answer here that it may replace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from mutiny.kit import checking, simplifying
from mutiny.kit.answer import Answer, Words, answer_of
from mutiny.kit.beliefs import GIVEN_UP, Beliefs, ModelBase, distinct
from mutiny.kit.checking import Check, StateRule
from mutiny.kit.contract import Answered, Checked, Observation, SeenBase
from mutiny.kit.judging import Judge, Judged, Moment
from mutiny.kit.operations import Choice, Reset
from mutiny.kit.outcome import Outcome
from mutiny.kit.profile import TargetProfile
from mutiny.kit.supported import Fitted
from mutiny.kit.walking import ModelWalk
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule

if TYPE_CHECKING:
    from mutiny.kit.exploring import Explored, Walk

Model = TypeVar("Model", bound=ModelBase)
Seen = TypeVar("Seen", bound=Observation)


class ContractBase(Generic[Model, Seen]):
    """Operations, model, rules and scenarios of a contract, as the engine sees them."""

    name: ClassVar[str]
    profile: Any = TargetProfile()
    """How the target differs from the contract's ideal."""
    model_class: ClassVar[type[Any]] = ModelBase
    """Made without arguments it is what is the case in an empty box."""
    seen_class: ClassVar[type[Any]] = SeenBase
    """Made without arguments it is what was seen before the first look."""
    judge_class: ClassVar[type[Judge[Any, Any]]] = Judge
    """A contract's own judge, where it differs from that of the kit."""
    check_class: ClassVar[type[Check[Any, Any]]] = Check
    """What its rules about state may look at, where that is more than in the kit."""

    # --- what every contract says ----------------------------------------------------------------------

    @property
    def operations(self) -> Mapping[str, type[Operation]]:
        """All operations by name."""
        raise NotImplementedError

    @property
    def rules(self) -> Mapping[str, Rule]:
        """All rules by id."""
        raise NotImplementedError

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Ready sequences by name: those that make sense for this target."""
        raise NotImplementedError

    def first_model(self) -> Model:
        """What is the case in an empty box."""
        model: Model = self.model_class()
        return model

    def nothing_seen(self) -> Seen:
        """The observation before the first look."""
        seen: Seen = self.seen_class()
        return seen

    def outcomes(
        self, model: Model, operation: Operation, moment: Moment[Seen]
    ) -> Sequence[Outcome[Model]]:
        """Every right outcome of a command: its answer, and what is the case afterwards."""
        raise NotImplementedError

    def state_rules(self, check: Any) -> Iterable[StateRule]:
        """The rules about state that can be asked now, the most telling first."""
        return ()

    # --- what a contract may say -----------------------------------------------------------------------

    @property
    def lag_s(self) -> float:
        """How long what is seen may lag behind the truth."""
        lag_s: float = self.profile.limits.lag_s
        return lag_s

    @property
    def recover_s(self) -> float:
        """For how long a command that was broken off may still be finished or taken back by itself."""
        return 0.0

    @property
    def notices_damage(self) -> bool:
        """Does the target promise to notice what a disk that lies has made of its files?"""
        notices: bool = self.profile.notices_damage
        return notices

    @property
    def not_applicable(self) -> Mapping[str, str]:
        """Rules that the target does not promise, with the reason."""
        excused: Mapping[str, str] = self.profile.not_applicable
        return excused

    def read(self, result: OperationResult) -> Answer:
        """What the target answered."""
        return answer_of(result, Words())

    def unheard(self, classes: frozenset[str]) -> frozenset[str]:
        """Classes of refusals of which the target's file does not tell how they sound."""
        return frozenset()

    def learn(
        self,
        model: Model,
        after: Model,
        operation: Operation,
        answer: Answer,
        moment: Moment[Seen],
    ) -> Model:
        """The model after a right answer, with what only the answer tells."""
        return after

    def believable(self, seen: Seen) -> Seen:
        """What is seen, without what nobody may rely on."""
        return seen

    def check_of(
        self, model: Model, operation: Operation, succeeded: bool, before: Seen, seen: Seen
    ) -> Any:
        """What the rules about state may look at."""
        return self.check_class(model, seen, before, operation, succeeded)

    def cannot_be_seen(self, operation: Operation, succeeded: bool) -> bool:
        """Is everything dead and half-done, so that only the recovery counts?"""
        return False

    def subject_of(self, operation: Operation, model: Model) -> str | None:
        """Whom a command is about: a worker, a task."""
        return None

    def status_of(self, seen: Seen, subject: str) -> str | None:
        """The status of a subject, as far as it was seen."""
        return None

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """What follows a sweep's point: the target comes back by its own means, and settles."""
        return (broken,)

    def meanwhile(self, broken: Operation) -> tuple[Operation, ...]:
        """What somebody else may do between the end of the world in a command and the next start."""
        return ()

    def daemon_deaths(
        self, operation: Operation, changes: int
    ) -> tuple[tuple[Operation, ...], ...]:
        """The daemon dies in the middle of a command; unless a contract says how, it has no daemon."""
        return ()

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target; unless told, it lacks none."""
        return Fitted(tuple(sequence))

    def explored(self) -> Explored:
        """What exploration may do; unless told, every command that needs no argument."""
        from mutiny.kit.hazards import every_command

        return every_command(self.operations.values())

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]:
        """An explored sequence: chaos, then recovery."""
        from mutiny.kit.exploring import generate

        ready = tuple(self.scenarios.values())
        return generate(self.explored(), self.walk(), seed, length, ready)

    def walk(self) -> Walk:
        """A run without a target."""
        return ModelWalk(self)

    def plausible(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could this sequence mean anything? The minimiser does not run what could not."""
        return bool(sequence) and isinstance(sequence[0], Reset)

    def certain(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Does it depend on the target's pace no more than the original did?"""
        return True

    def simpler(self, sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Simpler forms of a sequence."""
        yield from simplifying.unwrapped(sequence)

    # --- what the engine asks --------------------------------------------------------------------------

    def initial(self) -> Beliefs[Model]:
        """Beliefs about an empty box."""
        return Beliefs((self.first_model(),))

    def resolve(
        self, operation: Operation, choose: Callable[[Sequence[Operation]], Operation]
    ) -> Operation:
        """Replace a choice by what was chosen."""
        return choose(operation.options) if isinstance(operation, Choice) else operation

    def starts_afresh(self, operation: Operation) -> bool:
        """Does this operation throw the box away?"""
        return isinstance(operation, Reset)

    def judge(
        self,
        model: Beliefs[Model],
        operation: Operation,
        result: OperationResult,
        before: Seen,
        seen: Seen,
        now: float,
    ) -> Answered[Beliefs[Model]]:
        """Classify an answer and advance the beliefs; an alternative that it refutes is dropped."""
        judge = self.judge_class(self, self.believable(before), self.believable(seen), now)
        judged: list[Judged[Model]] = [
            judge.judge(one, operation, result) for one in model.alternatives
        ]
        right = [one for one in judged if not one.verdict.stops_run]
        unsure = [one for one in judged[: len(model.likely)] if one.verdict is Verdict.INCONCLUSIVE]
        chosen = right or unsure[:1] or judged[:1]
        after = Beliefs(
            distinct(each for one in chosen for each in one.models),
            undecided_until=self._undecided_until(model, chosen, seen, now),
        )
        first = chosen[0]
        if model.guessed and not right and judge.depends_on_beliefs(first.violation):
            return Answered(Verdict.INCONCLUSIVE, after, None, GIVEN_UP)
        if first.violation is not None and first.violation.rule in self.not_applicable:
            if first.followed:
                return Answered(Verdict.SUCCESS, after, None, first.reason)
            # What it does instead the model does not know, so that nothing after it could be judged.
            told = f"{first.violation.rule} is not promised: {first.violation.message}"
            return Answered(Verdict.INCONCLUSIVE, after, None, told)
        hold = judge.beliefs_hold(operation, first.violation)
        return Answered(first.verdict, after, first.violation, first.reason, hold)

    def _undecided_until(
        self, model: Beliefs[Model], chosen: Iterable[Judged[Model]], seen: Seen, now: float
    ) -> float:
        if self.recover_s and any(one.half_done for one in chosen):
            return now + seen.pace.limit(self.recover_s)
        return model.undecided_until

    def check(
        self,
        model: Beliefs[Model],
        operation: Operation,
        succeeded: bool,
        before: Seen,
        seen: Seen,
    ) -> Checked[Beliefs[Model]]:
        """All rules about state, under the alternative that they suit best."""
        if self.cannot_be_seen(operation, succeeded):
            return Checked(model=model, unseen=True)
        results: list[tuple[Checked[Any], Model]] = []
        certain: set[str] = set()
        for one in model.alternatives:
            look = self.check_of(one, operation, succeeded, before, seen)
            found, sure = checking.ask(self.state_rules(look), look, self.not_applicable)
            results.append((self.arranged(found), one))
            certain |= sure
        best = checking.best_of(model, results, seen.at)
        return checking.without_guesses(best, certain) if model.guessed else best

    def arranged(self, checked: Checked[Any]) -> Checked[Any]:
        """The broken rules in the order in which they tell most."""
        return checked

    def see(self, model: Beliefs[Model], seen: Seen) -> Beliefs[Model]:
        """Narrow the beliefs by a new observation."""
        return replace(model, alternatives=tuple(one.see(seen) for one in model.alternatives))

    def pending(self, model: Beliefs[Model], seen: Seen) -> tuple[str, ...]:
        """What has still to happen by itself, under the alternative that waits for least."""
        seen = self.believable(seen)
        return min((one.pending(seen) for one in model.that_agree(seen)), key=len)

    def impossible(self, model: Beliefs[Model], subject: str, status: str) -> bool:
        """Does no alternative allow a subject this status? Then waiting longer is no use."""
        return all(one.excludes(subject, status) for one in model.alternatives)

    def disturbed(self, model: Beliefs[Model]) -> tuple[str, ...]:
        """Faults whose consequences may still be felt."""
        return model.alternatives[0].faults

    def coverage(
        self, operation: Operation, before: Seen, verdict: Verdict, model: Beliefs[Model]
    ) -> dict[str, object]:
        """The cell of the coverage table that a step fills: (status, operation, fault, outcome)."""
        believed, inner = model.alternatives[0], checking.inner_of(operation)
        subject = self.subject_of(inner, believed)
        status = None if subject is None else self.status_of(before, subject)
        last = believed.faults[-1].partition("(")[0] if believed.faults else "none"
        return {
            "status": status or ("absent" if subject else "-"),
            "operation": inner.type,
            "fault": operation.type if operation.kind is Kind.FAULT else last,
            "outcome": verdict.value,
        }
