"""Settings of a batch home: one flat TOML table with defaults, and an environment variable for each.

`LONGBOAT_BATCH_MAX_PARALLEL=1` overrides `max_parallel` for one command.
"""

from __future__ import annotations

import os
import tomllib
from typing import NamedTuple

from longboat.errors import LongboatError, UsageError
from longboat.planting import planted

PREFIX = "LONGBOAT_BATCH_"
MODES = ("off", "warn", "block")
VALIDATORS = ("test", "style", "architecture", "doctor")


class Config(NamedTuple):
    """All settings; the defaults are what `init` writes."""

    source: str = ""
    main: str = "main"
    agent: str = "claude --print --output-format json"
    agent_timeout_s: float = 600.0
    max_parallel: int = 2
    max_retries: int = 2
    max_conflicts: int = 3
    failure_policy: str = "continue"
    lint: str = ""
    doctor: str = ""
    gate_timeout_s: float = 120.0
    canary: str = "off"
    manifest: str = "warn"
    rescope: bool = True
    budget: str = "off"
    task_tokens: int = 0
    run_tokens: int = 0
    task_cost: float = 0.0
    run_cost: float = 0.0
    cost_per_1k: float = 0.002
    test_validator: str = "off"
    style_validator: str = "off"
    architecture_validator: str = "off"
    doctor_validator: str = "off"
    validator: str = ""
    planner_url: str = ""
    cleanup: str = "on_success"
    container_engine: str = ""
    container_image: str = ""
    container_network: str = "none"
    container_memory_mb: int = 0
    container_pids: int = 0
    container_options: str = ""
    lock_timeout_s: float = 5.0

    def mode_of(self, validator: str) -> str:
        """What a validator's word means: `off`, `warn` or `block`."""
        mode: str = getattr(self, f"{validator}_validator")
        return mode


_MEANING = {
    "source": "the repository that the tasks change",
    "main": "the branch that finished work lands on",
    "agent": "the agent's command; the prompt is its last argument",
    "agent_timeout_s": "an agent that works longer is ended, and its attempt has failed",
    "max_parallel": "tasks of one batch",
    "max_retries": "how often a failed task is tried again",
    "max_conflicts": "how often a task is done again because it did not merge",
    "failure_policy": "after a failed task: `continue` with the others, or `stop`",
    "lint": "a command that must succeed in a task's workspace; empty: none",
    "doctor": "a command that must succeed in a task's workspace and before main moves; empty: none",
    "gate_timeout_s": "how long lint, doctor and validators may take",
    "canary": "the doctor must fail with LONGBOAT_CANARY=1: off, warn, block",
    "manifest": "files that a task changed without having declared them: off, warn, block",
    "rescope": "add undeclared files to the task and try it once more, instead of blocking it",
    "budget": "what happens above a limit: off, warn, block",
    "task_tokens": "tokens that one task may use; 0: no limit",
    "run_tokens": "tokens that a run may use; 0: no limit",
    "task_cost": "what one task may cost; 0: no limit",
    "run_cost": "what a run may cost; 0: no limit",
    "cost_per_1k": "the price of 1000 tokens",
    "test_validator": "off, warn, block",
    "style_validator": "off, warn, block",
    "architecture_validator": "off, warn, block",
    "doctor_validator": "off, warn, block",
    "validator": "the validators' command: its name is the last argument, the diff its input",
    "planner_url": "a model API that turns a text into a plan; empty: `plan` takes a plan file",
    "cleanup": "workspaces of finished tasks: on_success, never",
    "container_engine": "a command like `docker`: agents run in containers; empty: as local processes",
    "container_image": "the image of those containers",
    "container_network": "their network",
    "container_memory_mb": "their memory; 0: no limit",
    "container_pids": "how many processes each may have; 0: no limit",
    "container_options": "more words for `create`: mounts, variables",
    "lock_timeout_s": "how long a command waits for another one",
}
_WORDS = {
    "failure_policy": ("continue", "stop"),
    "cleanup": ("on_success", "never"),
    **dict.fromkeys(("canary", "manifest", "budget"), MODES),
    **{f"{name}_validator": MODES for name in VALIDATORS},
}


def load(path: str) -> Config:
    """Read the file and the environment; every complaint names its place."""
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except FileNotFoundError:
        text = (
            f"No batch home here: {path} is missing. Run `longboat batch init --source REPO` first"
        )
        raise LongboatError(text) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    config = build(values, path)
    for key in Config._fields:
        raw = os.environ.get(PREFIX + key.upper())
        if raw is not None:
            config = config._replace(**{key: convert(key, raw, PREFIX + key.upper())})  # type: ignore[arg-type]
    return checked(config, path)


def build(values: dict[str, object], where: str) -> Config:
    """Typed settings from the values of a file."""
    defaults = Config()._asdict()
    if planted("batch-setting-ignored"):
        values = {key: value for key, value in values.items() if key in defaults}
    for key, value in values.items():
        if key not in defaults:
            raise UsageError(f"{where}: unknown setting '{key}' (known: {', '.join(defaults)})")
        wanted = type(defaults[key])
        fits = type(value) is wanted or (wanted is float and type(value) is int)
        if not fits:
            raise UsageError(f"{where}: '{key}' must be a {wanted.__name__}, not {value!r}")
    typed = {key: type(defaults[key])(value) for key, value in values.items()}
    return Config(**typed)


def convert(key: str, raw: str, where: str) -> object:
    """One setting from a word."""
    wanted = type(Config()._asdict()[key])
    try:
        if wanted is bool:
            return {"true": True, "1": True, "false": False, "0": False}[raw.lower()]
        return wanted(raw)
    except (ValueError, KeyError):
        raise UsageError(f"{where}: '{key}' must be a {wanted.__name__}, not {raw!r}") from None


def checked(config: Config, where: str) -> Config:
    """Refuse what cannot be."""
    for key, words in _WORDS.items():
        if getattr(config, key) not in words:
            raise UsageError(f"{where}: '{key}' is one of {', '.join(words)}")
    for key, value in config._asdict().items():
        if isinstance(value, int | float) and not 0 <= value < 1e9:
            raise UsageError(f"{where}: '{key}' must not be negative or endless")
    if config.max_parallel < 1:
        raise UsageError(f"{where}: 'max_parallel' must be at least 1")
    return config


def parse_setting(text: str) -> tuple[str, object]:
    """One `key=value` of `init --set`."""
    key, separator, raw = text.partition("=")
    if not separator or key not in Config._fields:
        raise UsageError(f"--set {text}: expected one of {', '.join(Config._fields)} as key=value")
    return key, convert(key, raw, f"--set {text}")


def render(config: Config) -> str:
    """The file's text, every setting with its meaning."""
    import json

    lines = ["# longboat batch: settings of this home, read at every command."]
    for key, value in config._asdict().items():
        shown = json.dumps(value) if isinstance(value, str | bool) else repr(value)
        lines.append(f"\n# {_MEANING[key]}\n{key} = {shown}")
    return "\n".join(lines) + "\n"
