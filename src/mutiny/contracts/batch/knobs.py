"""Settings of a batch orchestrator by the contract's words; a target's file says how it is told each."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from mutiny.errors import nearest

MODES = ("off", "warn", "block")
VALIDATORS = ("test", "style", "architecture", "review")
_SWITCH = ("on", "off")


@dataclass(frozen=True)
class Knobs:
    """What is set; the defaults are what targets are started with."""

    budget: str = "off"
    task_tokens: int = 0
    """0: no limit."""
    run_tokens: int = 0
    task_cost: float = 0.0
    run_cost: float = 0.0
    test: str = "off"
    style: str = "off"
    architecture: str = "off"
    review: str = "off"
    manifest: str = "warn"
    rescope: str = "on"
    """What a task has not declared is added to it, and it is tried again."""
    canary: str = "off"
    max_parallel: int = 2
    max_retries: int = 1
    max_conflicts: int = 3
    """So often a task is done again because it does not merge with what others have done."""
    failure_policy: str = "continue"
    cleanup: str = "on_success"
    gate_timeout_s: float = 20.0
    agent_timeout_s: float = 600.0
    workers: str = "local"
    """Agents are processes of the box, or each has a container of its own."""
    network: str = "none"
    """That of a container."""
    memory_mb: int = 0
    """What a container may use; 0: no limit."""
    pids: int = 0
    """How many processes a container may have; 0: no limit."""

    def set(self, name: str, value: str) -> Knobs:
        """The same with another value; it has been checked."""
        return replace(self, **{name: type(getattr(self, name))(value)})

    def mode_of(self, validator: str) -> str:
        """Does a validator block?"""
        mode: str = getattr(self, validator)
        return mode

    @property
    def blocking(self) -> tuple[str, ...]:
        """The validators that block."""
        return tuple(name for name in VALIDATORS if self.mode_of(name) == "block")


_WORDS = {
    **dict.fromkeys(("budget", "manifest", "canary", *VALIDATORS), MODES),
    "rescope": _SWITCH,
    "failure_policy": ("continue", "stop"),
    "cleanup": ("on_success", "never"),
    "workers": ("local", "container"),
    "network": ("none", "host"),
}
NAMES = tuple(item.name for item in fields(Knobs))


def check_knob(name: str, value: str) -> None:
    """Refuse a setting that nobody knows, or a value that it cannot have."""
    if name not in NAMES:
        raise ValueError(f"unknown knob {name!r}{nearest(name, NAMES)}")
    words = _WORDS.get(name)
    if words is not None and value not in words:
        raise ValueError(f"knob {name}: {value!r} is none of {', '.join(words)}")
    if words is None:
        try:
            number = float(value) if isinstance(getattr(Knobs(), name), float) else int(value)
        except ValueError:
            raise ValueError(f"knob {name}: {value!r} is no number") from None
        if not 0 <= number < 1e9:
            raise ValueError(f"knob {name}: {value} is out of range")
