"""Every plant of longboat's boards is in `board_known.json`; `test_every_plant.py` proves what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from longboat.plants import BOARD_PLANTS
from mutiny.contracts.board.rules import RULES

LEAKS = {"memory-leak", "descriptor-leak"}
"""What only a load shows: `rapid-cycles` in the library of experiments finds them."""
KNOWN: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("board_known.json").read_text(encoding="utf-8")
)


def test_every_plant_of_a_board_is_known() -> None:
    assert {known["plant"] for known in KNOWN} | LEAKS == set(BOARD_PLANTS)


def test_every_rule_of_boards_has_a_plant() -> None:
    without = set(RULES) - {known["rule"] for known in KNOWN}
    mutants = {"board.numbers_are_true", "board.stop_costs_nothing"}
    leaks = {"board.no_growth"}
    assert without == leaks | mutants, "the mutants are in test_rules_find_mutants.py"
