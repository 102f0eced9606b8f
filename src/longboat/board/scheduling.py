"""When something may happen: backoff, rate limit and circuit breaker, as functions of values.

None of them reads a clock: the caller says what time it is, so every rule can be tested at any
moment of its life.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from longboat.board.config import Config
from longboat.board.values import Bucket
from longboat.planting import planted

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half_open"


def backoff_s(config: Config, task: str, attempts: int) -> float:
    """How long a task rests after its failed attempt number ``attempts``; the same every time."""
    if planted("retry-without-backoff"):
        return 0.0
    plain = min(config.retry_cap_s, config.retry_base_s * 2.0 ** min(attempts - 1, 60))
    dice = zlib.crc32(f"{config.seed}/{task}/{attempts}".encode()) / 0xFFFFFFFF
    return plain * (1 + config.jitter * (2 * dice - 1))


def too_far_s(config: Config) -> float:
    """No backoff is longer: a time further ahead is from another clock and means nothing."""
    return config.retry_cap_s * (1 + config.jitter) + 1


def is_due(config: Config, not_before: float, now: float) -> bool:
    """True when a task has rested enough."""
    return not_before <= now or not_before > now + too_far_s(config)


def take(config: Config, bucket: Bucket | None, now: float) -> Bucket | None:
    """One token out of a bucket; None when it is empty."""
    burst = float(config.rate_burst)
    if bucket is None or bucket.at > now + burst / config.rate_limit:  # another clock's bucket
        bucket = Bucket(burst, now)
    tokens = min(burst, bucket.tokens + max(0.0, now - bucket.at) * config.rate_limit)
    least = 0.0 if planted("limiter-off-by-one") else 1.0
    if tokens < least:
        return None
    return Bucket(tokens - 1, now)


def bucket_key(worker: str) -> str:
    """Whose bucket it is."""
    return worker.partition("-")[0] if planted("limiter-shared-by-prefix") else worker


class Breaker(NamedTuple):
    """A circuit breaker; ``probes`` are the claims that were let through while half open."""

    state: str = CLOSED
    failures: int = 0
    successes: int = 0
    since: float = 0.0
    probes: frozenset[str] = frozenset()


def at(config: Config, breaker: Breaker, now: float) -> Breaker:
    """The breaker as it is now: an open one becomes half open when its time is over."""
    if breaker.state == OPEN and now - breaker.since >= config.breaker_open_s:
        return Breaker(HALF_OPEN, since=now)
    return breaker


def lets_through(config: Config, breaker: Breaker) -> bool:
    """May one more be dispatched? ``breaker`` must be the one of now (`at`)."""
    if breaker.state == HALF_OPEN:
        if planted("half-open-lets-all-through"):
            return True
        return len(breaker.probes) < config.breaker_half_open
    return breaker.state == CLOSED


def dispatched(breaker: Breaker, key: str) -> Breaker:
    """After a dispatch that was let through."""
    if breaker.state != HALF_OPEN:
        return breaker
    return breaker._replace(probes=breaker.probes | {key})


def succeeded(config: Config, breaker: Breaker, key: str) -> Breaker:
    """After a success; while half open only those that were let through count."""
    if breaker.state == CLOSED:
        return breaker._replace(failures=0)
    if breaker.state == OPEN or key not in breaker.probes:
        return breaker
    successes = breaker.successes + 1
    if successes >= config.breaker_successes and not planted("breaker-never-closes"):
        return Breaker()
    return breaker._replace(successes=successes, probes=breaker.probes - {key})


def went_wrong(config: Config, breaker: Breaker, key: str, now: float) -> Breaker:
    """After a failure."""
    if planted("breaker-never-opens"):
        return breaker
    if breaker.state == CLOSED:
        failures = breaker.failures + 1
        if failures >= config.breaker_failures:
            return Breaker(OPEN, failures, since=now)
        return breaker._replace(failures=failures)
    if breaker.state == HALF_OPEN and key in breaker.probes:
        return Breaker(OPEN, breaker.failures, since=now)
    return breaker


def dropped(breaker: Breaker, key: str) -> Breaker:
    """After a dispatch that ended without a verdict (released, cancelled): its place is free."""
    return breaker._replace(probes=breaker.probes - {key})
