"""Reading /proc and killing process trees with nothing but built-in modules.

Insight: the in-box agent starts once per box and pays for every import, so what it needs of /proc
lives here, without dataclasses, pathlib or typing; the comfortable form for everybody else is
``system.processes``.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False  # the real one would import typing, which costs more than this whole module
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal  # the public module makes enumerations of its numbers, at a price


def read_stat(pid: int) -> tuple[list[str], str] | None:
    """Return the fields of /proc/PID/stat after the name, and the name; None when there is no
    process.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "backslashreplace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return split_stat(text)


def split_stat(text: str) -> tuple[list[str], str]:
    """Split a line of /proc/PID/stat into the fields after the name, and the name.

    The name stands in parentheses and may itself hold spaces and parentheses, so that the fields
    are counted from the LAST closing one: index 0 is the state, 1 the parent, 3 the session, 19 the
    start time.
    """
    closing = text.rindex(")")
    return text[closing + 1 :].split(), text[text.index("(") + 1 : closing]


def start_ticks(pid: int) -> int | None:
    """Return when a process started (clock ticks since boot); None when it is gone or a zombie."""
    found = read_stat(pid)
    return None if found is None or found[0][0] in "ZXx" else int(found[0][19])


def children_of(pid: int) -> list[int]:
    """Return the children of a process, from all of its threads (a child belongs to the thread that
    forked).
    """
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it ended while we looked; its children have another parent now
    return found


def descendants_of(pid: int) -> list[int]:
    """Return all processes below ``pid`` as they are now (without ``pid`` itself)."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children_of(waiting.pop())
        found += below
        waiting += below
    return found


def has_tag(pid: int, box_id: str) -> bool:
    """Say whether a process carries this box's tag in the environment it was started with."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return b"MUTINY_BOX=" + box_id.encode() in file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False  # gone, or not a process of this user: then it is not of this box


def environment_has(pid: int, *names: bytes) -> list[bool]:
    """Say for each name whether a process was started with a variable of that name."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            given = {entry.partition(b"=")[0] for entry in file.read().split(b"\0")}
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        given = set()
    return [name in given for name in names]


def open_descriptors(pid: int) -> int | None:
    """How many descriptors a process has open; None when nobody may look."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def tagged_with(box_id: str) -> list[int]:
    """Return all processes that carry this box's tag."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return [pid for pid in pids if has_tag(pid, box_id)]


def kill_by_handle(pid: int, belongs: Callable[[int], bool]) -> bool:
    """Send SIGKILL to ``pid`` if it still belongs to us, through a pidfd so that no stranger is
    hit.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # Checked after the handle is open: from here on the pid cannot come to mean another
        # process.
        if not belongs(pid):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def kill_descendants(root: int, deadline: float, reap: Callable[[], None]) -> list[int]:
    """Kill everything below ``root`` (a subreaper) until nothing lives there; return survivors.

    A process that forks and ends all the time slips through single passes, but a pass takes well
    under a millisecond and orphans come back to ``root``, so that a few passes catch it. Only a
    look that cannot have missed anything ends the hunt: ``root`` has no child at all, or it has the
    same dead ones as in the look before (a process that moved in between would have left a new
    one).
    """
    before: list[int] | None = None
    while True:
        reap()
        found = descendants_of(root)
        living = [pid for pid in found if start_ticks(pid) is not None]
        if not found or (not living and found == before) or time.monotonic() > deadline:
            return living
        before = found
        known = {root, *living}

        def belongs(pid: int, known: set[int] = known) -> bool:
            found = read_stat(pid)
            return found is not None and int(found[0][1]) in known

        for pid in living:
            kill_by_handle(pid, belongs)


EXEC_LOOKS = 200
EXEC_PAUSE_S = 0.001


def process_row(pid: int) -> dict[str, Any] | None:
    """Describe one process; None when it has ended while we looked.

    In the middle of exec a process has no arguments, and its parent may go on before that is over: who
    looks then would not recognise it. So an empty list is looked at again for a moment.
    """
    for look in range(EXEC_LOOKS):
        found = read_stat(pid)
        if found is None:
            return None
        fields, name = found
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                argv = file.read().decode("utf-8", "backslashreplace").split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError):
            return None
        if argv or fields[0] in "ZXTt" or look + 1 == EXEC_LOOKS:
            break
        time.sleep(EXEC_PAUSE_S)
    return {
        "pid": pid,
        "ppid": int(fields[1]),
        "start": int(fields[19]),
        "state": fields[0],
        "name": name,
        "cpu": int(fields[11]) + int(fields[12]),
        "argv": argv,
        "sid": int(fields[3]),
        "tty": int(fields[4]) != 0,
    }
