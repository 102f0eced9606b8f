"""A lock on a file of a box that somebody holds while a command runs.

Insight: how long it is held must count from the moment that somebody comes upon it. Counted from its
beginning, a command that starts late because the machine is busy finds it gone again.
"""

from __future__ import annotations

import threading
from typing import Literal

from mutiny.box.box import Box
from mutiny.faults.base import Fault
from mutiny.faults.holders import LIMIT_S, Holder, python_argv
from mutiny.model.result import OperationResult
from mutiny.system.inotify import DirectoryWatch

LockKind = Literal["flock", "posix", "sqlite"]
OPEN_ALREADY = "open already"
"""Said of a file that a process has open: nobody will be seen to open it."""

_HOLDER = f"""
import fcntl, os, signal, sys
kind, path, purpose, holder = sys.argv[1:5]
wait = 0 if purpose == "try" else 5  # whoever has it just now may finish

def is_open(pid):
    wanted = os.stat(path)
    for name in os.listdir("/proc/" + pid + "/fd"):
        found = os.stat("/proc/" + pid + "/fd/" + name)
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False

def is_open_elsewhere():
    for pid in os.listdir("/proc"):
        try:
            if pid.isdigit() and pid not in (holder, str(os.getpid())) and is_open(pid):
                return True
        except OSError:
            pass  # it ended, or nobody may look
    return False

try:
    if kind == "sqlite":
        import sqlite3
        held = sqlite3.connect(path, timeout=wait, isolation_level=None)
        held.execute("BEGIN EXCLUSIVE")
    else:
        held = open(path, "r+b")
        take = fcntl.flock if kind == "flock" else fcntl.lockf
        signal.signal(signal.SIGALRM, lambda *_: sys.exit("refused: it is not given back"))
        signal.alarm(wait)
        take(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        signal.alarm(0)
except Exception as error:
    print("refused:", error, flush=True)
    if is_open_elsewhere():
        print("{OPEN_ALREADY}", flush=True)
    sys.exit(3)
print("held", flush=True)
if purpose == "hold":
    while True:
        signal.pause()
"""


class HoldLock(Fault):
    """A lock on a file that somebody else in the box holds and does not give back."""

    def __init__(self, box: Box, inside: str, kind: LockKind = "flock") -> None:
        self._box = box
        self._inside = inside
        self._kind = kind
        self._holder = Holder(box)
        self._watch: DirectoryWatch | None = None
        self.technique = f"{kind} lock held by a process of the box"

    def _argv(self, purpose: str) -> list[str]:
        return python_argv(_HOLDER, self._kind, self._inside, purpose, str(self._holder.pid))

    def inject(self) -> OperationResult:
        """Start the holder, then let a second process try to take the lock."""
        said = self._holder.take(self._argv("hold"))
        if said != "held":
            return self.not_done(f"the lock on {self._inside} could not be taken: {said}")
        second = self._box.run(self._argv("try"), timeout_s=LIMIT_S)
        if second.exit_code != 3:
            return self.not_done(f"{self._inside} can be locked twice: {second.stdout.strip()}")
        refused, *more = second.stdout.splitlines() or [""]
        if OPEN_ALREADY not in more:
            self._watch = DirectoryWatch([self._box.outside(self._inside).parent], opens=True)
        return self.done(
            f"{self._inside}: {self._kind} lock held by pid {self._holder.pid}, "
            f"others get {refused!r}"
        )

    def wait_until_met(self, over: threading.Event) -> None:
        """Somebody opens the file. At once where that cannot be seen."""
        name = self._box.outside(self._inside).name
        while self._watch is not None and not self._watch.polling_because and not over.is_set():
            events = self._watch.wait(0.05)
            if any(event.name == name and "open" in event.masks for event in events):
                return

    def heal(self) -> OperationResult:
        """End the holder, which gives the lock back."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        failed = self._holder.let_go()
        return self.not_done(failed) if failed else self.done(f"{self._inside}: lock given back")
