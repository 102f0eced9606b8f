"""The operations of the workers contract: commands, waits, assertions, and the faults that its
promises must survive.

Every class here is data only. How a command is spoken to a target is the adapter's business; what
it means is the model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.kit.operations import (
    OfWorker,
    check_command,
    check_noticeable,
    check_one_of,
    worker_of,
)
from mutiny.kit.registry import registry
from mutiny.model.operation import Kind, Operation

MOST_CHANGES = 200
STATUSES = (
    *("idle", "working", "needs_review", "reviewing", "rejected", "rebasing"),
    *("error", "offline", "no_changes"),
)


# --- control -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Behave(OfWorker):
    """Script the agent double of one worker: one behaviour a turn, the last one repeats."""

    turns: tuple[str, ...]
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError("turns: needs at least one turn")


@dataclass(frozen=True)
class TypeIn(OfWorker):
    """A person sits beside the agent of a worker that rests, and types something into its terminal."""

    message: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"message"})
    kind: ClassVar[Kind] = Kind.CONTROL


class Neighbour(Operation):
    """Somebody else works beside the target from now on: a tmux session of their own on the same server,
    and a branch of their own in the same repository.
    """

    kind: ClassVar[Kind] = Kind.CONTROL


# --- commands ------------------------------------------------------------------------------------


class Init(Operation):
    """Make the target's workspace for the box's source repository."""


class Up(Operation):
    """Start the daemon."""


class Down(Operation):
    """Stop the daemon and all agents."""


@dataclass(frozen=True)
class Add(OfWorker):
    """Create a worker; where a target takes the prompt with it, the worker begins at once."""

    model: str = "haiku"
    prompt: str = ""
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"model", "prompt"})


class Nuke(OfWorker):
    """Remove a worker and whatever it was doing."""


@dataclass(frozen=True)
class Start(OfWorker):
    """Give a task to a worker."""

    prompt: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"prompt"})


@dataclass(frozen=True)
class Message(OfWorker):
    """Say something to a worker that has a task."""

    message: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"message"})


class Attach(OfWorker):
    """Ask how to attach to a worker's session; never really attaches."""


class Review(OfWorker):
    """Look at a worker's finished change."""


class ReviewNext(Operation):
    """Look at a finished change without saying whose: it is that of whoever has waited longest."""


class Accept(OfWorker):
    """Merge a worker's change into the source repository."""


class AcceptReviewed(Operation):
    """Merge the change that was reviewed last, without saying whose it is."""


@dataclass(frozen=True)
class Reject(Operation):
    """Send the change that was reviewed last back with a message."""

    message: str
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"message"})


class Rebase(OfWorker):
    """Bring a worker's branch onto the newest source."""


class ResetWorker(OfWorker):
    """The target's own `reset`: give up a worker's task, keep the worker."""


@dataclass(frozen=True)
class Doctor(Operation):
    """The target's own health check."""

    repair: bool = False
    yes: bool = False

    @property
    def looks(self) -> bool:
        return not self.repair


class Status(Operation):
    """The target's own account of itself; it must be true."""

    looks: ClassVar[bool] = True


# --- waits ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkerWait(OfWorker):
    """Until something is true of a worker."""

    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class WaitForState(Operation):
    """Until a worker has this status, or had it since the last step."""

    worker: str
    status: str
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_one_of("status", self.status, STATUSES)


class WaitForIdle(WorkerWait):
    """Until a worker is idle and its agent runs."""

    status: ClassVar[str] = "idle"


class WaitForNeedsReview(WorkerWait):
    """Until a worker's change can be reviewed."""

    status: ClassVar[str] = "needs_review"


class WaitForPrompt(WorkerWait):
    """Until the worker's agent has received a prompt and is busy with it: the moment to break something."""


class WaitForTurnEnd(WorkerWait):
    """Until no agent of the worker is busy any more, whoever has noticed that."""


# --- assertions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AssertState(OfWorker):
    """The worker has this status now."""

    status: str
    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_one_of("status", self.status, STATUSES)


class AssertOnTop(OfWorker):
    """The worker's branch has everything that the default branch has."""

    kind: ClassVar[Kind] = Kind.ASSERTION


class AssertAuthor(OfWorker):
    """The newest commit of the default branch has this worker's agent for its author."""

    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True


