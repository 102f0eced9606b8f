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
