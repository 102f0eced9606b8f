"""How much of a line a screen can show.

A line that is redrawn in place must never reach the last column: it would wrap, and the next redraw would
begin one row lower and leave junk behind.
"""

from __future__ import annotations

import os
import unicodedata
from typing import TextIO

USUAL_COLUMNS = 80
FEWEST_COLUMNS = 10
"""A screen that says it has fewer is not believed."""
START = "\r"
CLEAR = "\r\x1b[K"


def is_live(stream: TextIO) -> bool:
    """Whether lines can be redrawn there: a terminal that knows how."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def columns_of(stream: TextIO) -> int:
    """The width of a terminal now: a window may be resized at any time."""
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # no terminal, no descriptor
        columns = 0
    if columns <= 0:
        asked = os.environ.get("COLUMNS", "")
        columns = int(asked) if asked.isdecimal() else USUAL_COLUMNS
    return max(columns, FEWEST_COLUMNS)


def can_write(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def cells(text: str) -> int:
    """How many columns a text takes."""
    return sum(_cells(character) for character in text)


def fit(text: str, columns: int, more: str = "…") -> str:
    """The text on one line, cut to so many columns; what moves the cursor is shown as a blank."""
    flat = "".join(one if one.isprintable() else " " for one in text)
    if cells(flat) <= columns:
        return flat
    room, kept = columns - cells(more), []
    for character in flat:
        room -= _cells(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + more


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
