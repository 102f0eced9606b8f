"""The home directory: one kernel lock, one state in two copies, and how both survive a crash.

The one insight: a file that is replaced by ``rename`` after ``fsync`` is at any moment either the
old one or the new one, so a reader never needs the lock and a crash never needs a repair.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import time
import zlib
from typing import Any, NamedTuple

from longboat.errors import LongboatError, StateUnreadable
from longboat.planting import planted
from longboat.workers import state as state_module
from longboat.workers.processes import identify, state_letter
from longboat.workers.state import State


class Home(NamedTuple):
    """Where the files of one longboat are."""

    path: str

    def file(self, *names: str) -> str:
        """A path below the home."""
        return os.path.join(self.path, *names)

    @property
    def config(self) -> str:
        """The settings."""
        return self.file("config.toml")

    @property
    def state(self) -> str:
        """The state."""
        return self.file("state.json")

    @property
    def backup(self) -> str:
        """The second copy of the state."""
        return self.file("state.bak.json")

    @property
    def spool(self) -> str:
        """Hooks of agents that wait for the daemon."""
        return self.file("spool")

    @property
    def log(self) -> str:
        """What happened, for people."""
        return self.file("logs", "daemon.log")

    def worktree(self, worker: str) -> str:
        """Where a worker works."""
        return self.file("worktrees", worker)


def sync_directory(path: str) -> None:
    """Make renames and new names in a directory survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Make a file's content survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_files(directory: str) -> None:
    """Make all files of a directory survive a power cut: git syncs few of its own."""
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            sync_file(path)
    sync_directory(directory)


def replace_file(
    path: str, data: bytes, *, sync: bool = True, sync_parent: bool = True, mode: int = 0o644
) -> None:
    """Write a file so that it is at any moment wholly the old one or wholly the new one."""
    temporary, flags = f"{path}.{os.getpid()}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    if planted("temporary-blocks"):
        temporary, flags = f"{path}.tmp", flags | os.O_EXCL
    descriptor = os.open(temporary, flags, mode)
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
            if planted("short-write-ignored"):
                break
        if sync and not planted("no-sync-before-rename"):
            os.fsync(descriptor)
    except BaseException:
        os.close(descriptor)
        os.unlink(temporary)
        raise
    os.close(descriptor)
    os.replace(temporary, path)
    if sync and sync_parent and not planted("rename-not-synced"):
        sync_directory(os.path.dirname(path))


def sweep_leftovers(home: Home) -> None:
    """Remove the unfinished files of writers that were killed; only with the lock held."""
    for directory in (home.path, home.spool):
        for name in os.listdir(directory):
            # "state.json.123.tmp", ".0000-123.hook", "preserve-123.index": the writer's number.
            number = name.replace("-", ".").split(".")[-2:-1]
            unfinished = name.endswith((".tmp", ".index")) or name.startswith(".")
            if not unfinished or not number or not number[0].isdigit():
                continue
            if identify(int(number[0])) is None:
                os.unlink(os.path.join(directory, name))


