"""The board contract as the engine sees it: all of its parts under one roof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mutiny.contracts.board import generate, judge, operations, simplify
from mutiny.contracts.board.answers import Words
from mutiny.contracts.board.background import pending
from mutiny.contracts.board.invariants import OF_BELIEFS, Check, healing, rules_for
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.rules import RULES
from mutiny.contracts.board.scenarios import scenarios_of
from mutiny.contracts.board.supported import supported
from mutiny.contracts.board.worlds import GIVEN_UP, distinct
from mutiny.kit import faults
from mutiny.kit.contract import Answered, Checked
from mutiny.kit.operations import Choice, ExpectError, Reset, SweepPoint, competes
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule, Violation

_DIED = ("board.no_crash", "board.answers_in_time")


@dataclass(frozen=True)
class Beliefs:
    """What may be the case. More than one after a command whose outcome nobody learned."""

    alternatives: tuple[BoardModel, ...]

    @property
    def guessed(self) -> bool:
        """Some possibilities were given up."""
        return any(one.guessed for one in self.alternatives)


@dataclass(frozen=True)
class BoardContract:
    """Operations, model, rules and scenarios of the board contract, for one target's profile."""

    profile: BoardProfile = field(default_factory=BoardProfile)
    words: Words = field(default_factory=Words)

    name = "board"
    operations: Mapping[str, type[Operation]] = field(default_factory=lambda: operations.OPERATIONS)
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target."""
        return scenarios_of(self.profile)

    @property
    def lag_s(self) -> float:
        """How long what is seen may lag behind the truth."""
        return self.profile.limits.lag_s

    @property
    def not_applicable(self) -> Mapping[str, str]:
        """Rules that the target does not promise, with the reason."""
        return self.profile.not_applicable

    def initial(self) -> Beliefs:
        """Beliefs about an empty box."""
        return Beliefs((BoardModel(self.profile),))

    def nothing_seen(self) -> BoardObservation:
        """The observation before the first look."""
        return BoardObservation()

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
        model: Beliefs,
        operation: Operation,
        result: OperationResult,
        before: BoardObservation,
        seen: BoardObservation,
        now: float,
    ) -> Answered:
        """Classify an answer and advance the beliefs; an alternative that it refutes is dropped."""
        look = judge.Look(before, seen, self.words)
        judged = [judge.judge(one, operation, result, look) for one in model.alternatives]
        right = [one for one in judged if not one.verdict.stops_run]
        unsure = [one for one in judged if one.verdict is Verdict.INCONCLUSIVE]
        chosen = right or unsure[:1] or judged[:1]
        after = Beliefs(distinct(each for one in chosen for each in one.models))
        first = chosen[0]
        if model.guessed and not right and judge.depends_on_beliefs(first.violation):
            return Answered(Verdict.INCONCLUSIVE, after, None, GIVEN_UP)
        if first.violation is not None and first.violation.rule in self.not_applicable:
            if first.followed:
                return Answered(Verdict.SUCCESS, after, None, first.reason)
            # What it does instead the model does not know, so that nothing after it could be judged.
            told = f"{first.violation.rule} is not promised: {first.violation.message}"
            return Answered(Verdict.INCONCLUSIVE, after, None, told)
        # A wait changes nothing, and of a command that died both outcomes are believed.
        died = first.violation is not None and first.violation.rule in _DIED
        known = operation.kind in (Kind.WAIT, Kind.ASSERTION) or (died and not competes(operation))
        return Answered(first.verdict, after, first.violation, first.reason, known)

    def check(
        self,
        model: Beliefs,
        operation: Operation,
        succeeded: bool,
        before: BoardObservation,
        seen: BoardObservation,
    ) -> Checked:
        """All state rules, under the alternative that they suit best."""
        results = [
            (self._check_one(Check(one, seen, before, operation)), one)
            for one in model.alternatives
        ]
        clean = [pair for pair in results if not pair[0].broken and not pair[0].unreadable]
        chosen = clean or results[:1]
        return replace(chosen[0][0], model=Beliefs(tuple(one for _, one in chosen)))

    def _check_one(self, check: Check) -> Checked:
        broken: list[Violation] = []
        settling: list[Violation] = []
        unreadable: list[str] = []
        for invariant in rules_for(check):
            try:
                found = [one for one in invariant(check) if one.rule not in self.not_applicable]
            except Exception as error:  # noqa: BLE001  a broken rule is inconclusive, never a dead run
                unreadable.append(f"{invariant.__name__}: the rule itself failed with {error!r}")
                continue
            if found and check.model.guessed and invariant in OF_BELIEFS:
                unreadable.append(f"{found[0].message} But {GIVEN_UP}.")
            elif invariant in healing(check):
                settling += found
            else:
                broken += found
        return Checked(tuple(broken), tuple(settling), tuple(unreadable))

    def see(self, model: Beliefs, seen: BoardObservation) -> Beliefs:
        """Narrow the beliefs by a new observation."""
        return Beliefs(tuple(one.see(seen) for one in model.alternatives))

    def pending(self, model: Beliefs, seen: BoardObservation) -> tuple[str, ...]:
        """What has still to happen by itself, under the alternative that waits for least."""
        return min((pending(one, seen) for one in model.alternatives), key=len)

    def impossible(self, model: Beliefs, subject: str, status: str) -> bool:
        """Waits end by their deadline: what is impossible the rules say."""
        return False

    def disturbed(self, model: Beliefs) -> tuple[str, ...]:
        """Faults whose consequences may still be felt."""
        return model.alternatives[0].faults

    def coverage(
        self, operation: Operation, before: BoardObservation, verdict: Verdict, model: Beliefs
    ) -> dict[str, object]:
        """The cell of the coverage table that a step fills: (status, operation, fault, outcome)."""
        wrapping = (ExpectError, SweepPoint, faults.LibraryFault, faults.KillDuring)
        inner = operation
        if isinstance(operation, wrapping) and operation.children():
            inner = operation.children()[0]
        hit = model.alternatives[0].faults
        last = hit[-1].partition("(")[0] if hit else "none"
        task = operations.task_of(inner)
        return {
            "status": before.status_of(task) or ("absent" if task else "-"),
            "operation": inner.type,
            "fault": operation.type if operation.kind is Kind.FAULT else last,
            "outcome": verdict.value,
        }

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """What follows a sweep's point: the board comes back, and serves again."""
        serving: tuple[Operation, ...] = (
            operations.List(),
            operations.Recover(),
            operations.AddTask("afterwards", priority=1),
            operations.Claim("rescuer"),
            operations.Status(),
            operations.Settle(),
        )
        if isinstance(broken, operations.Init):  # whoever saw it fail does it again
            serving = (operations.Init(), *serving)
        if isinstance(broken, operations.Checkpoint):  # either the old copy is there or the new one
            serving = (operations.Restore(broken.name), *serving)
        if isinstance(broken, operations.Repair) or damaged:
            serving = (operations.Repair(), *serving)
        whole = (operations.Up(), *serving) if world_ended else serving
        return tuple(one for one in whole if supported(self.profile, one))

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]:
        """An explored sequence: chaos, then recovery."""
        return generate.generate(self.profile, seed, length)

    def plausible(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could this sequence mean anything? The minimiser does not run what could not."""
        return simplify.plausible(self.profile, sequence, original)

    def certain(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """A board does nothing by itself: what depends on time says so with its leases."""
        return True

    def simpler(self, sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Simpler forms of a sequence: fewer workers and tasks, smaller payloads and waits."""
        return simplify.simpler(sequence)
