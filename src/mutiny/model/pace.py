"""How fast things go in this run, and what that makes of a limit. Shared by all contracts.

Insight: slow is not stuck. A limit in a target's file is meant for a quiet machine and for commands that
take what they usually take, so it grows with both as they are measured; and it counts from the last
visible progress, not from the beginning. Only what has not moved for a whole limit is stuck. Who still
moves after `BOUND` limits is slow, and of the slow nothing is known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

BOUND = 4
"""A wait ends after so many times its limit, even while there is progress."""
COMMANDS = 10
"""No limit is shorter than so many of the target's usual commands."""
MOST_CROWDING = 4.0
"""No limit grows by more than this because others use the machine."""
MOST_LAG = 2.0
"""A lag, and the time limit of a command, grow less by it: what is wrong for a while and then heals must
still be seen, and a command that hangs hangs for ever.
"""


@dataclass(frozen=True)
class Pace:
    """What was measured: how crowded the machine is, and how long a command of the target takes."""

    crowding: float = 1.0
    command_s: float = 0.0

    def limit(self, given_s: float) -> float:
        """What a limit means at this pace."""
        return max(self.stretched(given_s), COMMANDS * self.command_s)

    def stretched(self, given_s: float) -> float:
        """A span that something is made to last, so that what should happen meanwhile still does."""
        return given_s * min(max(1.0, self.crowding), MOST_CROWDING)

    def lag(self, given_s: float) -> float:
        """What a target's lag means at this pace."""
        return given_s * min(max(1.0, self.crowding), MOST_LAG)

    def within(self, given_s: float) -> float:
        """A moment while a command still runs: one that comes later than commands usually take is counted
        from their beginning again, so that a machine twice as fast is not left alone.
        """
        return given_s % self.command_s if 0 < self.command_s <= given_s else given_s

    def answer(self, given_s: float) -> float:
        """A command's time limit at this pace: where all commands are slow, one more is no news."""
        return max(self.lag(given_s), min(COMMANDS * self.command_s, BOUND * given_s))


class Patience:
    """One wait: over when nothing new was seen for a whole limit, or after `BOUND` limits."""

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit_s = limit_s
        self._clock = clock
        self._started = self._moved = clock()
        self._known: set[Hashable] = set()

    def grow(self, limit_s: float) -> None:
        """Things go slower than they did when the wait began: the slowest pace of a wait is its pace."""
        self.limit_s = max(self.limit_s, limit_s)

    def saw(self, standing: Hashable) -> None:
        """How things stand now; only what was never so before counts, so that no circle is progress."""
        if standing not in self._known:
            if self._known:
                self._moved = self._clock()
            self._known.add(standing)

    @property
    def stuck(self) -> bool:
        """Nothing has moved for a whole limit."""
        return self._clock() - self._moved >= self.limit_s

    @property
    def over(self) -> bool:
        """There is nothing more to wait for."""
        return self.stuck or self._clock() - self._started >= BOUND * self.limit_s

    @property
    def left_s(self) -> float:
        """How long it may still take before anything is decided."""
        now = self._clock()
        bound = self._started + BOUND * self.limit_s
        return max(0.0, min(self._moved + self.limit_s, bound) - now)
