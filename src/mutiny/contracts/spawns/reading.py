"""What is read in an answer: the numbers of runs and messages, and lists of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mutiny.model.result import OperationResult

NAMED_BY = -1
"""Where a command line says which run it means."""


def named(result: OperationResult) -> int:
    """The run that a command line names."""
    return number_of(result.argv[NAMED_BY]) if result.argv else 0


def number_of(said: object) -> int:
    """The number of a run or a message as a target writes it: 12, or `s12`; 0: there is none."""
    text = str(said).lstrip("s")
    return int(text) if text.isdigit() else 0


def objects(said: object) -> Iterator[Mapping[str, Any]]:
    """The rows of a list; of anything else none."""
    return (one for one in (said if isinstance(said, list) else ()) if isinstance(one, Mapping))
