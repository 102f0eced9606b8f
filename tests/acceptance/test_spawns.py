"""The spawns contract live: longboat keeps its promises, plants break them, the lab writes its log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longboat.plants import SPAWN_PLANTS
from mutiny.contracts.spawns.scenarios import SCENARIOS
from mutiny_command import run_mutiny
from sampling import sampled
from schemas import validate_run

TARGET = ("--target", "longboat-spawns")
ALWAYS = ("one_mention", "pid_used_again")
OTHERS = [name for name in SCENARIOS if name not in ALWAYS]
BY_SCENARIOS = [name for name, plant in SPAWN_PLANTS.items() if not plant.sweep]


@pytest.mark.parametrize("name", [*ALWAYS, *sampled(OTHERS, every=70)])
def test_healthy_longboat_gives_no_alarm(tmp_path: Path, name: str) -> None:
    ran = run_mutiny(tmp_path, "run", *TARGET, "--scenario", name, "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr
    latest = tmp_path / "chaos_runs" / "latest"
    validate_run(latest)
    told = json.loads((latest / "summary.json").read_text(encoding="utf-8"))
    assert told["metrics"]["spawns_triggered"] >= 1
    assert "<svg" in (latest / "run_report.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", sampled(BY_SCENARIOS, every=60))
def test_a_plant_is_found_by_its_rule(tmp_path: Path, name: str) -> None:
    plant = SPAWN_PLANTS[name]
    ran = run_mutiny(
        tmp_path,
        *("run", *TARGET, "--plant", name, "--scenario", plant.scenario, "--no-minimise"),
    )
    assert ran.code in (1, 4), ran.stdout + ran.stderr
    assert f"Rule: {plant.rule}" in ran.stdout


@pytest.mark.deep
def test_an_experiment_and_the_log(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "experiment", "run", "fractal-cascade")
    assert ran.code == 0, ran.stdout + ran.stderr
    logged = run_mutiny(tmp_path, "experiment", "log")
    assert logged.code == 0, logged.stdout + logged.stderr
    text = (tmp_path / "chaos_runs" / "experiment_log.md").read_text(encoding="utf-8")
    assert "## Experiment 1: Fractal spawn cascade" in text
    assert "| Deepest run | 3 |" in text
    empty = run_mutiny(tmp_path, "experiment", "log", "nowhere")
    assert empty.code == 2
    assert empty.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "Behave", "args": {"agent": "prime", "does": ["jump"]}},
        {"type": "Register", "args": {"agent": "prime", "provider": "llama"}},
        {"type": "Summon", "args": {}},
    ],
)
def test_a_wrong_scenario_is_refused_in_one_line(tmp_path: Path, operation: object) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"type": "Reset", "args": {}}, operation]), encoding="utf-8")
    ran = run_mutiny(tmp_path, "run", *TARGET, "--scenario", str(path))
    assert ran.code == 2, ran.stdout + ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "chaos_runs").exists()
