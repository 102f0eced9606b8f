"""Every ready experiment passes on healthy longboat, and fails on the plants that it says it finds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from longboat.plants import PLANTS
from mutiny.modes.experiment_files import library, load

COMMAND = str(Path(sys.executable).parent / "mutiny")
LIMIT_S = 600.0
BOARDS = {
    "longboat-board": "A",
    "longboat-broker": "B",
    "longboat-crew": "C",
    "longboat-fleet": "C",
}
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


def fits(plant: str, target: str) -> bool:
    boards = getattr(PLANTS[plant], "boards", "")
    return BOARDS[target] in boards if target in BOARDS else not boards


FINDS = [
    (name, target, plant)
    for name, target in CASES
    for plant in load(library()[name]).finds
    if fits(plant, target)
]


def run(directory: Path, name: str, target: str, plant: str = "") -> dict[str, object]:
    argv = [COMMAND, "experiment", "run", name, "--target", target, "--no-minimise", "--json"]
    done = subprocess.run(
        [*argv, "--seed", "1", *(["--plant", plant] if plant else [])],
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
    for name, path in library().items():
        for plant in load(path).finds:
            assert any(entry[0] == name and entry[2] == plant for entry in FINDS), (name, plant)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_healthy_longboat_passes(tmp_path: Path, name: str, target: str) -> None:
    report = run(tmp_path, name, target)
    assert report["verdict"] == "success", report["reason"]


@pytest.mark.parametrize(("name", "target", "plant"), FINDS)
def test_a_plant_fails_it(tmp_path: Path, name: str, target: str, plant: str) -> None:
    report = run(tmp_path, name, target, plant)
    assert report["exit_code"] in (1, 4), report["reason"]
    assert report["findings"]
