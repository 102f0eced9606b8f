"""A program that says yes to everything, and keeps nothing that could be wrong, passes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import SessionSeen
from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.contract import SpawnsContract
from mutiny.contracts.spawns.model import Sent, SpawnsModel
from mutiny.contracts.spawns.observation import SpawnsSeen
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.operations import Settle

TOLD = SpawnsModel(
    home=True,
    agents={"prime": ("claude", "")},
    channels=frozenset({"dev"}),
    sent=(Sent("dev", "human", "@prime MT-1-1", "", 1),),
)


def of_spawns(known: SpawnsModel) -> set[str]:
    nothing = SpawnsSeen(at=1000.0)
    checked = SpawnsContract().check(Beliefs((known,)), op.ListSpawns(), True, nothing, nothing)
    return {one.rule for one in (*checked.broken, *checked.settling)}


@pytest.mark.parametrize(
    "known",
    [TOLD, replace(TOLD, sent=()), replace(TOLD, sent=(), agents={})],
    ids=["message", "agent", "channel"],
)
def test_what_was_acknowledged_has_to_be_somewhere(known: SpawnsModel) -> None:
    assert of_spawns(known) == {"spawns.database_whole"}


def test_a_database_may_be_made_when_something_is_to_be_kept() -> None:
    assert of_spawns(SpawnsModel(home=True)) == set()


def of_session(known: SessionModel) -> bool:
    """Is nothing said of it?"""
    nothing = SessionSeen()
    checked = SessionContract().check(Beliefs((known,)), Settle(), True, nothing, nothing)
    assert not checked.broken
    return not checked.unreadable


def test_a_session_that_was_only_announced_is_not_judged_as_a_good_one() -> None:
    begun = SessionModel().begun("s1", "demo", 3)
    assert not of_session(begun)
    assert of_session(replace(begun, killed=True))
    assert of_session(replace(begun, damaged=True))
    assert of_session(SessionModel())
