"""All crash states of a command from a single run.

Insight: while a caller stands before call k, the directory IS the state that a crash at k would
leave, so that no second run is needed to see it. A state is not a copy of the directory but a list:
name, kind, and a reference to content that never changes once taken. Only files that changed since
the last look are read (those that the calls in between named, whatever their time stamp says, and
those whose stamp differs), so that thirty-five states of a repository cost little more than one.
"""

from __future__ import annotations

import hashlib
import os
import socket
import stat as modes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mutiny.syscalls.calls import Call
from mutiny.syscalls.listeners import DOOR_PREFIX
from mutiny.syscalls.memory import real
from mutiny.system.files import BoxPath, UnsafeFile

IN_MEMORY_BYTES = 1024 * 1024
"""Larger files are kept in the store directory."""
LARGEST_BYTES = 512 * 1024 * 1024
"""A larger one is not kept at all: that would take as much again, for every state that has another."""
_CHUNK_BYTES = 1024 * 1024

Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file at one moment. Never changed, hence shared by all states that have it."""

    data: bytes = b""
    kept_at: str | None = None
    digest: bytes = b""

    @classmethod
    def of(cls, data: bytes) -> Content:
        """Content that is kept in memory."""
        return cls(data, None, hashlib.blake2b(data, digest_size=16).digest())

    def write_to(self, path: str) -> None:
        """Make a new file with these bytes; nothing is shared with the store."""
        with open(path, "xb") as file:
            if self.kept_at is None:
                file.write(self.data)
                return
            with open(self.kept_at, "rb") as kept:
                while chunk := kept.read(_CHUNK_BYTES):
                    file.write(chunk)

    def read(self) -> bytes:
        """All bytes."""
        return self.data if self.kept_at is None else Path(self.kept_at).read_bytes()


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a state."""

    mode: int
    """Kind and permissions as ``stat`` gives them."""
    content: Content | None = None
    """For files."""
    target: str | None = None
    """For symbolic links."""
    modified_ns: int = 0
    link_group: int = 0
    """The same number other than 0: names of one file."""


@dataclass(frozen=True, slots=True)
class State:
    """One crash state: what would be found if everything stopped before ``before``."""

    before: Call | None
    """None: the state at the end."""
    entries: Mapping[str, Entry]
    """By path relative to the directory."""

    @property
    def fingerprint(self) -> str:
        """Equal for states with the same names, kinds, permissions and contents."""
        total = hashlib.blake2b(digest_size=16)
        for name in sorted(self.entries):
            entry = self.entries[name]
            content = entry.content.digest if entry.content is not None else b""
            total.update(f"{name}\0{entry.mode:o}\0{entry.target}\0".encode(errors="replace"))
            total.update(content)
        return total.hexdigest()

    def materialise(self, directory: Path) -> Path:
        """Write the state to an empty or missing directory; return it."""
        directory.mkdir(parents=True, exist_ok=True)
        root = str(directory)
        made: dict[int, str] = {}
        for name in sorted(self.entries):  # parents come before their children
            entry = self.entries[name]
            above = name.rpartition("/")[0]
            if above and not modes.S_ISDIR(self.entries[above].mode):
                continue  # it has become a link while somebody looked: nothing is written through it
            path = f"{root}/{name}"
            earlier = made.get(entry.link_group) if entry.link_group else None
            if earlier is not None:
                os.link(earlier, path)
                continue
            _make(path, entry)
            if entry.link_group:
                made[entry.link_group] = path
        for name in sorted(self.entries, reverse=True):  # a directory's time last
            entry = self.entries[name]
            if modes.S_ISDIR(entry.mode):
                os.chmod(f"{root}/{name}", modes.S_IMODE(entry.mode))  # noqa: PTH101
        return directory


def _make(path: str, entry: Entry) -> None:
    if modes.S_ISDIR(entry.mode):
        os.mkdir(path)  # noqa: PTH102
    elif entry.target is not None:
        os.symlink(entry.target, path)  # noqa: PTH211
    elif entry.content is not None:
        entry.content.write_to(path)
        os.chmod(path, modes.S_IMODE(entry.mode))  # noqa: PTH101
        if entry.modified_ns:
            os.utime(path, ns=(entry.modified_ns, entry.modified_ns))
    elif modes.S_ISFIFO(entry.mode):
        os.mkfifo(path, modes.S_IMODE(entry.mode))
    elif modes.S_ISSOCK(entry.mode):
        _stale_socket(path)


def _stale_socket(path: str) -> None:
    """A socket file without a listener, as a crash leaves it."""
    parent, _, name = path.rpartition("/")
    directory = os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{directory}/{name}")
    finally:
        os.close(directory)


