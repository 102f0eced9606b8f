"""The wire to the kernel and to the launchers: who starts, who calls, who has ended; and the answers.

Insight: this object has no thread and no policy. It turns descriptors into events and actions into
answers; the supervisor drives it from a thread with a policy, the scheduler drives it step by step.
One object may have many listeners (one for each launched command) and still gives one total order,
because one caller receives one event after the other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import select
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutiny.box.box import Box
from mutiny.syscalls import tables
from mutiny.syscalls.launcher import GO
from mutiny.syscalls.memory import PathMap, Sight

_RECEIVE, _SEND, _IS_VALID, _SET_FLAGS = 0xC0502100, 0xC0182101, 0x40082102, 0x40082104
_SYNCHRONOUS_WAKE_UP = 1
_NOTIFICATION = struct.Struct("=QIIiIQ6Q")
_RESPONSE = struct.Struct("=QqiI")
_ID = struct.Struct("=Q")
_CREDENTIALS = struct.Struct("3i")
_CONTINUE = 1
_MESSAGE_BYTES = 65536
DOOR_PREFIX = ".mutiny-"
"""How names of our own sockets in a box begin."""
_EMPTY = bytes(_NOTIFICATION.size)


@dataclass(slots=True)
class Listener:
    """The kernel's end of one launched command and of everything that it starts."""

    descriptor: int
    tag: str
    pid: int
    sight: Sight


@dataclass(frozen=True, slots=True)
class Trapped:
    """One call that waits for an answer."""

    listener: Listener
    identity: int
    task: int
    kind: tables.Kind
    arguments: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """A launcher has its filter and waits for ``go``."""

    listener: Listener
    line: socket.socket


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A launcher could not start its command."""

    tag: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last process behind a listener has ended."""

    listener: Listener


Event = Trapped | Started | NotStarted | Ended


@dataclass(slots=True)
class _Door:
    """A socket at which launchers knock, and how the world looks from behind it."""

    socket: socket.socket
    file: Path
    inside: str
    paths: PathMap


@dataclass(slots=True)
class _Line:
    """The connection of one launcher."""

    socket: socket.socket
    door: _Door
    tag: str = ""
    has_listener: bool = False


