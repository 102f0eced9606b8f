"""Why a history cannot be ordered: the few operations that contradict each other.

An operation that is taken out of the contradiction is not forgotten: with its answer it may have
happened at any time after its call, or never. Simply deleting it would leave nonsense such as a
read of a value that nobody wrote.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mutiny.history.events import Entry
from mutiny.history.search import (
    Budget,
    Found,
    Machine,
    Place,
    Search,
    Timeline,
    Verdict,
)

NEAR = 64
"""How many operations before the contradiction are looked at one by one."""
STARTS_MAX = 200
"""With more possible situations than this the operations before it are looked at as well."""
SHOWN = 12
"""An explanation has at most so many lines."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What making a contradiction smaller may cost: steps of each attempt, seconds of all."""

    steps: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Operations that cannot be ordered, whatever the others did."""

    entries: tuple[Entry, ...]
    others: int
    """Operations about which nothing needs to be known for the contradiction."""
    before: int
    """Operations before the contradiction that can be ordered, and were not taken apart."""
    situation: str
    """What those before it left behind; or what there was at the very start."""
    smallest: bool
    """False: the bound was reached, and fewer entries might do."""

    def lines(self) -> list[str]:
        """For people: who, from when to when, what, and the answer."""
        count = len(self.entries)
        head = f"these {count} operations cannot be ordered" if count > 1 else "this cannot be"
        found = [f"{head} (at first: {self.situation}):"]
        found += [f"  {entry}" for entry in self.entries[:SHOWN]]
        if count > SHOWN:
            found.append(f"  ... and {count - SHOWN} more")
        if self.before:
            found.append(f"  after {self.before} operations that can be ordered")
        if not self.smallest:
            found.append("  (fewer might do: the bound was reached)")
        return found


def contradiction(
    timeline: Timeline, machine: Machine, start: Place, found: Found, bounds: Bounds
) -> Contradiction:
    """Make the contradiction of a failed search as small as the bounds allow."""
    near = _until_the_wall(timeline, found.wall)
    situations = [_Situation(start.state, frozenset())]
    before = 0
    if len(near) > NEAR:
        first = timeline.entries[near[-NEAR]].invoked
        cut = min(first, _blocked(timeline, found.wall).invoked)
        places = _places_at(timeline, found, cut)
        if len(places) <= STARTS_MAX:
            kept = [number for number in near if _lasts_until(timeline.entries[number], cut)]
            before, near = len(near) - len(kept), kept
            situations = [_Situation(place.state, _done(timeline, place)) for place in places]
    later = _overlapping(timeline, near)
    shrinker = _Shrinker(machine, timeline, [*near, *later], set(near), situations, bounds)
    shrinker.shrink()
    told = {machine.describe(situation.state) for situation in situations}
    return Contradiction(
        entries=tuple(timeline.entries[number] for number in near if number in shrinker.kept),
        others=len(near) + len(later) - len(shrinker.kept),
        before=before,
        situation=" or ".join(sorted(told)),
        smallest=shrinker.smallest,
    )


class _Situation(NamedTuple):
    """Where a search may begin: a state, and which of the entries are already done."""

    state: int
    done: frozenset[int]


class _Shrinker:
    """Frees one entry after the other, as long as no order appears.

    Freeing more never takes an order away, so that an entry which could not be freed once need not
    be tried again.
    """

    def __init__(
        self,
        machine: Machine,
        timeline: Timeline,
        numbers: Sequence[int],
        kept: set[int],
        situations: Sequence[_Situation],
        bounds: Bounds,
    ) -> None:
        self.kept = {number for number in kept if number < timeline.returning}
        self.smallest = True
        self._machine = machine
        self._timeline = timeline
        self._numbers = numbers
        self._situations = situations
        self._steps = bounds.steps
        self._until = time.monotonic() + bounds.seconds

    def shrink(self) -> None:
        """Free large pieces first: most entries have nothing to do with the contradiction."""
        size = len(self.kept)
        while size > 1:
            size = (size + 1) // 2
            candidates = [number for number in self._numbers if number in self.kept]
            for first in range(0, len(candidates), size):
                if time.monotonic() > self._until:
                    self.smallest = False
                    return
                fewer = self.kept - set(candidates[first : first + size])
                verdict = self._verdict(fewer)
                if verdict is Verdict.NOT_LINEARIZABLE:
                    self.kept = fewer
                elif verdict is Verdict.UNKNOWN and size == 1:
                    self.smallest = False

    def _verdict(self, kept: set[int]) -> Verdict:
        """Decide exactly, if that is cheap; otherwise allow that free entries happen repeatedly."""
        entries = {number: self._timeline.entries[number] for number in self._numbers}
        timeline = Timeline.of(
            [
                entry
                for number, entry in entries.items()
                if number in kept or entry.returned is None
            ],
            self._machine,
            [
                entry
                for number, entry in entries.items()
                if number not in kept and entry.returned is not None
            ],
        )
        renumbered = {id(entry): number for number, entry in enumerate(timeline.entries)}
        starts = []
        for situation in self._situations:
            done = (id(entries[number]) for number in situation.done if number in entries)
            known = [renumbered[which] for which in done if which in renumbered]
            starts.append(_place(timeline, situation.state, known))
        verdict = Verdict.UNKNOWN
        for reuse in (False, True):
            search = Search(timeline, self._machine, reuse=reuse)
            verdict = search.run(starts, Budget(self._steps, self._until)).verdict
            if verdict is Verdict.NOT_LINEARIZABLE or (
                not reuse and verdict is Verdict.LINEARIZABLE
            ):
                return verdict
        return Verdict.UNKNOWN


def _place(timeline: Timeline, state: int, done: Sequence[int]) -> Place:
    base, window, used = 0, 0, 0
    for number in done:
        if number < timeline.returning:
            window |= 1 << number
        else:
            used |= 1 << (number - timeline.returning)
    while window & 1:
        base, window = base + 1, window >> 1
    return Place(base, window, used, state)


def _done(timeline: Timeline, place: Place) -> frozenset[int]:
    """The numbers of the entries that are done at a place."""
    window = range(place.base, place.base + place.window.bit_length())
    lost = range(timeline.returning, timeline.returning + place.used.bit_length())
    return frozenset(
        (
            *range(place.base),
            *(number for number in window if place.window >> (number - place.base) & 1),
            *(number for number in lost if place.used >> (number - timeline.returning) & 1),
        )
    )


def _lasts_until(entry: Entry, moment: float) -> bool:
    return entry.returned is None or entry.returned >= moment


def _blocked(timeline: Timeline, wall: int) -> Entry:
    return timeline.entries[-1 - timeline.nodes[wall]]


def _until_the_wall(timeline: Timeline, wall: int) -> list[int]:
    """The search never passed this return, so that later calls had no part in its failure."""
    end = _blocked(timeline, wall).returned
    assert end is not None
    entries = timeline.entries
    numbers = [number for number, entry in enumerate(entries) if entry.invoked <= end]
    return sorted(numbers, key=lambda number: entries[number].invoked)


def _overlapping(timeline: Timeline, near: Sequence[int]) -> list[int]:
    """Later calls that began before all of these returned: free, but they may help to explain."""
    chosen = [timeline.entries[number] for number in near]
    first = max(entry.invoked for entry in chosen)
    last = max(entry.returned for entry in chosen if entry.returned is not None)
    known = set(near)
    return [
        number
        for number, entry in enumerate(timeline.entries)
        if number not in known and first <= entry.invoked <= last
    ]


def _places_at(timeline: Timeline, found: Found, cut: float) -> set[Place]:
    """Where the search can stand when all that returned before `cut` is done, and nothing later.

    The failed search was exhaustive: it has visited all of these places.
    """
    returned = 0
    late = 0
    for number, entry in enumerate(timeline.entries):
        if entry.returned is not None and entry.returned < cut:
            returned = number + 1
        if entry.returned is not None and entry.invoked >= cut:
            late |= 1 << number
    return {
        Place(base, window, used, state)
        for (base, window, state), masks in found.seen.items()
        if base >= returned and not (late >> base) & window and not late & ((1 << base) - 1)
        for used in masks
    }
