"""The operations of the workers contract: commands, waits, assertions, and the faults that its
promises must survive.

Every class here is data only. How a command is spoken to a target is the adapter's business; what
it means is the model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.kit.operations import (
    ERRNOS as ERRNOS,
)
from mutiny.kit.operations import (
    MOST_AT_ONCE as MOST_AT_ONCE,
)
from mutiny.kit.operations import (
    TEARS as TEARS,
)
from mutiny.kit.operations import (
    Choice as Choice,
)
from mutiny.kit.operations import (
    CrashAt as CrashAt,
)
from mutiny.kit.operations import (
    ExpectError as ExpectError,
)
from mutiny.kit.operations import (
    FailAt as FailAt,
)
from mutiny.kit.operations import (
    Interleave as Interleave,
)
from mutiny.kit.operations import (
    KillAt as KillAt,
)
from mutiny.kit.operations import (
    Parallel as Parallel,
)
from mutiny.kit.operations import (
    PowerLossAt as PowerLossAt,
)
from mutiny.kit.operations import (
    Reset as Reset,
)
from mutiny.kit.operations import (
    Settle as Settle,
)
from mutiny.kit.operations import (
    Sleep as Sleep,
)
from mutiny.kit.operations import (
    SweepPoint as SweepPoint,
)
from mutiny.kit.operations import (
    TearAt as TearAt,
)
from mutiny.kit.operations import (
    Trace as Trace,
)
from mutiny.kit.operations import check_noticeable
from mutiny.kit.registry import registry
from mutiny.model.operation import Kind, Operation

STATUSES = (
    "idle",
    "working",
    "needs_review",
    "reviewing",
    "rejected",
    "rebasing",
    "error",
    "offline",
    "no_changes",
)


def _check_status(status: str) -> None:
    if status not in STATUSES:
        raise ValueError(f"status {status!r} is none of {', '.join(STATUSES)}")


# --- control -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Behave(Operation):
    """Script the agent double of one worker: one behaviour a turn, the last one repeats."""

    worker: str
    turns: tuple[str, ...]
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError("turns: needs at least one turn")


# --- commands ------------------------------------------------------------------------------------


class Init(Operation):
    """Make the target's workspace for the box's source repository."""


class Up(Operation):
    """Start the daemon."""


class Down(Operation):
    """Stop the daemon and all agents."""


@dataclass(frozen=True)
class Add(Operation):
    """Create a worker."""

    worker: str
    model: str = "haiku"
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"model"})


@dataclass(frozen=True)
class Nuke(Operation):
    """Remove a worker and whatever it was doing."""

    worker: str


@dataclass(frozen=True)
class Start(Operation):
    """Give a task to a worker."""

    worker: str
    prompt: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"prompt"})


@dataclass(frozen=True)
class Message(Operation):
    """Say something to a worker that has a task."""

    worker: str
    message: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"message"})


@dataclass(frozen=True)
class Attach(Operation):
    """Ask how to attach to a worker's session; never really attaches."""

    worker: str


@dataclass(frozen=True)
class Review(Operation):
    """Look at a worker's finished change."""

    worker: str


@dataclass(frozen=True)
class Accept(Operation):
    """Merge a worker's change into the source repository."""

    worker: str


@dataclass(frozen=True)
class Reject(Operation):
    """Send the change that was reviewed last back with a message."""

    message: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"message"})


@dataclass(frozen=True)
class Rebase(Operation):
    """Bring a worker's branch onto the newest source."""

    worker: str


@dataclass(frozen=True)
class ResetWorker(Operation):
    """The target's own `reset`: give up a worker's task, keep the worker."""

    worker: str


@dataclass(frozen=True)
class Doctor(Operation):
    """The target's own health check."""

    repair: bool = False
    yes: bool = False


class Status(Operation):
    """The target's own account of itself; it must be true."""

    looks: ClassVar[bool] = True


