"""The operations that experiments add to every contract: sentences, the probe, foreign activities.

They are ordinary operations with plain arguments, so an experiment is a list like any scenario, and
a replay of it needs nothing but that list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from mutiny.kit.operations import check_seconds
from mutiny.model.operation import Kind, Operation

DEFAULT_RATE_HZ = 10.0
FASTEST_HZ = 100.0
WHEN = ("before", "after")


@dataclass(frozen=True)
class VerifySentence(Operation):
    """A sentence must be true, at once or within some seconds."""

    sentence: str
    within_s: float = 0.0
    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_seconds(self.within_s)


@dataclass(frozen=True)
class SteadyState(Operation):
    """The steady state before the method, or after it."""

    sentences: tuple[str, ...]
    when: str = "after"
    within_s: float = 30.0
    kind: ClassVar[Kind] = Kind.ASSERTION
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"sentences"})

    def __post_init__(self) -> None:
        check_seconds(self.within_s)
        if self.when not in WHEN:
            raise ValueError(f"when {self.when!r} is none of {', '.join(WHEN)}")


@dataclass(frozen=True)
class Watch(Operation):
    """From now on: ask a probe at a fixed rate, and keep an eye on the steady state."""

    probe: Operation | None = None
    rate_hz: float = DEFAULT_RATE_HZ
    sentences: tuple[str, ...] = ()
    kind: ClassVar[Kind] = Kind.CONTROL
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"sentences"})

    def __post_init__(self) -> None:
        if not 0 < self.rate_hz <= FASTEST_HZ:
            raise ValueError(f"rate_hz must be between 0 and {FASTEST_HZ:g}, got {self.rate_hz:g}")
        if self.probe is not None and self.probe.kind is not Kind.COMMAND:
            raise ValueError(f"a probe is a command; {self.probe.type} is none")

    def children(self) -> tuple[Operation, ...]:
        return () if self.probe is None else (self.probe,)


class Unwatch(Operation):
    """No more probing."""

    kind: ClassVar[Kind] = Kind.CONTROL


@dataclass(frozen=True)
class _Activity(Operation):
    """A Chaos Toolkit activity, carried out inside the box."""

    name: str
    provider: Mapping[str, object] = field(default_factory=dict, hash=False)
    background: bool = False
    pause_before_s: float = 0.0
    pause_after_s: float = 0.0
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"provider"})
    positional: ClassVar[bool] = True

    @property
    def asks(self) -> bool:
        """A program that is not Mutiny's has to answer."""
        return True

    def __post_init__(self) -> None:
        check_seconds(self.pause_before_s)
        check_seconds(self.pause_after_s)


class Action(_Activity):
    """It changes something. An action that fails has disturbed nothing: inconclusive."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class Probe(_Activity):
    """It measures something; with a tolerance the value must be within it."""

    tolerance: object = field(default=None, hash=False)
    when: str = "method"
    """`before` and `after`: it is a part of the steady state."""
    kind: ClassVar[Kind] = Kind.ASSERTION


@dataclass(frozen=True)
class Gather(Operation):
    """Wait for all activities in the background, and hear how they ended."""

    within_s: float = 60.0
    kind: ClassVar[Kind] = Kind.ASSERTION

    def __post_init__(self) -> None:
        check_seconds(self.within_s)


@dataclass(frozen=True)
class Undo(Operation):
    """Take something back, if there is something to take back."""

    operation: Operation
    kind: ClassVar[Kind] = Kind.COMBINATION
    positional: ClassVar[bool] = True

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


EXPERIMENT_OPERATIONS: dict[str, type[Operation]] = {
    cls.__name__: cls
    for cls in (VerifySentence, SteadyState, Watch, Unwatch, Action, Probe, Gather, Undo)
}
"""They belong to the registry of every contract."""
