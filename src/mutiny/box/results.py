"""What goes into a box and what comes out of it, as values.

Insight: pids and start times are always those that the box sees, because every later request about
a process goes back into the box; the host's numbers would only be right outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Command:
    """One command to run inside a box."""

    argv: Sequence[str]
    timeout_s: float
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command inside a box ended. Exactly one of ``exit_code`` and ``signal`` is set, or none
    when the command could not even be killed after its time-out.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    duration_s: float
    timed_out: bool
    pid: int
    start: int
    truncated: bool
    """Whether output beyond the limit of 4 MiB per stream was thrown away."""


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process in the background of a box. ``output`` is its log as the box sees it."""

    argv: tuple[str, ...]
    pid: int
    start: int
    output: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a background process ended."""

    exit_code: int | None
    signal: int | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """Whether a signal reached exactly the process that was meant; ``reason`` says why not."""

    delivered: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process of a box, with the numbers that the box sees."""

    pid: int
    parent_pid: int
    start: int
    state: str
    name: str
    argv: tuple[str, ...]
    session_id: int
    has_terminal: bool
    of_target: bool = False
    """It was started by a command of the target, or by what such a command has started."""
    in_pane: bool = False
    """It was started in a pane of tmux."""
    asked_for: bool = False
    """Mutiny itself has started it, and it has not ended."""
    descriptors: int | None = None
    """How many it has open; None for those of no interest, and when nobody may look."""
    cpu_ticks: int = 0
    """How long it has computed, in hundredths of a second."""
