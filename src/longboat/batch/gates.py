"""What stands between a task's work and main: lint, doctor, manifest, validators, budgets.

A gate says `pass`, or why not. A gate that could not be asked has not passed.
"""

from __future__ import annotations

import fnmatch
import json
import shlex
from typing import NamedTuple

from longboat.batch.config import VALIDATORS, Config
from longboat.batch.site import Site
from longboat.batch.values import Run, Task
from longboat.planting import planted

_NOT_FOUND = 127


class Refusal(NamedTuple):
    """A gate that does not let the work pass."""

    gate: str
    text: str


def check_command(site: Site, gate: str, at: str, task: str = "") -> Refusal | None:
    """Lint or doctor: a command of the user that must succeed."""
    command = getattr(site.config, gate)
    if not command:
        return None
    site.events.say(f"{gate}.start", task, command=command)
    result = site.program(["sh", "-c", command], at, site.config.gate_timeout_s, task)
    missing = planted("missing-gate-passes") and result.code == _NOT_FOUND
    if result.ok or missing or (planted("doctor-timeout-passes") and result.timed_out):
        site.events.say(f"{gate}.pass", task)
        return None
    site.events.say(f"{gate}.fail", task, exit_code=result.code, text=result.last_words[:300])
    return Refusal(gate, f"{gate} failed: {result.last_words[:300]}")


def undeclared(site: Site, task: Task, at: str, base: str, head: str) -> list[str]:
    """Files that a task has changed without having said so."""
    raw = site.git.ask("diff", "--name-only", "-z", "--no-renames", base, head, at=at)
    changed = [name for name in raw.split("\0") if name]
    return [name for name in changed if not any(_matches(name, one) for one in task.files)]


def _matches(name: str, pattern: str) -> bool:
    """`src/**` is everything below; `*` stays in its directory."""
    if pattern.endswith("/**"):
        return name.startswith(pattern[:-2])
    same_depth = name.count("/") == pattern.count("/") or planted("star-crosses-folders")
    return same_depth and fnmatch.fnmatchcase(name, pattern)


def check_manifest(site: Site, task: Task, names: list[str]) -> Refusal | None:
    """In mode `block` nothing undeclared passes; in mode `warn` it is told."""
    mode = site.config.manifest
    if mode == "off" or not names:
        site.events.say("manifest.pass" if mode != "off" else "manifest.skip", task.id)
        return None
    site.events.say(f"manifest.{mode}", task.id, files=names[:50])
    if mode == "warn" or planted("manifest-block-warns"):
        return None
    return Refusal("manifest", f"changed {', '.join(names[:5])} without having declared it")


def check_validators(site: Site, task: Task, at: str, base: str, head: str) -> Refusal | None:
    """All that are switched on; the first that blocks ends it."""
    for name in VALIDATORS:
        mode = site.config.mode_of(name)
        if mode == "off":
            continue
        passed, text = _validate(site, name, task, at, base, head)
        site.events.say(
            f"validator.{'pass' if passed else 'fail'}", task.id, validator=name, text=text
        )
        if not passed and mode == "block" and not planted("validator-block-warns"):
            if planted("validator-error-passes") and passed is None:
                continue
            site.events.say("validator.block", task.id, validator=name)
            return Refusal("validator", f"the {name} validator: {text}")
    return None


def _validate(
    site: Site, name: str, task: Task, at: str, base: str, head: str
) -> tuple[bool | None, str]:
    """Its verdict and its words; None: it gave no verdict."""
    if not site.config.validator:
        return None, "there is no command for validators"
    diff = site.git.read("diff", base, head, at=at)
    if not diff.ok:
        return None, f"the change could not be shown: {diff.last_words}"
    argv = [*shlex.split(site.config.validator), name]
    data = diff.out.encode("utf-8", "surrogateescape")
    result = site.program(argv, at, site.config.gate_timeout_s, task.id, data)
    if not result.ok:
        return None, f"it failed: {result.last_words[:300]}"
    try:
        said = json.loads(result.out)
        passed = said["pass"]
    except (ValueError, TypeError, KeyError):
        return None, f"its answer is no verdict: {result.out.strip()[:100]}"
    if planted("odd-verdict-passes"):
        passed = bool(passed)
    if not isinstance(passed, bool):
        return None, f"its verdict is {passed!r}"
    return passed, str(said.get("summary", ""))[:300]


def over_budget(config: Config, run: Run) -> str:
    """The first limit that is exceeded, in words; nothing when there is none."""
    price = config.cost_per_1k / 1000
    for task in run.tasks.values():
        if config.task_tokens and task.tokens > config.task_tokens:
            return f"task {task.id} used {task.tokens} tokens of {config.task_tokens}"
        if config.task_cost and task.tokens * price > config.task_cost:
            return f"task {task.id} cost {task.tokens * price:.4f} of {config.task_cost:g}"
    if planted("run-budget-ignored"):
        return ""
    if config.run_tokens and run.tokens > config.run_tokens:
        return f"the run used {run.tokens} tokens of {config.run_tokens}"
    if config.run_cost and run.tokens * price > config.run_cost:
        return f"the run cost {run.tokens * price:.4f} of {config.run_cost:g}"
    return ""


def tokens_in(text: str) -> int:
    """What an agent reports that it has used: every `usage` in the JSON that it printed."""
    total = 0
    for line in text.splitlines():
        if not line.startswith(("{", "[")):
            continue
        try:
            said = json.loads(line)
        except ValueError:
            continue
        for one in said if isinstance(said, list) else [said]:
            usage = one.get("usage") if isinstance(one, dict) else None
            if isinstance(usage, dict):
                total += sum(
                    value
                    for key, value in usage.items()
                    if key.endswith("tokens") and type(value) is int and value > 0
                )
    return total
