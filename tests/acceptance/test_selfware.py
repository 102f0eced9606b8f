"""The real Selfware, when there is one: `MUTINY_SELFWARE_BIN=.../target/debug/selfware pytest -m selfware`.

Selfware is an external program and no part of this repository. The findings in docs/findings/selfware.md
hold for the revision named there; a newer one that keeps a promise again makes its replay fail here, which
is good news.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.session.operations import OPERATIONS
from mutiny.contracts.session.scenarios import SCENARIOS
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / "docs" / "findings" / "selfware"
TRIES = {"08-": 3}
"""Two processes must be seen before they are at their end."""
PROGRAM = os.environ.get("MUTINY_SELFWARE_BIN", "")

pytestmark = [
    pytest.mark.selfware,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not (PROGRAM and os.access(PROGRAM, os.X_OK)),
        reason="the real Selfware is not here: MUTINY_SELFWARE_BIN names no executable program",
    ),
]


def run(replay: Replay, directory: Path) -> Outcome:
    name = replay.target or "selfware"
    target = str(ROOT / name) if name.endswith(".toml") else name
    bench = Bench(find_target(target, program=PROGRAM), directory)
    trial = RunDirectory.create(directory, latest=False)
    return bench.try_once(replay.operations, replay.seed, trial)


def test_an_ordinary_run_passes(tmp_path: Path) -> None:
    outcome = run(Replay(SCENARIOS["in_one_go"], "session"), tmp_path)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, "session")
    seen = []
    for _ in range(TRIES.get(path.name[:3], 1)):
        outcome = run(replay, tmp_path)
        seen.append(outcome.rule or outcome.verdict.value)
        if replay.expect in outcome.rules:
            return
    pytest.fail(f"{path.name}: expected {replay.expect}, got {', '.join(seen)}")
