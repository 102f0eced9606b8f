"""Settings of a session home: one flat TOML table with defaults, and an environment variable for each.

`LONGBOAT_SESSION_IDLE_S=60` overrides `idle_s`. The supervisor reads the file again when it changes.
"""

from __future__ import annotations

import os
import tomllib
from typing import NamedTuple

from longboat.errors import UsageError
from longboat.planting import planted

PREFIX = "LONGBOAT_SESSION_"


class Config(NamedTuple):
    """All settings with their defaults; times are session time."""

    model_url: str = ""
    """Where the model's API is; empty: $ANTHROPIC_BASE_URL."""
    model: str = "claude-sonnet-4-5"
    fallback_url: str = ""
    """Where the second model is; empty: the same place."""
    fallback_model: str = "claude-haiku-4-5"
    model_timeout_s: float = 120.0
    tool_timeout_s: float = 300.0
    interval_s: float = 0.0
    """Between two checkpoints; 0: as the project says for each phase."""
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
    retries: int = 3
    """Of a transient error, at once."""
    backoffs: int = 5
    """Then, or of a recoverable error, with growing waits; then the other model."""
    backoff_s: float = 5.0
    backoff_cap_s: float = 60.0
    retry_after_cap_s: float = 300.0
    task_attempts: int = 3
    vote_rounds: int = 2
    vote_wait_s: float = 30.0
    deadlock: str = "priority"
    gate_attempts: int = 3
    gate_wait_s: float = 60.0
    keep: int = 0
    """Checkpoints that are kept; 0: all."""
    command_timeout_s: float = 900.0


def load(path: str) -> Config:
    """Read the file, if there is one, and the environment; every complaint names its place."""
    values: dict[str, object] = {}
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        values = {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    defaults = Config()._asdict()
    known: dict[str, object] = {}
    for key, value in values.items():
        if key not in defaults:
            if planted("session-setting-ignored"):
                continue
            raise UsageError(f"{path}: unknown setting '{key}' (known: {', '.join(defaults)})")
        known[key] = _typed(key, value, path)
    for key in defaults:
        raw = os.environ.get(PREFIX + key.upper())
        if raw is not None:
            known[key] = _typed(key, raw, PREFIX + key.upper())
    config = Config(**known)  # type: ignore[arg-type]
    if not config.model_url:
        config = config._replace(model_url=os.environ.get("ANTHROPIC_BASE_URL", ""))
    return _checked(config, path)


def _typed(key: str, value: object, where: str) -> object:
    wanted = type(Config()._asdict()[key])
    fits = isinstance(value, str) or (isinstance(value, int | float) and wanted is not str)
    try:
        if not fits or isinstance(value, bool):
            raise ValueError(key)
        made: object = wanted(value)
    except ValueError:
        raise UsageError(f"{where}: '{key}' must be a {wanted.__name__}, not {value!r}") from None
    return made


def _checked(config: Config, where: str) -> Config:
    for key, value in config._asdict().items():
        if isinstance(value, int | float) and not 0 <= value < 1e12:
            raise UsageError(f"{where}: '{key}' must not be negative or endless")
    if config.deadlock not in ("priority", "escalate"):
        raise UsageError(f"{where}: 'deadlock' is one of priority, escalate")
    if config.metrics_s == 0:
        raise UsageError(f"{where}: 'metrics_s' must be above 0")
    return config
