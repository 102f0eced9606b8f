"""How much of a line a screen can show.

A line that is redrawn in place must never reach the last column: it would wrap, and the next redraw would
begin one row lower and leave junk behind.
"""

from __future__ import annotations

import os
import textwrap
import unicodedata
from typing import TextIO

USUAL_COLUMNS = 80
FEWEST_COLUMNS = 10
"""A screen that says it has fewer is not believed."""
LEAST_PROSE = 30
"""So many columns are left for text that goes on below itself, however far to the right it began."""
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


def wrapped(text: str, stream: TextIO, hanging: int = 4) -> list[str]:
    """The lines of a text as a terminal should show it: no word is broken, and every line but the first
    begins `hanging` columns to the right. A file or a pipe gets the text as it is.
    """
    columns = columns_of(stream)
    if not stream.isatty() or cells(text) <= columns:
        return [text]
    shape = textwrap.TextWrapper(columns, break_long_words=False, break_on_hyphens=False)
    shape.subsequent_indent = " " * max(min(hanging, columns - LEAST_PROSE), 0)
    return shape.wrap(text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
