"""Long rows of like cases: some of them in `make test`, all of them in `make quality`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(names: Iterable[Any], every: int) -> list[Any]:
    """Parameters of which only every so-manieth is quick; the same ones each time."""
    return sampled_rows([(name,) for name in names], every)


def sampled_rows(rows: Iterable[tuple[Any, ...]], every: int) -> list[Any]:
    """The same for rows of several parameters."""
    return [
        pytest.param(*row, marks=[pytest.mark.slow] if index % every else [])
        for index, row in enumerate(rows)
    ]
