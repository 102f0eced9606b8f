"""The real par, when there is one: `MUTINY_PAR_BIN=/path/to/bin/par pytest -m par`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

# Some need two processes of par to meet.
REAL = RealProgram("par", "MUTINY_PAR_BIN", tries={"": 5})

pytestmark = REAL.marks(pytest.mark.par, timeout_s=600)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    REAL.passes("basic_lifecycle", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    REAL.reproduces(path, tmp_path)
