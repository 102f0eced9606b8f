"""Exploration of the healthy longboat gives no alarm and leaves nothing untested; with a plant it
finds the bug.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from mutiny.modes.bench import Bench
from mutiny.modes.explore import explore
from mutiny.targets.registry import find_target

OPERATIONS = 30


@pytest.mark.parametrize("seed", [1])
def test_a_seed_on_the_healthy_longboat(tmp_path: Path, seed: int) -> None:
    result = explore(Bench(find_target("longboat"), tmp_path), [seed], OPERATIONS)
    assert result.as_json()["failures"] == []
    assert result.verdicts == {"success": 1}


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("block", range(10))
def test_two_hundred_seeds_on_the_healthy_longboat(tmp_path: Path, block: int) -> None:
    seeds = range(block * 20, block * 20 + 20)
    result = explore(Bench(find_target("longboat"), tmp_path), seeds, OPERATIONS, keep_going=True)
    assert result.as_json()["failures"] == []
    assert result.verdicts == {"success": 20}
    assert len(result.coverage) > 60
