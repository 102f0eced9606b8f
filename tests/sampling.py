"""Long rows of like cases: some of them in `make test`, all of them in `make quality`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def sampled(names: Iterable[Any], every: int) -> list[Any]:
    """Parameters of which only every so-manieth is quick; the same ones each time."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] if index % every else [])
        for index, name in enumerate(names)
    ]
