"""Rules that mean the same have the same name, and an earlier name can still be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.rules import RULES as BOARD_RULES
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.contracts.workers.rules import RULES as WORKERS_RULES
from mutiny.engine.replay import load
from mutiny.engine.rundir import FORMAT
from mutiny.kit.rules import canonical, rules_of


@pytest.mark.parametrize("rules", [WORKERS_RULES, BOARD_RULES], ids=["workers", "board"])
def test_common_rules_have_one_class_and_one_sentence(rules: dict[str, object]) -> None:
    contract = next(iter(rules)).partition(".")[0]
    taken = {name: rule for name, rule in rules_of(contract).items() if name in rules}
    assert len(taken) >= 7
    assert {name: rules[name] for name in taken} == taken


def test_no_rule_has_an_earlier_name() -> None:
    for name in (*WORKERS_RULES, *BOARD_RULES):
        assert canonical(name) == name


def test_a_target_file_may_use_an_earlier_name() -> None:
    profile = BoardProfile(not_applicable={"board.accepts_legal": "it may be busy"})
    assert profile.not_applicable == {"board.serves_legal": "it may be busy"}


def test_a_replay_may_use_an_earlier_name(tmp_path: Path) -> None:
    steps = [{"type": "Up", "args": {}}]
    record = {"format": FORMAT, "expect": "board.accepts_legal", "operations": steps}
    file = tmp_path / "replay.json"
    file.write_text(json.dumps(record))
    assert load(file, OPERATIONS, "workers").expect == "board.serves_legal"
