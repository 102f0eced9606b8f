"""The batch contract live: longboat's pipeline keeps its promises, plants break them, gates tell it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from longboat.plants import BATCH_PLANTS
from mutiny.contracts.batch.scenarios import CONTAINERS, SCENARIOS
from mutiny.experiments.goals import load_goals, shipped
from mutiny_command import run_mutiny
from sampling import sampled
from schemas import validate_run

TARGET = ("--target", "longboat-batch")
ALWAYS = ("one_task", "killed_after_landing")
OTHERS = [name for name in SCENARIOS if name not in (*ALWAYS, *CONTAINERS)]
BY_SCENARIOS = [
    name
    for name, plant in BATCH_PLANTS.items()
    if not plant.sweep and plant.scenario not in CONTAINERS
]

EXPIRED = """\
[[quarantine]]
goal = "G0.2b"
owner = "anna"
reason = "it fails now and then"
hypothesis = "the validator is killed too late"
seen = 2026-01-10
filed = 2026-01-10
expires = 2026-01-15
"""


@pytest.mark.parametrize("name", [*ALWAYS, *sampled(OTHERS, every=60)])
def test_healthy_longboat_gives_no_alarm(tmp_path: Path, name: str) -> None:
    ran = run_mutiny(tmp_path, "run", *TARGET, "--scenario", name, "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr
    validate_run(tmp_path / "chaos_runs" / "latest")


@pytest.mark.parametrize("name", sampled(BY_SCENARIOS, every=60))
def test_a_plant_is_found_by_its_rule(tmp_path: Path, name: str) -> None:
    plant = BATCH_PLANTS[name]
    ran = run_mutiny(
        tmp_path,
        *("run", *TARGET, "--plant", name, "--scenario", plant.scenario, "--no-minimise"),
    )
    assert ran.code in (1, 4), ran.stdout + ran.stderr
    assert f"Rule: {plant.rule}" in ran.stdout


TRIPPED_BY = {
    "G0.1": "budget-checked-after-merge",
    "G0.1b": "run-budget-ignored",
    "G0.2": "validator-block-warns",
    "G0.2b": "validator-error-passes",
    "G0.2c": "validator-error-passes",
    "G0.3": "manifest-block-warns",
    "G0.4": "conflict-written-over",
    "G0.5": "state-removed-first",
    "G0.6": "merged-before-doctor",
    "G0.6b": "doctor-timeout-passes",
    "G0.6c": "canary-ignored",
    "G0.7": "validator-block-warns",
    "G0.8": "main-moved-ignored",
}
"""The goals of tier 0, each with a plant that turns it red."""


@pytest.mark.slow
@pytest.mark.parametrize("goal", sampled(list(TRIPPED_BY), every=13))
def test_a_goal_of_tier_0_is_tripped(tmp_path: Path, goal: str) -> None:
    plant = TRIPPED_BY[goal]
    ran = run_mutiny(tmp_path, "accept", "--goal", goal, "--plant", plant, "--json")
    assert ran.code == 5, ran.stdout + ran.stderr
    assert [one["status"] for one in json.loads(ran.stdout)["goals"]] == ["red"]


def test_every_goal_of_tier_0_has_its_plant() -> None:
    goals = load_goals(shipped() / "batch", "batch")
    assert set(TRIPPED_BY) == {goal.id for goal in goals if goal.tier == 0}
    assert set(TRIPPED_BY.values()) <= set(BATCH_PLANTS)


def test_a_goal_and_its_gates(tmp_path: Path) -> None:
    healthy = run_mutiny(tmp_path, "accept", "--goal", "G0.2b")
    assert healthy.code == 0, healthy.stdout + healthy.stderr
    quarantine = tmp_path / "quarantine.toml"
    quarantine.write_text(EXPIRED, encoding="utf-8")
    planted = run_mutiny(
        tmp_path,
        *("accept", "--goal", "G0.2b", "--plant", "validator-error-passes"),
        *("--quarantine", "quarantine.toml"),
    )
    assert planted.code == 5, planted.stdout + planted.stderr
    latest = tmp_path / "chaos_runs" / "latest"
    told = json.loads((latest / "gates.json").read_text(encoding="utf-8"))
    assert told["passed"] is False
    assert told["goals"][0]["rules"] == ["batch.validated"]
    failed = {gate["name"]: gate["text"] for gate in told["gates"] if not gate["passed"]}
    assert set(failed) == {"no-merge safety", "flakes", "quarantine"}
    assert "quarantine.toml:1: the quarantine of G0.2b has expired" in failed["quarantine"]
    assert "G0.2b" in (latest / "matrix.md").read_text(encoding="utf-8")
    assert "G0.2b" in (latest / "matrix.html").read_text(encoding="utf-8")


def test_a_wrong_goal_touches_nothing(tmp_path: Path) -> None:
    written = run_mutiny(tmp_path, "accept", "init", "mine.yaml")
    assert written.code == 0
    goal = tmp_path / "mine.yaml"
    text = goal.read_text(encoding="utf-8")
    goal.write_text(text.replace("test: block", "tset: block"), encoding="utf-8")
    ran = run_mutiny(tmp_path, "accept", "--goals", "mine.yaml")
    assert ran.code == 2
    assert "mine.yaml:9:" in ran.stderr
    assert not (tmp_path / "chaos_runs").exists()


def test_the_runbook_names_what_is_there(tmp_path: Path) -> None:
    """Every file and every event of its tables is there after a run that failed."""
    page = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")
    names = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    files = [name for name in names if name.endswith((".json", ".jsonl", ".log", ".toml"))]
    events = [name for name in names if name not in files]
    assert len(files) >= 5
    assert len(events) >= 7
    ran = run_mutiny(
        tmp_path,
        *("run", *TARGET, "--plant", "failed-run-exits-zero", "--scenario", "idle_agent"),
        "--no-minimise",
    )
    assert ran.code == 1, ran.stdout + ran.stderr
    latest = tmp_path / "chaos_runs" / "latest"
    home = latest / "box" / "home" / "batch"
    assert [name for name in files if not (home / name).is_file()] == []
    log = (home / "runs" / "r1" / "events.jsonl").read_text(encoding="utf-8")
    kinds = {json.loads(line)["type"] for line in log.splitlines()}
    assert set(events) <= kinds
    for name in ("error_report.md", "operations.jsonl", "minimal_replay.json"):
        assert (latest / name).is_file()
