"""The files that a user hands over: read once, whole, bounded, and refused in one clear line.

Insight: whatever such a file is (a pipe, a device, three gigabytes, a thousand brackets), the user gets
exit code 2 and what to do about it; so one place opens them, and everything behind it sees plain data of
a size and depth that ordinary code can walk through.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

from mutiny.errors import FormatError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_BYTES = 64 * 1024 * 1024
DEEPEST = 64
"""Levels of brackets; an operation inside another one takes two."""


def read_bytes(path: Path, what: str, *, largest: int = LARGEST_BYTES) -> bytes:
    """The content of a regular file; a pipe or a device is refused: reading it could wait for ever."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise UsageError(f"{path}: the {what} is no regular file; copy it into one")
            data = file.read(largest + 1)
    except (OSError, ValueError) as error:  # ValueError: a path that no system has
        told = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path}: cannot read the {what}: {told}") from error
    if len(data) > largest:
        raise UsageError(f"{path}: the {what} has more than {largest} bytes, which is too large")
    return data


def read_text(path: Path, what: str, *, largest: int = LARGEST_BYTES) -> str:
    """The same as text."""
    try:
        return read_bytes(path, what, largest=largest).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: the {what} is not UTF-8 text: {error.reason}") from error


def read_json(path: Path, what: str) -> Any:
    """The value that a JSON file stands for."""
    import json

    text = read_text(path, what)
    try:
        return shallow(json.loads(text))
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}: not valid JSON: {error.msg}"
        raise FormatError(str(path), [problem]) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(str(path), [f"not valid JSON: {_shortly(error)}"]) from error


def read_toml(path: Path, what: str) -> tuple[dict[str, Any], str]:
    """The tables of a TOML file, and its text, for the lines of mistakes."""
    import tomllib

    text = read_text(path, what)
    try:
        return shallow(tomllib.loads(text)), text
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise FormatError(str(path), [f"not valid TOML: {_shortly(error)}"]) from error


def shallow(value: Any) -> Any:
    """The value itself; ValueError when it is nested so deeply that nobody could mean it."""
    from mutiny import foreign

    return foreign.shallow(value, DEEPEST)


def _shortly(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    return str(error).partition(";")[0]
