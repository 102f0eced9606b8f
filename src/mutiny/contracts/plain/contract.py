"""The contract of a box with nothing in it: no promise, no state.

Foreign experiments run in it: whatever they start and measure is their own business, and all that is judged
is their own hypothesis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mutiny.contracts.plain.operations import OPERATIONS
from mutiny.kit.base import ContractBase
from mutiny.kit.beliefs import Beliefs, ModelBase
from mutiny.model.operation import Operation
from mutiny.model.pace import Pace
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Rule


@dataclass(frozen=True)
class Nothing:
    """What can be seen of it."""

    at: float = 0.0
    probe_errors: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)

    def as_json(self) -> dict[str, object]:
        """Nothing."""
        return {}


class PlainContract(ContractBase[ModelBase, Nothing]):
    """No promises."""

    name = "plain"
    lag_s = 0.0
    seen_class = Nothing
    operations = OPERATIONS
    rules: Mapping[str, Rule] = {}
    scenarios: Mapping[str, tuple[Operation, ...]] = {}

    def coverage(
        self, operation: Operation, before: Nothing, verdict: Verdict, model: Beliefs[ModelBase]
    ) -> dict[str, object]:
        """No table."""
        return {}

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """Nothing comes back by itself."""
        return ()
