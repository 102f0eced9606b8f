"""What exploration and scenarios say beyond the usual: made-up plans, borrowed tokens, odd decisions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mutiny.contracts.batch import generate as batches
from mutiny.contracts.batch import operations as batch
from mutiny.contracts.batch.forecast import _rivals
from mutiny.contracts.batch.invariants import locks_kept
from mutiny.contracts.batch.model import BatchModel, RunModel
from mutiny.contracts.batch.observation import Attempt, BatchSeen, GitSeen
from mutiny.contracts.batch.tasks import read_task
from mutiny.contracts.board import operations as board
from mutiny.contracts.board.leaders import write
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.tasks import Leader
from mutiny.contracts.session import operations as session
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.spawns import operations as spawns
from mutiny.contracts.spawns.model import SpawnsModel
from mutiny.contracts.spawns.outcomes import outcomes as of_spawns
from mutiny.kit.beliefs import Span
from mutiny.kit.checking import Check
from mutiny.kit.exploring import Scene
from mutiny.kit.operations import Reset
from mutiny.seeds import stream
from mutiny.targets.registry import find_target

NOW = Span(100.0, 100.0)


@pytest.mark.parametrize("seed", range(40))
def test_a_made_up_plan_can_be_planned(seed: int) -> None:
    lines = batches._made_up(Scene(None, stream(seed, "test"), {}), batches.DOES)
    tasks = batch.Plan(lines).parsed()
    names = [task.id for task in tasks]
    assert 2 <= len(names) == len(set(names))
    for number, task in enumerate(tasks):
        assert set(task.needs) <= set(names[:number])


def test_who_writes_the_same_file_may_come_first() -> None:
    lines = ("a does=shares", "b does=shares", "c does=shares", "d")
    tasks = {one.id: one for one in map(read_task, lines)}
    begun = RunModel(
        "r", tasks, frozenset({"running"}), may={name: frozenset({"pending"}) for name in tasks}
    )
    assert [_rivals(begun, name) for name in tasks] == [2, 2, 2, 0]
    merged = replace(begun, may={**begun.may, "a": frozenset({"complete"})})
    assert [_rivals(merged, name) for name in "bcd"] == [1, 1, 0]


@pytest.mark.parametrize(("node", "served"), [("n1", True), ("n2", False)])
def test_a_borrowed_token_makes_nobody_a_leader(node: str, served: bool) -> None:
    model = BoardModel(leader=Leader("n1", 3, NOW), top_token=3, tokens={"n1": (1, 3), "n2": (2,)})
    assert model.token_used(node, stale=False, borrowed=True) == 3
    found = list(write(model, board.WriteAsLeader(node, borrowed=True), NOW))
    assert [one.success for one in found] == [served]


def test_no_program_takes_an_option_that_was_none() -> None:
    contract: Any = find_target("longboat-session").contract()
    waiting = replace(SessionModel(names=("s",)), status=frozenset({"paused"}))
    walk = contract.walk()
    walk.models = (waiting,)
    assert walk.served(session.Continue(decide="none")) is False
    assert walk.served(session.Continue(decide="first")) is None


def test_to_stop_all_of_a_channel_that_nobody_knows_may_be_refused() -> None:
    model = SpawnsModel(home=True, channels=frozenset({"dev"}))
    known = of_spawns(model, spawns.StopAll(channel="dev"))
    unknown = of_spawns(model, spawns.StopAll(channel="ops"))
    assert [one.success for one in known] == [True]
    assert {one.success for one in unknown} == {True, False}


@pytest.mark.parametrize(("does", "shared"), [("works", True), ("renames", False)])
def test_whose_work_was_taken_away_again_shared_no_batch_for_that(does: str, shared: bool) -> None:
    """Beside whom somebody began is told by the files that were there, unless they are taken away."""
    lines = ("a writes=x", f"c needs=a does={does}", "d writes=x")
    tasks = {one.id: one for one in map(read_task, lines)}
    done = {name: frozenset({"complete"}) for name in tasks}
    model = BatchModel(run=RunModel("r1", tasks, frozenset({"complete"}), done))
    landed = GitSeen(head="c1", landed={"a": 1, "c": 1, "d": 1})
    attempts = (Attempt("a", 1, frozenset()), Attempt("d", 1, frozenset({"c"})))
    after = BatchSeen(home=True, git=landed, attempts=attempts)
    found = list(locks_kept(Check(model, after, BatchSeen(), batch.Run())))
    assert [one.rule for one in found] == ["batch.locks_kept"] * shared


def test_exploration_of_sessions_begins_nothing_that_waits_for_an_hour() -> None:
    contract: Any = find_target("longboat-session").contract()
    goes_on = contract.explored().goes_on
    assert goes_on((Reset(), session.Configure("context_tokens", "560")))
    assert not goes_on((Reset(), session.Configure("agent_calls_hour", "2")))
