"""How many, how deep, how long: the bounds of one home, from the environment."""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.errors import UsageError

PREFIX = "LONGBOAT_SPAWNS_"


class Settings(NamedTuple):
    """Everything that can be set; `LONGBOAT_SPAWNS_MAX_DEPTH=5` sets `max_depth`."""

    max_depth: int = 3
    """The deepest run; that of a person's message has depth 0."""
    max_runs: int = 20
    """Runs for one root message, those that were refused aside."""
    max_running: int = 32
    """Runs at once in this home."""
    retries: int = 1
    retry_delay_s: float = 1.0
    timeout_s: float = 600.0
    """An attempt is ended after this time."""
    no_session_s: float = 180.0
    stall_s: float = 180.0
    busy_s: float = 30.0
    """How long a command waits for the database."""
    grace_s: float = 2.0
    """Between being asked to end, and being killed."""
    claude: str = "claude"
    codex: str = "codex"
    gemini: str = "gemini"


def load() -> Settings:
    """What the environment says, or what is usual."""
    found: dict[str, int | float | str] = {}
    for name, usual in Settings()._asdict().items():
        text = os.environ.get(PREFIX + name.upper(), "")
        if not text:
            continue
        try:
            found[name] = type(usual)(text)
        except ValueError:
            raise UsageError(f"{PREFIX}{name.upper()}={text}: a number is needed") from None
        if not isinstance(usual, str) and float(text) < 0:
            raise UsageError(f"{PREFIX}{name.upper()}={text}: it cannot be negative")
    return Settings(**found)  # type: ignore[arg-type]
