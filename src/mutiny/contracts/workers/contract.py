"""The workers contract as the engine sees it: all of its parts under one roof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mutiny.contracts.base import Answered, Checked
from mutiny.contracts.workers import generate, judge, operations, simplify
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.rules import RULES
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule


@dataclass(frozen=True)
class WorkersContract:
    """Operations, model, rules and scenarios of the workers contract, for one target's profile."""

    profile: Profile = field(default_factory=Profile)
    patterns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Class of refusals -> regular expressions of the target's texts."""

    name = "workers"
    operations: Mapping[str, type[Operation]] = field(default_factory=lambda: operations.OPERATIONS)
    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    scenarios: Mapping[str, tuple[Operation, ...]] = field(default_factory=lambda: SCENARIOS)

    @property
    def lag_s(self) -> float:
        """How long the target's files may lag behind the truth."""
        return self.profile.limits.lag_s

    @property
    def not_applicable(self) -> Mapping[str, str]:
        """Rules that the target does not promise, with the reason."""
        return self.profile.not_applicable

    def initial(self) -> WorkersModel:
        """Beliefs about an empty box."""
        return WorkersModel(self.profile)

    def nothing_seen(self) -> Observation:
        """The picture before the first look."""
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
        model: WorkersModel,
        operation: Operation,
        result: OperationResult,
        before: Observation,
        seen: Observation,
        now: float,
    ) -> Answered:
        """Classify an answer and advance the beliefs."""
        answer = judge.judge_answer(model, operation, result, before, seen, self.patterns, now)
        judgement = answer.judgement
        violation = judgement.violation
        if violation is not None and violation.rule in self.not_applicable:
            return Answered(Verdict.SUCCESS, answer.model, None, answer.expectation.reason)
        return Answered(judgement.verdict, answer.model, violation, answer.expectation.reason)

    def check(
        self,
        model: WorkersModel,
        operation: Operation,
        succeeded: bool,
        before: Observation,
        seen: Observation,
    ) -> Checked:
        """All state rules and the ledger."""
        broken, unreadable = judge.check_state(
            model, operation, succeeded, before, seen, self.not_applicable
        )
        return Checked(
            tuple(item.violation for item in broken if not item.eventual),
            tuple(item.violation for item in broken if item.eventual),
            unreadable,
        )

    def see(self, model: WorkersModel, seen: Observation) -> WorkersModel:
        """Narrow the beliefs by a new picture."""
        return model.see(seen)

    def pending(self, model: WorkersModel, seen: Observation) -> tuple[str, ...]:
        """What has still to happen by itself."""
        return model.pending(seen)

    def disturbed(self, model: WorkersModel) -> tuple[str, ...]:
        """Faults whose consequences may still be felt."""
        return model.faults

    def coverage(
        self, operation: Operation, before: Observation, verdict: Verdict, model: WorkersModel
    ) -> dict[str, object]:
        """The cell of the coverage table that a step fills: (status, operation, fault, outcome)."""
        inner = (
            operation.children()[0] if isinstance(operation, operations.ExpectError) else operation
        )
        worker = operations.worker_of(inner)
        if worker is None and isinstance(inner, operations.Reject):
            worker = model.last_reviewed
        last = model.faults[-1].partition("(")[0] if model.faults else "none"
        fault = inner.type if inner.kind is Kind.FAULT else last
        status = before.status_of(worker) if worker else None
        return {
            "status": status or ("absent" if worker else "-"),
            "operation": inner.type,
            "fault": fault,
            "outcome": verdict.value,
        }

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]:
        """An explored sequence: chaos, then recovery."""
        return generate.generate(self.profile, seed, length)

    def plausible(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could this sequence mean anything? The minimiser does not run what could not."""
        return simplify.plausible(self.profile, sequence, original)

    def simpler(self, sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Simpler forms of a sequence: fewer workers, shorter texts, smaller waits."""
        return simplify.simpler(sequence)