def write_log(home: Home, text: str) -> None:
    """Append one line to the log; a full disk must not stop the work that is being logged."""
    now = time.time()
    stamp = time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now * 1000) % 1000:03d}"
    try:
        descriptor = os.open(home.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    except OSError:
        return
    try:
        os.write(descriptor, f"[{stamp}] {text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
    finally:
        os.close(descriptor)


class _TooLongError(Exception):
    """The lock was not free in time."""


class HomeLock:
    """The exclusive lock of a home. Children that are given ``descriptor`` hold it as well."""

    def __init__(self, home: Home, timeout_s: float, purpose: str) -> None:
        self.descriptor = os.open(home.file("home.lock"), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self.was_free = planted("stale-when-free") and self._acquire_at_once()
            if not self.was_free:
                self._acquire(home, timeout_s)
            note = f"{os.getpid()} {purpose}\n".encode()
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, note, 0)
        except BaseException:  # also when only the note cannot be written: nobody would let go
            os.close(self.descriptor)
            raise

    def _acquire(self, home: Home, timeout_s: float) -> None:
        """Sleep in the kernel's queue: it is fair, and a waiter that polls can starve."""
        waiting = True

        def give_up(_number: int, _frame: object) -> None:
            if waiting:
                raise _TooLongError

        before = signal.signal(signal.SIGALRM, give_up)
        try:
            # Again and again: one alarm just before the kernel is entered would be lost.
            signal.setitimer(signal.ITIMER_REAL, timeout_s, 0.1)
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        except _TooLongError:
            waiting = False
            raise LongboatError(self._complaint(home, timeout_s)) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def _acquire_at_once(self) -> bool:
        """Plants only: see whether anybody has it."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _complaint(self, home: Home, timeout_s: float) -> str:
        note = os.pread(self.descriptor, 200, 0).decode("utf-8", "replace").split(None, 1)
        who = "another process"
        if len(note) == 2 and note[0].isdigit():
            pid = int(note[0])
            who = f"process {pid} ({note[1].strip()})"
            if identify(pid) is None:
                who += ", which is dead: a git command that it started is still running"
            elif state_letter(pid) in "Tt":
                who += ", which is stopped: resume it with `kill -CONT`"
        return f"{home.path} is locked by {who}; gave up after {timeout_s:g} s"

    def share(self) -> None:
        """Plants only: work as if there were no lock."""
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def take_again(self) -> None:
        """Plants only: what was read before may be old by now."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        """Let the next one in."""
        os.close(self.descriptor)


class Loaded(NamedTuple):
    """A state that was read, and what was wrong with the files."""

    state: State
    problems: tuple[str, ...] = ()
    main_is_bad: bool = False
    main_is_old: bool = False


def _checksum(document: dict[str, Any]) -> str:
    body = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(body.encode()):08x}"


def parse_state(raw: bytes) -> State:
    """A state from the bytes of a state file; ValueError says what is wrong with them."""
    document = json.loads(raw)
    if not isinstance(document, dict):
        raise ValueError("the top level is not an object")
    checksum = document.pop("checksum", None)
    if checksum != _checksum(document):
        raise ValueError("the checksum does not match")
    return state_module.decode(document)


def _read_one(path: str) -> tuple[State | None, str]:
    try:
        with open(path, "rb") as file:
            return parse_state(file.read()), ""
    except FileNotFoundError:
        return None, f"{os.path.basename(path)} is missing"
    except ValueError as error:  # includes bad JSON and bad UTF-8
        return None, f"{os.path.basename(path)} is corrupt ({error})"


def read_state(home: Home) -> Loaded:
    """The state: from the main file, else the backup, else a clear refusal. Changes nothing."""
    state, problem = _read_one(home.state)
    backup, backup_problem = _read_one(home.backup)
    if state is not None and backup is not None and backup.generation > state.generation:
        return Loaded(backup, main_is_old=True)  # an old copy came back, or a writer was killed
    if state is not None:
        return Loaded(state)
    if backup is None:
        raise StateUnreadable(
            f"The state in {home.path} is unreadable: {problem}; {backup_problem}. "
            "Run `longboat doctor --repair` to rebuild it from the worktrees"
        )
    return Loaded(backup, (f"{problem}; the backup was used",), main_is_bad=True)


def set_aside(home: Home, path: str) -> str | None:
    """Keep a bad state file under another name; returns the name, None when there is no file.

    A second name, not a new one: whoever reads meanwhile finds a bad file rather than none.
    """
    name = f"state.corrupt-{time.time_ns()}.json"
    try:
        os.link(path, home.file(name))
    except FileNotFoundError:
        return None
    except OSError:  # a file system without hard links
        os.rename(path, home.file(name))
    sync_directory(home.path)
    return name


def write_state(home: Home, state: State, *, sync: bool = True) -> None:
    """Save both copies: the file first, so that the backup never knows of what was refused.

    Plants only: without a sync.
    """
    wrong = state_module.contradictions(state)
    excused = planted("idle-keeps-prompt", "sha-dropped-on-daemon-death", "prompt-only-queued")
    if wrong and not excused:
        raise LongboatError(f"refused to save a contradictory state: {'; '.join(wrong)}")
    document = state_module.encode(state)
    document["checksum"] = _checksum(document)
    data = (json.dumps(document, indent=1) + "\n").encode()
    if planted("state-in-place"):
        with open(home.state, "wb") as file:
            file.write(data)
        return
    if planted("lock-file-by-hand"):
        _write_under_own_lock(home, data)
        return
    if planted("unlink-before-rename") and os.path.exists(home.state):
        os.unlink(home.state)
    try:
        replace_file(home.state, data, sync=sync)
    except OSError:
        if planted("full-disk-acknowledged"):
            return
        raise
    careless = planted("unlink-before-rename", "short-write-ignored", "rename-not-synced")
    if careless and os.path.exists(home.backup):
        return
    _write_backup(home, data, sync=sync)


def _write_backup(home: Home, data: bytes, *, sync: bool = True) -> None:
    """The second copy. The first one is safe by now: what is wrong here is told, not suffered."""
    try:
        replace_file(home.backup, data, sync=sync, sync_parent=False)
    except OSError as error:
        write_log(home, f"state: the backup could not be written: {error}")


def _write_under_own_lock(home: Home, data: bytes) -> None:
    """Plants only: a lock that is a file, and that nobody removes after a crash."""
    path = home.file("state.lock")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise LongboatError(f"{path} exists: another longboat is writing the state") from None
    replace_file(home.state, data)
    _write_backup(home, data)
    os.unlink(path)


class Book:
    """The state while the lock is held: read once, changed by value, saved when it changed."""

    def __init__(self, home: Home, lock: HomeLock, loaded: Loaded) -> None:
        self.home = home
        self.lock = lock
        self.state = loaded.state
        self._saved = loaded.state
        for problem in loaded.problems:
            write_log(home, f"state: {problem}")
        if loaded.main_is_bad:
            aside = set_aside(home, home.state)
            if aside:
                write_log(home, f"state: the bad file is kept as {aside}")
            self._write()
        elif loaded.main_is_old:
            write_log(home, "state: the file is older than its backup; the backup was used")
            self._write()

    def save(self, *, sync: bool = True) -> None:
        """Make the state durable; costs nothing when nothing changed. Plants only: without a sync."""
        if self.state != self._saved:
            self._write(sync=sync)

    def rewrite(self) -> None:
        """Write both copies even when nothing changed."""
        self._write()

    def roll_back(self) -> None:
        """Forget what was changed since the last save."""
        self.state = self._saved

    def _write(self, *, sync: bool = True) -> None:
        if planted("lock-dropped"):
            self.lock.take_again()
        self.state = self.state._replace(generation=self.state.generation + 1)
        write_state(self.home, self.state, sync=sync)
        self._saved = self.state


def open_home(path: str) -> Home:
    """The home at a path, in its absolute form."""
    return Home(os.path.realpath(path))


class DaemonLock:
    """The lock that a daemon holds for life: one daemon per home.

    It is an open-file-description lock because that kind can be **asked about** without being
    taken, so a curious command never makes a starting daemon fail.
    """

    def __init__(self, home: Home) -> None:
        self.descriptor = os.open(home.file("daemon.lock"), os.O_RDWR | os.O_CREAT, 0o644)

    def take(self) -> bool:
        """Try to become the daemon; False when another one lives."""
        how = fcntl.F_OFD_SETLKW if planted("up-waits-for-the-other") else fcntl.F_OFD_SETLK
        try:
            fcntl.fcntl(self.descriptor, how, _lock_request(fcntl.F_WRLCK))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def held_by_other(self) -> bool:
        """True while a daemon lives, whoever asks."""
        answer = fcntl.fcntl(self.descriptor, fcntl.F_OFD_GETLK, _lock_request(fcntl.F_WRLCK))
        return int.from_bytes(answer[0:2], "little") != fcntl.F_UNLCK

    def close(self) -> None:
        """Let go."""
        os.close(self.descriptor)


def _lock_request(kind: int) -> bytes:
    """A C ``struct flock`` for the whole file (64-bit layout: two shorts, padding, two offsets)."""
    import struct

    return struct.pack("@hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)


def daemon_is_alive(home: Home) -> bool:
    """True while a daemon holds this home; the pid file is never asked."""
    try:
        lock = DaemonLock(home)
    except FileNotFoundError:
        return False
    try:
        return lock.held_by_other()
    finally:
        lock.close()
