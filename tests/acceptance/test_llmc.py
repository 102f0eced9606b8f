"""The real LLMC, when there is one: `MUTINY_LLMC_BIN=/path/to/llmc pytest -m llmc`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

# These need its own processes to meet in an unlucky moment.
REAL = RealProgram(
    "llmc", "MUTINY_LLMC_BIN", tries={"06-": 3, "19-": 15, "33-": 5, "39-": 8, "40-": 8}
)
OTHER_REVISION = "20-"
"""Finding 20 is about the newest revision, whose manual commands do not work at all."""

pytestmark = REAL.marks(pytest.mark.llmc, timeout_s=300)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    REAL.passes("basic_lifecycle", tmp_path)


@pytest.mark.parametrize("path", REAL.replays(OTHER_REVISION), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    REAL.reproduces(path, tmp_path)
