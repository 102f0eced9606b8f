"""Waiting for changes in a target's directories: at the change itself where the kernel tells of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from mutiny import stopping
from mutiny.system.files import BoxPath
from mutiny.system.inotify import DirectoryWatch, Event

LONGEST_S = 0.25
"""Some changes are in no file: a lease that runs out, a process that dies."""
SHORTEST_S = 0.02
"""Whoever writes all the time is not looked at all the time."""
BLIND_S = 0.05
"""Between two looks while there is no directory yet that could be watched."""
STILL_S = 1.0
"""Who has changed nothing for so long is not about to."""
RESTLESS_S = 15.0
"""Who still changes something so long after the answer does it for other reasons."""


class Changes:
    """Changes below some directories, which may not be there yet."""

    def __init__(
        self,
        places: Callable[[], Sequence[BoxPath]],
        note: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._places = places
        self._note = note
        self._watch: DirectoryWatch | None = None

    def wait(self, timeout_s: float) -> None:
        """Return when something changed, or when the time is over."""
        stopping.check()
        watch = self._watching()
        if watch is None:
            time.sleep(max(0.0, min(timeout_s, BLIND_S)))
            return
        began = time.monotonic()
        self._tell(watch.wait(min(timeout_s, LONGEST_S)))
        rest = min(timeout_s, SHORTEST_S) - (time.monotonic() - began)
        if rest > 0:
            time.sleep(rest)

    def catch_up(self) -> None:
        """Note what has happened up to now."""
        watch = self._watching()
        if watch is not None:
            self._tell(watch.wait(0))

    def forget(self) -> None:
        """Drop what has happened up to now: Mutiny itself did it."""
        watch = self._watching()
        while watch is not None and watch.wait(0):
            pass

    def _tell(self, events: Sequence[Event]) -> None:
        for event in events:
            self._note(event)

    def _watching(self) -> DirectoryWatch | None:
        if self._watch is None:
            places = self._places()
            if all(place.is_dir() for place in places):
                self._watch = DirectoryWatch(list(places))
        return self._watch

    def close(self) -> None:
        """Stop watching; the next wait begins anew."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


class Stirs:
    """Changes of a file and of those beside it that carry its name (copies, temporary files, the log of
    a database), counted one by one from now on. Locks and heartbeats are not counted. Whoever works for
    a command may begin so late after its answer.
    """

    def __init__(self, path: BoxPath, lag_s: float = 0.0) -> None:
        self._name = path.name
        self._lag_s = lag_s
        self._watch = DirectoryWatch([path.parent]) if path.parent.is_dir() else None
        self._answered = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.close()

    def answered(self) -> None:
        """The command is over; whoever works for it goes on."""
        self._answered.set()

    def wait(self, count: int) -> list[str]:
        """Return at the very change that makes it so many, or when nothing changes any more after the
        answer; with what changed. Who never comes to rest is not watched for ever.
        """
        seen: list[str] = []
        answered_at = quiet_since = time.monotonic()
        while self._watch is not None and len(seen) < count and not stopping.asked():
            fresh = [one for one in self._watch.wait(SHORTEST_S) if self._name in one.name]
            seen += [f"{' '.join(event.masks)} {event.name}".strip() for event in fresh]
            now = time.monotonic()
            if not self._answered.is_set():
                answered_at = quiet_since = now
            elif now - answered_at > self._lag_s + RESTLESS_S:
                break
            elif fresh:
                quiet_since = now
            elif now - quiet_since > STILL_S and now - answered_at > self._lag_s:
                break
        return seen
