"""The search for an order: Wing and Gong's algorithm with Lowe's memory, without recursion.

Operations stand in a linked list by time; one that is put next in the order is lifted out. What was
visited is remembered as (operations done, state), and three facts keep that small:

- operations done are a prefix by return time plus a narrow window, so that the bits of 10,000
  operations fit into one small number;
- an operation that reads only and fits now need not be tried later;
- having used fewer of the operations that never returned is never worse.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from mutiny.history.events import Entry
from mutiny.history.models import Action, Model, State

IMPOSSIBLE = -1
CLOCK_EVERY = 16
"""Steps between two looks at the clock: a look costs less than a step, and a step can be slow."""


class Verdict(StrEnum):
    """What is known about a history."""

    LINEARIZABLE = "linearizable"
    NOT_LINEARIZABLE = "not_linearizable"
    UNKNOWN = "unknown"


@dataclass
class Budget:
    """How much may be spent: steps of the search, and a moment (of `time.monotonic`) to stop at."""

    steps: int
    until: float = math.inf

    def spent(self) -> bool:
        """Take one step; true when there are none left."""
        self.steps -= 1
        return self.steps < 0 or (self.steps % CLOCK_EVERY == 0 and time.monotonic() > self.until)


class Machine:
    """A model with states and actions as small numbers, and each step computed once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.reads_only: list[bool] = []
        self._states: dict[State, int] = {}
        self._actions: dict[Action, int] = {}
        self._state_list: list[State] = []
        self._action_list: list[Action] = []
        self._rows: list[dict[int, int]] = []

    def state(self, state: State) -> int:
        """The number of a state."""
        number = self._states.setdefault(state, len(self._states))
        if number == len(self._state_list):
            self._state_list.append(state)
            self._rows.append({})
        return number

    def action(self, entry: Entry) -> int:
        """The number of an entry's action."""
        action = self.model.action(entry)
        number = self._actions.setdefault(action, len(self._actions))
        if number == len(self._action_list):
            self._action_list.append(action)
            self.reads_only.append(self.model.reads_only(action))
        return number

    def known_steps(self, state: int) -> Mapping[int, int]:
        """The steps from a state that were computed before: action -> next state or `IMPOSSIBLE`."""
        return self._rows[state]

    def step(self, state: int, action: int) -> int:
        """The number of the next state, or `IMPOSSIBLE`."""
        after = self.model.step(self._state_list[state], self._action_list[action])
        number = IMPOSSIBLE if after is None else self.state(after)
        self._rows[state][action] = number
        return number

    def describe(self, state: int) -> str:
        """A state in a few words."""
        return self.model.describe(self._state_list[state])


class Place(NamedTuple):
    """Where a search stands: everything that decides how it can go on."""

    base: int
    """The first so many operations by return time are done."""
    window: int
    """Bits of the operations done after those."""
    used: int
    """Bits of the operations done that never returned."""
    state: int


@dataclass(frozen=True)
class Timeline:
    """The entries of one part, numbered by their return; those that never returned come last."""

    entries: tuple[Entry, ...]
    actions: tuple[int, ...]
    returning: int
    """How many entries have a return."""
    nodes: tuple[int, ...]
    """Invocations (entry number) and returns (-1 - entry number) in the order of time."""
    open_calls: tuple[tuple[int, int, int], ...]
    """Entries that never returned: (number of nodes before it, number, bit of an earlier twin)."""

    @classmethod
    def of(
        cls, entries: Sequence[Entry], machine: Machine, freed: Collection[Entry] = ()
    ) -> Timeline:
        """Sort and number the entries; those that are `freed` count as if they had no return."""
        ended = [entry for entry in entries if entry.returned is not None]
        ended.sort(key=lambda entry: (entry.returned, entry.invoked))
        # What only reads and need not have happened says nothing at all.
        lost = [
            entry
            for entry in (*freed, *(entry for entry in entries if entry.returned is None))
            if not machine.reads_only[machine.action(entry)]
        ]
        lost.sort(key=lambda entry: entry.invoked)
        ordered = (*ended, *lost)
        events: list[tuple[float, int, int]] = []
        for number, entry in enumerate(ended):
            assert entry.returned is not None
            # At equal times the invocation comes first: the benefit of the doubt is concurrency.
            events += [(entry.invoked, 0, number), (entry.returned, 1, -1 - number)]
        events.sort(key=lambda event: event[:2])
        actions = tuple(machine.action(entry) for entry in ordered)
        return cls(
            entries=ordered,
            actions=actions,
            returning=len(ended),
            nodes=tuple(node for *_, node in events),
            open_calls=tuple(_open_calls(lost, actions[len(ended) :], events, len(ended))),
        )


def _open_calls(
    lost: Sequence[Entry],
    actions: Sequence[int],
    events: Sequence[tuple[float, int, int]],
    first: int,
) -> list[tuple[int, int, int]]:
    """Of twins (equal actions without a return) the later one is of use only after the earlier one."""
    found, before = [], 0
    twins: dict[int, int] = {}
    for place, (entry, action) in enumerate(zip(lost, actions, strict=True)):
        while before < len(events) and events[before][:2] < (entry.invoked, 1):
            before += 1
        found.append((before, first + place, twins.get(action, 0)))
        twins[action] = 1 << place
    return found


