"""Session time: it runs while the session does, and stands still while it is paused.

Everything waits by deadlines on this clock; the wall clock is only written down, so that a jump of it
changes nothing.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

Action = Callable[[], None]


class Clock:
    """Seconds of the session, and what is due when."""

    def __init__(self, elapsed_s: float = 0.0) -> None:
        self._elapsed_s = elapsed_s
        self._since: float | None = time.monotonic()
        self._counter = itertools.count()
        self._timers: list[tuple[float, int, Action]] = []

    def now(self) -> float:
        """Seconds of session time."""
        running_s = 0.0 if self._since is None else time.monotonic() - self._since
        return self._elapsed_s + running_s

    def pause(self) -> None:
        """Time stands still from now on."""
        self._elapsed_s, self._since = self.now(), None

    def resume(self) -> None:
        """Time goes on."""
        if self._since is None:
            self._since = time.monotonic()

    def after(self, wait_s: float, action: Action) -> None:
        """Do this so much later; not while the session is paused."""
        heapq.heappush(self._timers, (self.now() + wait_s, next(self._counter), action))

    def next_due_s(self) -> float | None:
        """How long nothing is due; None: nothing will be."""
        if self._since is None or not self._timers:
            return None
        return max(0.0, self._timers[0][0] - self.now())

    def run_due(self) -> None:
        """Do everything that is due now."""
        now_s = self.now()
        while self._since is not None and self._timers and self._timers[0][0] <= now_s:
            heapq.heappop(self._timers)[2]()
