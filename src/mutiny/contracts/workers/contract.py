"""The workers contract as the engine sees it: all of its parts under one roof."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mutiny.contracts.workers import generate, judge, operations, simplify
from mutiny.contracts.workers.applicability import KEEPERS, Keeper
from mutiny.contracts.workers.expect import REJECTIONS
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.rules import RULES
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.contracts.workers.supported import fit, supported
from mutiny.kit import faults
from mutiny.kit.contract import Answered, Checked
from mutiny.kit.operations import competes
from mutiny.kit.supported import Fitted
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule, Violation

_TRIED_AGAIN = (operations.Add, operations.Nuke, operations.Accept, operations.ResetWorker)
"""Commands that whoever saw them fail gives again; none of them brings a new prompt."""
MOST_ALTERNATIVES = 64
TOO_MANY = f"there were more than {MOST_ALTERNATIVES} possible courses, and some were given up"


@dataclass(frozen=True)
class WorkersContract:
    """Operations, model, rules and scenarios of the workers contract, for one target's profile."""

    profile: Profile = field(default_factory=Profile)
    patterns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Class of refusals -> regular expressions of the target's texts."""

    name = "workers"
    operations: Mapping[str, type[Operation]] = field(default_factory=lambda: operations.OPERATIONS)
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target, in its words."""
        found = {name: self.fit(sequence) for name, sequence in SCENARIOS.items()}
        return {
            name: one.sequence
            for name, one in found.items()
            if not one.nothing_left and name not in self.profile.skips
        }

    @property
    def lag_s(self) -> float:
        """How long the target's files may lag behind the truth."""
        return self.profile.limits.lag_s

    @property
    def not_applicable(self) -> Mapping[str, str]:
        """Rules that the target does not promise, with the reason."""
        return self.profile.not_applicable

    def initial(self) -> Beliefs:
        """Beliefs about an empty box."""
        return Beliefs((WorkersModel(self.profile),))

    def nothing_seen(self) -> Observation:
        """The observation before the first look."""
        return Observation()

    def resolve(
        self, operation: Operation, choose: Callable[[Sequence[Operation]], Operation]
    ) -> Operation:
        """Replace a choice by what was chosen."""
        return choose(operation.options) if isinstance(operation, operations.Choice) else operation

    def starts_afresh(self, operation: Operation) -> bool:
        """Does this operation throw the box away?"""
        return isinstance(operation, operations.Reset)

    def judge(
        self,
        model: Beliefs,
        operation: Operation,
        result: OperationResult,
        before: Observation,
        seen: Observation,
        now: float,
    ) -> Answered[Beliefs]:
        """Classify an answer and advance the beliefs; an alternative that it refutes is dropped."""
        answers = [
            judge.judge_answer(one, operation, result, before, seen, self.patterns, now)
            for one in model.alternatives
        ]
        right = [answer for answer in answers if not answer.judgement.verdict.stops_run]
        chosen = right or answers[:1]
        undecided_until = model.undecided_until
        if any(answer.half_done for answer in chosen):
            undecided_until = now + seen.pace.limit(self.profile.limits.recover_s)
        worlds = _distinct(one for answer in chosen for one in (answer.model, *answer.others))
        dropped = model.dropped or len(worlds) > MOST_ALTERNATIVES
        after = Beliefs(
            worlds[:MOST_ALTERNATIVES], undecided_until=undecided_until, dropped=dropped
        )
        judgement = chosen[0].judgement
        certain = judgement.violation is not None and judge.certain(judgement.violation.rule)
        if model.dropped and not right and not certain:
            return Answered(Verdict.INCONCLUSIVE, after, None, TOO_MANY)
        violation, reason = judgement.violation, chosen[0].expectation.reason
        if violation is not None and violation.rule in self.not_applicable:
            return Answered(Verdict.SUCCESS, after, None, reason)
        return Answered(judgement.verdict, after, violation, reason, not competes(operation))

    def check(
        self,
        model: Beliefs,
        operation: Operation,
        succeeded: bool,
        before: Observation,
        seen: Observation,
    ) -> Checked[Beliefs]:
        """All state rules and the ledger, under the alternative that they suit best."""
        breaking = operations.SweepPoint | faults.KillDuring
        if isinstance(operation, breaking) and operation.ends_world and succeeded:
            return Checked(
                model=model, unseen=True
            )  # everything is dead; the recovery is what counts
        results = [
            (self._check_one(one, operation, succeeded, before, seen), one)
            for one in model.alternatives
        ]
        clean = [pair for pair in results if not pair[0].broken and not pair[0].settling]
        possible = [pair for pair in results if not pair[0].broken]
        chosen = clean or possible or results[:1]
        best = chosen[0][0]
        if seen.at >= model.undecided_until:
            kept = replace(model, alternatives=tuple(one for _, one in chosen), fitting=0)
            return (
                _unsure(replace(best, model=kept)) if model.dropped else replace(best, model=kept)
            )
        # A half-done command may still be finished, or taken back, as long as a recovery may take.
        others = [pair for pair in results if pair not in chosen]
        kept = replace(
            model,
            alternatives=tuple(one for _, one in (*chosen, *others)),
            fitting=len(chosen),
        )
        settling = replace(best, broken=(), settling=(*best.broken, *best.settling), model=kept)
        return _unsure(settling) if model.dropped else settling

    def _check_one(
        self,
        model: WorkersModel,
        operation: Operation,
        succeeded: bool,
        before: Observation,
        seen: Observation,
    ) -> Checked[Beliefs]:
        broken, unreadable = judge.check_state(
            model, operation, succeeded, before, seen, self.not_applicable
        )
        return Checked(
            tuple(item.violation for item in broken if not item.eventual),
            tuple(item.violation for item in broken if item.eventual),
            unreadable,
        )

    def see(self, model: Beliefs, seen: Observation) -> Beliefs:
        """Narrow the beliefs by a new observation."""
        return replace(model, alternatives=tuple(one.see(seen) for one in model.alternatives))

    def pending(self, model: Beliefs, seen: Observation) -> tuple[str, ...]:
        """What has still to happen by itself, under the alternative that waits for least.

        Those that agree with what is seen about who exists come first.
        """
        seen = seen.believable()
        there = set(seen.workers)
        likely = model.alternatives[: model.fitting or None]
        same = [one for one in likely if set(one.workers) == there]
        same = same or [one for one in model.alternatives if set(one.workers) == there]
        return min((one.pending(seen) for one in same or likely), key=len)

    def impossible(self, model: Beliefs, subject: str, status: str) -> bool:
        """Does no alternative allow a worker this status?"""
        return all(
            subject in one.workers
            and not one.doubtful
            and not one.state_damaged  # an old copy tells of old statuses until it is noticed
            and status not in one.allowed(subject)
            for one in model.alternatives
        )

    def disturbed(self, model: Beliefs) -> tuple[str, ...]:
        """Faults whose consequences may still be felt."""
        return model.alternatives[0].faults

    def coverage(
        self, operation: Operation, before: Observation, verdict: Verdict, model: Beliefs
    ) -> dict[str, object]:
        """The cell of the coverage table that a step fills: (status, operation, fault, outcome)."""
        return _cell(operation, before, verdict, model.alternatives[0])

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """What follows a sweep's point: the target comes back by its own means, serves the command that
        was broken once more, and settles.
        """
        again = (broken, operations.Settle()) if isinstance(broken, _TRIED_AGAIN) else ()
        recovering: tuple[Operation, ...] = (
            operations.Settle(),
            *again,
            *((operations.Doctor(repair=True, yes=True),) if damaged else ()),
            operations.Doctor(),
            operations.Down(),
        )
        if isinstance(broken, operations.Init):  # whoever saw it fail does it again
            whole: tuple[Operation, ...] = (broken, operations.Up(), *recovering)
        else:
            whole = (operations.Up(), *recovering) if world_ended else recovering
        return tuple(one for one in whole if supported(self.profile, one))

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target."""
        return fit(self.profile, sequence)

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]:
        """An explored sequence: chaos, then recovery."""
        return generate.generate(self.profile, seed, length, self.patterns or REJECTIONS)

    def plausible(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could this sequence mean anything? The minimiser does not run what could not."""
        return simplify.plausible(self.profile, sequence, original)

    def certain(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Does it depend on the target's pace no more than the original did?"""
        return simplify.certain(self.profile, sequence, original)

    def simpler(self, sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Simpler forms of a sequence: fewer workers, shorter texts, smaller waits."""
        return simplify.simpler(sequence)


@dataclass(frozen=True)
class Beliefs:
    """What may be the case. More than one alternative after a command whose outcome nobody learned."""

    alternatives: tuple[WorkersModel, ...]
    fitting: int = 0
    """So many of the first fit best to what was seen last; 0: all of them alike."""
    undecided_until: float = 0.0
    """Until then what is seen decides nothing: the target may still finish it or take it back."""
    dropped: bool = False
    """They became too many once: one that is not among them may be the true one."""


def _distinct(models: Iterable[WorkersModel]) -> tuple[WorkersModel, ...]:
    """Each belief once, in their order."""
    found: list[WorkersModel] = []
    for model in models:
        if model not in found:
            found.append(model)
    return tuple(found)


def _unsure(checked: Checked[Beliefs]) -> Checked[Beliefs]:
    """What no kept alternative explains may be right in one that was dropped."""

    def sure(violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
        return tuple(item for item in violations if KEEPERS[item.rule] is Keeper.ALWAYS)

    broken, settling = sure(checked.broken), sure(checked.settling)
    accused = (*checked.broken, *checked.settling)
    doubts = tuple(
        f"{item.rule}: {TOO_MANY}" for item in accused if item not in (*broken, *settling)
    )
    unreadable = (*checked.unreadable, *doubts)
    return replace(checked, broken=broken, settling=settling, unreadable=unreadable)


def _cell(
    operation: Operation, before: Observation, verdict: Verdict, model: WorkersModel
) -> dict[str, object]:
    wrapping = (
        operations.ExpectError,
        operations.SweepPoint,
        faults.LibraryFault,
        faults.KillDuring,
    )
    wrapped = isinstance(operation, wrapping) and operation.children()
    inner = operation.children()[0] if wrapped else operation
    worker = operations.worker_of(inner)
    if worker is None and isinstance(inner, operations.Reject):
        worker = model.last_reviewed
    last = model.faults[-1].partition("(")[0] if model.faults else "none"
    fault = operation.type if operation.kind is Kind.FAULT else last
    status = before.status_of(worker) if worker else None
    return {
        "status": status or ("absent" if worker else "-"),
        "operation": inner.type,
        "fault": fault,
        "outcome": verdict.value,
    }
