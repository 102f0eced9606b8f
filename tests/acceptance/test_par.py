"""The real par, when there is one: `MUTINY_PAR_BIN=/path/to/bin/par pytest -m par`.

par is an external program and no part of this repository. The findings in docs/findings/par.md hold for the
version named there; a newer one that keeps a promise again makes its replay fail here, which is good news.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "par"
PROGRAM = os.environ.get("MUTINY_PAR_BIN", "")
TRIES = 5
"""One of them needs two processes of par to meet."""

pytestmark = [
    pytest.mark.par,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not os.access(PROGRAM or "/nowhere", os.X_OK),
        reason="the real par is not here: MUTINY_PAR_BIN names no executable program",
    ),
]


def run(replay: Replay, directory: Path) -> Outcome:
    bench = Bench(find_target("par", program=PROGRAM), directory)
    trial = RunDirectory.create(directory, latest=False)
    return bench.try_once(replay.operations, replay.seed, trial)


def test_the_ordinary_way_passes(tmp_path: Path) -> None:
    steps = find_target("par", program=PROGRAM).contract().scenarios["basic_lifecycle"]
    outcome = run(Replay(steps, "workers"), tmp_path)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, "workers")
    seen = []
    for _ in range(TRIES):
        outcome = run(replay, tmp_path)
        seen.append(outcome.rule or outcome.verdict.value)
        if replay.expect in outcome.rules:
            return
    pytest.fail(f"{path.name}: expected {replay.expect}, got {', '.join(seen)}")