# --- waits ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaitForState(Operation):
    """Until a worker has this status, or had it since the last step."""

    worker: str
    status: str
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_status(self.status)


@dataclass(frozen=True)
class WaitForIdle(Operation):
    """Until a worker is idle and its agent runs."""

    worker: str
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True
    status: ClassVar[str] = "idle"


@dataclass(frozen=True)
class WaitForNeedsReview(Operation):
    """Until a worker's change can be reviewed."""

    worker: str
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True
    status: ClassVar[str] = "needs_review"


@dataclass(frozen=True)
class WaitForPrompt(Operation):
    """Until the worker's agent has received a prompt and is busy with it: the moment to break something."""

    worker: str
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True


# --- assertions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AssertState(Operation):
    """The worker has this status now."""

    worker: str
    status: str
    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_status(self.status)


@dataclass(frozen=True)
class AssertWorkerExists(Operation):
    """The target still knows this worker."""

    worker: str
    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class AssertSessionAlive(Operation):
    """The worker's tmux session is there, or comes back by itself in time."""

    worker: str
    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True


# --- faults --------------------------------------------------------------------------------------


class KillDaemon(Operation):
    """SIGKILL to the daemon, by handle."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class KillTmuxSession(Operation):
    """End one worker's tmux session."""

    worker: str
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


class KillTmuxServer(Operation):
    """SIGKILL to the tmux server: all sessions go at once."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class KillAgent(Operation):
    """SIGKILL to one worker's agent."""

    worker: str
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


PAUSABLE = ("daemon", "tmux", "agent")


@dataclass(frozen=True)
class PauseProcess(Operation):
    """SIGSTOP a process for a while, then SIGCONT: it hangs, but it is alive."""

    role: str
    seconds: float = 0.5
    worker: str | None = None
    during: Operation | None = None
    """An operation that runs while the process is stopped."""
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        if self.role not in PAUSABLE:
            raise ValueError(f"role {self.role!r} is none of {', '.join(PAUSABLE)}")
        if self.role == "agent" and self.worker is None:
            raise ValueError("pausing an agent needs its worker")
        check_noticeable(self.seconds)

    def children(self) -> tuple[Operation, ...]:
        return () if self.during is None else (self.during,)


CORRUPTIONS = ("garbage", "truncate", "empty", "delete")


@dataclass(frozen=True)
class CorruptState(Operation):
    """Damage the state file as a bad disk or a careless editor would."""

    how: str = "garbage"
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        if self.how not in CORRUPTIONS:
            raise ValueError(f"how {self.how!r} is none of {', '.join(CORRUPTIONS)}")


@dataclass(frozen=True)
class DirtySource(Operation):
    """The user edits a tracked file of the source repository without committing; `undo` takes it
    back.
    """

    undo: bool = False
    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class MoveSource(Operation):
    """Somebody else commits to the source repository's default branch."""

    path: str = "upstream.txt"
    kind: ClassVar[Kind] = Kind.FAULT


OPERATIONS: dict[str, type[Operation]] = registry(
    *(Behave, Init, Up, Down, Add, Nuke, Start, Message, Attach, Review, Accept, Reject, Rebase),
    *(ResetWorker, Doctor, Status),
    *(WaitForState, WaitForIdle, WaitForNeedsReview, WaitForPrompt),
    *(AssertState, AssertWorkerExists, AssertSessionAlive),
    *(KillDaemon, KillTmuxSession, KillTmuxServer, KillAgent, PauseProcess),
    *(CorruptState, DirtySource, MoveSource),
)
"""All operations by name: the registry that journals and replays are read with."""


def worker_of(operation: Operation) -> str | None:
    """The worker that an operation names, if any."""
    value = getattr(operation, "worker", None)
    return value if isinstance(value, str) else None


def awaited_status(operation: Operation) -> str | None:
    """The status that a wait waits for."""
    if isinstance(operation, WaitForState | WaitForIdle | WaitForNeedsReview):
        return operation.status
    return None
