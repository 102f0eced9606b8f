"""What the supervisor does to processes: signals, torn writes, the end of a tree without a box.

Insight: everything goes through handles (pidfd) that are opened while the victim stands still in
its call, and the call is asked for once more after the handle is open: so no stranger can be hit.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from mutiny.errors import MutinyError
from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call
from mutiny.syscalls.listeners import Trapped
from mutiny.syscalls.memory import Gone, read_memory, read_vectors, take_descriptor
from mutiny.system import procfs

TAG = "MUTINY_BOX"
"""The variable by which processes of one run are recognised where there is no box."""
KILL_LIMIT_S = 10.0
_TEAR_LIMIT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Torn:
    """How much of a write was done."""

    written: int
    asked: int


def error_name(number: int) -> str:
    """``ENOSPC`` for 28."""
    return errno.errorcode.get(number, str(number))


def send_signal(pid: int, number: int, still_there: Callable[[], bool]) -> bool:
    """Send a signal to a process that stands in a call; False when it has already ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if not still_there():
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def tear(trapped: Trapped, call: Call, *, lie: bool = False) -> Torn | None:
    """Write the first half of a write in the caller's place; None when there is nothing to tear.

    For a lie the position moves as far as the whole write would have moved it, so that later writes
    of the caller land where it thinks.
    """
    kind, arguments = trapped.kind, trapped.arguments
    if kind.data is None:
        return None
    address, length = (arguments[place] for place in kind.data)
    try:
        if kind.vector:
            data = read_vectors(trapped.task, address, length)
        else:
            data = read_memory(trapped.task, address, min(length, _TEAR_LIMIT_BYTES))
        if len(data) < 2:
            return None
        descriptor = take_descriptor(call.pid, arguments[0] & 0xFFFFFFFF)
    except Gone:
        return None
    half = data[: len(data) // 2]
    try:
        if kind.offset is not None and (position := _signed(arguments[kind.offset])) >= 0:
            return Torn(os.pwrite(descriptor, half, position), len(data))
        torn = Torn(os.write(descriptor, half), len(data))
        if lie and not fcntl.fcntl(descriptor, fcntl.F_GETFL) & tables.O_APPEND:
            os.lseek(descriptor, torn.asked - torn.written, os.SEEK_CUR)
        return torn
    finally:
        os.close(descriptor)


def _signed(value: int) -> int:
    """``pwritev2`` with position -1 means the current one."""
    return value - (1 << 64) if value >> 63 else value


def kill_tree(pid: int | None, tag: str) -> None:
    """Kill a process, its descendants and everything that carries its tag, until none is left.

    ``pid``: None when it has been waited for, because then the number may be somebody else's.
    """
    root = set() if pid is None else {pid}
    deadline = time.monotonic() + KILL_LIMIT_S
    empty_looks = 0
    while empty_looks < 2:
        found = root | set(procfs.tagged_with(tag))
        found |= {each for top in tuple(found) for each in procfs.descendants_of(top)}
        living = {each for each in found if procfs.start_ticks(each) is not None}
        empty_looks = 0 if living else empty_looks + 1

        def belongs(each: int, known: set[int] = living) -> bool:
            stat = procfs.read_stat(each)
            child = stat is not None and int(stat[0][1]) in root | known
            return child or each in root or procfs.has_tag(each, tag)

        for each in living:
            procfs.kill_by_handle(each, belongs)
        if living and time.monotonic() > deadline:
            raise MutinyError(f"still alive after SIGKILL: pids {sorted(living)}")