@dataclass
class Found:
    """What a search gave."""

    verdict: Verdict
    order: list[int] = field(default_factory=list)
    """The longest order found, as numbers of entries."""
    final: int = 0
    """The state after it."""
    wall: int = -1
    """The farthest node (a return) that any order stood before; of a failure, one that none passed."""
    seen: dict[tuple[int, int, int], list[int]] = field(default_factory=dict)
    """All places visited: (base, window, state) -> the sets of lost operations used."""

    def keep(self, order: list[int], place: Place) -> None:
        """At a dead end: keep the longest order."""
        if len(order) > len(self.order):
            self.order, self.final = order.copy(), place.state


_Frame = tuple[list[tuple[int, int]], int, Place]


class Search:
    """One search over one timeline.

    With `reuse` an operation that never returned may happen any number of times. That allows more
    orders than there are, but it is quick: a failure stays a failure.
    """

    def __init__(self, timeline: Timeline, machine: Machine, *, reuse: bool = False) -> None:
        self.timeline = timeline
        self._reuse = reuse
        self.machine = machine
        nodes = timeline.nodes
        # Node 0 stands before all others and node len(nodes) + 1 after them.
        self._next = list(range(1, len(nodes) + 2))
        self._previous = list(range(-1, len(nodes) + 1))
        self._call_node = [0] * timeline.returning
        self._return_node = [0] * timeline.returning
        for position, node in enumerate(nodes, 1):
            if node >= 0:
                self._call_node[node] = position
            else:
                self._return_node[-1 - node] = position
        self.wall = 0

    def run(self, starts: Sequence[Place], budget: Budget) -> Found:
        """Look for an order from any of the places; not linearizable only if there is none from all."""
        found = Found(Verdict.NOT_LINEARIZABLE)
        for start in starts:
            done = [
                number
                for number in range(self.timeline.returning)
                if number < start.base or start.window >> (number - start.base) & 1
            ]
            for number in done:
                self._lift(number)
            verdict = self._from(start, budget, found)
            if verdict is not Verdict.NOT_LINEARIZABLE:
                found.verdict = verdict
                break
            for number in reversed(done):
                self._put_back(number)
        found.wall = self.wall - 1
        return found

    def _from(self, place: Place, budget: Budget, found: Found) -> Verdict:
        frames: list[_Frame] = []
        order: list[int] = []
        choices, position = self._choices(place), 0
        while choices is not None:
            moved = False
            while position < len(choices):
                number, after = choices[position]
                position += 1
                following = self._after(place, number, after)
                if not _is_new(found.seen, following):
                    continue
                if budget.spent():
                    found.keep(order, place)
                    return Verdict.UNKNOWN
                frames.append((choices, position, place))
                order.append(number)
                if number < self.timeline.returning:
                    self._lift(number)
                place, position, moved = following, 0, True
                choices = self._choices(place)
                break
            if moved:
                continue
            found.keep(order, place)
            if not frames:
                return Verdict.NOT_LINEARIZABLE
            choices, position, place = frames.pop()
            number = order.pop()
            if number < self.timeline.returning:
                self._put_back(number)
        found.order, found.final = order, place.state
        return Verdict.LINEARIZABLE

    def _choices(self, place: Place) -> list[tuple[int, int]] | None:
        """What can come next, with the state after it; None when everything is in order."""
        nodes, following = self.timeline.nodes, self._next
        actions, machine = self.timeline.actions, self.machine
        state = place.state
        known = machine.known_steps(state)
        found: list[tuple[int, int]] = []
        position, end = following[0], len(nodes) + 1
        while position < end and (number := nodes[position - 1]) >= 0:
            action = actions[number]
            after = known.get(action)
            if after is None:
                after = machine.step(state, action)
            if after == state and machine.reads_only[action]:
                return [(number, after)]
            if after != IMPOSSIBLE:
                found.append((number, after))
            position = following[position]
        if position == end:
            return None
        self.wall = max(self.wall, position)
        # Those that never returned come last: most of them have never happened.
        for before, number, twin in self.timeline.open_calls:
            if before >= position:
                break
            bit = 1 << (number - self.timeline.returning)
            if place.used & bit or (twin and not place.used & twin):
                continue
            after = known.get(actions[number])
            if after is None:
                after = machine.step(state, actions[number])
            if after not in (IMPOSSIBLE, state):
                found.append((number, after))
        return found

    def _after(self, place: Place, number: int, state: int) -> Place:
        base, window, used, _ = place
        if number >= self.timeline.returning:
            bit = 0 if self._reuse else 1 << (number - self.timeline.returning)
            return Place(base, window, used | bit, state)
        window |= 1 << (number - base)
        if window & 1:
            ones = (~window & (window + 1)).bit_length() - 1
            base, window = base + ones, window >> ones
        return Place(base, window, used, state)

    def _lift(self, number: int) -> None:
        following, previous = self._next, self._previous
        for node in (self._call_node[number], self._return_node[number]):
            following[previous[node]] = following[node]
            previous[following[node]] = previous[node]

    def _put_back(self, number: int) -> None:
        following, previous = self._next, self._previous
        for node in (self._return_node[number], self._call_node[number]):
            following[previous[node]] = node
            previous[following[node]] = node


def _is_new(seen: dict[tuple[int, int, int], list[int]], place: Place) -> bool:
    """Remember a place; false when one at least as good was visited before."""
    base, window, used, state = place
    known = seen.get((base, window, state))
    if known is None:
        seen[base, window, state] = [used]
        return True
    if any(other & used == other for other in known):
        return False
    known.append(used)
    return True


def start_of(machine: Machine, key: str) -> Place:
    """The place before anything happened."""
    return Place(0, 0, 0, machine.state(machine.model.initial(key)))
