"""Replay and minimise as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny_command import run_mutiny
from schemas import validate_run

PLANT = ("--target", "longboat-board", "--plant", "cycle-accepted", "--scenario", "cycles")


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A run that found a bug and was not minimised."""
    ran = run_mutiny(tmp_path, "run", *PLANT, "--no-minimise")
    assert ran.code == 1, ran.stdout
    return tmp_path


def test_minimise_then_replay_then_expect(failed: Path) -> None:
    ran = run_mutiny(failed, "minimise", "chaos_runs/latest", "--confirm", "1/2", "--json")
    assert ran.code == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["rule"] == "board.cycles_refused"
    assert document["complete"]
    assert document["to"] == 3 < document["from"]
    validate_run(failed / "chaos_runs" / "latest")
    kept = failed / "bug.json"
    kept.write_bytes((failed / "chaos_runs" / "latest" / "minimal_replay.json").read_bytes())

    ran = run_mutiny(failed, "replay", "bug.json", "--times", "3")
    assert ran.code == 1
    assert "3 of 3 failed in the same way (board.cycles_refused)" in ran.stdout
    assert run_mutiny(failed, "replay", "bug.json", "--expect", "board.cycles_refused").code == 0

    ran = run_mutiny(
        failed, "replay", "bug.json", "--plant", "", "--expect", "board.cycles_refused"
    )
    assert ran.code == 1, "a healthy target does not break the rule, so the predicate is false"
    assert run_mutiny(failed, "replay", "bug.json", "--plant", "").code == 0


def test_a_journal_replays_like_its_run(failed: Path) -> None:
    ran = run_mutiny(failed, "replay", "chaos_runs/latest/operations.jsonl", "--json")
    assert ran.code == 1
    document = json.loads(ran.stdout)
    assert document["same"] == 1
    assert document["runs"][0]["rule"] == "board.cycles_refused"


@pytest.mark.slow
def test_minimise_refuses_what_does_not_fail_here(failed: Path) -> None:
    ran = run_mutiny(failed, "minimise", "chaos_runs/latest", "--plant", "")
    assert ran.code == 3
    assert "does not break board.cycles_refused here" in ran.stderr


def test_unknown_rule_names_the_nearest(failed: Path) -> None:
    ran = run_mutiny(failed, "replay", "chaos_runs/latest", "--expect", "board.cycles_refusd")
    assert ran.code == 2
    assert "did you mean 'board.cycles_refused'?" in ran.stderr


def test_the_report_can_be_shown_again(failed: Path) -> None:
    ran = run_mutiny(failed, "report")
    assert ran.code == 1
    assert ran.stdout.startswith("# Mutiny Error Report")
    assert (
        json.loads(run_mutiny(failed, "report", "--json").stdout)["run"]["error"]["rule"]
        == "board.cycles_refused"
    )


@pytest.mark.slow
def test_lists_for_programs(tmp_path: Path) -> None:
    plants = json.loads(run_mutiny(tmp_path, "plants", "--json").stdout)["plants"]
    assert len(plants) >= 24
    assert {"name", "what", "failure_class", "source"} <= set(plants[0])
    rules = json.loads(run_mutiny(tmp_path, "rules", "--json").stdout)["rules"]
    assert sum(1 for rule in rules if rule["invariant"]) == 13
    doctor = json.loads(run_mutiny(tmp_path, "doctor", "--json").stdout)
    assert doctor["box"]
    targets = json.loads(run_mutiny(tmp_path, "target", "list", "--json").stdout)["targets"]
    assert {"longboat", "llmc"} <= {target["name"] for target in targets}


@pytest.mark.slow
def test_explore_prints_a_sequence_and_runs_it(tmp_path: Path) -> None:
    first = run_mutiny(tmp_path, "explore", "--seed", "5", "--ops", "8", "--print").stdout
    assert first == run_mutiny(tmp_path, "explore", "--seed", "5", "--ops", "8", "--print").stdout
    ran = run_mutiny(tmp_path, "explore", "--seed", "5", "--ops", "8", "--seeds", "2", "--json")
    assert ran.code == 0, ran.stdout
    document = json.loads(ran.stdout)
    assert document["verdicts"] == {"success": 2}
    assert document["coverage"]


def test_a_contract_is_explored_on_its_own_default_target(tmp_path: Path) -> None:
    words = ("explore", "--contract", "session", "--seed", "5", "--ops", "8", "--print")
    assert "StartSession" in run_mutiny(tmp_path, *words).stdout
    wrong = run_mutiny(tmp_path, *words, "--target", "longboat")
    assert (wrong.code, "implements 'workers', not 'session'" in wrong.stderr) == (2, True)


def test_target_init_writes_a_file_that_checks(tmp_path: Path) -> None:
    assert run_mutiny(tmp_path, "target", "init", "mine.toml").code == 0
    assert run_mutiny(tmp_path, "target", "check", "mine.toml").code == 0
    ran = run_mutiny(tmp_path, "target", "init", "mine.toml")
    assert ran.code == 2
    assert "exists already" in ran.stderr
