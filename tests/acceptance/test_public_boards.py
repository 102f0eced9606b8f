"""Real public boards, those that are here: `MUTINY_CLAWCTL_BIN=/path/to/bin/clawctl pytest -m boards`."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_programs import RealProgram

BOARDS = (
    RealProgram("beads", "MUTINY_BEADS_BIN"),
    RealProgram("backlog-md", "MUTINY_BACKLOG_BIN"),
    RealProgram("clawctl", "MUTINY_CLAWCTL_BIN"),
    RealProgram("claimd", "MUTINY_CLAIMD_BIN"),
    # One needs processes to meet.
    RealProgram("agent-tasks", "MUTINY_AGENT_TASKS_BIN", tries={"03": 5}),
)


def _each(real: RealProgram, *values: object, name: str) -> object:
    return pytest.param(real, *values, marks=real.marks(pytest.mark.boards, timeout_s=600), id=name)


@pytest.mark.parametrize("real", [_each(real, name=real.target) for real in BOARDS])
def test_an_ordinary_run_passes(real: RealProgram, tmp_path: Path) -> None:
    real.passes("ready_tasks", tmp_path)


@pytest.mark.parametrize(
    ("real", "path"),
    [
        _each(real, path, name=f"{real.target}-{path.stem}")
        for real in BOARDS
        for path in real.replays()
    ],
)
def test_finding_reproduces(real: RealProgram, path: Path, tmp_path: Path) -> None:
    real.reproduces(path, tmp_path)
