"""What only some contracts can do, as values: compete (`race`), carry loads (`load`), resume (`drill`).

The modes ask a contract's descriptor for the ability and know nothing else of the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mutiny.model.operation import Operation


@dataclass(frozen=True)
class Contest:
    """Commands that compete, and what must be there before."""

    name: str
    before: tuple[Operation, ...]
    together: tuple[Operation, ...]


@dataclass(frozen=True)
class Races:
    """What the commands of one target can compete for."""

    beginning: tuple[Operation, ...]
    """From nothing to where a contest can start."""
    contests: Callable[[str, str, int], tuple[Contest, ...]]
    """Kind, a tag that keeps rounds apart, number of rivals: the contests that the target has words for."""
    ending: tuple[Operation, ...] = ()
    """What shows at the end that all is well."""
    locked: tuple[Operation, ...] = ()
    """A whole sequence of changes while somebody holds the lock."""
    under_lock: int = 0
    """How many changes that are."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Kinds, and `exhaustive`, that cannot be tried on this target, each with the reason."""


@dataclass(frozen=True)
class Drill:
    """A long command that dies at a moment, and how it is gone on with."""

    moment: str
    way: str
    operations: tuple[Operation, ...]


@dataclass(frozen=True)
class Drilled:
    """A drill, and what became of it."""

    drill: Drill
    verdict: str
    rule: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Sizes:
    """How large the loads are."""

    tasks: tuple[int, ...] = (100, 1000)
    claims: int = 20
    """Claims that are measured at each size."""
    workers: int = 4
    cycles: int | None = None
    """None: as many as take a few seconds."""
    graph: int = 120
    largest: int = 1_000_000


@dataclass(frozen=True)
class LoadPlan:
    """One load to run."""

    shape: str
    tasks: int
    workers: int
    operations: tuple[Operation, ...]
    watches_growth: bool = False
    """It does the same so often that what grows can be told from noise."""

    @property
    def title(self) -> str:
        return f"{self.shape} with {self.tasks} tasks"


@dataclass(frozen=True)
class Loads:
    """How one target is put under load. The step that drives it tells its figures as
    `details["load"]`, and writes how far it is to `progress`.
    """

    transport: str
    """How it is spoken to, in words."""
    plans: Callable[[Sequence[str], Sizes], Iterator[LoadPlan]]
    """The sequences of these shapes."""
    growth: Callable[[Sequence[Any]], tuple[dict[str, object], ...]]
    """What grew over the samples of a load, each with its limit."""
    driver: type[Operation]
    """The operation that drives the load."""
    progress: str
    """The file below the doubles' directory that says how far a load is: `DONE TOTAL`."""
