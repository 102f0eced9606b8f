"""config.toml of a home: one flat table, typed, with defaults.

Reading it must not cost more than the command itself, so plain ``key = value`` lines are read here
and only a file that uses more of TOML loads the real parser.
"""

from __future__ import annotations

from typing import NamedTuple

from longboat.errors import LongboatError, UsageError
from longboat.planting import planted


class Config(NamedTuple):
    """All settings of a home; the defaults are what `init` writes."""

    source: str = ""
    default_branch: str = "master"
    patrol_interval_secs: float = 2.0
    ack_timeout_secs: float = 10.0
    start_timeout_secs: float = 30.0
    submit_delay_ms: int = 150
    missed_completion_secs: float = 300.0
    max_attempts: int = 3
    lock_timeout_secs: float = 20.0
    agent_command: str = "claude"


_MEANING = {
    "source": "the repository that workers work for",
    "default_branch": "the branch that accepted work lands on",
    "patrol_interval_secs": "how often the daemon looks at everything",
    "ack_timeout_secs": "a typed prompt must be confirmed by the agent's hook within this time",
    "start_timeout_secs": "a started agent must report within this time",
    "submit_delay_ms": "pause between pasting a prompt and pressing Enter",
    "missed_completion_secs": "committed, clean and silent for so long counts as done",
    "max_attempts": "deliveries of one prompt, each to a fresh agent, before it counts as failed",
    "lock_timeout_secs": "how long a command waits for another one to finish",
    "agent_command": "the agent program",
}


def load(path: str) -> Config:
    """Read the file; every complaint names the file and the key."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        raise LongboatError(
            f"No longboat home here: {path} is missing. Run `longboat init --source PATH` first"
        ) from None
    values = _parse_plain(text)
    if values is None:
        values = _parse_toml(path, text)
    return build(values, where=path)


def build(values: dict[str, object], *, where: str) -> Config:
    """Typed settings from loose values, with the place of a mistake in the message."""
    defaults = Config()._asdict()
    typed: dict[str, object] = {}
    for key, value in values.items():
        if key not in defaults:
            raise UsageError(f"{where}: unknown setting '{key}' (known: {', '.join(defaults)})")
        typed[key] = _convert(key, value, defaults[key], where)
    config = Config(**typed)  # type: ignore[arg-type]
    for key, value in config._asdict().items():
        if isinstance(value, (int, float)) and value < 0:
            raise UsageError(f"{where}: '{key}' must not be negative")
    for key in ("patrol_interval_secs", "ack_timeout_secs", "max_attempts", "lock_timeout_secs"):
        if getattr(config, key) <= 0:
            raise UsageError(f"{where}: '{key}' must be above 0")
    return config


def _convert(key: str, value: object, default: object, where: str) -> object:
    wanted = type(default)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is wanted:
        return value
    if planted("settings-coerced") and isinstance(value, bool):
        return int(value)
    raise UsageError(f"{where}: '{key}' must be a {wanted.__name__}, not {value!r}")


def parse_setting(text: str) -> tuple[str, object]:
    """One ``key=value`` of `init --set`, converted to the type of that setting."""
    key, separator, raw = text.partition("=")
    defaults = Config()._asdict()
    if not separator or key not in defaults:
        raise UsageError(f"--set {text}: expected one of {', '.join(defaults)} as key=value")
    try:
        return key, type(defaults[key])(raw)
    except ValueError:
        wanted = type(defaults[key]).__name__
        raise UsageError(f"--set {text}: '{key}' must be a {wanted}") from None


def render(config: Config) -> str:
    """The file's text, every setting with its meaning."""
    lines = ["# longboat: settings of this home. Read at every command; restart the daemon after"]
    lines.append("# a change (`longboat down`, `longboat up`).")
    for key, value in config._asdict().items():
        lines.append(f"\n# {_MEANING[key]}")
        if isinstance(value, str):
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{key} = "{escaped}"')
        else:
            lines.append(f"{key} = {value}")
    return "\n".join(lines) + "\n"


def _parse_plain(text: str) -> dict[str, object] | None:
    """The values when every line is a comment or a simple assignment; None when TOML is needed."""
    values: dict[str, object] = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, separator, raw = line.partition("=")
        key, raw = key.strip(), raw.strip()
        if not separator or not key.replace("_", "").isalnum() or key in values:
            return None
        value = _plain_value(raw)
        if value is None:
            return None
        values[key] = value
    return values


def _plain_value(raw: str) -> object | None:
    body = raw[1:-1]
    if len(raw) >= 2 and raw[0] == raw[-1] == '"' and '"' not in body and "\\" not in body:
        return body
    if raw.isdigit() and (raw == "0" or raw[0] != "0"):
        return int(raw)
    whole, dot, fraction = raw.partition(".")
    if dot and whole.isdigit() and fraction.isdigit():
        return float(raw)
    return None


def _parse_toml(path: str, text: str) -> dict[str, object]:
    import tomllib

    try:
        return dict(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None
