"""What the kernel says about one process, read straight from /proc.

Insight: a pid alone names nothing, because pids are used again. Pid plus start time (in clock ticks
since boot, field 22 of /proc/PID/stat) is the identity that the whole of Mutiny uses, and a zombie
counts as dead: it holds its pid but will never run again.
"""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from pathlib import Path

from mutiny.system import procfs

_PROC = Path("/proc")
_DEAD_STATES = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of /proc/PID/stat that identify and place a process."""

    pid: int
    name: str
    state: str
    parent_pid: int
    group_id: int
    session_id: int
    terminal: int
    """Device number of the controlling terminal; 0 means that there is none."""
    start: int
    """Start time in clock ticks since boot."""

    @property
    def is_dead(self) -> bool:
        """True for a zombie: the process has ended, only its entry is left."""
        return self.state in _DEAD_STATES


def read_stat(pid: int) -> ProcessStat | None:
    """Return what /proc says about ``pid`` now, or None when there is no such process."""
    found = procfs.read_stat(pid)
    if found is None:
        return None
    fields, name = found
    return ProcessStat(
        pid=pid,
        name=name,
        state=fields[0],
        parent_pid=int(fields[1]),
        group_id=int(fields[2]),
        session_id=int(fields[3]),
        terminal=int(fields[4]),
        start=int(fields[19]),
    )


def start_ticks(pid: int) -> int | None:
    """Return the start time of ``pid`` in clock ticks since boot, or None when there is no such
    process.
    """
    stat = read_stat(pid)
    return None if stat is None else stat.start


def is_alive(pid: int, start: int) -> bool:
    """Say whether exactly this process (pid and start time) still runs. A zombie does not."""
    stat = read_stat(pid)
    return stat is not None and stat.start == start and not stat.is_dead


def open_handle(pid: int, start: int) -> int | None:
    """Open a pidfd of exactly this process; None when it is gone. The caller closes it.

    The handle is opened first and the start time read afterwards: if the start time then matches,
    the process was alive the whole time and the handle cannot belong to another one.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if is_alive(pid, start):
        return handle
    os.close(handle)
    return None


def wait_gone(pid: int, start: int, timeout_s: float) -> bool:
    """Wait until exactly this process has ended; False when it still runs after ``timeout_s``."""
    handle = open_handle(pid, start)
    if handle is None:
        return True
    try:
        return handle_ended(handle, timeout_s)
    finally:
        os.close(handle)


def handle_ended(handle: int, timeout_s: float = 0.0) -> bool:
    """Wait until the process behind a pidfd has ended; False when it still runs after
    ``timeout_s``.
    """
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(max(0, round(timeout_s * 1000))))


def all_pids() -> list[int]:
    """Return the pids of all processes that this process can see."""
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208


def environment_of(pid: int) -> dict[str, str] | None:
    """Return the environment that a process started with; None when gone or not ours to read."""
    try:
        raw = (_PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    entries = (entry.partition(b"=") for entry in raw.split(b"\0") if entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in entries}