class Snapshots:
    """Takes the states of one directory; give ``capture`` to ``BeforeEach``.

    ``store`` is for large files and must lie outside of the directory. ``leave_out`` names entries
    of the top level that are not part of the state. With ``thorough=False`` only what the calls
    named is looked at again: for large trees whose every change is trapped.
    """

    def __init__(
        self,
        directory: Path,
        store: Path,
        *,
        leave_out: frozenset[str] = frozenset(),
        thorough: bool = True,
    ) -> None:
        self._root = real(directory)
        self._store = store
        self._leave_out = leave_out
        self._thorough = thorough
        self._stamps: dict[str, Stamp] = {}
        self._entries: dict[str, Entry] = {}
        self._touched: set[str] = set()
        self._kept = 0
        self._changed = True
        self._shared: dict[str, Entry] = {}
        self.states: list[State] = []
        self._look(everything=True)

    def capture(self, call: Call) -> None:
        """Keep the state before a call."""
        self._look(everything=self._thorough)
        if self._changed or not self.states:
            self._shared = dict(self._entries)
            self._changed = False
        self.states.append(State(call, self._shared))
        # What this call changes has to be looked at next time, even if no stamp shows it.
        prefix = len(self._root) + 1
        below = (file for file in call.files if file.startswith(self._root + "/"))
        self._touched = {file[prefix:] for file in below}

    def finish(self) -> State:
        """Return the state at the end (not in ``states``)."""
        self._look(everything=True)
        return State(None, dict(self._entries))

    # --- looking

    def _look(self, *, everything: bool) -> None:
        if everything:
            found = dict(self._scan("", self._root))
            for name in self._entries.keys() - found.keys():
                self._forget(name)
        else:
            found = {}
            for name in self._touched:
                found |= self._look_at(name)
        for name, status in found.items():
            stamp = _stamp(status)
            if name in self._touched or self._stamps.get(name) != stamp:
                self._take(name, status, stamp)

    def _scan(self, prefix: str, directory: str) -> Iterator[tuple[str, os.stat_result]]:
        try:
            entries = list(os.scandir(directory))
        except (FileNotFoundError, NotADirectoryError):
            return  # gone while we looked: somebody who is not traced
        for entry in entries:
            left_out = entry.name in self._leave_out or entry.name.startswith(DOOR_PREFIX)
            if not prefix and left_out:
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            name = prefix + entry.name
            yield name, status
            if modes.S_ISDIR(status.st_mode):
                yield from self._scan(f"{name}/", entry.path)

    def _look_at(self, name: str) -> dict[str, os.stat_result]:
        """One name and, if it has become a directory or ceased to be one, all below."""
        path = f"{self._root}/{name}"
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            status = None
        was = self._entries.get(name)
        was_directory = was is not None and modes.S_ISDIR(was.mode)
        if status is None or was_directory != modes.S_ISDIR(status.st_mode):
            for known in [each for each in self._entries if each.startswith(f"{name}/")]:
                self._forget(known)
        if status is None:
            self._forget(name)
            return {}
        if modes.S_ISDIR(status.st_mode) and not was_directory:
            return {name: status, **dict(self._scan(f"{name}/", path))}
        return {name: status}

    def _forget(self, name: str) -> None:
        self._changed = True
        self._entries.pop(name, None)
        self._stamps.pop(name, None)

    def _take(self, name: str, status: os.stat_result, stamp: Stamp) -> None:
        self._changed = True
        path = f"{self._root}/{name}"
        group = status.st_ino if status.st_nlink > 1 and modes.S_ISREG(status.st_mode) else 0
        content, target = None, None
        try:
            if modes.S_ISREG(status.st_mode):
                content = self._content(BoxPath(self._root) / name, status.st_size)
            elif modes.S_ISLNK(status.st_mode):
                target = os.readlink(path)  # noqa: PTH115
        except (FileNotFoundError, NotADirectoryError):
            self._forget(name)
            return
        self._entries[name] = Entry(status.st_mode, content, target, status.st_mtime_ns, group)
        self._stamps[name] = stamp

    def _content(self, path: BoxPath, size: int) -> Content:
        if size > LARGEST_BYTES:
            raise UnsafeFile(f"{path} is too large to be kept: {size} bytes")
        with open(path.open_regular(os.O_RDONLY), "rb", buffering=0) as file:
            if size <= IN_MEMORY_BYTES:
                return Content.of(file.read(IN_MEMORY_BYTES))
            digest = hashlib.blake2b(digest_size=16)
            self._store.mkdir(parents=True, exist_ok=True)
            self._kept += 1
            kept = self._store / f"content-{self._kept}"
            with open(kept, "xb") as copy:
                while chunk := file.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    copy.write(chunk)
            return Content(b"", str(kept), digest.digest())


def _stamp(status: os.stat_result) -> Stamp:
    return (
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_nlink,
    )