class Listeners:
    """All descriptors of one supervision. Not for several threads, except ``wake``."""

    def __init__(self) -> None:
        self._numbers = tables.this_machine().numbers()
        self._poller = select.poll()
        self._doors: dict[str, _Door] = {}
        self._door_of: dict[int, _Door] = {}
        self._lines: dict[int, _Line] = {}
        self._listeners: dict[int, Listener] = {}
        self._buffer = bytearray(_NOTIFICATION.size)
        self._own_directory: tempfile.TemporaryDirectory[str] | None = None
        self._wake_lock = threading.Lock()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller.register(self._wake, select.POLLIN)

    # --- doors

    def door(self, box: Box | None) -> str:
        """Return the path of the socket for launchers in a box (None: on the host), as they see it.

        Only the first call for a box makes one; it must come before the first event is awaited or
        from the same thread.
        """
        key = box.box_id if box is not None else ""
        if key not in self._doors:
            self._doors[key] = self._open_door(box)
        return self._doors[key].inside

    def _open_door(self, box: Box | None) -> _Door:
        if box is None:
            self._own_directory = tempfile.TemporaryDirectory(prefix="mutiny-")
            directory, inside = Path(self._own_directory.name), self._own_directory.name
            paths = PathMap()
        else:
            directory, inside, paths = box.directory, box.inside_root, PathMap.of_box(box)
        name = f"{DOOR_PREFIX}{secrets.token_hex(4)}.sock"
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Names of sockets have about 100 bytes, directories of boxes may be longer than that.
        with _opened_directory(directory) as short:
            server.bind(f"{short}/{name}")
        server.listen(64)
        server.setblocking(False)
        door = _Door(server, directory / name, f"{inside}/{name}", paths)
        self._door_of[server.fileno()] = door
        self._poller.register(server, select.POLLIN)
        return door

    # --- events

    def wake(self) -> None:
        """Let ``receive`` return at once. Any thread may call, also after the end."""
        with self._wake_lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    @property
    def live(self) -> int:
        """How many listeners still have processes."""
        return len(self._listeners)

    def receive(self, timeout_s: float | None) -> Iterator[Event]:
        """Wait for the next events and yield them one by one."""
        timeout_ms = None if timeout_s is None else max(0.0, timeout_s * 1000)
        for descriptor, bits in self._poller.poll(timeout_ms):
            listener = self._listeners.get(descriptor)
            if listener is not None:
                event = self._from_listener(listener, bits)
            elif descriptor == self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._wake)
                continue
            elif descriptor in self._door_of:
                self._accept(self._door_of[descriptor])
                continue
            else:
                event = self._from_line(self._lines[descriptor])
            if event is not None:
                yield event

    def _from_listener(self, listener: Listener, bits: int) -> Event | None:
        if not bits & select.POLLIN:
            self._forget(listener)
            return Ended(listener)
        buffer = self._buffer
        buffer[:] = _EMPTY  # the kernel insists on it
        try:
            fcntl.ioctl(listener.descriptor, _RECEIVE, buffer)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                return None  # the caller was killed before we could look
            raise
        identity, task, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
        return Trapped(listener, identity, task, self._numbers[number], tuple(arguments))

    def _accept(self, door: _Door) -> None:
        try:
            connection, _ = door.socket.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        self._lines[connection.fileno()] = _Line(connection, door)
        self._poller.register(connection, select.POLLIN)

    def _from_line(self, line: _Line) -> Event | None:
        try:
            data, received, _, _ = socket.recv_fds(line.socket, _MESSAGE_BYTES, 1)
        except ConnectionResetError:
            data, received = b"", []
        if data[:1] == b"L" and received:
            line.tag, line.has_listener = os.fsdecode(data[1:]), True
            return self._started(line, received[0])
        self._drop_line(line)
        if data[:1] == b"!":
            tag, _, reason = os.fsdecode(data[1:]).partition("\0")
            return NotStarted(tag, reason)
        if not line.has_listener:
            return NotStarted(line.tag, "the launcher ended before it had a filter")
        return None  # closed by a successful exec

    def _started(self, line: _Line, descriptor: int) -> Started:
        raw = line.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid: int = _CREDENTIALS.unpack(raw)[0]
        with contextlib.suppress(OSError):  # Linux 6.6 and later; only makes things faster
            fcntl.ioctl(descriptor, _SET_FLAGS, _SYNCHRONOUS_WAKE_UP)
        listener = Listener(descriptor, line.tag, pid, Sight(pid, line.door.paths))
        self._listeners[descriptor] = listener
        self._poller.register(descriptor, select.POLLIN)
        return Started(listener, line.socket)

    @staticmethod
    def go(started: Started) -> None:
        """Let a launcher execute its command."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it was killed
            started.line.send(GO)

    # --- answers

    def answer(self, call: Trapped, *, value: int = 0, error: int = 0, go_on: bool = False) -> bool:
        """Answer a call; False when the caller no longer waits (it was killed)."""
        flags = _CONTINUE if go_on else 0
        try:
            fcntl.ioctl(
                call.listener.descriptor,
                _SEND,
                _RESPONSE.pack(call.identity, value, -error, flags),
            )
        except OSError as problem:
            if problem.errno in (errno.ENOENT, errno.EBADF):
                return False
            raise
        return True

    @staticmethod
    def waits(call: Trapped) -> bool:
        """Whether the caller still waits: what was read about it was really about it."""
        try:
            fcntl.ioctl(call.listener.descriptor, _IS_VALID, _ID.pack(call.identity))
        except OSError:
            return False
        return True

    # --- the end

    def _forget(self, listener: Listener) -> None:
        if self._listeners.pop(listener.descriptor, None) is not None:
            self._poller.unregister(listener.descriptor)
            os.close(listener.descriptor)
            listener.sight.close()

    def _drop_line(self, line: _Line) -> None:
        if self._lines.pop(line.socket.fileno(), None) is not None:
            self._poller.unregister(line.socket)
            line.socket.close()

    def close_doors(self) -> None:
        """No further command can be launched; those that run are still served."""
        for door in self._doors.values():
            self._poller.unregister(door.socket)
            del self._door_of[door.socket.fileno()]
            door.socket.close()
            door.file.unlink(missing_ok=True)
        self._doors.clear()
        if self._own_directory is not None:
            self._own_directory.cleanup()
            self._own_directory = None

    def close(self) -> None:
        """Let everything go. Traced processes that still run get ENOSYS from now on."""
        self.close_doors()
        for line in list(self._lines.values()):
            self._drop_line(line)
        for listener in list(self._listeners.values()):
            self._forget(listener)
        with self._wake_lock:
            if self._wake >= 0:
                self._poller.unregister(self._wake)
                os.close(self._wake)
                self._wake = -1


@contextlib.contextmanager
def _opened_directory(directory: Path) -> Iterator[str]:
    """A short path for a directory, valid inside the block."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def launcher_argv(
    python: str, source_root: str, door: str, program: bytes, tag: str, argv: Sequence[str]
) -> list[str]:
    """The command line that starts ``argv`` with the filter on."""
    from binascii import b2a_base64

    from mutiny.syscalls.launcher import BOOT

    number = str(tables.this_machine().seccomp)
    encoded = b2a_base64(program, newline=False).decode()
    return [python, "-IS", "-c", BOOT, source_root, door, number, encoded, tag, *argv]
