"""How many processors this machine gives us, and how busy they are."""

from __future__ import annotations

import os

RUNS_A_CORE = 2
"""Runs wait more than they work: with two a core the processors are busy, with more they only queue."""


def cores() -> int:
    """The processors that this process may use, which can be fewer than there are."""
    return max(1, len(os.sched_getaffinity(0)))


def runs_at_once() -> int:
    """How many runs go side by side where nobody says how many."""
    return RUNS_A_CORE * cores()


def crowding() -> float:
    """How many processes want each processor now, or did in the last minute: 1 on a quiet machine.

    The average alone comes too late for a short rush, the moment alone misses what has just been.
    """
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            fields = file.read().split()
        wanting = max(float(fields[0]), float(fields[3].partition("/")[0]))
    except (OSError, ValueError, IndexError):
        wanting = os.getloadavg()[0]
    return max(1.0, wanting / cores())
