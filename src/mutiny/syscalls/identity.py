"""Who called: a stable name for each process that appears in a record.

Insight: a process is not its pid, because pids are used again and exec makes another program of a
process. The kernel makes a new inode for /proc/PID with each new process, and exec is trapped; so
one ``stat`` tells whether what was learned before still holds, and the slow questions are asked
once per program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from mutiny.syscalls.calls import label_of
from mutiny.syscalls.memory import gone
from mutiny.system.procfs import split_stat

_START = 19
_CACHE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Who:
    """One program in one process."""

    pid: int
    start: int
    label: str
    numbers: frozenset[str]
    """Its pid in every pid namespace that it is in, as it may appear in names of files."""


class Identities:
    """The processes that were seen in one record, numbered by their first appearance."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Who] = {}
        self._labels: dict[tuple[int, int, int], str] = {}
        self._counts: dict[str, int] = {}
        self._executions: dict[int, int] = {}

    def of(self, task: int) -> Who:
        """Name the process of a thread; raise Gone when it has ended."""
        key = (task, _inode(task))
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _CACHE_LIMIT:
                self._known.clear()
            known = self._known[key] = self._look(task)
        return known

    def executes(self, task: int) -> None:
        """A thread is about to become another program, and with it its process."""
        pid = int(_status(task)["Tgid"])
        self._executions[pid] = self._executions.get(pid, 0) + 1
        self._known = {key: who for key, who in self._known.items() if who.pid != pid}

    def _look(self, task: int) -> Who:
        status = _status(task)
        pid = int(status["Tgid"])
        start = int(split_stat(_read(f"/proc/{pid}/stat"))[0][_START])
        name = label_of(_read(f"/proc/{pid}/cmdline").split("\0")[:-1])
        # The same program in the same process is one, whichever of its threads calls.
        key = (pid, start, self._executions.get(pid, 0))
        if key not in self._labels:
            self._counts[name] = self._counts.get(name, 0) + 1
            self._labels[key] = f"{name}#{self._counts[name]}"
        numbers = frozenset({*status.get("NSpid", "").split(), *status.get("NStgid", "").split()})
        return Who(pid, start, self._labels[key], numbers)


def _status(task: int) -> dict[str, str]:
    lines = _read(f"/proc/{task}/status").splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def _inode(task: int) -> int:
    try:
        return os.stat(f"/proc/{task}").st_ino  # noqa: PTH116 - for each counted call
    except OSError as error:
        raise gone(f"task {task}", error) from error


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 65536).decode("utf-8", "backslashreplace")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise gone(path, error) from error
