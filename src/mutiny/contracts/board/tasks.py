"""Tasks, leaders, breakers and budgets as values: what a board holds, and how it follows from itself."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from mutiny.contracts.board.operations import HELD, TERMINAL
from mutiny.contracts.board.profile import BoardProfile
from mutiny.kit.beliefs import Span


@dataclass(frozen=True)
class Task:
    """What one task is."""

    id: str
    priority: int = 5
    depends: tuple[str, ...] = ()
    max_attempts: int = 3
    order: int = 0
    status: str = "available"
    owner: str | None = None
    epoch: int = 0
    attempts: int = 0
    retries: int = 0
    """How often it was retried by hand."""
    rest: Span | None = None
    """When its rest after a failed attempt is over."""
    output: str | None = None
    named: bool = True
    """Somebody named it; False: the board did, so that its description does not say its name."""
    size: int | None = None
    """Bytes of payload that were given with it; None: nobody knows."""

    @property
    def held(self) -> bool:
        return self.status in HELD

    @property
    def over(self) -> bool:
        return self.status in TERMINAL

    def free(self, rest: Span | None = None) -> Task:
        """The task without an owner."""
        return replace(self, status="available", owner=None, rest=rest)


Tasks = Mapping[str, Task]


@dataclass(frozen=True)
class Leader:
    """Who leads, and when that was last confirmed."""

    node: str
    token: int
    renewed: Span


@dataclass(frozen=True)
class Breaker:
    """A circuit breaker: closed as long as it was not opened."""

    failures: int = 0
    successes: int = 0
    opened: Span | None = None
    probes: frozenset[str] = frozenset()
    unsure: bool = False
    """A new server may have forgotten all of it, or not."""


@dataclass(frozen=True)
class Bucket:
    """What a worker may still ask for: at least and at most so many commands."""

    low: float
    high: float
    at: Span


def number_used(known: tuple[int, ...], *, stale: bool) -> int | None:
    """The last number that was given; `stale`: the one before, or one that was never right."""
    if not stale:
        return known[-1] if known else None
    if len(known) > 1:
        return known[-2]
    return known[-1] - 1 if known else 0


def settle_dependants(tasks: Tasks, profile: BoardProfile) -> Tasks:
    """Blocked tasks whose dependencies are decided: available, or failed for good. Where what is done can
    be taken up again, what waits for it is blocked again.
    """
    waiting = ("blocked",) if profile.claims_exclude else ("blocked", "available")
    after = dict(tasks)
    moved = True
    while moved:
        moved = False
        for name, task in after.items():
            due = task.status in waiting
            status = due_status(after, task, profile) if due else task.status
            if status != task.status:
                after[name] = replace(task, status=status)
                moved = True
    return after


def hopeless(profile: BoardProfile) -> tuple[str, ...]:
    """What a dependency is that will never be done."""
    failed = () if profile.dependants_wait else ("failed",)
    return failed if profile.cancelled_block else (*failed, "cancelled")


def due_status(tasks: Tasks, task: Task, profile: BoardProfile) -> str:
    """What a task that nobody holds is, because of its dependencies alone."""
    never = hopeless(profile)
    lost = any(name not in tasks for name in task.depends)
    states = [tasks[name].status for name in task.depends if name in tasks]
    if lost or any(status in never for status in states):
        return "failed"
    return "available" if all(status == "done" for status in states) else "blocked"


def as_good(profile: BoardProfile, first: Task, other: Task) -> bool:
    """May the board give this task out, too, instead of the first in order?"""
    if profile.picks == "any":
        return True
    return profile.picks == "urgent" and first.priority == other.priority


def attempt_over(task: Task, rest: Span | None) -> Task:
    """After a failed attempt: free again, or failed for good."""
    attempts = task.attempts + 1
    if attempts >= task.max_attempts:
        return replace(task, status="failed", attempts=attempts, rest=None)
    return replace(task.free(rest), attempts=attempts)


def has_cycle(depends: Mapping[str, Iterable[str]]) -> bool:
    """Do some of these depend on each other in a circle?"""
    try:
        TopologicalSorter(depends).prepare()
    except CycleError:
        return True
    return False


# --- joining what differs in moments only ---------------------------------------------------------


def hull(one: Span, other: Span) -> Span:
    """Both moments."""
    return Span(min(one.earliest, other.earliest), max(one.latest, other.latest))


def join_tasks(one: Task, other: Task) -> Task:
    """A task of which only the rest differs."""
    if one.rest is None or other.rest is None:
        known = one.rest or other.rest
        rest = None if known is None else Span(-math.inf, known.latest)
        return replace(one, rest=rest)
    return replace(one, rest=hull(one.rest, other.rest))


def join_leaders(one: Leader | None, other: Leader | None) -> Leader | None:
    """A leader of whom only the last word differs."""
    if one is None or other is None:
        return one
    return replace(one, renewed=hull(one.renewed, other.renewed))


def join_breakers(one: Breaker, other: Breaker) -> Breaker:
    """A breaker of which only the opening differs."""
    if one.opened is None or other.opened is None:
        return one
    return replace(one, opened=hull(one.opened, other.opened))


def join_buckets(one: Mapping[str, Bucket], other: Mapping[str, Bucket]) -> dict[str, Bucket]:
    """A worker that only one world knows has not asked for anything in the other."""
    joined = {
        name: replace(bucket, high=math.inf)
        for name, bucket in {**one, **other}.items()
        if not (name in one and name in other)
    }
    for name in set(one) & set(other):
        mine, theirs = one[name], other[name]
        joined[name] = Bucket(
            min(mine.low, theirs.low), max(mine.high, theirs.high), hull(mine.at, theirs.at)
        )
    return joined
