"""The healthy longboat gives no alarm, in every scenario; and a run leaves its directory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mutiny.contracts.workers.fault_scenarios import FAULT_SCENARIOS
from mutiny.contracts.workers.scenarios import CLASSIC_SCENARIOS
from mutiny_command import run_mutiny
from sampling import sampled
from schemas import validate_run

CLASSIC = (
    "basic_lifecycle",
    "rejection_cycle",
    "merge_conflict",
    "daemon_crash",
    "tmux_crash",
    "multi_worker_chaos",
    "invalid_operations",
)


def test_the_seed_names_are_there() -> None:
    assert tuple(CLASSIC_SCENARIOS) == CLASSIC


@pytest.mark.parametrize("name", sampled((*CLASSIC, *FAULT_SCENARIOS), every=40))
def test_healthy_longboat_gives_no_alarm(tmp_path: Path, name: str) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", name, "--seed", "7", "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr
    validate_run(tmp_path / "chaos_runs" / "latest")


def test_the_terminal_shows_every_step(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "run", "--scenario", "basic_lifecycle", "--seed", "12345")
    lines = ran.stdout.splitlines()
    assert lines[0] == "=== Mutiny ==="
    assert "Scenario: basic_lifecycle" in lines
    assert "Seed: 12345" in lines
    assert re.fullmatch(r"\[  1\] Reset +OK \(\d+\.\ds\)", lines[6])
    assert re.fullmatch(r'\[  4\] Add\(worker="alpha"\) +OK \(\d+\.\ds\)', lines[9])
    assert re.fullmatch(r'\[  5\] WaitForIdle\("alpha"\) +OK \(\d+\.\ds\)', lines[10])
    assert re.fullmatch(r'\[  6\] Start\(worker="alpha", \.\.\.\) +OK \(\d+\.\ds\)', lines[11])


def test_a_bug_stops_the_run_and_leaves_all_the_evidence(tmp_path: Path) -> None:
    ran = run_mutiny(
        tmp_path,
        "run",
        "--plant",
        "idle-keeps-prompt",
        "--scenario",
        "basic_lifecycle",
        "--seed",
        "3",
        "--minimise-runs",
        "4",
    )
    assert ran.code == 1
    for text in ("UNEXPECTED FAILURE", "!!! Error Detected !!!", "Expected: ", "Actual: "):
        assert text in ran.stdout
    assert "Down" not in ran.stdout, "the run must stop at the first bug"
    latest = tmp_path / "chaos_runs" / "latest"
    validate_run(latest)
    report = (latest / "error_report.md").read_text()
    sections = re.findall(r"^#+ (.+)$", report, re.MULTILINE)
    for section in (
        "Summary",
        "Error Details",
        "Context",
        "Last 5 Operations",
        "Pre-Operation State",
        "Post-Operation State",
        "Minimal Replay Sequence",
        "Suggested Investigation",
    ):
        assert section in sections
    assert json.loads((latest / "plan.json").read_text())["box"]["technique"]
    assert (latest / "box" / "home" / "longboat" / "state.json").exists(), "the state is preserved"
    assert (latest / "daemon.log").read_text()
    assert list((latest / "state_snapshots").iterdir())
    assert list((latest / "tmux_captures").iterdir())
    assert list((latest / "target_logs").iterdir())
    assert f"State preserved at: {latest.resolve().relative_to(tmp_path)}" in ran.stdout


@pytest.mark.slow
def test_the_same_seed_chooses_the_same(tmp_path: Path) -> None:
    chosen = []
    for _ in range(2):
        ran = run_mutiny(
            tmp_path, "run", "--scenario", "multi_worker_chaos", "--seed", "11", "--no-minimise"
        )
        assert ran.code == 0, ran.stdout
        journal = (tmp_path / "chaos_runs" / "latest" / "operations.jsonl").read_text().splitlines()
        chosen.append([json.loads(line)["operation"] for line in journal])
    assert chosen[0] == chosen[1]
