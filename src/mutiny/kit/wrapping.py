"""A contract around another one: says what the inner one says, until a subclass says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from mutiny.kit.contract import Answered, Checked, Contract, Model, Seen

if TYPE_CHECKING:
    from mutiny.kit.supported import Fitted
    from mutiny.model.operation import Operation
    from mutiny.model.result import OperationResult
    from mutiny.model.verdict import Verdict
    from mutiny.model.violation import Rule


class WrappedContract(Generic[Model, Seen]):
    """Every question goes to the inner contract."""

    def __init__(self, inner: Contract[Model, Seen]) -> None:
        self._inner = inner

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def operations(self) -> Mapping[str, type[Operation]]:
        return self._inner.operations

    @property
    def rules(self) -> Mapping[str, Rule]:
        return self._inner.rules

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        return self._inner.scenarios

    @property
    def lag_s(self) -> float:
        return self._inner.lag_s

    @property
    def notices_damage(self) -> bool:
        return self._inner.notices_damage

    @property
    def not_applicable(self) -> Mapping[str, str]:
        return self._inner.not_applicable

    def initial(self) -> Model:
        return self._inner.initial()

    def nothing_seen(self) -> Seen:
        return self._inner.nothing_seen()

    def resolve(
        self, operation: Operation, choose: Callable[[Sequence[Operation]], Operation]
    ) -> Operation:
        return self._inner.resolve(operation, choose)

    def starts_afresh(self, operation: Operation) -> bool:
        return self._inner.starts_afresh(operation)

    def judge(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        before: Seen,
        seen: Seen,
        now: float,
    ) -> Answered[Model]:
        return self._inner.judge(model, operation, result, before, seen, now)

    def check(
        self, model: Model, operation: Operation, succeeded: bool, before: Seen, seen: Seen
    ) -> Checked[Model]:
        return self._inner.check(model, operation, succeeded, before, seen)

    def see(self, model: Model, seen: Seen) -> Model:
        return self._inner.see(model, seen)

    def pending(self, model: Model, seen: Seen) -> tuple[str, ...]:
        return self._inner.pending(model, seen)

    def impossible(self, model: Model, subject: str, status: str) -> bool:
        return self._inner.impossible(model, subject, status)

    def disturbed(self, model: Model) -> tuple[str, ...]:
        return self._inner.disturbed(model)

    def coverage(
        self, operation: Operation, before: Seen, verdict: Verdict, model: Model
    ) -> dict[str, object]:
        return self._inner.coverage(operation, before, verdict, model)

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        return self._inner.recovery(broken, world_ended=world_ended, damaged=damaged)

    def meanwhile(self, broken: Operation) -> tuple[Operation, ...]:
        return self._inner.meanwhile(broken)

    def daemon_deaths(
        self, operation: Operation, changes: int
    ) -> tuple[tuple[Operation, ...], ...]:
        return self._inner.daemon_deaths(operation, changes)

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """As the contract says."""
        return self._inner.fit(sequence)

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]:
        return self._inner.generate(seed, length)

    def plausible(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        return self._inner.plausible(operations, original)

    def certain(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        return self._inner.certain(operations, original)

    def simpler(
        self, operations: Sequence[Operation]
    ) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        return self._inner.simpler(operations)
