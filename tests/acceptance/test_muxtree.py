"""The real muxtree, when there is one: `MUTINY_MUXTREE_BIN=/path/to/muxtree pytest -m muxtree`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

REAL = RealProgram("muxtree", "MUTINY_MUXTREE_BIN")

pytestmark = REAL.marks(pytest.mark.muxtree, timeout_s=600)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    REAL.passes("basic_lifecycle", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    REAL.reproduces(path, tmp_path)
