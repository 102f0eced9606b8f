"""What a program that works in the background has to complain about, to whoever reads its log."""

from __future__ import annotations

import contextlib
import sys


def complain(text: str) -> None:
    """One line. The disk that is full may be the one on which the complaint would stand: it ends nobody."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")
