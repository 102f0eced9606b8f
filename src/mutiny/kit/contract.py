"""What the engine needs to know of a contract, and of a live target.

The engine is the same for all contracts: beliefs and observations pass through it unopened. Their types are
parameters, so that whoever mixes those of two contracts is told by the type checker.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mutiny.kit.operations import USUAL_WORLD, Reset
from mutiny.model.pace import Pace
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutiny.kit.supported import Fitted
    from mutiny.model.operation import Operation
    from mutiny.model.result import OperationResult
    from mutiny.model.violation import Rule

Model = TypeVar("Model")
"""A contract's beliefs: an immutable value that only the contract opens."""
Seen = TypeVar("Seen", bound="Observation")
"""What a contract's targets show."""


class Observation(Protocol):
    """What was seen of a target at one moment."""

    @property
    def at(self) -> float: ...

    @property
    def probe_errors(self) -> tuple[str, ...]: ...

    @property
    def pace(self) -> Pace: ...

    def as_json(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, kw_only=True)
class SeenBase:
    """What every look at a target tells; a contract adds what its own targets show."""

    at: float = 0.0
    error: str | None = None
    """The target's state is there but cannot be read."""
    probe_errors: tuple[str, ...] = ()
    """What could not be looked at."""
    pace: Pace = field(default_factory=Pace)

    def as_json(self) -> dict[str, object]:
        """The journal's form: what the contract added, and what is wrong with the state."""
        return {key: value for key, value in vars(self).items() if key not in _OF_THE_LOOK}

    def standing(self) -> Hashable:
        """How things stand, without times: what changes in it is progress."""
        return repr(self.as_json())


_OF_THE_LOOK = ("at", "probe_errors", "pace")


@dataclass(frozen=True)
class StepContext:
    """What an operation may need to know from the engine."""

    token: Callable[[], str]
    """Makes the next token."""
    pending: Callable[[Any], tuple[str, ...]]
    """What has still to happen before the system is settled."""
    before: Any
    """What was seen last."""
    impossible: Callable[[str, str], bool] = lambda _subject, _status: False
    """Is this status of this subject one that nothing explains? Then waiting longer is no use."""
    model: Any = None
    """The beliefs before the step, for whoever asks sentences."""


@dataclass(frozen=True)
class Answered(Generic[Model]):
    """What an operation's answer means."""

    verdict: Verdict
    model: Model
    violation: Violation | None = None
    expected: str = ""
    beliefs_hold: bool = True
    """False: the answer was so wrong that nobody knows what it did, and the state cannot be held against
    the beliefs.
    """


@dataclass(frozen=True)
class Checked(Generic[Model]):
    """What the state rules and the ledger say."""

    broken: tuple[Violation, ...] = ()
    settling: tuple[Violation, ...] = ()
    """Broken now, but the target's lag may still heal them."""
    unreadable: tuple[str, ...] = ()
    """Rules that could not be evaluated."""
    model: Model | None = None
    """The beliefs without those alternatives that the rules refute."""
    unseen: bool = False
    """Everything is dead and half-done: what could not be seen of it now is no loss."""


@dataclass(frozen=True)
class Evidence:
    """What is kept of a target when something went wrong."""

    state: str = ""
    """The target's own state, verbatim."""
    daemon_log: str = ""
    panes: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Keepable] = field(default_factory=dict)
    """Name in the run directory -> file or directory to copy."""
    version: str = ""
    """What the target's program says of itself, or the hash of its file."""


class Keepable(Protocol):
    """A file or directory of the target that is worth keeping."""

    def copy_to(self, directory: Path, name: str) -> list[str]:
        """Copy it; what could not be kept, one text each."""


class Live(Protocol):
    """A target that runs in its box."""

    def prepare(self, operations: Sequence[Operation]) -> None:
        """Before anything runs: make what must be there from the beginning for what is planned."""

    def execute(self, operation: Operation, context: StepContext) -> OperationResult: ...

    def observe(self) -> Any: ...

    def wait_change(self, timeout_s: float) -> None: ...

    def evidence(self) -> Evidence: ...

    def facts(self) -> dict[str, object]: ...

    def close(self) -> None: ...


class MakeLive(Protocol):
    """Brings a target to life in a new box."""

    def __call__(self, directory: Path, reset: Reset = USUAL_WORLD) -> Live:
        """`reset`: how the new world is to be."""


class Contract(Protocol[Model, Seen]):
    """One way of working that an orchestrator promises."""

    @property
    def name(self) -> str: ...

    @property
    def operations(self) -> Mapping[str, type[Operation]]: ...

    @property
    def rules(self) -> Mapping[str, Rule]: ...

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]: ...

    @property
    def lag_s(self) -> float: ...

    @property
    def notices_damage(self) -> bool:
        """Does the target promise to notice what a disk that lies has made of its files?"""

    @property
    def not_applicable(self) -> Mapping[str, str]: ...

    def initial(self) -> Model: ...

    def nothing_seen(self) -> Seen: ...

    def resolve(
        self, operation: Operation, choose: Callable[[Sequence[Operation]], Operation]
    ) -> Operation: ...

    def starts_afresh(self, operation: Operation) -> bool: ...

    def judge(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        before: Seen,
        seen: Seen,
        now: float,
    ) -> Answered[Model]: ...

    def check(
        self, model: Model, operation: Operation, succeeded: bool, before: Seen, seen: Seen
    ) -> Checked[Model]: ...

    def see(self, model: Model, seen: Seen) -> Model: ...

    def pending(self, model: Model, seen: Seen) -> tuple[str, ...]: ...

    def impossible(self, model: Model, subject: str, status: str) -> bool: ...

    def disturbed(self, model: Model) -> tuple[str, ...]: ...

    def coverage(
        self, operation: Operation, before: Seen, verdict: Verdict, model: Model
    ) -> dict[str, object]: ...

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """What follows a sweep's point: the target comes back by its own means, and settles.

        `damaged`: the disk lied about a write, so that a repair may be needed.
        """

    def meanwhile(self, broken: Operation) -> tuple[Operation, ...]:
        """What somebody else may do between the end of the world in a command and the next start."""

    def daemon_deaths(
        self, operation: Operation, changes: int
    ) -> tuple[tuple[Operation, ...], ...]:
        """The command with the death of the daemon in the middle of it, and ways to recover from that;
        nothing when the target has no daemon.
        """

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target: what it lacks is replaced or left out."""

    def generate(self, seed: int, length: int) -> tuple[Operation, ...]: ...

    def plausible(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could a shortened sequence mean anything?

        `original` is empty where a healthy twin tells what fails by itself; otherwise nothing may be
        asserted that only the original had made true.
        """

    def certain(self, operations: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Does it depend on the target's pace no more than the original did?"""

    def simpler(
        self, operations: Sequence[Operation]
    ) -> Iterator[tuple[str, tuple[Operation, ...]]]: ...


AnyContract = Contract[Any, Any]
"""A contract of which only its target knows which it is."""
