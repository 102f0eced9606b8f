"""Text that a target wrote, read without trusting it: JSON of any depth, and lines as files have them.

Insight: to Python a thousand brackets are an error of another kind than a missing one, and U+2028 in a
text ends a line. To whoever wrote the file neither is so. What a target may write comes through here.
"""

from __future__ import annotations

import json
import re
from typing import Any

_END = re.compile(r"\r\n|\r|\n")
DEEPEST = 200
"""Levels of brackets. What is nested more deeply nobody could walk through afterwards."""


def parse(text: str | bytes) -> Any:
    """The JSON value that a text is; ValueError whatever is wrong with it."""
    try:
        return shallow(json.loads(text))
    except RecursionError:
        raise _too_deep(DEEPEST) from None


def parse_beginning(text: str) -> Any:
    """The JSON value with which a text begins, whatever follows."""
    try:
        return shallow(json.JSONDecoder().raw_decode(text)[0])
    except RecursionError:
        raise _too_deep(DEEPEST) from None


def shallow(value: Any, deepest: int = DEEPEST) -> Any:
    """The value itself; ValueError when it is nested so deeply that nobody could mean it."""
    level: list[Any] = [value]
    for _ in range(deepest):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return value
    raise _too_deep(deepest)


def _too_deep(deepest: int) -> ValueError:
    return ValueError(f"nested more than {deepest} levels deep")


def lines(text: str) -> list[str]:
    """The lines of a text, by what ends one to every program: not by what a text in JSON may hold."""
    found = _END.split(text)
    return found if found[-1] else found[:-1]
