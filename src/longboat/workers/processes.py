"""Who is alive: identity, death and termination of processes.

A process number alone proves nothing, it may have been given to somebody else. An identity here is
always number **plus start time**, and everything is killed through that pair.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import NamedTuple

from longboat.planting import planted


class Identity(NamedTuple):
    """One process for ever: number and start time in clock ticks since boot."""

    pid: int
    start: int


class _Stat(NamedTuple):
    state: str
    session: int
    start: int


def _read_stat(pid: int) -> _Stat | None:
    """The needed fields of /proc/PID/stat, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            raw = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name may hold spaces and brackets, so fields count from the last bracket.
    fields = raw[raw.rindex(b")") + 2 :].split()
    return _Stat(fields[0].decode(), int(fields[3]), int(fields[19]))


def identify(pid: int) -> Identity | None:
    """The identity of a live process, or None when it is gone or a zombie."""
    stat = _read_stat(pid)
    if stat is None or stat.state in "ZX":
        return None
    return Identity(pid, stat.start)


def is_alive(identity: Identity) -> bool:
    """True while exactly this process lives (a zombie is dead, a stopped process lives)."""
    return identify(identity.pid) == identity


def state_letter(pid: int) -> str:
    """The kernel's state letter of a process (``T`` = stopped), or ``?`` when it is gone."""
    stat = _read_stat(pid)
    return stat.state if stat else "?"


def all_pids() -> list[int]:
    """Every process number that is in use now."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def members(session: int, spawn: str) -> list[Identity]:
    """Live processes of a terminal session, or that carry this spawn mark in their environment.

    The mark catches children that made a session of their own to outlive their agent.
    """
    mark = b"LONGBOAT_SPAWN=" + spawn.encode()
    if planted("daemon-taken-for-agent"):
        mark = b"LONGBOAT_HOME=" + os.environ.get("LONGBOAT_HOME", "").encode()
    if planted("only-the-session-is-ended"):
        spawn = ""
    found = []
    for pid in all_pids():
        stat = _read_stat(pid)
        if stat is None or stat.state in "ZX" or pid == os.getpid():
            continue
        if stat.session == session or (spawn and _carries(pid, mark)):
            found.append(Identity(pid, stat.start))
    return found


def marked_with_home(home: str, known_spawns: set[str]) -> list[Identity]:
    """Live processes that were started for this home by a spawn that nobody knows (any more)."""
    found = []
    for pid in all_pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = dict(part.partition(b"=")[::2] for part in file.read().split(b"\0"))
        except OSError:
            continue  # another user's process, or it just ended
        spawn = variables.get(b"LONGBOAT_SPAWN", b"").decode("utf-8", "replace")
        if variables.get(b"LONGBOAT_HOME") != home.encode() or not spawn:
            continue
        stat = _read_stat(pid)
        if stat is not None and stat.state not in "ZX" and spawn not in known_spawns:
            found.append(Identity(pid, stat.start))
    return found


def carrying(variables: set[bytes]) -> list[Identity]:
    """Live processes, but not this one, with all of these variables (`NAME=value`) in their environment."""
    found = []
    for pid in all_pids():
        if pid == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                present = set(file.read().split(b"\0"))
        except OSError:
            continue  # another user's process, or it just ended
        identity = identify(pid) if variables <= present else None
        if identity is not None:
            found.append(identity)
    return found


def _carries(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # another user's process, or it just ended: not one of ours


def send(identity: Identity, number: int) -> bool:
    """Signal exactly this process; False when it is already gone."""
    try:
        handle = os.pidfd_open(identity.pid)
    except (ProcessLookupError, OSError):
        return _send_without_handle(identity, number)
    try:
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _send_without_handle(identity: Identity, number: int) -> bool:
    """For kernels and boxes without pidfd: check the identity, then signal at once."""
    if not is_alive(identity):
        return False
    try:
        os.kill(identity.pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_dead(identities: list[Identity], timeout_s: float) -> list[Identity]:
    """Wait until all are dead or the deadline; returns who still lives."""
    deadline = time.monotonic() + timeout_s
    living = [one for one in identities if is_alive(one)]
    while living and time.monotonic() < deadline:
        _sleep_until_death(living, min(0.05, deadline - time.monotonic()))
        living = [one for one in living if is_alive(one)]
    return living


def _sleep_until_death(living: list[Identity], limit_s: float) -> None:
    """Sleep at most ``limit_s``, less when one of them dies earlier."""
    poller = select.poll()
    handles = []
    for one in living:
        try:
            handle = os.pidfd_open(one.pid)
        except OSError:
            continue
        handles.append(handle)
        poller.register(handle, select.POLLIN)
    try:
        poller.poll(max(1.0, limit_s * 1000))
    finally:
        for handle in handles:
            os.close(handle)


def terminate(session: int, spawn: str, *, grace_s: float) -> list[Identity]:
    """End every process of a terminal session: politely, then surely. Returns survivors (none)."""
    first = members(session, spawn)
    for one in first:
        send(one, signal.SIGTERM)
        send(one, signal.SIGHUP)
        send(one, signal.SIGCONT)  # a stopped process cannot obey before it runs
    wait_dead(first, grace_s)
    deadline = time.monotonic() + 5.0
    while time.monotonic() < deadline:
        # Again from the start: a dying process may have left new children.
        living = members(session, spawn)
        if not living:
            return []
        for one in living:
            send(one, signal.SIGKILL)
        wait_dead(living, 0.5)
    return members(session, spawn)
