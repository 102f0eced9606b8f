"""Trials side by side: what is found is what one trial after the other finds, only sooner."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from mutiny.contracts.workers import operations as op
from mutiny.engine.minimise import Budget, Minimised, minimise, next_trial
from mutiny.model.operation import Operation
from mutiny.modes.ahead import Ahead
from mutiny.seeds import stream

Run = tuple[Operation, ...]
OPS: Run = tuple(op.Message("w", str(index)) for index in range(14))
LIMIT_S = 60.0


def shorter_names(run: Run) -> Iterator[tuple[str, Run]]:
    for place, one in enumerate(run):
        yield "names", (*run[:place], op.Message("w", ""), *run[place + 1 :])
        assert one


def search(budget: Budget) -> dict[str, Any]:
    return {
        "plausible": lambda run: len(run) % 7 != 3,
        "doubtful": lambda run: len(run) % 5 == 2,
        "simpler": shorter_names,
        "budget": budget,
    }


def found_ahead(trial: Callable[[Run], bool], budget: Budget) -> Minimised:
    given = search(budget)
    foresee = partial(next_trial, OPS, **given)
    with Ahead(trial, foresee, budget.jobs) as ahead:
        return minimise(OPS, ahead, **given)


def needing(seed: int) -> Callable[[Run], bool]:
    chance = stream(seed, "ahead")
    wanted = sorted(chance.sample(range(len(OPS)), chance.randrange(1, 6)))

    def fails(run: Run) -> bool:
        rest = iter(run)
        return all(OPS[index] in rest for index in wanted)

    return fails


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_same_is_found_with_the_same_trials(seed: int, jobs: int) -> None:
    budget = Budget(10_000, 10_000.0, confirm=2, of=3)
    alone = minimise(OPS, needing(seed), **search(budget))
    together = found_ahead(needing(seed), Budget(10_000, 10_000.0, 2, 3, jobs))
    assert together.operations == alone.operations
    assert (together.runs, together.complete) == (alone.runs, alone.complete)
    assert together.passes == alone.passes


def test_one_at_a_time_tries_nothing_that_nobody_asks_for() -> None:
    tried: list[Run] = []
    fails = needing(1)

    def trial(run: Run) -> bool:
        tried.append(run)
        return fails(run)

    assert found_ahead(trial, Budget(10_000, 10_000.0, 1, 1)).runs == len(tried)


def test_the_next_one_is_tried_while_one_is_waited_for() -> None:
    begun: list[Run] = []
    two = threading.Event()

    def trial(run: Run) -> bool:
        begun.append(run)
        if len(begun) > 1:
            two.set()
        assert two.wait(LIMIT_S), "nothing runs beside it"
        return OPS[0] in run

    assert found_ahead(trial, Budget(10_000, 10_000.0, 1, 1, jobs=2)).operations == OPS[:1]


def test_a_budget_counts_what_was_asked_for() -> None:
    found = found_ahead(needing(2), Budget(9, 10_000.0, 1, 1, jobs=4))
    assert (found.runs, found.complete) == (9, False)


def test_an_error_of_a_trial_reaches_whoever_asked() -> None:
    def trial(run: Run) -> bool:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        found_ahead(trial, Budget(10_000, 10_000.0, 1, 1, jobs=3))
