"""Who called: a stable name for each process that appears in a record.

Insight: a process is not its pid, and not even pid and start time, because exec makes another
program of it; the address of its arguments changes with each exec. These three together are looked
up in one read of /proc/PID/stat, so that the slow questions are asked once per program.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from mutiny.syscalls.calls import label_of
from mutiny.syscalls.memory import Gone
from mutiny.system.procfs import split_stat

_START, _ARGUMENTS = 19, 45
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
        self._known: dict[tuple[int, str, str], Who] = {}
        self._labels: dict[tuple[int, int, str], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, task: int) -> Who:
        """Name the process of a thread; raise Gone when it has ended."""
        fields = split_stat(_read(f"/proc/{task}/stat"))[0]
        key = (task, fields[_START], fields[_ARGUMENTS])
        known = self._known.get(key)
        if known is None:
            if len(self._known) > _CACHE_LIMIT:
                self._known.clear()
            known = self._known[key] = self._look(task)
        return known

    def _look(self, task: int) -> Who:
        status = dict(
            line.split(":\t", 1)
            for line in _read(f"/proc/{task}/status").splitlines()
            if ":\t" in line
        )
        pid = int(status["Tgid"])
        fields = split_stat(_read(f"/proc/{pid}/stat"))[0]
        start = int(fields[_START])
        name = label_of(_read(f"/proc/{pid}/cmdline").split("\0")[:-1])
        # The same thread group under the same label is the same process, whichever thread calls.
        key = (pid, start, f"{name}@{fields[_ARGUMENTS]}")
        if key not in self._labels:
            self._counts[name] = self._counts.get(name, 0) + 1
            self._labels[key] = f"{name}#{self._counts[name]}"
        numbers = frozenset({*status.get("NSpid", "").split(), *status.get("NStgid", "").split()})
        return Who(pid, start, self._labels[key], numbers)


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(descriptor, 65536).decode("utf-8", "backslashreplace")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Gone(f"{path}: {error.strerror}") from error
