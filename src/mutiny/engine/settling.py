"""What a step is on its way to a verdict: taken, then given the target's lag to heal, then settled."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from mutiny.kit.contract import Model, Seen
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation


@dataclass(frozen=True)
class Taken(Generic[Seen]):
    """A step that was taken and not judged yet."""

    sequence_id: int
    began: float
    operation: Operation
    result: OperationResult
    before: Seen
    ended: float


@dataclass(frozen=True)
class Settled(Generic[Model]):
    """An answer together with what the rules say once the target had its lag."""

    verdict: Verdict
    model: Model
    violation: Violation | None
    expected: str
    extra: tuple[Violation, ...]
    doubts: tuple[str, ...]


class Lag:
    """Every broken rule has the target's whole lag to heal, counted from when it was first seen."""

    def __init__(self, lag_s: float) -> None:
        self._lag_s = lag_s
        self._started = time.monotonic()
        self._since: dict[tuple[str, str], float] = {}

    def over(self, settling: Sequence[Violation], doubts: Sequence[str]) -> bool:
        """Has one of them lasted too long? Bounded even when they come and go by turns."""
        now = time.monotonic()
        keys = [violation.key for violation in settling] + [("doubt", text) for text in doubts]
        self._since = {key: self._since.get(key, now) for key in keys}
        lasted = any(now - since >= self._lag_s for since in self._since.values())
        return lasted or now - self._started >= 4 * self._lag_s


def left_alone(operation: Operation, result: OperationResult) -> bool:
    """Nothing was done to the target in this step, so that its promises hold whatever came of it."""
    if operation.kind in (Kind.WAIT, Kind.ASSERTION):
        return True
    return operation.kind is Kind.FAULT and not result.fired and not result.inner
