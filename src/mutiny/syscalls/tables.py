"""Which system calls change files, their numbers, and where each of them names its files.

Insight: two architectures differ only in numbers. aarch64 has none of the old calls without a
directory descriptor, so that one table with a hole for each of them describes both, and everything
above this module speaks of names only.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from enum import Enum

from mutiny.errors import MutinyError

# --- flags of open that matter here; the same on both architectures -------------------------------

O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND = 0x1, 0x2, 0x40, 0x80, 0x200, 0x400
O_DSYNC, O_SYNC = 0x1000, 0x101000
CHANGING_OPEN_FLAGS = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC
AT_FDCWD = -100
AT_REMOVEDIR = 0x200
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2


class SyscallsUnavailable(MutinyError):
    """This machine cannot trap system calls in the way that was asked for."""


class Group(Enum):
    """When a call is trapped: always, or only when the filter is asked for it."""

    CHANGE = "change"
    """Changes files or says when changes are durable."""
    LOCK = "lock"
    """Takes or gives back an advisory lock."""
    EXEC = "exec"
    """Makes another program of the process; trapped only to keep names of processes right."""
    BLIND_SPOT = "blind spot"
    """Opens a way to change files without any further call (a shared mapping)."""


@dataclass(frozen=True, slots=True)
class PathArgument:
    """A path in memory: which argument points at it, and which holds the directory descriptor."""

    path: int
    directory: int | None = None
    follow: bool = False
    """Whether the call follows a symbolic link in the last component."""


@dataclass(frozen=True, slots=True)
class DescriptorArgument:
    """An open file: which argument holds its descriptor."""

    descriptor: int


@dataclass(frozen=True, slots=True)
class SocketArgument:
    """A socket address in memory, which is a path only for local sockets."""

    address: int


FileArgument = PathArgument | DescriptorArgument | SocketArgument


@dataclass(frozen=True, slots=True)
class Kind:
    """One system call."""

    name: str
    x86_64: int | None
    aarch64: int | None
    files: tuple[FileArgument, ...]
    group: Group = Group.CHANGE
    open_flags: int | None = None
    """The argument with the flags of ``open``."""
    data: tuple[int, int] | None = None
    """For writes: the arguments with the address and the length (or the count of vectors)."""
    vector: bool = False
    offset: int | None = None
    """For writes at a position: the argument that holds it."""


def _at(path: int, directory: int, *, follow: bool = False) -> PathArgument:
    return PathArgument(path, directory, follow)


_FD0 = (DescriptorArgument(0),)
_PATH0 = (PathArgument(0),)
_PATH0_FOLLOWED = (PathArgument(0, follow=True),)
_AT0 = (_at(1, 0),)
_AT0_FOLLOWED = (_at(1, 0, follow=True),)

KINDS: tuple[Kind, ...] = (
    # opening and creating
    Kind("open", 2, None, _PATH0_FOLLOWED, open_flags=1),
    Kind("openat", 257, 56, _AT0_FOLLOWED, open_flags=2),
    Kind("openat2", 437, 437, _AT0_FOLLOWED),
    Kind("creat", 85, None, _PATH0_FOLLOWED),
    Kind("mknod", 133, None, _PATH0),
    Kind("mknodat", 259, 33, _AT0),
    Kind("bind", 49, 200, (SocketArgument(1),)),
    # content
    Kind("write", 1, 64, _FD0, data=(1, 2)),
    Kind("pwrite64", 18, 68, _FD0, data=(1, 2), offset=3),
    Kind("writev", 20, 66, _FD0, data=(1, 2), vector=True),
    Kind("pwritev", 296, 70, _FD0, data=(1, 2), vector=True, offset=3),
    Kind("pwritev2", 328, 287, _FD0, data=(1, 2), vector=True, offset=3),
    Kind("truncate", 76, 45, _PATH0_FOLLOWED),
    Kind("ftruncate", 77, 46, _FD0),
    Kind("fallocate", 285, 47, _FD0),
    Kind("sendfile", 40, 71, _FD0),
    Kind("copy_file_range", 326, 285, (DescriptorArgument(2),)),
    Kind("splice", 275, 76, (DescriptorArgument(2),)),
    Kind("ioctl", 16, 29, _FD0),  # only the two that clone content
    # names
    Kind("rename", 82, None, (PathArgument(0), PathArgument(1))),
    Kind("renameat", 264, 38, (_at(1, 0), _at(3, 2))),
    Kind("renameat2", 316, 276, (_at(1, 0), _at(3, 2))),
    Kind("link", 86, None, (PathArgument(0), PathArgument(1))),
    Kind("linkat", 265, 37, (_at(1, 0), _at(3, 2))),
    Kind("symlink", 88, None, (PathArgument(1),)),
    Kind("symlinkat", 266, 36, (_at(2, 1),)),
    Kind("unlink", 87, None, _PATH0),
    Kind("unlinkat", 263, 35, _AT0),
    Kind("mkdir", 83, None, _PATH0),
    Kind("mkdirat", 258, 34, _AT0),
    Kind("rmdir", 84, None, _PATH0),
    # attributes
    Kind("chmod", 90, None, _PATH0_FOLLOWED),
    Kind("fchmod", 91, 52, _FD0),
    Kind("fchmodat", 268, 53, _AT0_FOLLOWED),
    Kind("fchmodat2", 452, 452, _AT0_FOLLOWED),
    Kind("chown", 92, None, _PATH0_FOLLOWED),
    Kind("lchown", 94, None, _PATH0),
    Kind("fchown", 93, 55, _FD0),
    Kind("fchownat", 260, 54, _AT0_FOLLOWED),
    # durability
    Kind("fsync", 74, 82, _FD0),
    Kind("fdatasync", 75, 83, _FD0),
    Kind("syncfs", 306, 267, _FD0),
    # locks
    Kind("flock", 73, 32, _FD0, Group.LOCK),
    Kind("fcntl", 72, 25, _FD0, Group.LOCK),
    # other programs
    Kind("execve", 59, 221, (), Group.EXEC),
    Kind("execveat", 322, 281, (), Group.EXEC),
    # blind spots
    Kind("mmap", 9, 222, (DescriptorArgument(4),), Group.BLIND_SPOT),
)

BY_NAME = {kind.name: kind for kind in KINDS}
WRITES = frozenset(kind.name for kind in KINDS if kind.data is not None)
"""Calls that carry the bytes they write, and so can be torn."""
TAKES_BYTES = WRITES | {"fallocate", "sendfile", "copy_file_range", "splice"}
"""Calls that a disk without a free byte refuses."""
SYNCS = frozenset({"fsync", "fdatasync", "syncfs"})
OPENS = frozenset({"open", "openat", "openat2", "creat"})
RENAMES = frozenset({"rename", "renameat", "renameat2"})
LOCKS = frozenset({"flock", "fcntl"})

F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW = 6, 7, 37, 38
LOCK_COMMANDS = (F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW)
WAITING_LOCK_COMMANDS = (F_SETLKW, F_OFD_SETLKW)
LOCK_NB = 4
FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
CLONE_REQUESTS = (FICLONE, FICLONERANGE)
PROT_WRITE, MAP_SHARED, MAP_ANONYMOUS = 0x2, 0x1, 0x20

IO_URING_SETUP = 425
"""The same everywhere. Its writes pass every filter by, so that it is answered with ENOSYS."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers of one machine."""

    name: str
    audit: int
    """How the kernel calls it in ``seccomp_data.arch``."""
    seccomp: int
    no_follow: int
    """``O_NOFOLLOW``, one of the few flags of open that differ."""
    forbidden_bit: int | None
    """The bit of a call number that selects the x32 table, which is not supported here."""

    def number(self, kind: Kind) -> int | None:
        """The number of a call, None when this architecture does not have it."""
        return kind.x86_64 if self.name == "x86_64" else kind.aarch64

    def numbers(self) -> dict[int, Kind]:
        """All calls of the table by their number here."""
        pairs = ((self.number(kind), kind) for kind in KINDS)
        return {number: kind for number, kind in pairs if number is not None}


X86_64 = Architecture("x86_64", 0xC000003E, 317, 0x20000, 0x40000000)
AARCH64 = Architecture("aarch64", 0xC00000B7, 277, 0x8000, None)
_BY_MACHINE = {"x86_64": X86_64, "amd64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}

PIDFD_GETFD, OPENAT2 = 438, 437  # the same on both


def this_machine() -> Architecture:
    """Return the architecture of this machine; raise when there is no table for it."""
    machine = platform.machine().lower()
    if platform.system() != "Linux" or machine not in _BY_MACHINE:
        raise SyscallsUnavailable(
            f"system calls can be trapped on Linux x86_64 and aarch64 only, "
            f"this is {platform.system()} {machine}"
        )
    return _BY_MACHINE[machine]
