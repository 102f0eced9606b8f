"""Processes as the double sees them: who it is itself, who still lives, and children it runs.

Children get memory files as stdin and stdout instead of pipes, so a child can neither fill a pipe
nor hold one open: the only thing to wait for is its end, and that wait also watches the terminal.
"""

from __future__ import annotations

import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutiny.doubles.agents.terminal import Terminal

STOP_GRACE_S = 1.0
"""How long a child may take to end after SIGTERM before it gets SIGKILL."""

_STAT_STATE, _STAT_START, _STAT_ARGUMENTS_FROM, _STAT_ARGUMENTS_TO = 0, 19, 45, 46
"""Positions after the command name in /proc/PID/stat (fields 3, 22, 48 and 49 of proc(5))."""


def _stat_fields(pid: int | str) -> list[str]:
    """Return the fields of /proc/PID/stat that follow the command name."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        # The command name may contain spaces and brackets; the last bracket ends it.
        return file.read().decode("ascii", "replace").rpartition(")")[2].split()


def own_start_ticks() -> int:
    """Return this process's start time in clock ticks, which with the pid names it for ever."""
    return int(_stat_fields("self")[_STAT_START])


def is_alive(pid: int, start_ticks: int) -> bool:
    """Say whether the process with this pid and start time lives (a zombie does not)."""
    try:
        fields = _stat_fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return int(fields[_STAT_START]) == start_ticks and fields[_STAT_STATE] not in "ZXx"


def rename(name: str, arguments: Sequence[str]) -> None:
    """Show this process as ``name arguments...`` in /proc/self/cmdline.

    Orchestrators ask tmux for ``pane_current_command``, which is the first word of that file;
    without this they would see the interpreter instead of the agent.
    """
    fields = _stat_fields("self")
    start, end = int(fields[_STAT_ARGUMENTS_FROM]), int(fields[_STAT_ARGUMENTS_TO])
    shown = b"".join(os.fsencode(word) + b"\0" for word in (name, *arguments))
    if 0 < len(shown) <= end - start:
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(shown.ljust(end - start, b"\0"))


def leave_child() -> tuple[int, int]:
    """Start a process in a session of its own that does nothing for long; its pid and start time."""
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    pid = os.posix_spawnp("sleep", ["sleep", "3600"], os.environ, file_actions=null, setsid=True)
    return pid, int(_stat_fields(pid)[_STAT_START])


def spawn(argv: list[str], environment: Mapping[str, str]) -> int:
    """Start a command of a process group of its own without a terminal; its pid."""
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
    return os.posix_spawnp(argv[0], argv, environment, file_actions=null, setpgroup=0)


class Finished:
    """How a child ended: exit code (negative: signal), its output, and whether time ran out."""

    __slots__ = ("duration_ms", "exit_code", "output", "timed_out")

    def __init__(self, exit_code: int, output: str, timed_out: bool, duration_ms: int) -> None:
        self.exit_code = exit_code
        self.output = output
        self.timed_out = timed_out
        self.duration_ms = duration_ms


def run(
    argv: Sequence[str],
    terminal: Terminal,
    *,
    environment: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    timeout_s: float = 60.0,
) -> Finished:
    """Run a command to its end or to the deadline while the terminal stays watched.

    The child leads a process group of its own, so that ending it ends its children too.

    Args:
        argv: The command; its first word is looked up on PATH.
        terminal: Raises ``Interrupted`` or ``HungUp`` from the wait; the child is then ended.
        environment: Environment of the child; this process's own when missing.
        stdin: What the child reads from its standard input.
        timeout_s: After this time the child is ended and ``timed_out`` is true.
    """
    input_fd = os.memfd_create("stdin")
    output_fd = os.memfd_create("output")
    began = time.monotonic()
    try:
        os.write(input_fd, stdin)
        os.lseek(input_fd, 0, os.SEEK_SET)
        pid = os.posix_spawnp(
            argv[0],
            list(argv),
            os.environ if environment is None else environment,
            file_actions=(
                (os.POSIX_SPAWN_DUP2, input_fd, 0),
                (os.POSIX_SPAWN_DUP2, output_fd, 1),
                (os.POSIX_SPAWN_DUP2, output_fd, 2),
            ),
            # Python ignores SIGPIPE; a shell that inherits that behaves unlike a user's shell.
            setsigdef=(signal.SIGPIPE,),
            setpgroup=0,
        )
        status, timed_out = _wait(pid, terminal, timeout_s)
        size = os.lseek(output_fd, 0, os.SEEK_END)
        output = os.pread(output_fd, min(size, 1 << 20), 0).decode("utf-8", "replace")
    finally:
        os.close(input_fd)
        os.close(output_fd)
    duration_ms = int((time.monotonic() - began) * 1000)
    return Finished(os.waitstatus_to_exitcode(status), output, timed_out, duration_ms)


def _wait(pid: int, terminal: Terminal, timeout_s: float) -> tuple[int, bool]:
    """Wait for a child of ours; end it when the time or the terminal says so."""
    pidfd = os.pidfd_open(pid)
    ended = False
    try:
        ended = terminal.wait(timeout_s, pidfd)
    finally:
        # On an interrupt the child must not outlive the turn that it belongs to.
        if not ended:
            _end(pid, pidfd)
        os.close(pidfd)
        status = os.waitpid(pid, 0)[1]
    return status, not ended


def _end(pid: int, pidfd: int) -> None:
    """End a child and its group; it has not been waited for yet, so the ids are still its own."""
    os.killpg(pid, signal.SIGTERM)
    select.select([pidfd], [], [], STOP_GRACE_S)
    os.killpg(pid, signal.SIGKILL)
