"""Is what a target tells of a thing what it keeps of it?

A target that shows its records shows them as they are: as they were before the command, or as they are
after it. Both are compared by the target's own names; what only one of them has is nobody's lie. Whether a
target promises that at all stands in its file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Untrue:
    """A part of an answer that never was so."""

    place: str
    """Where in it: `tasks.a.status`."""
    told: object
    kept: object
    """As it is now."""

    def __str__(self) -> str:
        return f"{self.place} {self.told!r}; what is kept says {self.kept!r}"


def untrue(
    told: object, was: object, now: object, *, moving: bool = False, quiet: Collection[str] = ()
) -> Untrue | None:
    """The first part of an answer that was neither so before the command nor is so after it.

    `moving`: something is at work on it, so that a part that has changed may have been anything between.
    `quiet`: names of parts that change by being looked at, or by time alone.
    """
    return next(_differences(told, was, now, "", moving, frozenset(quiet)), None)


def _differences(
    told: Any, was: Any, now: Any, place: str, moving: bool, quiet: frozenset[str]
) -> Iterator[Untrue]:
    if told in (was, now) or (moving and was != now and not _open(told, now)):
        return
    if isinstance(told, Mapping) and isinstance(now, Mapping):
        before = was if isinstance(was, Mapping) else {}
        for key in told:
            if key in now and key not in quiet:
                yield from _differences(
                    told[key], before.get(key, now[key]), now[key], f"{place}.{key}", moving, quiet
                )
    elif _rows(told) and _rows(now) and len(told) == len(now):
        before = was if _rows(was) and len(was) == len(now) else now
        for at, one in enumerate(told):
            yield from _differences(one, before[at], now[at], f"{place}.{at}", moving, quiet)
    else:
        yield Untrue(place.lstrip("."), told, now)


def _open(told: Any, now: Any) -> bool:
    """Has it parts that can be compared one by one?"""
    return (isinstance(told, Mapping) and isinstance(now, Mapping)) or (_rows(told) and _rows(now))


def _rows(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(one, Mapping) for one in value)
    )
