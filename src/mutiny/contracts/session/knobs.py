"""Settings of a session by the contract's words, with the numbers of the plan; a target's file says how it
is told each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mutiny.errors import nearest

HOUR_S = 3600.0
CHOICES = {"deadlock": ("priority", "escalate")}


@dataclass(frozen=True)
class Knobs:
    """What is set."""

    interval_s: float = 0.0
    """Between checkpoints; 0: as the phase says."""
    calls_interval: int = 100
    tokens_interval: int = 500_000
    metrics_s: float = 30.0
    agent_tokens_hour: int = 200_000
    agent_calls_hour: int = 500
    context_tokens: int = 128_000
    idle_s: float = 600.0
    total_tokens: int = 5_000_000
    max_agents: int = 8
    disk_mb: float = 2048.0
    test_time_s: float = 1800.0
    memory_mb: float = 1024.0
    model_timeout_s: float = 120.0
    tool_timeout_s: float = 300.0
    retries: int = 3
    backoffs: int = 5
    backoff_s: float = 5.0
    backoff_cap_s: float = 60.0
    task_attempts: int = 3
    vote_rounds: int = 2
    vote_wait_s: float = 30.0
    deadlock: str = "priority"
    gate_attempts: int = 3
    gate_wait_s: float = 60.0
    keep: int = 0
    """Checkpoints that are kept; 0: all."""

    def set(self, name: str, value: str) -> Knobs:
        """The same with another value; it has been checked."""
        return replace(self, **{name: type(getattr(self, name))(value)})


NAMES = tuple(item.name for item in fields(Knobs))


def check_knob(name: str, value: str) -> None:
    """Refuse a setting that nobody knows, or a value that it cannot have."""
    if name not in NAMES:
        raise ValueError(f"unknown knob {name!r}{nearest(name, NAMES)}")
    if name in CHOICES:
        if value not in CHOICES[name]:
            raise ValueError(f"knob {name}: {value!r} is none of {', '.join(CHOICES[name])}")
        return
    try:
        number = float(value) if isinstance(getattr(Knobs(), name), float) else int(value)
    except ValueError:
        raise ValueError(f"knob {name}: {value!r} is no number") from None
    if not 0 <= number < 1e9:
        raise ValueError(f"knob {name}: {value} is out of range")
