"""Operations that all contracts share: time, combinations, broken commands, faults that last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.domain import misfit
from mutiny.model.operation import Kind, Operation

MOST_AT_ONCE = 4
LONGEST_SCHEDULE = 100_000
ERRNOS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE", "EINTR")
READ_ERRNOS = ("EIO", "EACCES", "EMFILE")
FULL = "full"
"""Beside single errors: from one call on the disk is full."""
TEARS = ("kill", "short", "lie")
MISUSES = ("unknown_option", "too_few", "too_many", "wrong_type")
UNCONFIRMED = "unconfirmed"
"""A misuse of some commands only: those that ask before they destroy."""
CONFIRMATIONS = ("--yes", "-y", "--confirm")
NO_NUMBER = "many"
WRONG_SETTINGS = ("text", "quoted", "boolean", "negative", "unknown")
_LENGTHS = ("during", "seconds", "lasting")
_CALM = ("healthy", "slow", "unfinished", "obey", "resolve", "dirty", "reshape", "reshape-dirty")
"""What an agent or a worker may be told to do without being a disturbance."""


def check_seconds(seconds: float) -> None:
    """Refuse a span of time that cannot be."""
    problem = misfit("seconds", seconds)
    if problem is not None:
        raise ValueError(f"seconds {problem}")


def check_one_of(name: str, value: str, known: Collection[str]) -> None:
    """Refuse a word that is none of these."""
    if value not in known:
        raise ValueError(f"{name} {value!r} is none of {', '.join(known)}")


def check_command(name: str, operation: Operation | None) -> None:
    """Refuse what the target does not have to answer."""
    if operation is not None and operation.kind is not Kind.COMMAND:
        raise ValueError(f"{name} must be a command; {operation.type} is none")


LEAST_S = 0.05
"""A fault that is on for less than this is over before anybody can notice it."""


def check_noticeable(seconds: float) -> None:
    """Refuse a length that a target cannot notice."""
    check_seconds(seconds)
    if not seconds >= LEAST_S:  # nor is what is no number
        raise ValueError(f"seconds must be at least {LEAST_S:g} to be noticed, got {seconds:g}")


@dataclass(frozen=True)
class OfWorker(Operation):
    """Something that one worker says, or that is said, done or asked about it."""

    worker: str


def named_by(operation: Operation, argument: str) -> str | None:
    """The name that an operation gives in this argument, if it does."""
    value = getattr(operation, argument, None)
    return value if isinstance(value, str) else None


def worker_of(operation: Operation) -> str | None:
    """The worker that an operation names, if any."""
    return named_by(operation, "worker")


# --- control -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reset(Operation):
    """Throw the box away and make a new one: the only clean-up that cannot miss anything."""

    root: str = ""
    """The name of the directory in which everything lies: `crew v1.2` breaks whoever does not quote."""
    surroundings: str = ""
    """What the user's machine is like, by a word of `kit/surroundings.py`; empty: nothing special."""
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        if "/" in self.root or self.root in (".", "..") or not self.root.isprintable():
            raise ValueError(f"root must be the name of a directory, got {self.root!r}")
        if self.surroundings:
            check_one_of("surroundings", self.surroundings, SURROUNDINGS)


USUAL_WORLD = Reset()


@dataclass(frozen=True)
class Sleep(Operation):
    """Let time pass. Only ever a stimulus: no verdict depends on it."""

    seconds: float = 1.0
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        check_seconds(self.seconds)


class Settle(Operation):
    """Recovery phase: no more faults; everything that is due must happen before the deadline."""

    kind: ClassVar[Kind] = Kind.WAIT


# --- sweep points: a command broken at one exact system call ---------------------------------


AFTER_LAST = -1
"""The point behind the last call, however many there are: their number differs from run to run."""


@dataclass(frozen=True)
class SweepPoint(Operation):
    """A command that is broken before its n-th state-changing system call, counted from 0."""

    operation: Operation
    call: int
    kind: ClassVar[Kind] = Kind.FAULT
    after_last: ClassVar[bool] = False
    """Can it also happen behind the last call (`AFTER_LAST`)?"""

    def __post_init__(self) -> None:
        if self.call < 0 and not (self.after_last and self.call == AFTER_LAST):
            also = f", except {AFTER_LAST}: after the last call" if self.after_last else ""
            raise ValueError(f"call must not be negative{also}")

    @property
    def ends_world(self) -> bool:
        """Every process of the box dies at the point; the target has to come back from its files."""
        return True

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


@dataclass(frozen=True)
class Trace(Operation):
    """A command under the system-call engine, unharmed: its calls are written down, its states kept."""

    operation: Operation
    keep: str = ""
    """What to keep before each call: nothing, `files`, or what a power loss leaves: `synced`."""
    reads: bool = False
    """Write down the files that it opens only to read, too."""
    kind: ClassVar[Kind] = Kind.COMBINATION

    def __post_init__(self) -> None:
        if self.keep not in ("", "files", "synced"):
            raise ValueError(f"keep {self.keep!r} is neither 'files' nor 'synced'")

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


