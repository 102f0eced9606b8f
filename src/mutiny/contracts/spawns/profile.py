"""How one program differs from the contract's ideal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mutiny.kit.profile import Limits, TargetProfile

SETTINGS: Mapping[str, float] = {
    "max_depth": 3,
    "max_runs": 20,
    "max_running": 32,
    "retries": 1,
    "retry_delay_s": 1,
    "timeout_s": 600,
    "no_session_s": 180,
    "stall_s": 180,
}
"""What they are unless somebody changes them."""


@dataclass(frozen=True)
class SpawnsLimits(Limits):
    """Seconds that a correct target may take."""

    command_s: float = 30.0
    settle_s: float = 25.0
    lag_s: float = 3.0


@dataclass(frozen=True, kw_only=True)
class SpawnsProfile(TargetProfile):
    """What one target promises."""

    limits: SpawnsLimits = field(default_factory=SpawnsLimits)
    settings: Mapping[str, float] = field(default_factory=dict)
    """Settings that this target has from the beginning, where they differ."""
    heals: tuple[str, ...] = ("Cleanup",)
    """Commands that put right what died."""
    keeps_place: bool = False
    """A reader can read a few messages at a time, and earlier ones again, without losing its place."""
    any_case: bool = False
    """Agents and `@human` can be called in small and capital letters alike."""
    ends_first: bool = False
    """A run is called over when nothing lives any more that it has started."""
    roams: bool = False
    """A run can say something in another channel than that in which it was called."""
    takes_models: bool = False
    """An agent can be registered with a model (`{model}` in its command)."""
    settable: tuple[str, ...] = ()
    """Settings that can be changed; the target's file fills it in."""

    def setting(self, name: str) -> float:
        """What a setting is from the beginning."""
        return self.settings.get(name, SETTINGS[name])
