"""The settings of a board: defaults, then ``config.json``, then the environment."""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.board.values import Refused
from longboat.planting import planted


class Config(NamedTuple):
    """All settings; times are seconds."""

    lease_s: float = 2.0
    leader_lease_s: float = 2.0
    retry_base_s: float = 0.2
    retry_cap_s: float = 5.0
    jitter: float = 0.1
    max_attempts: int = 3
    breaker_failures: int = 3
    breaker_open_s: float = 1.0
    breaker_half_open: int = 1
    breaker_successes: int = 1
    rate_limit: float = 0.0
    rate_burst: int = 10
    backups: int = 3
    seed: int = 0
    lock_timeout_s: float = 10.0
    agent_model: str = "sonnet"
    compact_after: int = 500
    agent_timeout_s: float = 600.0


_LEAST = {
    **dict.fromkeys(("max_attempts", "breaker_failures", "breaker_half_open"), 1),
    **dict.fromkeys(("breaker_successes", "backups", "rate_burst", "compact_after"), 1),
    **dict.fromkeys(("lease_s", "leader_lease_s", "lock_timeout_s", "agent_timeout_s"), 0.001),
}
_PREFIX = "LONGBOAT_BOARD_"


def load(directory: str) -> Config:
    """The settings of the board in a directory; a refusal names what is wrong."""
    config = Config()
    path = os.path.join(directory, "config.json")
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except (FileNotFoundError, NotADirectoryError):
        raw = b""
    if raw:
        import json

        try:
            given = json.loads(raw)
        except ValueError as error:
            raise Refused("bad_input", f"{path} is not JSON: {error}") from None
        if not isinstance(given, dict):
            raise Refused("bad_input", f"{path} is not a JSON object")
        for name, value in given.items():
            config = _with(config, name, value, path)
    for name in Config._fields:
        text = os.environ.get(_PREFIX + name.upper())
        if text is not None:
            config = _with(config, name, text, _PREFIX + name.upper())
    return config


def _with(config: Config, name: str, value: object, place: str) -> Config:
    if name not in Config._fields:
        if planted("unknown-setting-ignored"):
            return config
        known = " ".join(Config._fields)
        raise Refused("bad_input", f"{place}: unknown setting {name!r} (known: {known})")
    kind = type(Config._field_defaults[name])
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise ValueError
        typed = kind(value)
    except (ValueError, OverflowError):
        raise Refused("bad_input", f"{place}: {name} cannot be {value!r}") from None
    least = _LEAST.get(name, 0)
    if kind is not str and not (least <= typed < 1e9):
        raise Refused("bad_input", f"{place}: {name} must be at least {least}, not {value!r}")
    if name == "jitter" and typed > 1:
        raise Refused("bad_input", f"{place}: jitter must be between 0 and 1, not {value!r}")
    return config._replace(**{name: typed})
