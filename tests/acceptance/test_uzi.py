"""The real uzi, when there is one: `MUTINY_UZI_BIN=/path/to/uzi pytest -m uzi`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

# One needs two processes of uzi to meet.
REAL = RealProgram("uzi", "MUTINY_UZI_BIN", tries={"04": 5})

pytestmark = REAL.marks(pytest.mark.uzi, timeout_s=600)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    REAL.passes("work_survives_restart", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    REAL.reproduces(path, tmp_path)
