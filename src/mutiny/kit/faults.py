"""The fault library as operations that all contracts share: plain arguments, places and roles by word.

The one insight: a fault is a state of the world with a beginning and an end, so all of them last in
one of the same three ways, and everything else (carrying out, judging, exploring, minimising) is
written once for `LibraryFault` and not a dozen times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.kit.operations import Heal, KillDuring, LibraryFault, check_one_of
from mutiny.model.operation import Operation

ROLES = ("daemon", "agent", "tmux")
LEAST_DELAY_MS = 1.0
LEAST_OFFSET_S, LEAST_DRIFT = 0.1, 0.01
LEAST_LOSS = 0.001
WIDEST_KILOBITS = 100_000
MOST_SHARE = 0.5
MOST_SPARE = {
    "descriptors": 16,
    "memory": 16 * 1024 * 1024,
    "file_size": 64 * 1024,
    "processes": 16,
}
"""How weak a fault may be. What is weaker than this changes nothing that could be measured, and a run
under it would only look as if it had survived something.
"""
DAMAGES = ("truncate", "append", "flip", "garbage", "middle", "empty", "stale", "delete")


def _within(name: str, value: float, least: float, most: float) -> None:
    """A number outside these is no fault: nobody could feel it."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be between {least:g} and {most:g}, got {value:g}")


# --- disk and files -------------------------------------------------------------------------------


@dataclass(frozen=True)
class FillDisk(LibraryFault):
    """No space left on the disk of a place: no bytes, or no inodes."""

    what: str = "bytes"
    place: str = "state"
    command_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("what", self.what, ("bytes", "inodes"))


@dataclass(frozen=True)
class ReadOnlyDisk(LibraryFault):
    """The disk of a place can no longer be written."""

    place: str = "state"
    command_only: ClassVar[bool] = True


@dataclass(frozen=True)
class SlowFiles(LibraryFault):
    """Every change of a file below a place takes so much longer, for commands started from now on."""

    delay_ms: float = 20.0
    place: str = "state"
    command_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _within("delay_ms", self.delay_ms, LEAST_DELAY_MS, 3_600_000)


@dataclass(frozen=True)
class Forbid(LibraryFault):
    """A place may no longer be written, or no longer be used at all."""

    what: str = "write"
    place: str = "state"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("what", self.what, ("write", "all"))
        if self.what == "all" and self.lasting:
            raise ValueError("a place that nobody may use cannot be looked at: not lasting")


@dataclass(frozen=True)
class HoldLock(LibraryFault):
    """Somebody holds a lock that the target needs, and does not give it back."""

    place: str = "lock"
    how: str = "flock"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("how", self.how, ("flock", "posix", "sqlite"))


@dataclass(frozen=True)
class DamageFile(LibraryFault):
    """The content of a file is damaged; without a length it simply stays so."""

    how: str = "garbage"
    file: str = "state"
    seed: int = 1
    instant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("how", self.how, DAMAGES)


# --- clock ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SkewClock(LibraryFault):
    """The wall clock is wrong by so much, or time runs so many times as fast; for all, or one worker."""

    worker: str | None = None
    offset_s: float = 0.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.offset_s == 0 and self.rate == 1:
            raise ValueError("give offset_s, or rate, or both")
        if self.rate <= 0:
            raise ValueError(f"rate must be more than 0, got {self.rate:g}")
        if self.offset_s != 0 and not abs(self.offset_s) >= LEAST_OFFSET_S:
            raise ValueError(
                f"offset_s must be {LEAST_OFFSET_S:g} s or more either way, got {self.offset_s:g}"
            )
        if self.rate != 1 and not abs(self.rate - 1) >= LEAST_DRIFT:
            raise ValueError(
                f"rate must differ from 1 by {LEAST_DRIFT:g} or more, got {self.rate:g}"
            )


# --- network --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partition(LibraryFault):
    """Packets between the box and a party are lost, both ways or one way, all or a part of them."""

    party: str = "network"
    direction: str = "both"
    how: str = "drop"
    loss: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("direction", self.direction, ("both", "to", "from"))
        check_one_of("how", self.how, ("drop", "reject"))
        _within("loss", self.loss, LEAST_LOSS, 1)


@dataclass(frozen=True)
class SlowLink(LibraryFault):
    """A narrow or a long network for everything in the box."""

    kilobits_per_s: int = 0
    delay_ms: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kilobits_per_s > 0) == (self.delay_ms > 0):
            raise ValueError("give either kilobits_per_s or delay_ms")
        _within("kilobits_per_s", self.kilobits_per_s, 0, WIDEST_KILOBITS)
        _within("delay_ms", self.delay_ms, 0, 3_600_000)


@dataclass(frozen=True)
class SilentClient(LibraryFault):
    """Somebody connects to every socket of a role and says nothing; the others must still be served."""

    role: str = "daemon"
    harmless: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("role", self.role, ROLES)


# --- resources ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LowerLimit(LibraryFault):
    """A role has only `spare` more than it uses now: descriptors, bytes of memory, bytes in a file."""

    role: str = "daemon"
    what: str = "descriptors"
    spare: int = 0
    worker: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("role", self.role, ROLES)
        check_one_of("what", self.what, ("descriptors", "memory", "file_size"))
        _within(f"spare of {self.what}", self.spare, 0, MOST_SPARE[self.what])
        if self.role == "agent" and self.worker is None:
            raise ValueError("the limit of an agent needs its worker")

    @property
    def may_kill(self) -> bool:
        """Without memory a process may have to die, and whoever writes beyond the size of a file is ended
        by the kernel (SIGXFSZ) unless it has asked for an error instead.
        """
        return self.what in ("memory", "file_size")


@dataclass(frozen=True)
class LimitProcesses(LibraryFault):
    """Those who run now can start no more processes than `spare`."""

    spare: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _within("spare", self.spare, 0, MOST_SPARE["processes"])


@dataclass(frozen=True)
class StarveCpu(LibraryFault):
    """The box has only this share of one processor."""

    share: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        _within("share", self.share, 0.01, MOST_SHARE)


LIBRARY: tuple[type[LibraryFault], ...] = (
    *(FillDisk, ReadOnlyDisk, SlowFiles, Forbid, HoldLock, DamageFile, SkewClock),
    *(Partition, SlowLink, SilentClient, LowerLimit, LimitProcesses, StarveCpu),
)


FAULTS: tuple[type[Operation], ...] = (*LIBRARY, KillDuring, Heal)
"""For the registry of every contract."""
