"""How a session's program differs from the contract's ideal."""

from __future__ import annotations

from dataclasses import dataclass, field

from mutiny.kit.profile import Limits, TargetProfile


@dataclass(frozen=True)
class SessionLimits(Limits):
    """Seconds that a correct target may take."""

    command_s: float = 60.0
    settle_s: float = 60.0
    lag_s: float = 2.0
    wait_s: float = 60.0
    """Until what a wait asks for has come, as long as nothing moves."""


@dataclass(frozen=True, kw_only=True)
class SessionProfile(TargetProfile):
    """What one target promises."""

    limits: SessionLimits = field(default_factory=SessionLimits)
    projects: tuple[str, ...] = ("demo",)
    """What it can be asked to build; the first is the smallest."""
    settable: tuple[str, ...] | None = None
    """Knobs that can be set; None: all."""
    takes_agents: bool = True
    """It is told how many agents a session has."""
    can_hurry: bool = True
    """Its clock can be sped up."""
    brief: str = ""
    """A project that is finished when the command that begins it answers."""
    side_by_side: bool = False
    """A session may be begun while another one is not finished."""
    walled: bool = False
    """Agents write nothing but files of the project."""
    criteria: tuple[str, ...] = ()
    """Criteria of its gates that mean what the files of a checkpoint can contradict (`criteria.py`)."""
    has_fallback: bool = False
    """There is another model that is asked before a session is given up."""
    keeps_settings: bool = False
    """What runs goes on with the settings that it had while those in the file are wrong."""
    keeps_progress: bool = False
    """A checkpoint keeps for how long a task was worked on: after a crash only the rest is due."""
    logs_events: bool = False
    """Its log of events tells what happens in the moment when it does."""
    outlives_signals: bool = False
    """A session whose driver was asked to end by a signal can be brought back."""
    writes_answers: bool = False
    """What metrics and report say is also written into a file, where that is asked for."""
    keeps_phase: bool = False
    """How long a phase has lasted is counted over a crash, as far as a checkpoint has kept it."""
    keeps_tests: bool = False
    """What the last run of the tests gave is in all that is kept after it."""
    reads_with: str = ""
    """The tool with which an agent reads a file of the project, and of nothing else; empty: it has none, or
    may read anything.
    """
    uses_limits: bool = False
    """Whoever has to wait for the hourly limit of tool calls has made as many as it allows."""
    votes_without: bool = False
    """A vote is decided without the ballot of whoever gives none that can be counted."""
    stop_is_no_end: bool = False
    """A session that was stopped can be brought back."""
