"""Which plants only a sweep can find; `test_every_plant.py` proves that it does."""

from __future__ import annotations

import shlex
from functools import cache

import pytest

from longboat.plants import PLANTS
from mutiny.cli.plants import found_by
from mutiny.modes.subject import Subject
from mutiny.modes.sweep import split
from mutiny.targets.plants import check_plants, targets_of
from mutiny.targets.registry import find_target

SWEPT = {plant.name: plant.sweep for plant in PLANTS.values() if plant.sweep}


def test_there_are_ten_plants_that_need_a_sweep() -> None:
    assert len(SWEPT) >= 10
    assert {text.split()[0] for text in SWEPT.values()} == {
        *("crash", "errno", "torn", "fsync", "preempt")
    }


TOLD = {
    name: told for name, plant in PLANTS.items() if (told := found_by(plant, targets_of(plant)[0]))
}


@cache
def target_named(name: str) -> Subject:
    return find_target(name)


@pytest.mark.parametrize("name", TOLD)
def test_what_is_said_to_find_a_plant_can_be_run(name: str) -> None:
    words = shlex.split(TOLD[name])
    begin = words.index(next(word for word in words if word.startswith("--")))
    given = dict(zip(words[begin::2], words[begin + 1 :: 2], strict=True))
    target = target_named(given["--target"])
    check_plants(target.spec, given["--plant"])
    contract = target.contract()
    operations = contract.scenarios[given["--scenario"]]
    if words[0] == "sweep":
        split(operations, given["--at"])
    if PLANTS[name].rule:
        assert PLANTS[name].rule in contract.rules
