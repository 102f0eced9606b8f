"""What protects a board from its users, as beliefs: the circuit breaker and the rate limit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.tasks import Breaker, Bucket, Task
from mutiny.kit.beliefs import Span, older


def breaker_outcomes(model: BoardModel, when: Span) -> Iterator[tuple[bool, BoardModel]]:
    """Is a claim let through? Both when that is too close to tell."""
    breaker = model.breaker
    if not model.profile.breaker:
        yield True, model
        return
    if breaker.unsure:
        yield True, model  # closed, but after how many failures nobody knows
        yield False, model
        return
    if breaker.opened is None:
        yield True, model
        return
    figures, tolerance_s = model.profile.figures, model.profile.limits.tolerance_s
    over = older(when, breaker.opened, figures.breaker_open_s, tolerance_s)
    if over is not True:
        yield False, model
    if over is not False:
        room = len(breaker.probes) < figures.breaker_half_open
        yield room, model


def fails(model: BoardModel, task: Task, when: Span) -> BoardModel:
    """A task that was dispatched went wrong."""
    breaker = model.breaker
    if not model.profile.breaker or breaker.unsure:
        return model
    if breaker.opened is None:
        failures = breaker.failures + 1
        opened = when if failures >= model.profile.figures.breaker_failures else None
        return replace(model, breaker=Breaker(failures, 0, opened))
    if task.id in breaker.probes:
        return replace(model, breaker=Breaker(breaker.failures, 0, when))
    return model


def succeeds(model: BoardModel, task: Task) -> BoardModel:
    """A task that was dispatched was done."""
    breaker = model.breaker
    if not model.profile.breaker or breaker.unsure:
        return model
    if breaker.opened is None:
        return replace(model, breaker=Breaker())
    if task.id not in breaker.probes:
        return model
    successes = breaker.successes + 1
    if successes >= model.profile.figures.breaker_successes:
        return replace(model, breaker=Breaker())
    probes = breaker.probes - {task.id}
    return replace(model, breaker=replace(breaker, successes=successes, probes=probes))


def rest_s(model: BoardModel, attempts: int) -> tuple[float, float]:
    """How long a task rests after so many attempts and one that failed: at least, and at most."""
    figures = model.profile.figures
    plain_s = min(figures.retry_cap_s, figures.retry_base_s * 2.0 ** min(attempts, 60))
    return plain_s * (1 - figures.jitter), plain_s * (1 + figures.jitter)


def pays(
    model: BoardModel, worker: str, when: Span
) -> tuple[bool | None, Callable[[bool], Bucket]]:
    """May the worker ask now? And what is left of its budget, after a success or after a refusal."""
    figures, tolerance_s = model.profile.figures, model.profile.limits.tolerance_s
    burst, rate = float(figures.rate_burst), figures.rate_limit
    old = model.buckets.get(worker, Bucket(burst, burst, when))
    longest_s = max(0.0, when.latest - old.at.earliest) + tolerance_s
    shortest_s = max(0.0, when.earliest - old.at.latest - tolerance_s)
    high = min(burst, old.high + longest_s * rate)
    low = min(burst, old.low + shortest_s * rate)
    allowed = True if low >= 1 else (False if high < 1 else None)

    def left(success: bool) -> Bucket:
        # Whether a command that was refused for another reason was counted is not known.
        return Bucket(max(0.0, low - 1), max(0.0, high - 1) if success else high, when)

    return allowed, left
