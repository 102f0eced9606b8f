"""The real LLMC, when there is one: `MUTINY_LLMC_BIN=/path/to/llmc pytest -m llmc`.

LLMC is an external program and no part of this repository. The findings in docs/findings/llmc.md
hold for the revision named there; a newer LLMC that keeps a promise again makes its replay fail
here, which is good news.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "llmc"
OTHER_REVISION = "20-"
"""Finding 20 is about the newest revision, whose manual commands do not work at all."""

TRIES = {"06-": 3, "19-": 15}
"""These need LLMC's own processes to meet in an unlucky moment."""

PROGRAM = os.environ.get("MUTINY_LLMC_BIN", "")

pytestmark = [
    pytest.mark.llmc,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not (PROGRAM and os.access(PROGRAM, os.X_OK)),
        reason="the real LLMC is not here: MUTINY_LLMC_BIN names no executable program",
    ),
]


def run(replay: Replay, directory: Path, target: str) -> Outcome:
    bench = Bench(find_target(target, program=PROGRAM), directory)
    trial = RunDirectory.create(directory, latest=False)
    return bench.try_once(replay.operations, replay.seed, trial)


def target_of(replay: Replay) -> str:
    name = replay.target or "llmc"
    return str(FINDINGS.parents[2] / name) if name.endswith(".toml") else name


def test_basic_lifecycle_passes(tmp_path: Path) -> None:
    outcome = run(Replay(SCENARIOS["basic_lifecycle"], "workers"), tmp_path, "llmc")
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(FINDINGS.glob("*.json")) if not path.name.startswith(OTHER_REVISION)],
    ids=lambda path: path.stem,
)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, "workers")
    seen = []
    for _ in range(TRIES.get(path.name[:3], 1)):
        outcome = run(replay, tmp_path, target_of(replay))
        seen.append(outcome.rule or outcome.verdict.value)
        if replay.expect in outcome.rules:
            return
    pytest.fail(f"{path.name}: expected {replay.expect}, got {', '.join(seen)}")
