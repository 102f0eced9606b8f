"""An experiment as a value: what the file says, understood and checked, before anything is touched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mutiny.kit.experiment import DEFAULT_RATE_HZ
from mutiny.kit.operations import disturbs
from mutiny.model.operation import Operation, walk

NATIVE, CHAOS_TOOLKIT = "mutiny", "chaostoolkit"


@dataclass(frozen=True)
class PlannedStep:
    """One step of the file: what it says, where, and the operations that it means."""

    text: str
    line: int
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class SteadyLine:
    """One line of the steady state."""

    text: str
    line: int


@dataclass(frozen=True)
class Experiment:
    """Everything that a run needs to know."""

    path: str
    name: str
    hypothesis: str
    contract: str
    targets: tuple[str, ...]
    steady_state: tuple[SteadyLine, ...]
    setup: tuple[PlannedStep, ...]
    method: tuple[PlannedStep, ...]
    rollback: tuple[PlannedStep, ...]
    radius: str
    seed: int | None = None
    timeout_s: float | None = None
    probe: Operation | None = None
    rate_hz: float = DEFAULT_RATE_HZ
    settle: tuple[Operation, ...] = ()
    covers: tuple[str, ...] = ()
    """Bullets of the capabilities that it shows."""
    finds: tuple[str, ...] = ()
    """Plants that it must find."""
    form: str = NATIVE
    before: tuple[Operation, ...] = ()
    """Chaos Toolkit: the probes of the hypothesis, before the method."""
    after: tuple[Operation, ...] = ()
    document: Mapping[str, object] = field(default_factory=dict)
    """The file as plain data."""

    @property
    def faults(self) -> int:
        """How many faults the method plans."""
        return sum(
            1
            for step in self.method
            for operation in step.operations
            for part in walk(operation)
            if disturbs(part)
        )
