"""The real Mycelium, when there is one: `MUTINY_MYCELIUM_BIN=.../bin/mycelium pytest -m mycelium`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

# These need its own processes to meet in an unlucky moment.
REAL = RealProgram("mycelium", "MUTINY_MYCELIUM_BIN", tries={"17-": 5, "20-": 5})

pytestmark = REAL.marks(pytest.mark.mycelium, timeout_s=900)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    REAL.passes("dependencies", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    REAL.reproduces(path, tmp_path)
