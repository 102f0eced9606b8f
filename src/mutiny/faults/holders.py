"""A process of the box that takes something, says so in one line, and keeps it until it is ended."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from mutiny.box.box import Box
from mutiny.box.results import Spawned
from mutiny.system.files import BoxPath
from mutiny.system.inotify import DirectoryWatch

LIMIT_S = 10.0
"""So long it may take to get what it wants, and to be gone."""


def python_argv(program: str, *words: str) -> list[str]:
    """A small Python program as a command line that the box can run without anybody's packages."""
    return [str(Path(sys.executable).resolve()), "-IS", "-c", program, *words]


class Holder:
    """One such process; what it holds the kernel takes back when it dies."""

    def __init__(self, box: Box) -> None:
        self._box = box
        self._process: Spawned | None = None

    @property
    def pid(self) -> int | None:
        """Its number in the box."""
        return None if self._process is None else self._process.pid

    def take(self, argv: list[str]) -> str:
        """Start it; the line that it says."""
        with DirectoryWatch([self._box.files / "tmp"]) as watch:
            self._process = self._box.spawn(argv)
            return _first_line(self._box.outside(self._process.output), watch)

    def let_go(self) -> str | None:
        """End it, by handle. Why that did not work; None when it did."""
        if self._process is None:
            return "nothing is held"
        process, self._process = self._process, None
        self._box.signal(process.pid, process.start, 9)
        if not self._box.wait_gone(process.pid, process.start, LIMIT_S):
            return f"the process that holds it (pid {process.pid}) did not end"
        return None


def _first_line(path: BoxPath, watch: DirectoryWatch) -> str:
    """The first line of a file that is about to be written."""
    deadline = time.monotonic() + LIMIT_S
    while "\n" not in (text := path.read_text(errors="replace") if path.exists() else ""):
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            return text or "no answer in time"
        watch.wait(min(remaining_s, 0.5))
    return text.splitlines()[0]
