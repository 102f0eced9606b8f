"""Every ready experiment passes on healthy longboat; `test_every_plant.py` shows what it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mutiny.modes.experiment_files import library, load
from prove import cases

COMMAND = str(Path(sys.executable).parent / "mutiny")
LIMIT_S = 600.0
BULLETS = (
    *("Network partitions", "Process crashes", "Disk failures", "Clock skew"),
    *("Resource exhaustion", "Slow dependencies"),
    "Spawn parallel workers claiming the same task",
    "Interleave read-modify-write cycles",
    "Test atomic operations under contention",
    "Verify file locking actually prevents corruption",
    "Check for TOCTOU",
    "Test checkpoint/restore after crashes",
    "Verify circuit breakers trip and reset properly",
    "Check retry logic with exponential backoff",
    "Validate self-healing repairs corrupted state",
    "Confirm leader election works during failures",
    "100+ concurrent tasks with complex dependency DAGs",
    "Rapid claim/complete cycles to find memory leaks",
    "Large result payloads to test serialization",
    "Long-running tasks with heartbeat monitoring",
    "Burst traffic patterns to test rate limiting",
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(LIMIT_S)]
CASES = [(name, target) for name, path in library().items() for target in load(path).targets]


def run(directory: Path, name: str, target: str) -> dict[str, object]:
    argv = [COMMAND, "experiment", "run", name, "--target", target, "--no-minimise", "--json"]
    done = subprocess.run(
        [*argv, "--seed", "1"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.stdout, done.stderr
    report: dict[str, object] = json.loads(done.stdout)["experiments"][0]
    return report


def test_every_bullet_has_an_experiment() -> None:
    covered = [text for path in library().values() for text in load(path).covers]
    missing = [bullet for bullet in BULLETS if not any(bullet in text for text in covered)]
    assert missing == []


def test_every_plant_that_is_promised_fits_somewhere() -> None:
    found = {(case.finder, case.plant) for case in cases()}
    for name, path in library().items():
        for plant in load(path).finds:
            assert (f"experiment {name}", plant) in found, (name, plant)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_healthy_longboat_passes(tmp_path: Path, name: str, target: str) -> None:
    report = run(tmp_path, name, target)
    assert report["verdict"] == "success", report["reason"]
