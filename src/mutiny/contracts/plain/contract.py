"""The contract of a box with nothing in it: no promise, no state.

Foreign experiments run in it: whatever they start and measure is their own business, and all that is judged
is their own hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mutiny.contracts.plain.operations import OPERATIONS
from mutiny.kit.contract import Answered, Checked
from mutiny.kit.operations import Reset
from mutiny.model.operation import Operation
from mutiny.model.pace import Pace
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mutiny.model.result import OperationResult


@dataclass(frozen=True)
class Nothing:
    """What can be seen of it."""

    at: float = 0.0
    probe_errors: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)

    def as_json(self) -> dict[str, object]:
        """Nothing."""
        return {}


@dataclass(frozen=True)
class PlainContract:
    """No promises."""

    name = "plain"
    lag_s = 0.0
    operations: Mapping[str, type[Operation]] = field(default_factory=lambda: OPERATIONS)
    rules: Mapping[str, Rule] = field(default_factory=dict)
    scenarios: Mapping[str, tuple[Operation, ...]] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)

    def initial(self) -> None:
        """No beliefs."""

    def nothing_seen(self) -> Nothing:
        """The observation before the first look."""
        return Nothing()

    def resolve(
        self, operation: Operation, choose: Callable[[Sequence[Operation]], Operation]
    ) -> Operation:
        """There are no choices."""
        return operation

    def starts_afresh(self, operation: Operation) -> bool:
        """Does this operation throw the box away?"""
        return isinstance(operation, Reset)

    def judge(
        self,
        model: Any,
        operation: Operation,
        result: OperationResult,
        before: Any,
        seen: Any,
        now: float,
    ) -> Answered:
        """It was done, or it was not."""
        return Answered(Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE, None)

    def check(
        self, model: Any, operation: Operation, succeeded: bool, before: Any, seen: Any
    ) -> Checked:
        """Nothing to check."""
        return Checked()

    def see(self, model: Any, seen: Any) -> None:
        """No beliefs."""

    def pending(self, model: Any, seen: Any) -> tuple[str, ...]:
        """Nothing is due."""
        return ()

    def impossible(self, model: Any, subject: str, status: str) -> bool:
        """Nothing is impossible."""
        return False

    def disturbed(self, model: Any) -> tuple[str, ...]:
        """Nothing is known to be disturbed."""
        return ()

    def coverage(
        self, operation: Operation, before: Any, verdict: Verdict, model: Any
    ) -> dict[str, object]:
        """No table."""
        return {}

    def recovery(self, broken: Operation, *, world_ended: bool) -> tuple[Operation, ...]:
        """Nothing comes back by itself."""
        return ()

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]:
        """Nothing to explore."""
        return ()

    def plausible(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Any part of it may be tried."""
        return bool(operations) and isinstance(operations[0], Reset)

    def certain(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Nothing is known about anybody's pace."""
        return True

    def simpler(
        self, operations: Sequence[Operation]
    ) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Nothing is simpler."""
        return iter(())
