"""What can be said and done to a long session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.contracts.session.knobs import check_knob
from mutiny.kit.operations import check_one_of, check_seconds
from mutiny.kit.registry import registry
from mutiny.model.operation import Kind, Operation

NEWEST = -1
MODEL_ERRORS = (
    *("rate_limit", "overload", "server", "malformed", "stall", "hang", "reset", "cut"),
    *("error_event", "split"),
)
ODD = ("markup", "lines", "letters")
OUT_OF_BOUNDS = {
    "git": ".git/trespass",
    "above": "../trespass.txt",
    "machine": "/tmp/trespass.txt",
}
"""Where no agent may write, and a file there."""
SECRET = "mutiny-secret-4711"
"""What stands in a file that no agent may read."""
PARTS = ("body", "key", "field", "delta", "newest", "all")
HALVES = ("line", "lock", "file")
STATUSES = ("running", "paused", "complete", "stopped", "failed", "interrupted")
FASTEST = 1000.0
SHORTEST_H, LONGEST_H = 0.0001, 24.0


# --- commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfSession(Operation):
    """Something that is said to one session; without a name to the newest."""

    name: str = ""


@dataclass(frozen=True)
class StartSession(Operation):
    """Begin to build a project with so many agents, as a session of so many hours."""

    project: str = "demo"
    agents: int = 3
    hours: float = 0.002
    name: str = ""
    rate: float = 1.0
    """How many seconds of the session pass in a real one; for all that happens in the box."""

    def __post_init__(self) -> None:
        if not 0 < self.rate <= FASTEST:
            raise ValueError(f"rate must be more than 0 and at most {FASTEST:g}, got {self.rate:g}")
        if not SHORTEST_H <= self.hours <= LONGEST_H:
            raise ValueError(
                f"hours must be between {SHORTEST_H:g} and {LONGEST_H:g}, got {self.hours:g}"
            )


class Checkpoint(OfSession):
    """Take a checkpoint now."""


@dataclass(frozen=True)
class VerifyCheckpoint(OfSession):
    """Are the checkpoints valid? Exit code by the newest, or by the one that is named."""

    checkpoint: int = NEWEST
    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Restore(OfSession):
    """Go back to the last valid checkpoint, or to the one that is named; nothing runs afterwards."""

    checkpoint: int = NEWEST


class Recover(OfSession):
    """Bring the session back, whatever happened to it."""


class Health(OfSession):
    """Is all well?"""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Metrics(OfSession):
    """The figures of the session; `written`: into a file, too."""

    written: bool = False
    looks: ClassVar[bool] = True


class Status(OfSession):
    """What is so."""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Report(OfSession):
    """The report of the session; `written`: into a file, too."""

    written: bool = False
    looks: ClassVar[bool] = True


class Pause(OfSession):
    """Begin nothing new until it is told to go on."""


@dataclass(frozen=True)
class Continue(OfSession):
    """Go on; `decide`: what somebody decided (`VOTE=OPTION`) where a vote was escalated; `first`: the first
    of its options; `none`: what is none of them, which no program may take.
    """

    decide: str = ""


class Stop(OfSession):
    """End the session with a checkpoint."""


# --- waits ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaitForPhase(Operation):
    """Until the session is in this phase, counted from 1, or behind it."""

    phase: int = 2
    kind: ClassVar[Kind] = Kind.WAIT


@dataclass(frozen=True)
class WaitForCheckpoints(Operation):
    """Until there are so many checkpoints."""

    count: int = 2
    kind: ClassVar[Kind] = Kind.WAIT


@dataclass(frozen=True)
class WaitForTasks(Operation):
    """Until so many tasks are done."""

    count: int = 1
    kind: ClassVar[Kind] = Kind.WAIT


@dataclass(frozen=True)
class WaitForStatus(Operation):
    """Until the session has this status."""

    status: str = "complete"
    kind: ClassVar[Kind] = Kind.WAIT

    def __post_init__(self) -> None:
        check_one_of("status", self.status, STATUSES)


@dataclass(frozen=True)
class LetRun(Operation):
    """Let so many seconds of session time pass; less when the session ends before. `misset`: meanwhile one
    of its settings is a word where a number is due.
    """

    seconds: float = 60.0
    misset: bool = False
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        check_seconds(self.seconds)


@dataclass(frozen=True)
class RunUntil(Operation):
    """Let the session run until so many seconds of its time have passed since the recording began."""

    seconds: float = 60.0
    kind: ClassVar[Kind] = Kind.CONTROL


@dataclass(frozen=True)
class Record(Operation):
    """From now on write a line of metrics into the run's directory for every so many seconds of session
    time, which passes `rate` times as fast as it really does.
    """

    every_s: float = 30.0
    rate: float = 1.0
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        if not 0 < self.rate <= FASTEST or self.every_s <= 0:
            raise ValueError(f"rate must be more than 0 and at most {FASTEST:g}, got {self.rate:g}")


# --- the user's side ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Configure(Operation):
    """Change a setting; a session that runs takes it over."""

    name: str
    value: str
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        check_knob(self.name, self.value)


@dataclass(frozen=True)
class BuildProject(Operation):
    """Run the tests of what the session has built by hand, as its user would."""

    kind: ClassVar[Kind] = Kind.CONTROL


# --- faults ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionFault(Operation):
    """A fault that only sessions know."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class _Times(SessionFault):
    times: int = 1
    """How often it happens before all is well again."""

    def __post_init__(self) -> None:
        if not 1 <= self.times <= 1000:
            raise ValueError(f"times must be between 1 and 1000, got {self.times}")


class ToolTimeout(_Times):
    """The next tool call of an agent never ends."""