class AssertWorkerExists(OfWorker):
    """The target still knows this worker."""

    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True


class AssertSessionAlive(OfWorker):
    """The worker's tmux session is there, or comes back by itself in time."""

    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True


# --- faults --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KillDaemon(Operation):
    """SIGKILL to the daemon, by handle: at once, or in the middle of what it does about a command, as
    soon as the state's files have changed `changes` times since the command was given, by whomever.
    When nothing changes any more, it dies all the same.
    """

    during: Operation | None = None
    changes: int = 0
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_command("during", self.during)
        if (self.during is None) is not (self.changes == 0):
            raise ValueError("during a command it dies after some changes: give both or neither")
        if not 0 <= self.changes <= MOST_CHANGES:
            raise ValueError(f"changes must be from 0 to {MOST_CHANGES}, got {self.changes}")

    def children(self) -> tuple[Operation, ...]:
        return () if self.during is None else (self.during,)


class KillTmuxSession(OfWorker):
    """End one worker's tmux session."""

    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


class KillTmuxServer(Operation):
    """SIGKILL to the tmux server: all sessions go at once."""

    kind: ClassVar[Kind] = Kind.FAULT


class KillAgent(OfWorker):
    """SIGKILL to one worker's agent."""

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
        check_one_of("role", self.role, PAUSABLE)
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
        check_one_of("how", self.how, CORRUPTIONS)


UNFINISHED = {
    "edit": "uncommitted edit",
    "stage": "staged edit",
    "merge": "unfinished merge",
    "rebase": "unfinished rebase",
    "untracked": "untracked file",
}
"""What a user can be in the middle of, and what it is called."""


@dataclass(frozen=True)
class DirtySource(Operation):
    """The user is in the middle of something in the source repository; `undo` takes it back.

    `edit` and `stage` change a tracked file, `merge` leaves a merge without its commit and
    `rebase` one that waits (and no file that differs), `untracked` puts a file where finished work may
    want to go.
    """

    undo: bool = False
    how: str = "edit"
    path: str = "test.txt"
    """Where the untracked file lies."""
    kind: ClassVar[Kind] = Kind.FAULT
    quiet_arguments: ClassVar[frozenset[str]] = frozenset({"path"})

    def __post_init__(self) -> None:
        check_one_of("how", self.how, UNFINISHED)


PROJECT_SETTINGS = ".claude/settings.json"
"""Settings for agents that a project may have of its own."""
IGNORED = ".gitignore"
"""What says which files git does not see; whoever commits to it here takes all of that back."""
USUAL_NAMES = ("config.toml", "state.json")
"""Files as many projects have them, and as many programs call their own."""


@dataclass(frozen=True)
class MoveSource(Operation):
    """Somebody else commits to the source repository's default branch; JSON where the name says so."""

    path: str = "upstream.txt"
    while_dead: bool = False
    """Behind a crash of everything, before anything is started: what lies there is not judged yet."""
    kind: ClassVar[Kind] = Kind.FAULT


OPERATIONS: dict[str, type[Operation]] = registry(
    *(
        Behave,
        TypeIn,
        Neighbour,
        Init,
        Up,
        Down,
        Add,
        Nuke,
        Start,
        Message,
        Attach,
        Review,
        Accept,
        Reject,
        Rebase,
    ),
    *(ReviewNext, AcceptReviewed, ResetWorker, Doctor, Status),
    *(WaitForState, WaitForIdle, WaitForNeedsReview, WaitForPrompt, WaitForTurnEnd),
    *(AssertState, AssertOnTop, AssertAuthor, AssertWorkerExists, AssertSessionAlive),
    *(KillDaemon, KillTmuxSession, KillTmuxServer, KillAgent, PauseProcess),
    *(CorruptState, DirtySource, MoveSource),
)
"""All operations by name: the registry that journals and replays are read with."""


def meant(operation: Operation, last_reviewed: str | None) -> str | None:
    """The worker that a command is about: the one that it names, or the one that was reviewed last."""
    if isinstance(operation, Reject | AcceptReviewed):
        return last_reviewed
    return worker_of(operation)


def awaited_status(operation: Operation) -> str | None:
    """The status that a wait waits for."""
    if isinstance(operation, WaitForState | WaitForIdle | WaitForNeedsReview):
        return operation.status
    return None
