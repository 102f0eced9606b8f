"""Looking into another process: its memory, its directories, its descriptors.

Insight: a traced process is stopped inside the call while we look, so nothing of ITS OWN thread can
change under us; only its death can. So every look that fails says "gone" and nothing else, and the
caller lets the call go. Paths are resolved as the kernel would resolve them for that process (its
root, its links), then translated to host paths by the names under which the box's mounts are known.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from mutiny.box.box import Box
from mutiny.syscalls import tables

_PAGE = 4096
_PATH_LIMIT = 4096
_RESOLVE_IN_ROOT = 0x10
_HOW = struct.Struct("=QQQ")
_IOVEC = struct.Struct("=QQ")
_DELETED = " (deleted)"
_AF_UNIX = 1
_FAMILY = struct.Struct("=H")
_SOCKET_PATH_LIMIT = 108
_REMEMBERED_S = 0.05
_PARENTS_LIMIT = 1024

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_read_other = _libc.process_vm_readv
_HOW_FOLLOW = ctypes.create_string_buffer(
    _HOW.pack(os.O_PATH | os.O_CLOEXEC, 0, _RESOLVE_IN_ROOT), _HOW.size
)


class Gone(Exception):
    """The process ended, or what it pointed at is not there; the call cannot be understood."""


class Denied(Gone):
    """The process is there, but the kernel does not let us look into it."""


def read_memory(task: int, address: int, length: int) -> bytes:
    """Read up to ``length`` bytes of a process; fewer when the rest is not mapped."""
    try:
        descriptor = os.open(f"/proc/{task}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, length, address)
        finally:
            os.close(descriptor)
    except (OSError, OverflowError) as error:
        raise gone(f"memory of task {task}", error) from error


class _Window(threading.local):
    """A buffer of one page for the fast way to read paths; each thread has its own."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(_PAGE)
        self.here = (ctypes.c_size_t * 2)(ctypes.addressof(self.buffer), _PAGE)
        self.there = (ctypes.c_size_t * 2)(0, 0)


_window = _Window()


def read_text(task: int, address: int) -> str:
    """Read a path that ends with a null byte; it may end just before an unmapped page."""
    first = _PAGE - (address & (_PAGE - 1))
    window = _window
    window.there[0], window.there[1] = address, first
    got = int(_read_other(task, window.here, 1, window.there, 1, 0))
    data = window.buffer.raw[:got] if got > 0 else read_memory(task, address, first)
    while b"\0" not in data:
        more = read_memory(task, address + len(data), _PAGE) if len(data) < _PATH_LIMIT else b""
        if not more:
            raise Gone(f"task {task} names no path at {address:#x}")
        data += more
    return os.fsdecode(data[: data.index(b"\0")])


def read_vectors(task: int, address: int, count: int) -> bytes:
    """Read the bytes that ``writev`` and its like would write."""
    table = read_memory(task, address, _IOVEC.size * min(count, 1024))
    return b"".join(
        read_memory(task, base, length) for base, length in _IOVEC.iter_unpack(table) if length
    )


def read_link(path: str) -> str:
    """Follow one of the kernel's own links."""
    try:
        return os.readlink(path)  # noqa: PTH115 - called for each trapped call
    except OSError as error:
        raise gone(path, error) from error


def take_descriptor(process: int, descriptor: int) -> int:
    """Get a copy of a descriptor of another process, sharing its position. The caller closes it."""
    try:
        handle = os.pidfd_open(process)
    except OSError as error:
        raise gone(f"process {process}", error) from error
    try:
        found = int(_syscall(tables.PIDFD_GETFD, handle, descriptor, 0))
        if found < 0:
            number = ctypes.get_errno()
            raise Gone(f"descriptor {descriptor} of {process}: {os.strerror(number)}")
        os.set_inheritable(found, False)
        return found
    finally:
        os.close(handle)


def gone(what: str, error: BaseException) -> Gone:
    """The right kind of failure for an error of the kernel."""
    if isinstance(error, PermissionError):
        return Denied(f"{what}: {error}")
    return Gone(f"{what}: {error}")


class PathMap:
    """From paths as a traced process sees them to host paths."""

    def __init__(self, prefixes: Iterable[tuple[str, str]] = ()) -> None:
        self._prefixes = tuple(sorted(prefixes, key=lambda pair: -len(pair[0])))

    @classmethod
    def of_box(cls, box: Box) -> PathMap:
        """The translation for the processes of a box."""
        prefixes: list[tuple[str, str]] = []
        for inside in (box.inside_root, "/tmp", "/var/tmp"):
            try:
                prefixes.append((inside, str(box.outside(inside).host)))
            except ValueError:  # the box shares this directory with the host
                continue
        return cls(prefixes)

    def to_host(self, path: str) -> str:
        """Translate an absolute path; one that no mount of the box holds stays as it is."""
        for inside, outside in self._prefixes:
            if path.startswith(inside) and path[len(inside) : len(inside) + 1] in ("", "/"):
                return outside + path[len(inside) :]
        return path