@dataclass(frozen=True)
class ModelError(SessionFault):
    """The next answers of the model are errors, come broken (in the middle: `malformed`, `cut`,
    `error_event`; byte by byte: `split`), or not at all; with `model` only those of one model. Where no
    session runs, the next one meets it.
    """

    error: str = "rate_limit"
    times: int = 1
    retry_after_s: int = 0
    model: str = "*"

    def __post_init__(self) -> None:
        check_one_of("error", self.error, MODEL_ERRORS)
        if not 1 <= self.times <= 100_000:
            raise ValueError(f"times must be between 1 and 100000, got {self.times}")


@dataclass(frozen=True)
class MemoryPressure(SessionFault):
    """The session has less memory than it uses, for a while; its context must become smaller."""


@dataclass(frozen=True)
class AgentDeadlock(SessionFault):
    """The agents answer the next votes so that nobody wins them (`split`), or one of them says nothing that
    can be counted (`mute`; only to the votes of the next session).
    """

    how: str = "split"
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_one_of("how", self.how, ("split", "mute"))


TOLD = ("task.done", "phase.complete", "vote.won")
"""Events that say that something is so from now on, whatever comes."""


@dataclass(frozen=True)
class SystemCrash(SessionFault):
    """Every process of the session dies.

    `alone`: only the one that drives it; `told`: when it has just told of the next event of this kind;
    `asked`: what drives it is asked to end, as a machine does that goes down (SIGTERM).
    """

    alone: bool = False
    told: str = ""
    asked: bool = False

    def __post_init__(self) -> None:
        check_one_of("told", self.told, ("", *TOLD))


@dataclass(frozen=True)
class KillAgent(SessionFault):
    """One of the agents dies."""


@dataclass(frozen=True)
class FreezeAgent(SessionFault):
    """One of the agents stands still, and never moves again by itself: at work on a task, or while it runs
    the tests of a gate.
    """

    at: str = "task"

    def __post_init__(self) -> None:
        check_one_of("at", self.at, ("task", "gate"))


SPOILS = {
    "dangerous": "no_security_findings",
    "uncompilable": "compiles",
    "undocumented": "documentation",
    "unreleased": "release",
    "unreviewed": "reviewed",
}
"""A kind of bad work -> the criterion that does not hold with it."""


@dataclass(frozen=True)
class BadWork(SessionFault):
    """The model's next answer that holds code holds some that does not work, or tests that never end: from
    the beginning, or when they have passed once (`later`). Tests that are only `slow` end well. Or the next
    answer that could lacks what a gate asks for: `SPOILS`.
    """

    how: str = "raises"

    def __post_init__(self) -> None:
        check_one_of("how", self.how, ("raises", "endless", "later", "slow", *SPOILS))


@dataclass(frozen=True)
class OddBytes(SessionFault):
    """With its next work the model asks for one more file, of bytes that are easily spoilt: markup and
    entities, ends of lines and blanks, or rare letters.
    """

    what: str = "markup"
    late: bool = False
    """It asks for that file only when it has been told the results of its other tools."""

    def __post_init__(self) -> None:
        check_one_of("what", self.what, ODD)


@dataclass(frozen=True)
class Trespass(SessionFault):
    """With its next work the model asks for one more file that is none of the project's: in its git, above
    it, or anywhere on the machine. `reads`: it wants to know what stands in one that is there.
    """

    where: str = "git"
    reads: bool = False

    def __post_init__(self) -> None:
        check_one_of("where", self.where, tuple(OUT_OF_BOUNDS))
        if self.reads and self.where == "git":
            raise ValueError(
                "what stands in a project's git is no secret: read above it, or machine"
            )


@dataclass(frozen=True)
class DiskFull(SessionFault):
    """There is no room left where the session lives, for so many seconds of session time."""

    seconds: float = 2.0

    def __post_init__(self) -> None:
        check_seconds(self.seconds)


@dataclass(frozen=True)
class CorruptCheckpoint(SessionFault):
    """A part of the checkpoints is damaged: the newest's body, its digest (`key`), the last delta line, the
    whole newest file, or all of them; or the newest is whole, and lacks a `field`.
    """

    part: str = "body"

    def __post_init__(self) -> None:
        check_one_of("part", self.part, PARTS)


@dataclass(frozen=True)
class HalfDone(SessionFault):
    """What a machine leaves that dies in the middle of something: half a line behind the last one of every
    log, the lock of a git that worked on the project, or a file of the project that was just begun.
    """

    what: str = "line"

    def __post_init__(self) -> None:
        check_one_of("what", self.what, HALVES)


class TouchCheckpoints(SessionFault):
    """All checkpoints but the newest look newer than it, as a copy or a backup leaves them: nothing of them
    is changed but the time of the files.
    """


@dataclass(frozen=True)
class ClockJump(SessionFault):
    """The wall clock of the box jumps, forwards or back."""

    offset_s: float = 3600.0


LONG = (StartSession, Recover)
"""Commands after which a session runs."""
WAITS = (WaitForPhase, WaitForCheckpoints, WaitForTasks, WaitForStatus)
COMMANDS = (
    *(StartSession, Checkpoint, VerifyCheckpoint, Restore, Recover, Health, Metrics, Status),
    *(Report, Pause, Continue, Stop),
)
FAULTS = (
    *(ToolTimeout, ModelError, MemoryPressure, AgentDeadlock, SystemCrash, KillAgent),
    *(FreezeAgent, BadWork, OddBytes, DiskFull, CorruptCheckpoint, ClockJump),
    *(TouchCheckpoints, HalfDone, Trespass),
)
OPERATIONS = registry(*COMMANDS, *WAITS, LetRun, RunUntil, Record, Configure, BuildProject, *FAULTS)
