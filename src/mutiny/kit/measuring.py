"""What a run has shown in figures, beside its verdict: an ability that a contract may have.

The ability `measure` is a function from the lines of a journal, as they stand in `operations.jsonl`, to a
`Measured`: the same run measured twice gives the same figures, and nothing but the journal is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Line = Mapping[str, Any]
"""One line of a journal."""


@dataclass(frozen=True)
class Bar:
    """Something that lasted and was started by something else; seconds from the beginning."""

    id: str
    name: str
    parent: str
    """The id of what started it; empty: it stands for itself."""
    begin_s: float
    end_s: float
    """When it ended, or was last seen."""
    status: str
    note: str = ""
    waited_s: float = 0.0
    """For so long it waited before it began."""
    open: bool = False
    """It had not ended."""


@dataclass(frozen=True)
class Measured:
    """The figures of one run."""

    figures: Mapping[str, object]
    """As `summary.json` holds them: plain values and tables by name."""
    rows: tuple[tuple[str, str], ...]
    """The same for people: what, and how much."""
    tables: Mapping[str, tuple[tuple[str, ...], ...]]
    """Tables by their title; the first row names the columns."""
    bars: tuple[Bar, ...] = ()


Measure = Callable[[Sequence[Line]], "Measured | None"]
"""None: there was nothing to measure."""