class CrashAt(SweepPoint):
    """Everything dies before the call."""

    after_last: ClassVar[bool] = True


class KillAt(SweepPoint):
    """Only the process that makes the call dies; daemon, tmux and agents go on."""

    @property
    def ends_world(self) -> bool:
        return False


@dataclass(frozen=True)
class FailAt(SweepPoint):
    """The call fails with an error of the operating system."""

    errno: str = "ENOSPC"

    @property
    def ends_world(self) -> bool:
        return False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("errno", self.errno, ERRNOS)


class FullAt(SweepPoint):
    """The disk fills up before the call: until the command has ended nothing more can be written."""

    @property
    def ends_world(self) -> bool:
        return False


@dataclass(frozen=True)
class FailReadAt(SweepPoint):
    """The n-th file that the command opens only to read, counted from 0, cannot be opened."""

    errno: str = "EIO"

    @property
    def ends_world(self) -> bool:
        return False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.errno not in READ_ERRNOS:
            raise ValueError(f"errno {self.errno!r} is none of {', '.join(READ_ERRNOS)}")


@dataclass(frozen=True)
class TearAt(SweepPoint):
    """Half of a write: then everything dies, or the caller learns the short count, or it is lied to."""

    mode: str = "kill"

    @property
    def ends_world(self) -> bool:
        return self.mode == "kill"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("mode", self.mode, TEARS)


@dataclass(frozen=True)
class PowerLossAt(SweepPoint):
    """Everything dies before the call, and only what was synced is still there."""

    after_last: ClassVar[bool] = True
    names: str = "kept"
    """New, changed and removed names since the last sync: all `kept` by luck, or all `lost`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names not in ("kept", "lost"):
            raise ValueError(f"names {self.names!r} is neither 'kept' nor 'lost'")


@dataclass(frozen=True)
class Interleave(Operation):
    """Commands at once in one exact order of their file operations: `schedule` says who moves next, and
    for how many operations: `0x7 1x12 0x3`. After its end everybody goes on as far as possible.
    """

    operations: tuple[Operation, ...]
    schedule: str = ""
    kind: ClassVar[Kind] = Kind.COMBINATION

    def __post_init__(self) -> None:
        if any(who >= len(self.operations) for who in self.choices()):
            raise ValueError(f"the schedule names a command beyond the {len(self.operations)}")

    def choices(self) -> tuple[int, ...]:
        """The schedule, one number for each operation."""
        found: list[int] = []
        for run in self.schedule.split():
            who, _, length = run.partition("x")
            if not (who.isdigit() and length.isdigit()):
                raise ValueError(
                    f"schedule: {run!r} is not like `0x7`: who, and how many operations"
                )
            if len(who) > 2 or len(length) > 6 or len(found) + int(length) > LONGEST_SCHEDULE:
                raise ValueError(
                    f"schedule: more than {LONGEST_SCHEDULE} operations at {run[:20]!r}"
                )
            found += [int(who)] * int(length)
        return tuple(found)

    def children(self) -> tuple[Operation, ...]:
        return self.operations


# --- faults: a command killed at some moment, and what is on for a while --------------------------


@dataclass(frozen=True)
class KillDuring(Operation):
    """A command, and after so many milliseconds everything dies; with `whole=False` only the command.

    A command that ends earlier is followed by the kill of everything at once. `anywhere`: it only has to be
    while the command runs; a moment later than the target's commands usually take is counted from their
    beginning again.
    """

    operation: Operation
    after_ms: float
    whole: bool = True
    anywhere: bool = False
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_seconds(self.after_ms / 1000)
        if self.operation.kind is not Kind.COMMAND:
            raise ValueError(f"only a command can be killed; {self.operation.type} is none")

    @property
    def ends_world(self) -> bool:
        """Does the whole box die?"""
        return self.whole

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


OUTLASTED = "outlasted"
"""A detail of a result: the fault was on from before its command began until after it had answered."""


@dataclass(frozen=True, kw_only=True)
class LibraryFault(Operation):
    """A fault that is on for a while.

    `during`: while this command runs, and healed after it (with `seconds`: so long after the command came
    upon it, at the latest; of most faults that is at once). `seconds` alone: for that long. `lasting`:
    until `Heal`, `Settle` or the end of the run.
    """

    during: Operation | None = None
    seconds: float = 0.0
    lasting: bool = False
    kind: ClassVar[Kind] = Kind.FAULT
    command_only: ClassVar[bool] = False
    """With `during` only that command feels it; otherwise everything in the box does."""
    instant: ClassVar[bool] = False
    """It may also simply happen, without any length."""
    harmless: ClassVar[bool] = False
    """It takes nothing away from the target, so that it excuses nothing."""

    def __post_init__(self) -> None:
        if self.seconds != 0:
            check_noticeable(self.seconds)
        check_command("during", self.during)
        if self.lasting and (self.during is not None or self.seconds):
            raise ValueError("give one of during, seconds and lasting")
        if not (self.lasting or self.during is not None or self.seconds or self.instant):
            raise ValueError("say how long: during a command, for some seconds, or lasting")

    def arguments(self) -> dict[str, object]:
        """What it is comes before how long it lasts."""
        given = super().arguments()
        return {name: given[name] for name in sorted(given, key=_LENGTHS.__contains__)}

    def children(self) -> tuple[Operation, ...]:
        return () if self.during is None else (self.during,)

    @property
    def spares_others(self) -> bool:
        """Only the one command feels it."""
        return self.command_only and self.during is not None


class Heal(Operation):
    """Every lasting fault is taken back."""

    kind: ClassVar[Kind] = Kind.CONTROL


# --- combinations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpectError(Operation):
    """The inner operation must be refused with a known text."""

    inner: Operation
    kind: ClassVar[Kind] = Kind.COMBINATION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.inner.kind is not Kind.COMMAND:
            raise ValueError(f"only a command can be refused; {self.inner.type} is none")

    def children(self) -> tuple[Operation, ...]:
        return (self.inner,)


@dataclass(frozen=True)
class Wrongly(Operation):
    """A command with something wrong about it that the program is to refuse, without any effect."""

    operation: Operation
    kind: ClassVar[Kind] = Kind.COMBINATION

    def __post_init__(self) -> None:
        check_command("operation", self.operation)

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


@dataclass(frozen=True)
class WrongSetting(Wrongly):
    """A command while one setting of the program is wrong: a word for a number, a number in quotes, `true`,
    a negative number, or a setting that there is not. It is refused, and the setting is named.
    """

    how: str = "text"
    place: int = 0
    """Which of the settings that the target's file tells of, counted from 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("how", self.how, WRONG_SETTINGS)
        if self.place < 0:
            raise ValueError("place must not be negative")


