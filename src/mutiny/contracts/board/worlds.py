"""Several beliefs at once: equal ones become one, close ones are joined, what is given up is known.

A command whose outcome nobody learned, or a lease that is too close to tell, leaves several worlds. There
is a bound to their number; but a contradiction in worlds of which some were given up proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from mutiny.contracts.board.model import (
    BoardModel,
    Breaker,
    Bucket,
    Leader,
    Span,
    Task,
)

MOST_WORLDS = 64
"""So many are followed at once."""
GIVEN_UP = "there were too many possibilities to follow, and some were given up"


def distinct(models: Iterable[BoardModel], most: int = MOST_WORLDS) -> tuple[BoardModel, ...]:
    """Each world once. Too many are joined as far as they differ in moments only; what is still too
    much is given up, and the others know it.
    """
    found = _unequal(models)
    if len(found) > most:
        found = _joined(found)
    if len(found) > most:
        found = [replace(model, guessed=True) for model in found[:most]]
    return tuple(found)


def _unequal(models: Iterable[BoardModel]) -> list[BoardModel]:
    shelves: dict[object, list[BoardModel]] = {}
    found: list[BoardModel] = []
    for model in models:
        shelf = shelves.setdefault(_outline(model), [])
        if model not in shelf:
            shelf.append(model)
            found.append(model)
    return found


def _outline(model: BoardModel) -> object:
    """What tells most worlds apart, and can be looked up."""
    tasks = frozenset(
        (task.id, task.status, task.owner, task.epoch, task.attempts)
        for task in model.tasks.values()
    )
    leader = model.leader and (model.leader.node, model.leader.token)
    return tasks, leader, model.up, model.damaged, model.foreign


def _joined(models: Iterable[BoardModel]) -> list[BoardModel]:
    """Worlds that differ in moments only become one that is less sure about them."""
    shelves: dict[object, list[BoardModel]] = {}
    for model in models:
        shelf = shelves.setdefault(_outline(model), [])
        for place, other in enumerate(shelf):
            if _timeless(other) == _timeless(model):
                shelf[place] = _join(other, model)
                break
        else:
            shelf.append(model)
    return [model for shelf in shelves.values() for model in shelf]


def _timeless(model: BoardModel) -> BoardModel:
    tasks = {name: replace(task, rest=None) for name, task in model.tasks.items()}
    leader = None if model.leader is None else replace(model.leader, renewed=Span(0.0, 0.0))
    breaker = replace(model.breaker, opened=model.breaker.opened and Span(0.0, 0.0))
    return replace(
        model,
        tasks=tasks,
        leader=leader,
        breaker=breaker,
        heard={},
        buckets={},
        undecided=(),
        guessed=False,
    )


def _join(one: BoardModel, other: BoardModel) -> BoardModel:
    both = set(one.heard) & set(other.heard)
    undecided = [
        *one.undecided,
        *(tasks for tasks in other.undecided if tasks not in one.undecided),
    ]
    return replace(
        one,
        tasks={name: _task(task, other.tasks[name]) for name, task in one.tasks.items()},
        leader=_leader(one.leader, other.leader),
        breaker=_breaker(one.breaker, other.breaker),
        heard={name: _hull(one.heard[name], other.heard[name]) for name in both},
        buckets=_buckets(one.buckets, other.buckets),
        undecided=tuple(undecided),
        guessed=one.guessed or other.guessed,
    )


def _hull(one: Span, other: Span) -> Span:
    return Span(min(one.earliest, other.earliest), max(one.latest, other.latest))


def _task(one: Task, other: Task) -> Task:
    if one.rest is None or other.rest is None:
        known = one.rest or other.rest
        rest = None if known is None else Span(-math.inf, known.latest)
        return replace(one, rest=rest)
    return replace(one, rest=_hull(one.rest, other.rest))


def _leader(one: Leader | None, other: Leader | None) -> Leader | None:
    if one is None or other is None:
        return one
    return replace(one, renewed=_hull(one.renewed, other.renewed))


def _breaker(one: Breaker, other: Breaker) -> Breaker:
    if one.opened is None or other.opened is None:
        return one
    return replace(one, opened=_hull(one.opened, other.opened))


def _buckets(one: Mapping[str, Bucket], other: Mapping[str, Bucket]) -> dict[str, Bucket]:
    """A worker that only one world knows has not asked for anything in the other."""
    joined = {
        name: replace(bucket, high=math.inf)
        for name, bucket in {**one, **other}.items()
        if not (name in one and name in other)
    }
    for name in set(one) & set(other):
        mine, theirs = one[name], other[name]
        joined[name] = Bucket(
            min(mine.low, theirs.low), max(mine.high, theirs.high), _hull(mine.at, theirs.at)
        )
    return joined
