"""What machine this is, in one line. (`platform` reads the interpreter's own binary to find out.)"""

from __future__ import annotations

import os


def machine_text() -> str:
    """System, release, processor and C library: `Linux-6.1.0-x86_64-with-glibc2.36`."""
    known = os.uname()
    try:
        library = (os.confstr("CS_GNU_LIBC_VERSION") or "").replace(" ", "")
    except (OSError, ValueError):  # another C library than GNU's does not say
        library = ""
    parts = [known.sysname, known.release, known.machine]
    return "-".join([*parts, f"with-{library}"] if library else parts)


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
