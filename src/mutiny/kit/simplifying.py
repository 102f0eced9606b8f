"""One order of "smaller", and the passes that every contract shares.

A pass is a name and a function that offers simpler forms of a whole sequence. Whether a form still fails,
only a trial tells; here is what is worth one. A contract adds passes of its own; all of them obey the one
order, so that minimising comes to an end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from mutiny.kit import operations as common
from mutiny.model.operation import Kind, Operation, walk

SHORT_S = 0.5
"""Shorter waits are left alone, or the result would depend on milliseconds."""
MOST_POINTS = 40
"""So many calls are tried when a random kill is turned into an exact one."""
Steps = tuple[Operation, ...]
Forms = Iterator[tuple[str, Steps]]
NAMES = ("worker", "task", "node", "name")
"""Arguments that name somebody: their length is no matter of size."""


@lru_cache(maxsize=4096)
def size(sequence: Steps) -> tuple[Any, ...]:
    """What makes a sequence smaller, the weightiest first: fewer steps, fewer operations inside others,
    fewer who take part, nothing left to chance, less time, fewer values, shorter texts, plainer names.
    """
    parts = [part for step in sequence for part in walk(step)]
    values = [
        (name, value)
        for part in parts
        for name, value in part.arguments().items()
        if not isinstance(value, Operation)
    ]
    lists = [value for _, value in values if isinstance(value, tuple)]
    texts = [value for name, value in values if isinstance(value, str) and name not in NAMES]
    named = list(dict.fromkeys(str(value) for name, value in values if name in NAMES))
    seconds = sum(float(getattr(part, "seconds", 0.0)) for part in parts)
    return (
        len(sequence),
        len(parts),
        len(named),
        sum(isinstance(part, common.KillDuring) for part in parts),
        seconds,
        len(values) + sum(len(one) for one in lists),
        sum(len(one) for one in texts),
        named,
        [json.dumps(step.as_json()) for step in sequence],
    )


def smaller(one: Sequence[Operation], other: Sequence[Operation]) -> bool:
    """Is one of them smaller than the other?"""
    return size(tuple(one)) < size(tuple(other))


def deeds(sequence: Sequence[Operation]) -> list[Operation]:
    """What is left of a sequence without everything that only looks."""
    return [one for one in sequence if not (one.looks or one.kind is Kind.ASSERTION)]


def with_one(sequence: Sequence[Operation], index: int, item: Operation) -> Steps:
    """The sequence with another operation at one place."""
    return (*sequence[:index], item, *sequence[index + 1 :])


def unwrapped(sequence: Sequence[Operation]) -> Forms:
    """A combination by one of its parts, a command under a fault by the command alone, a script of
    several turns by its first, an awkward world by a plain one.
    """
    for index, operation in enumerate(sequence):
        if isinstance(operation, common.Reset) and (operation.root or operation.surroundings):
            yield "world", with_one(sequence, index, common.Reset())
        if isinstance(operation, common.Reset) and operation.root and operation.surroundings:
            yield "world", with_one(sequence, index, common.Reset(operation.root))
            yield "world", with_one(sequence, index, replace(operation, root=""))
        for part in _parts(operation):
            yield "unwrap", with_one(sequence, index, part)
        if isinstance(operation, common.Parallel) and len(operation.operations) > 2:
            for part in operation.operations:
                rest = tuple(one for one in operation.operations if one is not part)
                yield "unwrap", with_one(sequence, index, common.Parallel(rest))
        scripted: Any = operation
        if len(getattr(scripted, "turns", ())) > 1:
            first = replace(scripted, turns=scripted.turns[:1])
            yield "script", with_one(sequence, index, first)


def _parts(operation: Operation) -> tuple[Operation, ...]:
    """What may stand in the place of an operation; a refusal that is expected is no command."""
    several = (common.Parallel, common.Interleave, common.Trace)
    if operation.kind is Kind.FAULT or isinstance(operation, several):
        return operation.children()
    return ()


def smaller_waits(sequence: Sequence[Operation]) -> Forms:
    """Half the time for long sleeps and long faults."""
    for index, operation in enumerate(sequence):
        timed: Any = operation
        lasts = isinstance(operation, common.Sleep) or operation.kind is Kind.FAULT
        if lasts and getattr(timed, "seconds", 0.0) >= SHORT_S:
            half = replace(timed, seconds=round(timed.seconds / 2, 3))
            yield "waits", with_one(sequence, index, half)


def exact_points(sequence: Sequence[Operation]) -> Forms:
    """A kill after some milliseconds by the exact call before which it shows the same."""
    for index, item in enumerate(sequence):
        if isinstance(item, common.KillDuring):
            kind = common.CrashAt if item.whole else common.KillAt
            for call in range(MOST_POINTS):
                yield "exact point", with_one(sequence, index, kind(item.operation, call))


def mentioned(sequence: Sequence[Operation], argument: str) -> list[str]:
    """Values of an argument in the order of their first mention."""
    found: dict[str, None] = {}
    for item in sequence:
        for part in walk(item):
            name = getattr(part, argument, None)
            if isinstance(name, str):
                found.setdefault(name)
    return list(found)


def fewer(word: str, argument: str, sequence: Sequence[Operation]) -> Forms:
    """One participant less: its operations are left out, or another participant does them."""
    names = mentioned(sequence, argument)
    for gone in reversed(names):
        kept = without(sequence, argument, gone)
        if len(kept) < len(sequence):
            yield word, kept
    for gone in reversed(names[1:]):
        for other in names:
            if other != gone:
                yield word, tuple(renamed(item, argument, {gone: other}) for item in sequence)


def without(sequence: Sequence[Operation], argument: str, name: str) -> Steps:
    """A sequence without everything that is said about one of them."""
    return tuple(item for item in sequence if name not in mentioned((item,), argument))


def renamed(operation: Operation, argument: str, names: Mapping[str, str]) -> Operation:
    """An operation in which others play the parts, inside combinations, too."""
    changes: dict[str, object] = {}
    for item in fields(operation):
        value = getattr(operation, item.name)
        if item.name == argument and isinstance(value, str):
            changes[argument] = names.get(value, value)
        elif isinstance(value, Operation):
            changes[item.name] = renamed(value, argument, names)
        elif isinstance(value, tuple) and value and isinstance(value[0], Operation):
            changes[item.name] = tuple(renamed(part, argument, names) for part in value)
    return replace(operation, **changes) if changes else operation
