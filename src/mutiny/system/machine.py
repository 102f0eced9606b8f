"""How busy this machine is."""

from __future__ import annotations

import os


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
    return max(1.0, wanting / (os.cpu_count() or 1))
