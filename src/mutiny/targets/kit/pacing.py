"""Measuring the pace of a run: what the target's commands take, and how crowded the machine is."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable

from mutiny.model.pace import Pace
from mutiny.system.machine import crowding

REMEMBERED_S = 60.0
APART_S = 0.2
"""Looks that follow one another faster than this are one moment."""
HIGH = 0.9
"""So much of the last minute was no more crowded than what is called its worst."""
COMMANDS_REMEMBERED = 50


def at_pace(turn: str, pace: Pace) -> str:
    """What an agent is told to do, at this pace: `slow:900` lasts so much longer on a crowded machine that
    what should happen meanwhile still does.
    """
    name, colon, milliseconds = turn.partition(":")
    if name not in ("slow", "unfinished") or not milliseconds.isdigit():
        return turn
    return f"{name}{colon}{round(pace.stretched(int(milliseconds)))}"


class Pacing:
    """The pace of one run, from its beginning to now; asked by its steps and by the probe beside them."""

    def __init__(
        self,
        crowded: Callable[[], float] = crowding,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._crowded = crowded
        self._clock = clock
        self._commands: deque[float] = deque(maxlen=COMMANDS_REMEMBERED)
        self._samples: deque[tuple[float, float]] = deque()
        self._lock = threading.Lock()

    def took(self, seconds: float) -> None:
        """A command of the target has ended after so long."""
        with self._lock:
            self._commands.append(seconds)

    def now(self) -> Pace:
        """The crowding of the last minute at its worst, for what is late now was held up then; one moment
        among many proves nothing.
        """
        at, crowded = self._clock(), self._crowded()
        with self._lock:
            if not self._samples or at - self._samples[-1][0] >= APART_S:
                self._samples.append((at, crowded))
            while self._samples[0][0] < at - REMEMBERED_S:
                self._samples.popleft()
            usual = statistics.median(self._commands) if self._commands else 0.0
            crowding = sorted(sample for _, sample in self._samples)
            return Pace(crowding[int(HIGH * (len(crowding) - 1))], usual)
