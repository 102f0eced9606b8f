"""Everything lies in a directory with blanks, dots and quotes in its name, and all of it still works."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mutiny.box.isolation import why_not
from mutiny.engine.rundir import RunDirectory
from mutiny.kit import faults
from mutiny.kit.domains import ROOTS
from mutiny.kit.operations import Heal, Reset
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

pytestmark = pytest.mark.deep

LONGBOAT = Path(sys.executable).with_name("longboat")


@pytest.mark.skipif(why_not("bwrap") is not None, reason="only bubblewrap gives a box another name")
@pytest.mark.parametrize(
    "root", [ROOTS[0], *(pytest.param(root, marks=pytest.mark.slow) for root in ROOTS[1:])]
)
@pytest.mark.parametrize(
    ("target", "scenario"), [("longboat", "basic_lifecycle"), ("longboat-broker", "ready_tasks")]
)
def test_a_scenario_passes_there(tmp_path: Path, root: str, target: str, scenario: str) -> None:
    bench = Bench(find_target(target, program=str(LONGBOAT)), tmp_path)
    first, *rest = bench.target.contract().scenarios[scenario]
    assert isinstance(first, Reset)
    # A clock is bent by a library whose name nobody can quote.
    clock = faults.SkewClock(offset_s=100.0, lasting=True)
    sequence = (replace(first, root=root), *rest[:1], clock, Heal(), *rest[1:])
    outcome = bench.try_once(sequence, 1, RunDirectory.create(tmp_path, latest=False))
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]
    assert outcome.steps[0].result.stdout == f"a new box, /boxes/{root} inside"


@pytest.mark.parametrize("root", ["a/b", "..", "a\nb"])
def test_what_is_no_name_of_a_directory_is_refused(root: str) -> None:
    with pytest.raises(ValueError, match="root must be the name of a directory"):
        Reset(root)


@pytest.mark.parametrize("surroundings", ["git_hook", "far_east"])
def test_a_scenario_passes_on_an_unusual_machine(tmp_path: Path, surroundings: str) -> None:
    bench = Bench(find_target("longboat", program=str(LONGBOAT)), tmp_path)
    _, *rest = bench.target.contract().scenarios["basic_lifecycle"]
    sequence = (Reset(surroundings=surroundings), *rest)
    outcome = bench.try_once(sequence, 1, RunDirectory.create(tmp_path, latest=False))
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


def test_surroundings_that_are_not_known_are_refused() -> None:
    with pytest.raises(ValueError, match="surroundings 'on_the_moon' is none of"):
        Reset(surroundings="on_the_moon")
