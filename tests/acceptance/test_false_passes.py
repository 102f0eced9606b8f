"""What was not tested is never green: no way to get exit code 0 without having tested something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny_command import Ran, longboat_spec, run_mutiny


def scenario(directory: Path, *operations: dict[str, object]) -> str:
    path = directory / "scenario.json"
    path.write_text(json.dumps(list(operations)))
    return str(path)


def summary(ran: Ran) -> dict[str, object]:
    data: dict[str, object] = json.loads(
        (ran.directory / "chaos_runs/latest/summary.json").read_text()
    )
    return data


RESET = {"type": "Reset", "args": {}}
INIT = {"type": "Init", "args": {}}
UP = {"type": "Up", "args": {}}


def test_a_target_that_is_not_there_is_inconclusive(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycle", "--bin", "/no/such/program")
    assert ran.code == 3
    assert ran.stderr.count("\n") == 1
    assert "/no/such/program does not exist" in ran.stderr


def test_a_file_that_is_no_program_is_inconclusive(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("not a program")
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycle", "--bin", str(plain))
    assert ran.code == 3
    assert "is not an executable program" in ran.stderr


def test_a_target_that_always_says_yes_is_caught(tmp_path: Path) -> None:
    yes = tmp_path / "yes"
    yes.write_text("#!/bin/sh\nexit 0\n")
    yes.chmod(0o755)
    ran = run_mutiny(
        tmp_path, "run", "--scenario", "basic_lifecycle", "--bin", str(yes), "--no-minimise"
    )
    assert ran.code == 1
    assert "workers.daemon_survives" in ran.stdout


@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ({"type": "KillDaemon", "args": {}}, "no daemon to kill"),
        ({"type": "KillAgent", "args": {"worker": "alpha"}}, "no agent to kill"),
        ({"type": "KillTmuxServer", "args": {}}, "no tmux server to kill"),
        ({"type": "KillTmuxSession", "args": {"worker": "alpha"}}, "has no session"),
        ({"type": "PauseProcess", "args": {"role": "daemon"}}, "no daemon to pause"),
    ],
)
def test_a_fault_that_cannot_fire_is_inconclusive(
    tmp_path: Path, fault: dict[str, object], complaint: str
) -> None:
    # A short recovery limit: the fault waits that long for something to hit.
    spec = longboat_spec(tmp_path, ("recover_s = 12.0", "recover_s = 0.3"))
    ran = run_mutiny(
        tmp_path, "run", "--target", str(spec), "--scenario", scenario(tmp_path, RESET, INIT, fault)
    )
    assert ran.code == 3
    assert "Inconclusive" in ran.stdout
    assert complaint in ran.stdout


def test_an_oracle_that_cannot_look_is_inconclusive(tmp_path: Path) -> None:
    spec = longboat_spec(
        tmp_path,
        ("[logs]", '[git]\nrepositories = ["{source}", "{home}"]\n\n[logs]'),
        ("lag_s = 3.0", "lag_s = 0.3"),
    )
    ran = run_mutiny(
        tmp_path, "run", "--target", str(spec), "--scenario", scenario(tmp_path, RESET, INIT, UP)
    )
    assert ran.code == 3
    assert "git log in" in ran.stdout


def test_an_empty_sequence_proves_nothing(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", scenario(tmp_path))
    assert ran.code == 2
    assert "at least one operation" in ran.stderr


def test_one_bad_scenario_among_good_ones_decides_the_exit_code(tmp_path: Path) -> None:
    inconclusive = scenario(tmp_path, RESET, INIT, {"type": "KillDaemon", "args": {}})
    ran = run_mutiny(
        tmp_path, "run", "--scenario", inconclusive, "--scenario", "basic_lifecycle", "--json"
    )
    assert ran.code == 3
    runs = json.loads(ran.stdout)["runs"]
    assert [run["verdict"] for run in runs] == ["inconclusive", "success"]


def test_a_wait_for_what_is_not_due_is_a_timeout_not_a_pass(tmp_path: Path) -> None:
    path = scenario(
        tmp_path,
        RESET,
        INIT,
        UP,
        {"type": "Add", "args": {"worker": "alpha"}},
        {"type": "WaitForIdle", "args": {"worker": "alpha"}},
        {"type": "WaitForNeedsReview", "args": {"worker": "alpha", "timeout_seconds": 0.2}},
    )
    ran = run_mutiny(tmp_path, "run", "--scenario", path, "--no-minimise")
    assert ran.code == 4
    assert "TIMEOUT" in ran.stdout
    assert summary(ran)["verdict"] == "timeout"
