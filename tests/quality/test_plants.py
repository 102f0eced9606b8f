"""Does Mutiny find what it promises to find?

Every plant of workers: its known shortest sequence breaks its rule (a sample of them in `make test`),
and, in the slow part, ten replays of ten fail in the same way, and the healthy longboat passes the same
sequence. How it is found and minimised: `test_every_plant.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from longboat.plants import WORKER_PLANTS as PLANTS
from mutiny.contracts.workers.rules import RULES
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.modes.bench import Assignment, Bench
from mutiny.targets.registry import find_target
from mutiny.targets.workers.spec import TargetSpec
from plants import known
from sampling import sampled

REPLAYS = 10
names = pytest.mark.parametrize("name", list(known()))
PATIENT = ("workers.recovers", "workers.completes", "workers.answers_in_time", "workers.assertion")
"""Rules that only break when a deadline has passed: ten seconds and more a run."""
LAG_S = 1.5
"""What is broken stays broken: half of longboat's own lag shows it as well, in half the time."""
some_first = pytest.mark.parametrize(
    "name",
    [
        *sampled((name for name, entry in known().items() if entry.rule not in PATIENT), every=60),
        *(
            pytest.param(name, marks=[pytest.mark.slow])
            for name, entry in known().items()
            if entry.rule in PATIENT
        ),
    ],
)


def run(root: Path, plant: str, operations: object) -> Outcome:
    target = find_target("longboat", plant=plant)
    assert isinstance(target.spec, TargetSpec)
    own = target.spec.profile
    hasty = replace(own, limits=replace(own.limits, lag_s=LAG_S))
    bench = Bench(replace(target, spec=replace(target.spec, profile=hasty)), root)
    assert isinstance(operations, tuple)
    return bench.run(Assignment(operations, plant or "healthy", 1))


def test_every_plant_is_known() -> None:
    swept = {plant.name for plant in PLANTS.values() if plant.sweep}
    assert set(known()) | swept == set(PLANTS)
    assert len(swept) >= 10
    assert len(known()) >= 24


BROKEN_BY_MUTANTS = {
    "workers.default_moves_forward",
    "workers.checkout_clean",
    "workers.doctor_agrees",
    "workers.way_out",
    "workers.no_growth",
}
"""Rules without a plant: `test_rules_find_mutants.py` and `test_invariants.py` break them."""


def test_every_rule_is_the_first_that_some_plant_breaks() -> None:
    assert {entry.rule for entry in known().values()} == set(RULES) - BROKEN_BY_MUTANTS


@pytest.mark.deep
@some_first
def test_the_shortest_sequence_breaks_the_rule(tmp_path: Path, name: str) -> None:
    entry = known()[name]
    outcome = run(tmp_path, name, entry.operations)
    assert outcome.rule == entry.rule, outcome.steps[-1].as_json()
    # A consequence that comes by itself may already show at the step before the wait for it.
    assert len(entry.operations) - len(outcome.steps) in (0, 1), "the rule breaks at the end"


@pytest.mark.slow
@pytest.mark.timeout(600)
@names
def test_ten_replays_of_ten_fail_in_the_same_way(tmp_path: Path, name: str) -> None:
    entry = known()[name]
    bench = Bench(find_target("longboat", plant=name), tmp_path)
    rules = [
        bench.try_once(entry.operations, 1, RunDirectory.create(tmp_path, latest=False)).rule
        for _ in range(REPLAYS)
    ]
    assert rules == [entry.rule] * REPLAYS


@pytest.mark.slow
@names
def test_the_healthy_longboat_passes_the_same_sequence(tmp_path: Path, name: str) -> None:
    outcome = run(tmp_path, "", known()[name].operations)
    assert outcome.failed_step is None, outcome.steps[-1].as_json()
