"""Do the sweeps find what only a sweep can find?

Every plant that names a sweep is found by it, the first bug replays with its exact point, and the healthy
longboat passes at that very point.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from longboat.plants import PLANTS
from mutiny.engine.sweeping import Sweep
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.sweep import Sweeper, split
from mutiny.targets.registry import find_target

SWEPT = {plant.name: plant.sweep for plant in PLANTS.values() if plant.sweep}
CHOICES = {"torn": ("short",), "errno": ("ENOSPC",)}


def sweep_for(root: Path, plant: str) -> tuple[Sweep, Sweeper]:
    kind, scenario, at = SWEPT[plant].split()
    bench = Bench(find_target("longboat", plant=plant), root)
    prefix, operation = split(bench.target.contract().scenarios[scenario], at)
    sweeper = Sweeper(bench, prefix, operation, jobs=2, until_bug=True)
    found = sweeper.run(kind, CHOICES.get(kind, ()), None, lambda *_: None)
    return found, sweeper


def test_there_are_ten_plants_that_need_a_sweep() -> None:
    assert len(SWEPT) >= 10
    assert {text.split()[0] for text in SWEPT.values()} == {
        *("crash", "errno", "torn", "fsync", "preempt")
    }


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(SWEPT))
def test_the_sweep_finds_the_plant_at_once(tmp_path: Path, name: str) -> None:
    found, sweeper = sweep_for(tmp_path, name)
    bug = found.points[-1]
    assert bug.verdict.is_bug, [(str(p.operation), p.verdict, p.message) for p in found.points]
    assert found.first_bug is not None
    assert found.first_bug.verdict.is_bug, "the exact point shows it again as an ordinary sequence"
    healthy = Bench(find_target("longboat"), tmp_path / "healthy")
    outcome = healthy.run(Assignment(sweeper.sequence(bug.operation), "healthy", 1))
    assert not outcome.verdict.is_bug