class Sight:
    """How the processes behind one listener see the file system."""

    def __init__(self, task: int, paths: PathMap) -> None:
        self._paths = paths
        self._root: int | None = None
        self._parents: dict[str, tuple[str, float]] = {}
        try:
            self._root = os.open(f"/proc/{task}/root", os.O_PATH | os.O_CLOEXEC)
        except OSError:  # it has already ended: then there will be no call to resolve
            self._root = None

    def close(self) -> None:
        """Let the root go."""
        if self._root is not None:
            os.close(self._root)
            self._root = None

    def of_argument(
        self, task: int, argument: tables.FileArgument, arguments: tuple[int, ...], no_follow: bool
    ) -> str | None:
        """Return the host path that an argument of a call means; None when it is not a file."""
        if isinstance(argument, tables.DescriptorArgument):
            return self.of_descriptor(task, _signed(arguments[argument.descriptor]))
        if isinstance(argument, tables.SocketArgument):
            return self._of_socket(task, arguments[argument.address])
        text = read_text(task, arguments[argument.path])
        directory = tables.AT_FDCWD
        if argument.directory is not None:
            directory = _signed(arguments[argument.directory])
        if not text:  # AT_EMPTY_PATH: the descriptor itself is meant
            return self.of_descriptor(task, directory)
        return self.of_path(task, directory, text, follow=argument.follow and not no_follow)

    def of_descriptor(self, task: int, descriptor: int) -> str | None:
        """Return the host path of an open file; None for pipes, sockets and the like."""
        found = read_link(f"/proc/{task}/fd/{descriptor}")
        if not found.startswith("/"):
            return None
        return self._paths.to_host(found.removesuffix(_DELETED))

    def of_path(self, task: int, directory: int, text: str, *, follow: bool) -> str:
        """Resolve a path with the root and the links that the process sees."""
        if not text.startswith("/"):
            place = "cwd" if directory == tables.AT_FDCWD else f"fd/{directory}"
            text = f"{read_link(f'/proc/{task}/{place}')}/{text}"
        parent, _, name = text.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            return self._paths.to_host(self._resolve(text) or os.path.normpath(text))
        directory_found = self._parent(parent or "/")
        if directory_found is None:  # no such directory: the call will fail, its name is all
            return self._paths.to_host(os.path.normpath(text))
        path = f"{directory_found}/{name}"
        if follow and _is_link(path):
            found = self._resolve(text)
            return path if found is None else self._paths.to_host(found)
        return path

    def names_changed(self) -> None:
        """A link or a directory got another name: what was learned about parents may be wrong."""
        self._parents.clear()

    def _parent(self, directory: str) -> str | None:
        """The host path of a directory, remembered for a moment: calls come in bursts."""
        now = time.monotonic()
        known = self._parents.get(directory)
        if known is not None and known[1] > now:
            return known[0]
        found = self._resolve(directory)
        if found is None:
            return None
        if len(self._parents) > _PARENTS_LIMIT:
            self._parents.clear()
        path = self._paths.to_host(found).rstrip("/")
        self._parents[directory] = (path, now + _REMEMBERED_S)
        return path

    def _of_socket(self, task: int, address: int) -> str | None:
        data = read_memory(task, address, _FAMILY.size + _SOCKET_PATH_LIMIT)
        family = _FAMILY.unpack_from(data)[0] if len(data) > _FAMILY.size else 0
        name = data[_FAMILY.size :].partition(b"\0")[0]
        if family != _AF_UNIX or not name:  # another family, or an abstract name
            return None
        return self.of_path(task, tables.AT_FDCWD, os.fsdecode(name), follow=False)

    def _resolve(self, path: str) -> str | None:
        """What an absolute path leads to, seen from the root of the traced processes."""
        if self._root is None:
            return None
        raw = os.fsencode(path)
        found = int(_syscall(tables.OPENAT2, self._root, raw, _HOW_FOLLOW, _HOW.size))
        if found < 0:
            return None
        try:
            return os.readlink(f"/proc/self/fd/{found}")  # noqa: PTH115 - for each trapped call
        finally:
            os.close(found)


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return False


def _signed(value: int) -> int:
    """A descriptor is a C int in a 64-bit argument."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def real(path: Path | str) -> str:
    """A root as it is compared: absolute, links followed."""
    return os.path.realpath(path)
