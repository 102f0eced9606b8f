"""What to do with a call: pure decisions.

Insight: a policy never touches a process. It looks at one call and names an action, as plain data;
the supervisor carries it out. So every fault is a value that can be written to a file, compared and
replayed, and a test of a policy needs no process. The only memory that a policy needs, how often it
has already acted, is handed to it.
"""

from __future__ import annotations

import errno as errno_names
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call

ERRNOS = ("ENOSPC", "EIO", "EACCES", "EROFS", "EMFILE", "EINTR", "EDQUOT", "EFBIG", "EAGAIN")
TearMode = Literal["kill", "short", "lie"]


# --- actions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Continue:
    """Let the kernel do it."""


@dataclass(frozen=True, slots=True)
class Fail:
    """The call does nothing and returns this error."""

    errno: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The call does nothing and returns this value: a lie."""

    value: int


@dataclass(frozen=True, slots=True)
class KillProcess:
    """The calling process dies instead; the others go on."""


@dataclass(frozen=True, slots=True)
class KillWorld:
    """Everything dies now, before this call. No other call of anybody is answered any more."""


@dataclass(frozen=True, slots=True)
class Tear:
    """Half of the bytes are written; then the world dies, or the caller is told the short count, or
    the full one.
    """

    mode: TearMode


@dataclass(frozen=True, slots=True)
class Delay:
    """The call is done after this time; calls of others go on meanwhile."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Perform:
    """Do something while the caller stands still before the call, then let it go."""

    effect: Callable[[Call], None]


Action = Continue | Fail | Answer | KillProcess | KillWorld | Tear | Delay | Perform
CONTINUE = Continue()


class Policy(Protocol):
    """Decides about one call. ``fired`` says how often this policy has already acted."""

    def decide(self, call: Call, fired: int) -> Action:
        """Return the action for this call."""


# --- policies -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """Change nothing; the record is all that is wanted."""

    def decide(self, call: Call, fired: int) -> Action:
        """Let it go."""
        return CONTINUE


@dataclass(frozen=True, slots=True)
class CrashAt:
    """The whole world stops before call ``index``."""

    index: int

    def decide(self, call: Call, fired: int) -> Action:
        """Kill at the one place."""
        return KillWorld() if call.index == self.index else CONTINUE


@dataclass(frozen=True, slots=True)
class KillProcessAt:
    """Only the process that makes call ``index`` dies, before the call."""

    index: int

    def decide(self, call: Call, fired: int) -> Action:
        """Kill at the one place."""
        return KillProcess() if call.index == self.index else CONTINUE


@dataclass(frozen=True, slots=True)
class FailAt:
    """Call ``index`` fails with an error, by its name (``ENOSPC``)."""

    index: int
    errno: str

    def __post_init__(self) -> None:
        error_number(self.errno)

    def decide(self, call: Call, fired: int) -> Action:
        """Fail at the one place."""
        return Fail(error_number(self.errno)) if call.index == self.index else CONTINUE


@dataclass(frozen=True, slots=True)
class Selection:
    """Which calls a policy is about: below a host path, and of certain names (empty: all)."""

    below: str
    names: frozenset[str] = field(default_factory=frozenset)

    def holds(self, call: Call) -> bool:
        """Whether the call is meant."""
        if self.names and call.name not in self.names:
            return False
        return any(is_below(file, self.below) for file in call.files)


@dataclass(frozen=True, slots=True)
class FailBelow:
    """All selected calls fail (a full or read-only part of a disk), or only the first ``count``."""

    selection: Selection
    errno: str
    count: int | None = None

    def __post_init__(self) -> None:
        error_number(self.errno)

    def decide(self, call: Call, fired: int) -> Action:
        """Fail what is selected."""
        over = self.count is not None and fired >= self.count
        if over or not self.selection.holds(call):
            return CONTINUE
        return Fail(error_number(self.errno))


@dataclass(frozen=True, slots=True)
class FullBelow:
    """No space left below a host path: bytes cannot be written, or nothing new can be made.

    What is there already may be opened, renamed and removed, as on a real full disk.
    """

    below: str
    what: Literal["bytes", "inodes"] = "bytes"

    def decide(self, call: Call, fired: int) -> Action:
        """Refuse what needs space."""
        here = bool(call.files) and is_below(call.files[-1], self.below)
        return Fail(error_number("ENOSPC")) if here and _needs(call, self.what) else CONTINUE


@dataclass(frozen=True, slots=True)
class FullFrom:
    """The disk fills up just before call ``index``: no bytes can be written from there on."""

    index: int

    def decide(self, call: Call, fired: int) -> Action:
        """Refuse what needs space from the one place on."""
        late = call.index >= self.index and bool(call.files)
        return Fail(error_number("ENOSPC")) if late and _needs(call, "bytes") else CONTINUE


def _needs(call: Call, what: Literal["bytes", "inodes"]) -> bool:
    if call.name in tables.TAKES_BYTES:
        return what == "bytes"
    makes = call.name in _MAKES_NEW or (
        what == "inodes"
        and call.name in tables.OPENS
        and (call.name == "creat" or bool(call.flags & tables.O_CREAT))
    )
    return makes and not os.path.lexists(call.files[-1])


_MAKES_NEW = frozenset({"mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat"})


@dataclass(frozen=True, slots=True)
class TearAt:
    """The write at ``index`` is torn. A call that writes no bytes is left alone (not fired)."""

    index: int
    mode: TearMode

    def decide(self, call: Call, fired: int) -> Action:
        """Tear at the one place."""
        return Tear(self.mode) if call.index == self.index and tearable(call) else CONTINUE


@dataclass(frozen=True, slots=True)
class TearBelow:
    """The first selected write is torn; only one, or a caller that tries again would never end."""

    selection: Selection
    mode: TearMode

    def decide(self, call: Call, fired: int) -> Action:
        """Tear the first."""
        if fired or not tearable(call) or not self.selection.holds(call):
            return CONTINUE
        return Tear(self.mode)


@dataclass(frozen=True, slots=True)
class DelayBelow:
    """All selected calls are slow."""

    selection: Selection
    seconds: float

    def decide(self, call: Call, fired: int) -> Action:
        """Delay what is selected."""
        return Delay(self.seconds) if self.selection.holds(call) else CONTINUE


@dataclass(frozen=True, slots=True)
class BeforeEach:
    """Do something before each call: take a snapshot, keep the durable shadow."""

    effect: Callable[[Call], None]

    def decide(self, call: Call, fired: int) -> Action:
        """Perform it."""
        return Perform(self.effect)


# --- small questions ------------------------------------------------------------------------------


def error_number(name: str) -> int:
    """Return the number of an error by its name."""
    number = getattr(errno_names, name, None)
    if not name.startswith("E") or not isinstance(number, int):
        raise ValueError(f"unknown error name {name!r}; usual ones: {', '.join(ERRNOS)}")
    return number


def tearable(call: Call) -> bool:
    """Whether a call carries bytes of which half can be written."""
    return call.name in tables.WRITES and (call.length > 1 or tables.BY_NAME[call.name].vector)


def is_below(path: str, directory: str) -> bool:
    """Whether a path is a directory or lies below it."""
    return path.startswith(directory) and path[len(directory) : len(directory) + 1] in ("", "/")
