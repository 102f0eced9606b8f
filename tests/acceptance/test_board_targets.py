"""longboat's real boards under the board contract: no alarm when healthy, the right one when planted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny.contracts.board.contract import BoardContract
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.registry import find_spec
from mutiny_command import run_mutiny

TARGETS = ("longboat-board", "longboat-broker", "longboat-crew", "longboat-fleet")
QUICK = ("contention", "workers", "corrupt_state")


def names(target: str) -> list[str]:
    spec, _ = find_spec(target)
    assert isinstance(spec, BoardSpec)
    return list(BoardContract(spec.profile, spec.words).scenarios)


def passes(directory: Path, target: str, name: str) -> None:
    ran = run_mutiny(
        directory, "run", "--target", target, "--scenario", name, "--seed", "7", "--no-minimise"
    )
    assert ran.code == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("name", QUICK)
def test_a_healthy_board_gives_no_alarm(tmp_path: Path, name: str) -> None:
    passes(tmp_path, "longboat-board", name)
    assert (tmp_path / "chaos_runs" / "latest" / "history.jsonl").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "name"), [(one, each) for one in TARGETS for each in names(one)]
)
def test_all_boards_pass_all_scenarios(tmp_path: Path, target: str, name: str) -> None:
    passes(tmp_path, target, name)


@pytest.mark.slow
def test_a_crew_with_a_server_passes(tmp_path: Path) -> None:
    passes(tmp_path, "longboat-crew", "second_server")


@pytest.mark.parametrize("name", ["agent_killed", pytest.param("agents", marks=pytest.mark.slow)])
def test_a_crew_with_agents_of_its_own_passes(tmp_path: Path, name: str) -> None:
    passes(tmp_path, "longboat-fleet", name)


@pytest.mark.slow
def test_two_agents_on_one_task_are_seen(tmp_path: Path) -> None:
    arguments = ("--target", "longboat-fleet", "--scenario", "crew_killed", "--no-minimise")
    ran = run_mutiny(tmp_path, "run", *arguments, "--plant", "crew-resumes-running")
    assert ran.code == 1
    assert "board.one_run" in ran.stdout


def test_arguments_of_any_length_reach_the_broker(tmp_path: Path) -> None:
    steps: list[dict[str, object]] = [
        {"type": "Reset", "args": {}},
        {"type": "Up", "args": {}},
        {"type": "AddTask", "args": {"task": "a", "size": 300_000}},
        {"type": "Claim", "args": {"worker": "w"}},
        {"type": "Complete", "args": {"worker": "w", "task": "a", "size": 300_000}},
        {"type": "Settle", "args": {}},
    ]
    text = json.dumps({"format": 1, "contract": "board", "operations": steps})
    (tmp_path / "long.json").write_text(text)
    passes(tmp_path, "longboat-broker", "long.json")


def test_a_plant_is_found_and_its_replay_breaks_the_same_rule(tmp_path: Path) -> None:
    arguments = ("--target", "longboat-board", "--scenario", "one_leader", "--no-minimise")
    ran = run_mutiny(tmp_path, "run", *arguments, "--plant", "two-leaders")
    assert ran.code == 1
    assert "board.one_leader" in ran.stdout
    again = run_mutiny(tmp_path, "replay", "chaos_runs/latest", "--expect", "board.one_leader")
    assert again.code == 0, again.stdout + again.stderr


def test_a_sweep_breaks_a_claim_at_its_calls(tmp_path: Path) -> None:
    arguments = ("--scenario", "contention", "--at", "AddTask", "--points", "3", "--json")
    ran = run_mutiny(tmp_path, "sweep", "crash", "--target", "longboat-board", *arguments)
    assert ran.code == 0, ran.stdout + ran.stderr
    assert len(json.loads(ran.stdout)["points"]) == 3


def test_a_plant_of_another_board_is_refused(tmp_path: Path) -> None:
    ran = run_mutiny(
        tmp_path, "run", "--target", "longboat-board", "--plant", "second-crew-allowed"
    )
    assert ran.code == 2
    assert "longboat-crew" in ran.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_the_target_files_are_well_formed(tmp_path: Path, target: str) -> None:
    ran = run_mutiny(tmp_path, "target", "check", target)
    assert ran.code == 0, ran.stderr
