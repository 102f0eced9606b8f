"""The session contract live: longboat keeps its promises, plants break them; what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from longboat.plants import SESSION_PLANTS
from mutiny_command import run_mutiny
from schemas import validate_run

TARGET = ("--target", "longboat-session")


@pytest.mark.parametrize("name", ["wrong_input"])
def test_healthy_longboat_gives_no_alarm(tmp_path: Path, name: str) -> None:
    ran = run_mutiny(tmp_path, "run", *TARGET, "--scenario", name, "--no-minimise")
    assert ran.code == 0, ran.stdout + ran.stderr
    validate_run(tmp_path / "chaos_runs" / "latest")


@pytest.mark.slow
def test_a_plant_is_found_by_its_rule(tmp_path: Path) -> None:
    plant = SESSION_PLANTS["session-unknown-accepted"]
    argv = ("run", *TARGET, "--plant", "session-unknown-accepted", "--scenario", plant.scenario)
    ran = run_mutiny(tmp_path, *argv, "--no-minimise")
    assert ran.code == 1, ran.stdout + ran.stderr
    assert f"Rule: {plant.rule}" in ran.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--resume", "nothing"), "there is no soak"),
        (("--resume", "."), "is no soak that could be resumed"),
        (("--project", "nothing"), "unknown project"),
        (("--rate", "0"), "rate"),
        (("--hours", "99"), "hours"),
    ],
)
def test_what_cannot_be_soaked_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ran = run_mutiny(tmp_path, "soak", *words)
    assert ran.code == 2, ran.stdout + ran.stderr
    assert said in ran.stderr
    assert not (tmp_path / "chaos_runs").exists()
