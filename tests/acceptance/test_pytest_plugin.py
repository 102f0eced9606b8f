"""`pytest --mutiny`: scenarios as tests, tried in a project of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q")
LONGBOAT = str(Path(sys.executable).with_name("longboat"))


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [
        *PYTEST,
        "--rootdir",
        str(place),
        "--mutiny",
        "longboat-board",
        "--mutiny-bin",
        LONGBOAT,
    ]
    return subprocess.run(
        [*command, *words], cwd=place, capture_output=True, text=True, timeout=100
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
