"""The real coordination system, when it is here: `MUTINY_COORDINATION=/path pytest -m coordination`.

The directory holds `src` (a checkout of Fergonz1993/CC-andCCs, option B built), `venv` (option C as it
is) and `venv-fixed` (option C with the constant that it forgot). It is no part of this repository. A
newer revision that keeps a promise again makes its replay fail here, which is good news.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mutiny.contracts.board.operations import OPERATIONS
from mutiny.engine.replay import load
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

FINDINGS = Path(__file__).parents[2] / "docs" / "findings" / "coordination"
PLACE = Path(os.environ.get("MUTINY_COORDINATION", "nowhere"))
PROGRAMS = {
    "coordination-a": PLACE / "src/claude-multi-agent/option-a-file-based/coordination.py",
    "coordination-b": PLACE / "src/claude-multi-agent/option-b-mcp-broker/dist/index.js",
    "coordination-c": PLACE / "venv-fixed/bin/python",
}
UNFIXED = PLACE / "venv/bin/python"

pytestmark = [
    pytest.mark.coordination,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not all(path.exists() for path in PROGRAMS.values()),
        reason="the real coordination system is not here: MUTINY_COORDINATION names no such directory",
    ),
]


def bench(target: str, directory: Path, program: Path | None = None) -> Bench:
    return Bench(find_target(target, program=str(program or PROGRAMS[target])), directory)


@pytest.mark.parametrize("path", sorted(FINDINGS.glob("*.json")), ids=lambda path: path.stem)
def test_finding_reproduces(path: Path, tmp_path: Path) -> None:
    replay = load(path, OPERATIONS, contract="board")
    assert replay.target is not None
    program = UNFIXED if path.stem == "c-head-cannot-be-imported" else None
    trial = RunDirectory.create(tmp_path, latest=False)
    outcome = bench(replay.target, tmp_path, program).try_once(
        replay.operations, replay.seed, trial
    )
    assert replay.expect in outcome.rules, outcome.steps[-1]


@pytest.mark.parametrize(
    ("target", "scenario"),
    [
        *(("coordination-a", name) for name in ("ready_tasks", "names_alike", "priority")),
        *(("coordination-a", name) for name in ("two_checkpoints", "restore_fences", "held_lock")),
        *(("coordination-b", name) for name in ("ready_tasks", "contention", "server_kill")),
        *(("coordination-c", name) for name in ("dependencies", "priority", "held_lock")),
    ],
)
def test_what_is_safe_is_not_accused(target: str, scenario: str, tmp_path: Path) -> None:
    where = bench(target, tmp_path)
    sequence = where.target.contract().scenarios[scenario]
    trial = RunDirectory.create(tmp_path, latest=False)
    outcome = where.try_once(sequence, 1, trial)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]
