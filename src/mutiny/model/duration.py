"""Spans of time as people write them: `30s`, `500ms`, `10 minutes`, `1m30s`."""

from __future__ import annotations

import re

_UNITS = {
    "ms": 0.001,
    "millisecond": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
}
_ONE = r"\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|sec|s|minutes?|mins?|m|hours?|h)"
PATTERN = rf"{_ONE}(?:\s*{_ONE})*"
"""A regular expression for one span."""
_PART = r"(\d+(?:\.\d+)?)\s*([a-z]+)"
LONGEST_S = 24 * 3600.0


def parse_duration(text: str) -> float:
    """Seconds; ValueError says what is wrong and how it is written."""
    plain = text.strip().lower()
    if not re.fullmatch(PATTERN, plain):
        raise ValueError(f"{text!r} is no span of time; write it as 500ms, 30s or 10 minutes")
    seconds = 0.0
    for number, unit in re.findall(_PART, plain):
        word = unit if unit in _UNITS else unit.rstrip("s")
        seconds += float(number) * _UNITS[word]
    if seconds > LONGEST_S:
        raise ValueError(f"{text!r} is longer than a day")
    return seconds


def show_duration(seconds: float) -> str:
    """Short form for people."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} minutes"
