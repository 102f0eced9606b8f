"""A bench for each of the three boards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_bench import PATIENT, Bench, MakeBench

from longboat.board.config import Config


@pytest.fixture
def make_bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeBench]:
    """Make a board of a kind, with settings; in memory where there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:

        def make(
            kind: str, name: str = "board", config: Config = PATIENT, **settings: object
        ) -> Bench:
            return Bench(kind, Path(place) / name, monkeypatch, config._replace(**settings))

        yield make


@pytest.fixture(params=["A", "B", "C"])
def bench(request: pytest.FixtureRequest, make_bench: MakeBench) -> Bench:
    """Each of the three."""
    return make_bench(request.param)
