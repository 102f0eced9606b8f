"""The real space-os, when there is one: `MUTINY_SPACE_OS_BIN=/path/to/bin/spawn pytest -m space_os`.

space-os is an external program and no part of this repository. The findings in docs/findings/space-os.md
hold for the revisions named there; a newer one that keeps a promise again makes its replay fail here,
which is good news. `MUTINY_SPACE_OS_OLD_BIN` names the old revision.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.spawns.operations import OPERATIONS
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "space-os"
PROGRAMS = {
    "space-os": os.environ.get("MUTINY_SPACE_OS_BIN", ""),
    "space-os-old": os.environ.get("MUTINY_SPACE_OS_OLD_BIN", ""),
}
TRIES = 3
"""Some need two processes of space-os to meet."""

pytestmark = [
    pytest.mark.space_os,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not os.access(PROGRAMS["space-os"] or "/nowhere", os.X_OK),
        reason="the real space-os is not here: MUTINY_SPACE_OS_BIN names no executable program",
    ),
]


def run(replay: Replay, directory: Path, target: str) -> Outcome:
    bench = Bench(find_target(target, program=PROGRAMS[target]), directory)
    trial = RunDirectory.create(directory, latest=False)
    return bench.try_once(replay.operations, replay.seed, trial)


def test_one_mention_passes(tmp_path: Path) -> None:
    steps = find_target("space-os", program=PROGRAMS["space-os"]).contract().scenarios
    outcome = run(Replay(steps["one_mention"], "spawns"), tmp_path, "space-os")
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, "spawns")
    target = replay.target or "space-os"
    if not PROGRAMS[target]:
        pytest.skip("the old space-os is not here: MUTINY_SPACE_OS_OLD_BIN is not set")
    seen = []
    for _ in range(TRIES):
        outcome = run(replay, tmp_path, target)
        seen.append(outcome.rule or outcome.verdict.value)
        if replay.expect in outcome.rules:
            return
    pytest.fail(f"{path.name}: expected {replay.expect}, got {', '.join(seen)}")
