"""`pytest --mutiny`: scenarios, goals, experiments and a corpus as tests, tried in a project of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.deep

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q")
LONGBOAT = str(Path(sys.executable).with_name("longboat"))


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        *PYTEST,
        "--rootdir",
        str(place),
        "--mutiny=longboat-board",
        f"--mutiny-bin={LONGBOAT}",  # as a word of its own it would name the place of pytest's settings
    ]
    return subprocess.run(
        [*command, *words], cwd=place, capture_output=True, text=True, timeout=400
    )


def test_a_scenario_is_a_test_and_a_test_can_run_one(tmp_path: Path) -> None:
    own = "def test_own(mutiny):\n    assert mutiny.scenario('cycles').verdict.value == 'success'\n"
    (tmp_path / "test_own.py").write_text(own)
    done = run(tmp_path, "--mutiny-scenario", "cycles")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_broken_promise_fails_with_its_rule_and_its_replay(tmp_path: Path) -> None:
    plant = ("--mutiny-plant", "cycle-accepted", "--mutiny-scenario", "cycles")
    done = run(tmp_path, *plant)
    assert done.returncode == 1, done.stdout
    assert "board.cycles_refused" in done.stdout
    assert "replay: mutiny replay chaos_runs" in done.stdout
    assert "Traceback" not in done.stdout


def test_a_scenario_that_is_not_there_is_a_mistake_of_usage(tmp_path: Path) -> None:
    done = run(tmp_path, "--mutiny-scenario", "no-such")
    assert done.returncode == 4
    assert "unknown scenario 'no-such'" in done.stderr


CIRCLE = {
    "format": 1,
    "contract": "board",
    "seed": 1,
    "expect": "board.cycles_refused",
    "operations": [
        {"type": "Reset", "args": {}},
        {"type": "Init", "args": {}},
        {
            "type": "ExpectError",
            "args": {"inner": {"type": "AddBatch", "args": {"tasks": ["x:y", "y:x"]}}},
        },
    ],
}
KNOWN = """
[[known]]
rule = "board.cycles_refused"
reason = "being mended"
expires = "2999-01-01"
"""


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A project with a corpus of one replay and a file of known findings."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "circle.json").write_text(json.dumps(CIRCLE))
    (tmp_path / "known.toml").write_text(KNOWN)
    return tmp_path


@pytest.mark.slow
def test_kept_replays_and_experiments_are_tests(kept: Path) -> None:
    more = ("--mutiny-corpus", "corpus", "--mutiny-experiment", "killed-server", "-rs")
    done = run(kept, "-k", "kept or experiment", *more)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert "nothing to show: " in done.stdout


@pytest.mark.slow
def test_a_kept_replay_that_breaks_says_what_it_is(kept: Path) -> None:
    more = ("--mutiny-corpus", "corpus", "--mutiny-plant", "cycle-accepted", "-k", "kept")
    done = run(kept, *more)
    assert done.returncode == 1, done.stdout
    assert "board.cycles_refused: still broken: AddBatch" in done.stdout
    assert "mutiny: 1 distinct cause" in done.stdout
    known = run(kept, *more, "--mutiny-known", "known.toml", "-rx")
    assert known.returncode == 0, known.stdout
    assert "1 xfailed" in known.stdout
    assert "known: being mended" in known.stdout


@pytest.mark.slow
def test_a_goal_is_a_test(tmp_path: Path) -> None:
    words = ("--mutiny", "longboat-batch", "--mutiny-goals", "shipped", "-k", "goal and G1.8")
    done = run(tmp_path, *words)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
