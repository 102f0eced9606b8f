"""The real Selfware, when there is one: `MUTINY_SELFWARE_BIN=.../selfware pytest -m selfware`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

# Two processes must be seen before they are at their end.
REAL = RealProgram("selfware", "MUTINY_SELFWARE_BIN", tries={"08-": 3})

pytestmark = REAL.marks(pytest.mark.selfware, timeout_s=900)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    REAL.passes("in_one_go", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    REAL.reproduces(path, tmp_path)
