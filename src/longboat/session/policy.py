"""What follows from an error: its severity, and how often it is tried again, how soon, with which model.

Pure: from a kind and the tries so far to the next step.
"""

from __future__ import annotations

from typing import NamedTuple

from longboat.planting import planted
from longboat.session.config import Config

SEVERITIES = {
    "network_timeout": "transient",
    "rate_limit": "recoverable",
    "overload": "recoverable",
    "parse_failure": "recoverable",
    "refused": "recoverable",
    "tool_timeout": "recoverable",
    "agent_lost": "degraded",
    "idle": "degraded",
    "memory_pressure": "degraded",
    "test_failure": "degraded",
    "test_timeout": "degraded",
    "gate": "degraded",
    "task_failed": "critical",
    "gate_failed": "critical",
    "disk_full": "critical",
    "system": "critical",
    "budget": "critical",
    "deadlock": "critical",
    "corruption": "fatal",
}
"""Every kind of error, and how bad it is."""


class Tries(NamedTuple):
    """What was tried for one piece of work since it last went well."""

    at_once: int = 0
    backed_off: int = 0
    fallback: bool = False
    since_s: float = 0.0
    kind: str = ""
    """The first error of this row."""


class Step(NamedTuple):
    """What to do next."""

    action: str
    """retry, backoff, switch or give_up."""
    wait_s: float
    tries: Tries


def next_step(
    kind: str, tries: Tries, config: Config, now_s: float, retry_after_s: float | None = None
) -> Step:
    """Retry at once, then with growing waits, then the same with the other model, then not any more."""
    if not tries.kind:
        tries = tries._replace(kind=kind, since_s=now_s)
    if SEVERITIES.get(kind) == "transient" and tries.at_once < config.retries:
        return Step("retry", 0.0, tries._replace(at_once=tries.at_once + 1))
    if tries.backed_off < config.backoffs or planted("session-retry-unbounded"):
        wait_s = min(config.backoff_s * 2.0**tries.backed_off, config.backoff_cap_s)
        if planted("session-no-backoff"):
            wait_s = 0.0
        elif retry_after_s is not None and not planted("session-retry-after-ignored"):
            cut = planted("session-retry-after-cut-short")
            most_s = config.backoff_cap_s if cut else config.retry_after_cap_s
            wait_s = min(max(wait_s, retry_after_s), most_s)
        elif planted("session-slow-recovery"):
            wait_s += 1000 * config.backoff_cap_s
        backed_off = min(tries.backed_off + 1, 30)
        return Step("backoff", wait_s, tries._replace(backed_off=backed_off))
    if not tries.fallback and config.fallback_model and not planted("session-no-model-switch"):
        waited = tries.backed_off if planted("session-fallback-not-waited-for") else 0
        return Step("switch", 0.0, tries._replace(at_once=0, backed_off=waited, fallback=True))
    return Step("give_up", 0.0, Tries())
