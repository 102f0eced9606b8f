"""Files that survive: one lock, whole files or none, and the file system's own clock.

The one insight: the time of a file is given by the kernel, so processes whose clocks disagree still
agree on how old a heartbeat is.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Iterable
from types import FrameType

from longboat.board.values import Refused, SystemRefused
from longboat.planting import planted

_FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(error: OSError) -> bool:
    """True when there was no space."""
    return error.errno in _FULL


def refusal_of(error: OSError, happened: str) -> SystemRefused:
    """What to say when the system refused a call."""
    kind = "no_space" if is_full(error) else "system"
    known = "nothing was changed" if happened == "no" else "it is unknown whether it happened"
    return SystemRefused(kind, f"The system refused: {error} ({known})", happened)


def sync_directory(path: str) -> None:
    """Make new names in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: str) -> None:
    """A directory that survives a power cut; one that is there already is fine."""
    try:
        os.mkdir(path, 0o755)
    except FileExistsError:
        return
    sync_directory(os.path.dirname(os.path.abspath(path)))


def write_temporary(path: str, data: bytes | Iterable[bytes], *, sync: bool = True) -> None:
    """A new file with these bytes, on the disk; nothing stays behind when that fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        try:
            for piece in (data,) if isinstance(data, bytes) else data:
                written = 0
                while written < len(piece):
                    written += os.write(descriptor, piece[written:])
            if sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        discard(path)
        raise


class Doubtful(Exception):
    """A call failed after which nobody can say whether the file is the old or the new one."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def replace(path: str, temporary: str, data: bytes | Iterable[bytes]) -> None:
    """Write a file so that it is at any moment wholly the old one or wholly the new one."""
    write_temporary(temporary, data)
    put_in_place(temporary, path)


def put_in_place(temporary: str, path: str) -> None:
    """The rename that makes it happen, and its sync."""
    try:
        try:
            os.rename(temporary, path)
        except BaseException:
            discard(temporary)
            raise
        sync_directory(os.path.dirname(path))
    except OSError as error:
        raise Doubtful(error) from error


def set_aside(directory: str, name: str) -> str | None:
    """Give a bad file a second name, so that there is no moment without any; None: no file."""
    stem, dot, ending = name.rpartition(".")
    for number in range(1, 1000):
        aside = f"{stem}.corrupt-{number}{dot}{ending}"
        try:
            os.link(os.path.join(directory, name), os.path.join(directory, aside))
        except FileExistsError:
            continue
        except FileNotFoundError:
            return None
        return aside
    raise OSError(errno.EEXIST, f"there are 999 corrupt copies of {name} already")


def discard(path: str) -> None:
    """Remove a file that means nothing; if that fails too, the next sweep takes it."""
    try:
        os.unlink(path)
    except OSError:
        return


def sweep(directory: str) -> None:
    """Remove the unfinished files of writers that were killed; only with the lock held."""
    for name in os.listdir(directory):
        if name.endswith(".tmp"):
            os.unlink(os.path.join(directory, name))


class _TooLate(Exception):
    """The lock was not free in time."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise _TooLate


class Lock:
    """The exclusive lock of a board: blocking, given up after a deadline, never removed."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        before = signal.signal(signal.SIGALRM, _ring)
        try:
            gives_up = planted("lock-wait-gives-up")
            signal.setitimer(signal.ITIMER_REAL, 0.2 if gives_up else timeout_s)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except _TooLate:
            if gives_up:
                return
            self._close()
            text = f"{path} is held by another process; gave up after {timeout_s:g} s"
            raise Refused("busy", text) from None
        except BaseException:
            self._close()
            raise
        finally:
            signal.signal(signal.SIGALRM, before)

    def _close(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.close(self.descriptor)

    def drop(self) -> None:
        """Plants only: go on as if there were no lock."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def release(self) -> None:
        """Let the next one in."""
        if planted("lock-file-removed"):
            os.unlink(self._path)
        os.close(self.descriptor)


def try_lock(path: str) -> int | None:
    """A lock for life, held by the open descriptor; None when another process has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def touch(path: str) -> float:
    """Give a file the present time of its file system, and say which that is."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        if planted("wall-clock-leases"):
            import time

            os.utime(descriptor, (time.time(), time.time()))
        else:
            os.utime(descriptor)  # no time given: the kernel takes its own
        return os.fstat(descriptor).st_mtime_ns / 1e9
    finally:
        os.close(descriptor)
