"""Process faults: kill, stop and continue, by role and by handle.

A role (daemon, agent, tmux server) is looked up among the processes of the box; the signal then
goes to pid plus start time, so a pid that was used again is never hit. Every fault proves that it
fired: the process is gone, or is stopped.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mutiny.box.box import Box
from mutiny.box.results import ProcessInfo
from mutiny.faults.namespaces import host_pid
from mutiny.kit.views import AgentView, ProcessView
from mutiny.model.result import OperationResult
from mutiny.probes import tmux

TECHNIQUE = "SIGKILL by handle"
PAUSE = "SIGSTOP by handle"
GONE_DEADLINE_S = 5.0


def views(box: Box) -> tuple[ProcessView, ...]:
    """The processes of the box that are not zombies."""
    return tuple(view_of(process) for process in box.processes() if process.state != "Z")


def view_of(process: ProcessInfo) -> ProcessView:
    """A process as contracts see it; one without arguments by its name."""
    argv = process.argv or (process.name,)
    who = (process.pid, process.start, process.parent_pid)
    return ProcessView(*who, argv, process.state, process.descriptors)


def alive_among(box: Box, agents: Sequence[AgentView]) -> tuple[ProcessView, ...]:
    """The processes of those agents that still run."""
    wanted = {agent.identity for agent in agents if agent.alive}
    return tuple(process for process in views(box) if process.identity in wanted)


def tmux_servers(box: Box) -> tuple[ProcessView, ...]:
    """The tmux servers of the box: tmux renames a server's process, its clients keep their
    arguments.
    """
    found = []
    for process in views(box):
        name = process.argv[0] if process.argv else ""
        if name.startswith("tmux: server") or (name.endswith("tmux") and process.parent == 1):
            found.append(process)
    return tuple(found)


def kill(box: Box, processes: Sequence[ProcessView], role: str) -> OperationResult:
    """SIGKILL to each of them, and the proof that they are gone."""
    if not processes:
        return OperationResult(1, stderr=f"no {role} to kill", fired=False, technique=TECHNIQUE)
    hit = [p for p in processes if box.signal(p.pid, p.start, signal.SIGKILL).delivered]
    gone = all(box.wait_gone(p.pid, p.start, GONE_DEADLINE_S) for p in hit)
    pids = ", ".join(str(p.pid) for p in hit)
    if not hit:
        text = f"the {role} has ended already"
        return OperationResult(1, stderr=text, fired=False, technique=TECHNIQUE)
    if not gone:
        return OperationResult(
            1, stderr=f"{role} ({pids}) is still there", fired=False, technique=TECHNIQUE
        )
    return OperationResult(stdout=f"{role} killed (pid {pids})", fired=True, technique=TECHNIQUE)


def stop_daemon(box: Box, processes: Sequence[ProcessView], name: str) -> None:
    """Ask the daemon to end, as its user would with Ctrl-C, and wait for it."""
    number = signal.Signals[f"SIG{name}"]
    for process in processes:
        box.signal(process.pid, process.start, number)
    for process in processes:
        box.wait_gone(process.pid, process.start, 10.0)


def kill_session(box: Box, session: str, worker: str) -> OperationResult:
    """End one tmux session, or one window, named exactly."""
    technique = " ".join(tmux.killing(session)[:2])
    if not session:
        return OperationResult(
            1, stderr=f"worker {worker} has no session", fired=False, technique=technique
        )
    answer = box.run(tmux.killing(session), timeout_s=10)
    return OperationResult(
        answer.exit_code,
        stdout=f"session {session} ended",
        stderr=answer.stderr,
        fired=answer.exit_code == 0,
        technique=technique,
    )


class Pause:
    """Stopped processes; `end` lets them go on and may be called twice."""

    def __init__(self, box: Box, processes: Sequence[ProcessView]) -> None:
        self._box = box
        self._stopped = [
            p for p in processes if box.signal(p.pid, p.start, signal.SIGSTOP).delivered
        ]
        self.fired = bool(self._stopped) and _all_stopped(box, self._stopped)

    def end(self) -> None:
        """Let them go on."""
        for process in self._stopped:
            self._box.signal(process.pid, process.start, signal.SIGCONT)


@contextmanager
def paused(box: Box, processes: Sequence[ProcessView]) -> Iterator[Pause]:
    """Stop processes for the length of the block; they go on in any case, also on Ctrl-C."""
    pause = Pause(box, processes)
    try:
        yield pause
    finally:
        pause.end()


@contextmanager
def quiesced(box: Box, processes: Sequence[ProcessView]) -> Iterator[None]:
    """Stop processes at a moment when they hold no file lock, so that others can go on without them.

    What they would write meanwhile is not followed by the system-call engine, and a follower that misses
    writes would accuse the innocent.
    """
    deadline = time.monotonic() + 5.0
    while processes:
        pause = Pause(box, processes)
        if not _holds_lock(box, processes) or time.monotonic() > deadline:
            break
        pause.end()
        time.sleep(0.01)
    try:
        yield
    finally:
        if processes and box.alive:
            pause.end()


def _holds_lock(box: Box, processes: Sequence[ProcessView]) -> bool:
    """Does one of them hold a flock or a POSIX lock now?"""
    hosts = {str(host_pid(box, process.pid, process.start)) for process in processes}
    lines = Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    return any(line.split()[4] in hosts for line in lines if "->" not in line)


def _all_stopped(box: Box, processes: Sequence[ProcessView]) -> bool:
    deadline = time.monotonic() + 2.0
    wanted = {p.identity for p in processes}
    while time.monotonic() < deadline:
        states = {p.state for p in views(box) if p.identity in wanted}
        # One that ended just before, and whose parent is stopped, cannot be buried.
        if states & {"T", "t"} and states <= {"T", "t", "Z", "X"}:
            return True
        time.sleep(0.005)
    return False
