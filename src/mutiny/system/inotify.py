"""Wait for changes of files without polling: Linux inotify through ctypes.

Insight: a wait that wakes at the change itself is both faster and calmer than any poll interval.
Where the kernel refuses a watch (no inotify, watch limit reached) the same object compares
directory listings every 50 ms, so that callers need only one way of waiting. An event says "look
again", never "this is the state".
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mutiny.system.files import BoxPath

POLL_INTERVAL_S = 0.05

_MASKS = {
    0x0000_0002: "modify",
    0x0000_0020: "open",
    0x0000_0004: "attributes",
    0x0000_0008: "close_write",
    0x0000_0040: "moved_from",
    0x0000_0080: "moved_to",
    0x0000_0100: "create",
    0x0000_0200: "delete",
    0x0000_0400: "delete_self",
    0x0000_0800: "move_self",
    0x0000_2000: "unmount",
    0x0000_4000: "overflow",
    0x0000_8000: "ignored",
    0x4000_0000: "directory",
}
_WATCHED = 0x0FCE  # every change of content, name or attributes; no reads and no opens
_OPENED = 0x0020
_OVERFLOW = 0x4000
_NONBLOCK_AND_CLOEXEC = os.O_NONBLOCK | os.O_CLOEXEC
_HEADER = struct.Struct("iIII")


Watched = Path | BoxPath


@dataclass(frozen=True, slots=True)
class Event:
    """One change below (or of) a watched path."""

    path: Watched
    """The watched path, as it was given."""
    name: str
    """The entry in it that changed; empty when the watched path itself changed."""
    masks: tuple[str, ...]
    """What happened: create, modify, close_write, moved_to, delete, ... or ``overflow`` (events
    were lost).
    """


class DirectoryWatch:
    """Watch directories (or single files) from the moment of creation until closed.

    Changes between creation and ``wait`` are kept, so "create the watch, look, then wait" has no
    gap. With ``opens`` it is an event, too, that somebody opens a file; polling cannot see that.
    """

    def __init__(
        self, paths: Iterable[Watched], *, opens: bool = False, use_inotify: bool = True
    ) -> None:
        self._paths = tuple(paths)
        self._watched = _WATCHED | (_OPENED if opens else 0)
        for path in self._paths:
            if not path.exists():
                raise FileNotFoundError(errno.ENOENT, "cannot watch what does not exist", str(path))
        self._descriptor = -1
        self._watches: dict[int, Watched] = {}
        self._listings: dict[Watched, dict[str, tuple[int, int, int]]] = {}
        self.polling_because: str | None = None if use_inotify else "asked to poll"
        if use_inotify:
            try:
                self._open_inotify()
            except OSError as error:
                self.close()
                self.polling_because = f"inotify refused: {error}"
        if self.polling_because is not None:
            self._listings = {path: _listing(path) for path in self._paths}

    def _open_inotify(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            initialise, add_watch = libc.inotify_init1, libc.inotify_add_watch
        except AttributeError as missing:  # another operating system
            raise OSError(errno.ENOSYS, "no inotify in this C library") from missing
        self._descriptor = initialise(_NONBLOCK_AND_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        for path in self._paths:
            with _named(path) as name:
                watch = add_watch(self._descriptor, os.fsencode(name), self._watched)
                number = ctypes.get_errno()
            if watch < 0:
                raise OSError(number, os.strerror(number), str(path))
            self._watches[watch] = path

    def wait(self, timeout_s: float) -> list[Event]:
        """Return the changes since the last call; wait for the first one at most ``timeout_s``.

        An empty list means that the time is over and nothing changed.
        """
        if self.polling_because is not None:
            return self._wait_polling(timeout_s)
        if self._descriptor < 0:
            raise ValueError("this watch is closed")
        poller = select.poll()
        poller.register(self._descriptor, select.POLLIN)
        if not poller.poll(max(0, round(timeout_s * 1000))):
            return []
        return self._read_events()

    def _read_events(self) -> list[Event]:
        try:
            data = os.read(self._descriptor, 65536)
        except BlockingIOError:
            return []
        events: list[Event] = []
        offset = 0
        while offset < len(data):
            watch, mask, _cookie, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
            offset += length
            masks = tuple(text for bit, text in _MASKS.items() if mask & bit)
            if mask & _OVERFLOW:  # the kernel dropped events: every watched path may have changed
                events.extend(Event(path, "", masks) for path in self._paths)
            elif watch in self._watches:
                events.append(Event(self._watches[watch], name, masks))
        return events

    def _wait_polling(self, timeout_s: float) -> list[Event]:
        deadline = time.monotonic() + timeout_s
        while True:
            events: list[Event] = []
            for path in self._paths:
                before, now = self._listings[path], _listing(path)
                events.extend(_differences(path, before, now))
                self._listings[path] = now
            remaining_s = deadline - time.monotonic()
            if events or remaining_s <= 0:
                return events
            time.sleep(min(POLL_INTERVAL_S, remaining_s))

    def close(self) -> None:
        """Stop watching. Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._watches.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _named(path: Watched) -> Iterator[str]:
    """A name for the kernel that leads nowhere else."""
    if not isinstance(path, BoxPath):
        yield str(path)
        return
    held = path.open_directory()
    try:
        yield f"/proc/self/fd/{held}"
    finally:
        os.close(held)


def _fingerprint(path: Watched) -> tuple[int, int, int] | None:
    try:
        status = path.stat() if isinstance(path, BoxPath) else path.lstat()
    except FileNotFoundError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _listing(path: Watched) -> dict[str, tuple[int, int, int]]:
    """Fingerprints of what is at ``path``: of its entries, or of itself (name "") when it is a
    file.
    """
    try:
        names = path.names() if isinstance(path, BoxPath) else os.listdir(path)  # noqa: PTH208
    except NotADirectoryError:
        found = _fingerprint(path)
        return {} if found is None else {"": found}
    except FileNotFoundError:
        return {}
    pairs = ((name, _fingerprint(path / name)) for name in names)
    return {name: found for name, found in pairs if found is not None}


def _differences(
    path: Watched,
    before: dict[str, tuple[int, int, int]],
    now: dict[str, tuple[int, int, int]],
) -> list[Event]:
    created = [Event(path, name, ("create",)) for name in sorted(now.keys() - before.keys())]
    deleted = [Event(path, name, ("delete",)) for name in sorted(before.keys() - now.keys())]
    changed = [
        Event(path, name, ("modify",))
        for name in sorted(now.keys() & before.keys())
        if now[name] != before[name]
    ]
    return created + deleted + changed
