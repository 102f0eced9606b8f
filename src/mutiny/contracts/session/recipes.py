"""How many sequences of sessions begin and end: begun, split, dead in the middle, followed to the end."""

from __future__ import annotations

from mutiny.contracts.session.operations import (
    AgentDeadlock,
    Checkpoint,
    Configure,
    Report,
    StartSession,
    Status,
    Stop,
    SystemCrash,
    VerifyCheckpoint,
    WaitForStatus,
    WaitForTasks,
)
from mutiny.kit.operations import (
    Reset,
    Settle,
)
from mutiny.model.operation import Operation

Steps = tuple[Operation, ...]
QUICK = {
    "metrics_s": "0.5",
    "backoff_s": "0.05",
    "model_timeout_s": "1.5",
    "tool_timeout_s": "2",
    "idle_s": "8",
    "test_time_s": "20",
    "backoff_cap_s": "5",
    "gate_wait_s": "1",
    "vote_wait_s": "1",
}
"""Real numbers are minutes long; the same promises hold in seconds."""
SLOW_H = 0.004
TO_THE_END: Steps = (WaitForStatus("complete"), VerifyCheckpoint(), Status(), Report())


def begun(hours: float = 0.002, agents: int = 3, **knobs: str) -> Steps:
    """A session of the smallest project has begun."""
    settings = tuple(Configure(name, value) for name, value in {**QUICK, **knobs}.items())
    return (Reset(), *settings, StartSession(agents=agents, hours=hours))


def through(*faults: Operation, **knobs: str) -> Steps:
    """A session that goes through some trouble by itself, to its end."""
    return (*begun(0.002, 3, **knobs), *faults, *TO_THE_END, Settle())


def split(**knobs: str) -> Steps:
    """A session whose first vote nobody wins: while all are trusted alike."""
    first = begun(0.002, 2, vote_wait_s="0.2", **knobs)
    return (*first, Stop(), AgentDeadlock(), StartSession(agents=2))


def muted() -> Steps:
    """A session in which somebody gives no ballot that can be counted."""
    return (*begun(0.002, 2), Stop(), AgentDeadlock("mute"), StartSession(agents=2))


def crashed(*faults: Operation) -> Steps:
    """A session that dies in the middle, with its checkpoints in some state."""
    return (*begun(SLOW_H), WaitForTasks(2), Checkpoint(), WaitForTasks(3), SystemCrash(), *faults)


def from_the_first(error: Operation) -> Steps:
    """The very first answer that a session gets is an error."""
    *settings, start = begun()
    return (*settings, error, start, *TO_THE_END, Settle())


def in_one_go(project: str) -> Steps:
    """A session from its beginning to its end; with a brief project all of it is one command."""
    return (Reset(), StartSession(project=project), Status(), Settle())