@dataclass(frozen=True)
class Misuse(Wrongly):
    """A command said wrongly, as people and scripts do: with an option that there is not, without its last
    argument, with a word too many, with a word for a number (where it says none now: a word too many). A
    program may take it all the same, or refuse it; it may not crash, and a refusal changes nothing.
    `unconfirmed`: without the word that answers its question; nobody can be asked, so nothing happens.
    """

    how: str = "unknown_option"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("how", self.how, (*MISUSES, UNCONFIRMED))

    def said(self, argv: Sequence[str]) -> tuple[str, ...]:
        """The command line, said wrongly."""
        if self.how == UNCONFIRMED:
            return tuple(word for word in argv if word not in CONFIRMATIONS)
        if self.how == "too_few":
            last = max(place for place, word in enumerate(argv) if not word.startswith("-"))
            # An option that lacks its value goes to the end, or it would take the next word for it.
            head = last - 1 if last and argv[last - 1].startswith("-") else last
            return (*argv[:head], *argv[last + 1 :], *argv[head:last])
        numbers = [place for place, word in enumerate(argv) if word.isdigit()]
        if self.how == "wrong_type" and numbers:  # a token is said only by who has one
            return (*argv[: numbers[-1]], NO_NUMBER, *argv[numbers[-1] + 1 :])
        return (*argv, "--no-such-option" if self.how == "unknown_option" else "one-too-many")

    def told(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The arguments of a tool, given wrongly: one that it does not know where nothing else is left."""
        if self.how == "too_few" and arguments:
            return dict(list(arguments.items())[:-1])
        typed = [name for name, value in arguments.items() if isinstance(value, int | list)]
        if self.how == "wrong_type" and typed:
            return {**arguments, **dict.fromkeys(typed[-1:], NO_NUMBER)}
        return {**arguments, "no_such_argument": "one-too-many"}


@dataclass(frozen=True)
class Choice(Operation):
    """One of these, chosen by the run's seed; the journal holds the one that was taken."""

    options: tuple[Operation, ...]
    kind: ClassVar[Kind] = Kind.COMBINATION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.options:
            raise ValueError("needs at least one option")

    def children(self) -> tuple[Operation, ...]:
        return self.options


@dataclass(frozen=True)
class Parallel(Operation):
    """Commands started at the same moment."""

    operations: tuple[Operation, ...]
    kind: ClassVar[Kind] = Kind.COMBINATION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        # Every order of the parts is tried when the answers are judged.
        if not 2 <= len(self.operations) <= MOST_AT_ONCE:
            raise ValueError(f"needs 2 to {MOST_AT_ONCE} operations, got {len(self.operations)}")

    def children(self) -> tuple[Operation, ...]:
        return self.operations


# --- what an operation does to the world ------------------------------------------------------------


def disturbs(operation: Operation) -> bool:
    """Is it a fault, or a worker that is told to misbehave?"""
    if operation.kind is Kind.FAULT:
        return True
    turns = getattr(operation, "turns", ()) or (getattr(operation, "behaviour", "healthy"),)
    return any(str(turn).partition(":")[0] not in _CALM for turn in turns)


def competes(operation: Operation) -> bool:
    """Are commands run at once, so that their order matters?"""
    return isinstance(operation, Parallel | Interleave)
