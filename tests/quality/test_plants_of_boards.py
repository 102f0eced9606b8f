"""Every planted bug of longboat's boards is found by what `board_known.json` names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longboat.plants import BOARD_PLANTS
from mutiny.contracts.board.rules import RULES

LIMIT_S = 600.0
LEAKS = {"memory-leak", "descriptor-leak"}
"""What only a load shows: `rapid-cycles` in the library of experiments finds them."""
KNOWN: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("board_known.json").read_text(encoding="utf-8")
)
COMMAND = str(Path(sys.executable).parent / "mutiny")


def arguments(known: dict[str, Any]) -> list[str]:
    """The command line that finds a plant."""
    chosen = ["--target", known["target"], "--plant", known["plant"], "--json"]
    chosen += ["--scenario", known["scenario"]]
    if "sweep" in known:
        return ["sweep", known["sweep"], *chosen, "--at", known["at"], "--until-bug"]
    return ["run", *chosen, "--seed", "1", *(() if "length" in known else ("--no-minimise",))]


def test_every_plant_of_a_board_is_known() -> None:
    assert {known["plant"] for known in KNOWN} | LEAKS == set(BOARD_PLANTS)


def test_every_rule_of_boards_has_a_plant() -> None:
    assert set(RULES) - {known["rule"] for known in KNOWN} == {"board.no_growth"}, (
        "which leaks break"
    )


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("known", KNOWN, ids=lambda one: f"{one['target']}-{one['plant']}")
def test_a_plant_is_found_and_minimised_to_its_known_length(
    tmp_path: Path, known: dict[str, Any]
) -> None:
    ran = subprocess.run(
        [COMMAND, *arguments(known)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert ran.returncode == known.get("exit", 1), ran.stdout[-2000:] + ran.stderr
    assert f'"rule": "{known["rule"]}"' in ran.stdout
    if "length" in known:
        found = json.loads((tmp_path / "chaos_runs/latest/minimal_replay.json").read_text())
        shown = [step["type"] for step in found["operations"]]
        assert len(shown) == known["length"], shown
