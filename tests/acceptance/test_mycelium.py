"""The real Mycelium, when there is one: `MUTINY_MYCELIUM_BIN=.../bin/mycelium pytest -m mycelium`.

Mycelium is an external program and no part of this repository. The findings in docs/findings/mycelium.md
hold for the revision named there; a newer one that keeps a promise again makes its replay fail here, which
is good news.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.batch.operations import OPERATIONS
from mutiny.contracts.batch.scenarios import SCENARIOS
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "docs" / "findings" / "mycelium"
TRIES = {"17-": 5, "20-": 5}
"""These need its own processes to meet in an unlucky moment."""
PROGRAM = os.environ.get("MUTINY_MYCELIUM_BIN", "")

pytestmark = [
    pytest.mark.mycelium,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (PROGRAM and os.access(PROGRAM, os.X_OK)),
        reason="the real Mycelium is not here: MUTINY_MYCELIUM_BIN names no executable program",
    ),
]


def run(replay: Replay, directory: Path) -> Outcome:
    name = replay.target or "mycelium"
    target = str(ROOT / name) if name.endswith(".toml") else name
    bench = Bench(find_target(target, program=PROGRAM), directory)
    trial = RunDirectory.create(directory, latest=False)
    return bench.try_once(replay.operations, replay.seed, trial)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    outcome = run(Replay(SCENARIOS["dependencies"], "batch"), tmp_path)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, "batch")
    seen = []
    for _ in range(TRIES.get(path.name[:3], 1)):
        outcome = run(replay, tmp_path)
        seen.append(outcome.rule or outcome.verdict.value)
        if replay.expect in outcome.rules:
            return
    pytest.fail(f"{path.name}: expected {replay.expect}, got {', '.join(seen)}")
