"""The real space-os, when there is one: `MUTINY_SPACE_OS_BIN=/path/to/bin/spawn pytest -m space_os`.

`MUTINY_SPACE_OS_OLD_BIN` names the old revision.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from real_programs import RealProgram

# Some need two processes of space-os to meet, or a kill between two of its steps.
REAL = RealProgram("space-os", "MUTINY_SPACE_OS_BIN", tries={"": 3, "14-": 8, "16-": 8})
OLD = os.environ.get("MUTINY_SPACE_OS_OLD_BIN", "")

pytestmark = REAL.marks(pytest.mark.space_os)


def test_one_mention_passes(tmp_path: Path) -> None:
    REAL.passes("one_mention", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    old = '"target": "space-os-old"' in path.read_text(encoding="utf-8")
    if old and not OLD:
        pytest.skip("the old space-os is not here: MUTINY_SPACE_OS_OLD_BIN is not set")
    REAL.reproduces(path, tmp_path, OLD if old else "")
