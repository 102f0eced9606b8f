"""A target's parts as tests: which there are, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutiny.errors import MutinyError
from mutiny.modes.as_tests import SHIPPED, Suite, Wanted
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target


def suite(target: str) -> Suite:
    return Suite(Bench(find_target(target), Path("nowhere")))


def names(target: str, wanted: Wanted) -> list[str]:
    return [name for name, _ in suite(target).tests(wanted)]


def test_without_a_wish_every_scenario_is_a_test() -> None:
    contract = suite("longboat-board").bench.target.contract()
    assert names("longboat-board", Wanted()) == list(contract.scenarios)


def test_seeds_goals_and_experiments_come_behind_the_scenarios() -> None:
    first = next(iter(suite("longboat-batch").bench.target.contract().scenarios))
    found = names("longboat-batch", Wanted([first], 2, [SHIPPED]))
    assert found[:4] == [first, "seed 1", "seed 2", "goal G0.1"]
    assert "goal G2.14" in found


def test_shipped_experiments_are_those_of_the_contract() -> None:
    found = names("longboat-board", Wanted(["cycles"], experiments=[SHIPPED]))
    assert "experiment corrupted-board" in found
    assert "experiment killed-agent" not in found


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (Wanted(["cycels"]), "did you mean 'cycles'?"),
        (Wanted(["cycles"], corpus=[Path("nowhere")]), "nowhere: there is no corpus"),
        (Wanted(["cycles"], experiments=["corrupted-bord"]), "did you mean 'corrupted-board'?"),
        (Wanted(["cycles"], experiments=["killed-agent"]), "the contract is 'workers', but "),
        (Wanted(["cycles"], goals=[SHIPPED]), "no goals ship for the contract board"),
        (Wanted(["cycles"], goals=["nowhere.yaml"]), "nowhere.yaml: there is no such goal"),
    ],
)
def test_what_is_not_there_is_told_before_anything_runs(wanted: Wanted, told: str) -> None:
    with pytest.raises(MutinyError) as caught:
        names("longboat-board", wanted)
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
