"""`mutiny race` and `mutiny load` on longboat's boards: clean when healthy, and each finds its plants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mutiny_command import run_mutiny

pytestmark = pytest.mark.deep


def told(directory: Path, *arguments: str, code: int) -> dict[str, Any]:
    """What a command told programs."""
    ran = run_mutiny(directory, *arguments, "--json")
    assert ran.code == code, ran.stdout + ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_missing_lock_is_found_by_the_exhaustive_part(tmp_path: Path) -> None:
    plant = ("--plant", "board-without-lock")
    race = told(tmp_path, "race", *plant, "--kind", "claims", "--rounds", "0", code=1)
    (part,) = race["parts"]
    assert part["how"] == "exhaustive"
    assert part["rule"] == "board.single_owner"
    assert part["schedules"] <= 10
    replay = json.loads((tmp_path / part["directory"] / "minimal_replay.json").read_text())
    assert replay["operations"][-1]["type"] == "Interleave"


@pytest.mark.slow
def test_rounds_on_a_server_say_what_they_leave_possible(tmp_path: Path) -> None:
    arguments = ("--target", "longboat-crew", "--kind", "claims", "--rounds", "3")
    race = told(tmp_path, "race", *arguments, code=0)
    assert "one server process" in race["not_applicable"]["exhaustive"]
    assert race["parts"][0]["rate_at_most"] > 0.6


@pytest.mark.slow
def test_loads_on_a_healthy_board(tmp_path: Path) -> None:
    shapes = ("--shape", "cost", "--shape", "dag")
    sizes = ("--tasks", "20,200", "--claims", "5", "--graph", "100", "--workers", "2")
    load = told(tmp_path, "load", "--target", "longboat-crew", *shapes, *sizes, "--html", code=0)
    assert [row["tasks"] for row in load["cost_per_claim"]["longboat-crew"]] == [20, 200]
    assert [one["verdict"] for one in load["loads"]] == ["success"] * 3
    assert load["loads"][2]["measured"]["done"] == 100
    assert "<polyline" in (tmp_path / load["written"]).read_text()


@pytest.mark.slow
def test_a_leak_of_descriptors_is_found(tmp_path: Path) -> None:
    arguments = ("--shape", "cycles", "--cycles", "60", "--plant", "descriptor-leak")
    load = told(tmp_path, "load", "--target", "longboat-crew", *arguments, code=1)
    assert load["loads"][-1]["rule"] == "board.no_growth"
    directory = tmp_path / load["loads"][-1]["directory"]
    assert (directory / "minimal_replay.json").exists()
