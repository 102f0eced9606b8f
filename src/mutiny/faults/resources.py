"""Too few resources: file descriptors, memory, processes, file size, processor time.

Insight: a limit is lowered on the running process from outside, and only its soft value, because a
hard limit that went down can never come up again without privileges. Children inherit what their
parent had at the moment of the fork, so healing follows the tree and not only the one process that
was hit.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mutiny.box.box import Box
from mutiny.faults import namespaces
from mutiny.faults.base import Fault, FaultUnavailable
from mutiny.faults.cgroups import Controlled, why_no_controller
from mutiny.model.result import OperationResult
from mutiny.system import procfs
from mutiny.system.processes import open_handle

Limited = Literal["descriptors", "memory", "file_size"]
_KINDS = {
    "descriptors": (resource.RLIMIT_NOFILE, "open files"),
    "memory": (resource.RLIMIT_AS, "bytes of address space"),
    "file_size": (resource.RLIMIT_FSIZE, "bytes in one file"),
    "processes": (resource.RLIMIT_NPROC, "processes of the user"),
}


@dataclass(frozen=True, slots=True)
class _Hit:
    """A process of the host, by handle; the number alone could come to mean another one."""

    pid: int
    start: int
    handle: int
    before: tuple[int, int]


class LowerLimit(Fault):
    """Let a running process, and what it starts from now on, have only `spare` more than it uses
    now.

    With `to` the limit is that value instead. Everything is healed by raising the soft limits
    again.
    """

    def __init__(
        self,
        box: Box,
        pid: int,
        start: int,
        what: Limited,
        *,
        spare: int = 0,
        to: int | None = None,
    ) -> None:
        self._box = box
        self._pid, self._start = pid, start
        self._what = what
        self._number, self._unit = _KINDS[what]
        self._spare = spare
        self._to = to
        self._hit: _Hit | None = None
        self._soft = 0
        self.technique = f"prlimit (soft limit on {what.replace('_', ' ')})"

    def inject(self) -> OperationResult:
        """Lower the soft limit and read it back from the kernel."""
        number = namespaces.host_pid(self._box, self._pid, self._start)
        handle = None if number is None else open_handle(number, self._start)
        if number is None or handle is None:
            return self.not_done(f"pid {self._pid} is gone")
        before = resource.prlimit(number, self._number)
        wanted = self._to if self._to is not None else self._used(number) + self._spare
        self._soft = wanted if before[1] == resource.RLIM_INFINITY else min(wanted, before[1])
        self._hit = _Hit(number, self._start, handle, before)
        if before[0] != resource.RLIM_INFINITY and self._soft >= before[0]:
            return self.not_done(f"pid {self._pid} has no more than that already: {before[0]}")
        resource.prlimit(number, self._number, (self._soft, before[1]))
        now = resource.prlimit(number, self._number)
        if now[0] != self._soft or procfs.start_ticks(number) != self._start:
            return self.not_done(f"pid {self._pid} ended or has another limit: {now[0]}")
        return self.done(
            f"pid {self._pid}: at most {self._soft} {self._unit} (before: {_text(before[0])})"
        )

    def _used(self, pid: int) -> int:
        if self._what == "descriptors":
            # The limit is about the highest number, not about the count.
            numbers = [int(name) for name in os.listdir(f"/proc/{pid}/fd")]  # noqa: PTH208
            return max(numbers, default=-1) + 1
        if self._what == "memory":
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
            return pages * resource.getpagesize()
        return 0

    def heal(self) -> OperationResult:
        """Give the process, and what it has started meanwhile, its old soft limit."""
        if self._hit is None:
            return self.not_done("no limit was lowered")
        hit, self._hit = self._hit, None
        try:
            # A child that went its own way (a tmux server) is no descendant any more.
            others = {pid for pid, _ in host_pids(self._box)} | set(procfs.descendants_of(hit.pid))
            healed = sum(self._raise(pid, hit) for pid in {hit.pid, *others})
        finally:
            os.close(hit.handle)
        return self.done(f"old limit for {healed} process(es)")

    def _raise(self, pid: int, hit: _Hit) -> bool:
        try:
            soft, hard = resource.prlimit(pid, self._number)
            if soft != self._soft or (pid == hit.pid and procfs.start_ticks(pid) != hit.start):
                return False  # it has set its own, or is another process now
            resource.prlimit(pid, self._number, (hit.before[0], hard))
        except (ProcessLookupError, PermissionError):
            return False  # ended meanwhile, or no longer ours
        return True


def _text(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


# --- the whole box ---------------------------------------------------------------------------------


def host_pids(box: Box) -> list[tuple[int, int]]:
    """The processes of a box as the host numbers them (pid and start time), without its agent."""
    found = []
    for process in box.processes():
        if process.state in "ZX":
            continue
        pid = namespaces.host_pid(box, process.pid, process.start)
        if pid is not None:
            found.append((pid, process.start))
    return found


class LimitProcesses(Fault):
    """No new processes in the box: fork gives EAGAIN."""

    def __init__(self, box: Box, *, spare: int = 0) -> None:
        self._box = box
        self._spare = spare
        self._group: Controlled | None = None
        self._lowered: list[tuple[int, int, tuple[int, int]]] = []
        self._use_group = why_no_controller("pids") is None
        self.technique = "pids cgroup" if self._use_group else "prlimit (soft limit on processes)"

    def why_not(self) -> str | None:
        """The soft limit does not bind root."""
        if not self._use_group and os.geteuid() == 0:
            return f"the limit on processes does not bind root, and {why_no_controller('pids')}"
        return None

    def inject(self) -> OperationResult:
        """Put a ceiling over the processes that are there now."""
        if self._use_group:
            self._group = Controlled.create("pids", self._box.box_id)
            self._group.take(lambda: host_pids(self._box))
            limit = int(self._group.read("pids.current")) + self._spare
            self._group.write("pids.max", str(limit))
            return self.done(f"at most {self._group.read('pids.max')} threads in the box")
        threads = _threads_counted(namespaces.agent_pid(self._box))
        for pid, start in host_pids(self._box):
            try:
                before = resource.prlimit(pid, resource.RLIMIT_NPROC)
                resource.prlimit(pid, resource.RLIMIT_NPROC, (threads + self._spare, before[1]))
            except ProcessLookupError:
                continue  # ended meanwhile
            self._lowered.append((pid, start, before))
        if not self._lowered:
            return self.not_done("the box has no process")
        return self.done(
            f"at most {threads + self._spare} threads for {len(self._lowered)} processes"
        )

    def heal(self) -> OperationResult:
        """Let them fork again."""
        if self._group is not None:
            group, self._group = self._group, None
            group.release()
            return self.done("no ceiling any more")
        lowered, self._lowered = self._lowered, []
        for pid, start, before in lowered:
            for each in [pid, *procfs.descendants_of(pid)]:
                if each == pid and procfs.start_ticks(pid) != start:
                    continue
                try:
                    hard = resource.prlimit(each, resource.RLIMIT_NPROC)[1]
                    resource.prlimit(each, resource.RLIMIT_NPROC, (before[0], hard))
                except (ProcessLookupError, PermissionError):
                    continue  # ended meanwhile
        return self.done(f"old limit for {len(lowered)} process(es)")


def _threads_counted(pid: int) -> int:
    """What the limit on processes counts: every thread of this user in the user namespace of the
    process.
    """
    own, threads = os.geteuid(), 0
    wanted = Path(f"/proc/{pid}/ns/user").stat().st_ino
    for name in os.listdir("/proc"):  # noqa: PTH208
        if not name.isdigit():
            continue
        try:
            same_user = Path(f"/proc/{name}").stat().st_uid == own
            if same_user and Path(f"/proc/{name}/ns/user").stat().st_ino == wanted:
                threads += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # ended while we looked, or not one of ours
    return threads


# --- processor time --------------------------------------------------------------------------------


class StarveCpu(Fault):
    """Give the box only `share` of one processor (0.1 = a tenth).

    With a quota of the kernel where cgroups can be made; otherwise by stopping and continuing its
    processes in turn, which works for everybody but is coarser and is seen by a parent that waits
    for stopped children.
    """

    PERIOD_S = 0.05

    def __init__(
        self, box: Box, share: float, *, way: Literal["cgroup", "signals"] | None = None
    ) -> None:
        if not 0.01 <= share <= 1:
            raise ValueError(f"share {share} is not between 0.01 and 1")
        self._box = box
        self._share = share
        why_not_group = why_no_controller("cpu")
        self._why_not = why_not_group if way == "cgroup" else None
        use_group = way == "cgroup" or (way is None and why_not_group is None)
        self._group: Controlled | None = None
        self._cycle: DutyCycle | None = None
        self._use_group = use_group
        self.technique = "cpu cgroup quota" if use_group else "SIGSTOP and SIGCONT in turn"

    def why_not(self) -> str | None:
        """Only when the quota was asked for by name."""
        return self._why_not

    def inject(self) -> OperationResult:
        """Take the time away."""
        if self._use_group:
            self._group = Controlled.create("cpu", self._box.box_id)
            self._group.set_cpu_share(self._share)
            taken = self._group.take(lambda: host_pids(self._box))
            if not taken:
                return self.not_done("the box has no process")
            return self.done(f"{taken} processes share {self._share:.0%} of a processor")
        self._cycle = DutyCycle(lambda: host_pids(self._box), self._share, self.PERIOD_S)
        if not self._cycle.started.wait(10.0):
            return self.not_done("no process of the box could be stopped within 10 s")
        return self.done(f"the processes of the box run {self._share:.0%} of the time")

    def throttled(self) -> int:
        """How often the kernel (or the duty cycle) has held the box up so far: the proof while it
        lasts.
        """
        if self._group is not None:
            return self._group.times_throttled()
        return 0 if self._cycle is None else self._cycle.stops

    def unfelt(self) -> str | None:
        """The duty cycle counts; how a quota was felt depends on what else runs on the machine."""
        if self._cycle is None or self._cycle.stops:
            return None
        return "no process of the box was ever stopped"

    def heal(self) -> OperationResult:
        """Full speed again."""
        if self._group is not None:
            group, self._group = self._group, None
            group.release()
        elif self._cycle is not None:
            cycle, self._cycle = self._cycle, None
            cycle.end()
        else:
            return self.not_done("nothing was slowed down")
        return self.done("full speed again")


class DutyCycle:
    """A thread that stops processes for a part of each period; `end` lets them all go on."""

    def __init__(
        self, find: Callable[[], list[tuple[int, int]]], share: float, period_s: float
    ) -> None:
        self._find = find
        self._share, self._period_s = share, period_s
        self._ending = threading.Event()
        self.started = threading.Event()
        self.stops = 0
        self._thread = threading.Thread(target=self._run, name="duty-cycle", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.is_set():
            with _handles(self._find()) as handles:
                try:
                    stopped = [handle for handle in handles if _send(handle, signal.SIGSTOP)]
                    if stopped:
                        self.stops += 1
                        self.started.set()
                    self._ending.wait(self._period_s * (1 - self._share))
                finally:
                    for handle in handles:
                        _send(handle, signal.SIGCONT)
            self._ending.wait(self._period_s * self._share)

    def end(self) -> None:
        """Let them go on, for good."""
        self._ending.set()
        self._thread.join(10.0)
        if self._thread.is_alive():
            raise FaultUnavailable("the duty cycle did not end: the box does not answer")


@contextmanager
def _handles(processes: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    found = [open_handle(pid, start) for pid, start in processes]
    handles = [handle for handle in found if handle is not None]
    try:
        yield handles
    finally:
        for handle in handles:
            os.close(handle)


def _send(handle: int, number: int) -> bool:
    try:
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    return True


def cpu_seconds(pid: int) -> float:
    """The processor time that a process of the host has used so far."""
    found = procfs.read_stat(pid)
    if found is None:
        raise ProcessLookupError(f"pid {pid} is gone")
    return (int(found[0][11]) + int(found[0][12])) / os.sysconf("SC_CLK_TCK")


def wait_for_cpu(pid: int, seconds: float, timeout_s: float) -> float | None:
    """Wait until a process has used so much more processor time; the real time it took, None when
    too long.
    """
    begun, target = time.monotonic(), cpu_seconds(pid) + seconds
    while cpu_seconds(pid) < target:
        if time.monotonic() - begun > timeout_s:
            return None
        time.sleep(0.01)
    return time.monotonic() - begun
