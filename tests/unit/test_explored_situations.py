"""What exploration comes to by itself that only ready sequences had before."""

from __future__ import annotations

from functools import cache

import pytest

from mutiny.contracts.batch import operations as batch
from mutiny.contracts.session import operations as session
from mutiny.contracts.spawns import operations as spawns
from mutiny.model.operation import Operation, walk
from mutiny.targets.registry import find_target

pytestmark = pytest.mark.usefixtures("by_chance_alone")
SEEDS, LENGTH = range(120), 25


@cache
def explored(target: str) -> frozenset[Operation]:
    """Every operation of all seeds, also those inside others."""
    contract = find_target(target).contract()
    return frozenset(
        part
        for seed in SEEDS
        for operation in contract.generate(seed, LENGTH)
        for part in walk(operation)
    )


def test_something_can_happen_between_two_summons() -> None:
    turns = [
        turn
        for one in explored("longboat-spawns")
        if isinstance(one, spawns.Behave)
        for turn in one.does
    ]
    assert any(turn.count("mention:") == 2 and "slow:" in turn for turn in turns)


def test_somebody_else_has_a_task_of_the_same_name() -> None:
    found = explored("longboat-batch")
    assert any(isinstance(one, batch.RunElsewhere) and one.task != "other" for one in found)


def test_sessions_have_votes_that_nobody_wins_and_are_told_to_wait_and_to_look() -> None:
    found = explored("longboat-session")
    assert any(isinstance(one, session.AgentDeadlock) for one in found)
    assert any(isinstance(one, session.ModelError) and one.retry_after_s for one in found)
    assert any(isinstance(one, session.Trespass) and one.reads for one in found)
