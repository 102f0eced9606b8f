"""Real public boards, those that are here: `MUTINY_CLAWCTL_BIN=/path/to/bin/clawctl pytest -m boards`.

They are external programs and no part of this repository. The findings in docs/findings hold for the
versions named there; a newer one that keeps a promise makes its replay fail here, which is good news.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.board.operations import OPERATIONS
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
PROGRAMS = {
    "beads": os.environ.get("MUTINY_BEADS_BIN", ""),
    "backlog-md": os.environ.get("MUTINY_BACKLOG_BIN", ""),
    "clawctl": os.environ.get("MUTINY_CLAWCTL_BIN", ""),
}
REPLAYS = sorted(path for name in PROGRAMS for path in (FINDINGS / name).glob("*.json"))

pytestmark = [pytest.mark.boards, pytest.mark.timeout(600)]


def run(name: str, replay: Replay, directory: Path) -> Outcome:
    program = PROGRAMS[name]
    if not os.access(program or "/nowhere", os.X_OK):
        pytest.skip(f"the real {name} is not here")
    bench = Bench(find_target(name, program=program), directory)
    trial = RunDirectory.create(directory, latest=False)
    return bench.try_once(replay.operations, replay.seed, trial)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_ordinary_way_passes(name: str, tmp_path: Path) -> None:
    steps = find_target(name, program="/bin/true").contract().scenarios["ready_tasks"]
    outcome = run(name, Replay(steps, "board"), tmp_path)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, "board")
    outcome = run(path.parent.name, replay, tmp_path)
    assert replay.expect in outcome.rules, outcome.steps[-1]
