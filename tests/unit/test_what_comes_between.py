"""What is owed, and what somebody else does, between a stop or a crash and the next start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.generate import TURNS, explored
from mutiny.contracts.workers.model import WorkerBelief, WorkersModel
from mutiny.contracts.workers.outcomes import served
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.kit.domains import PATH_FIRST, strange, texts
from mutiny.kit.exploring import Scene
from mutiny.kit.judging import Moment
from mutiny.model.operation import Operation
from mutiny.modes.sweep_ways import ways_on
from mutiny.seeds import stream

POINTS = tuple(common.CrashAt(op.Accept("alpha"), call) for call in range(4))
MOVED = (op.MoveSource(while_dead=True),)


@pytest.mark.parametrize("promised", [True, False])
def test_a_rebase_that_was_put_off_is_owed_over_a_stop(promised: bool) -> None:
    owed = WorkerBelief("alpha", frozenset({"working"}), rebase_due="abc", put_off=True)
    model = WorkersModel(
        Profile(keeps_wishes=promised), initialised=True, daemon=frozenset({True})
    ).with_worker(owed)
    for step in (op.Down(), op.Up()):
        model = served(model, step, Moment())
    assert model.workers["alpha"].rebase_due == ("abc" if promised else "")


def test_a_damaged_state_owes_nothing() -> None:
    owed = WorkerBelief("alpha", frozenset({"working"}), rebase_due="abc")
    model = WorkersModel(Profile(keeps_wishes=True), initialised=True, state_damaged=True)
    assert served(model.with_worker(owed), op.Down(), Moment()).workers["alpha"].rebase_due == ""


def test_of_a_few_points_every_second_one_is_gone_on_from() -> None:
    assert [between for _, between in ways_on(POINTS, MOVED, each=False)] == [(), MOVED] * 2
    assert [point for point, _ in ways_on(POINTS, MOVED, each=False)] == list(POINTS)
    assert len(ways_on(POINTS, MOVED, each=True)) == 2 * len(POINTS)
    assert ways_on(POINTS, (), each=True) == [(point, ()) for point in POINTS]


def test_somebody_goes_on_only_from_what_lands() -> None:
    contract = WorkersContract()
    assert contract.meanwhile(op.Accept("alpha")) == MOVED
    assert contract.meanwhile(op.Add("alpha")) == ()
    without = replace(contract.profile, lacks=("MoveSource",))
    assert WorkersContract(without).meanwhile(op.Accept("alpha")) == ()


def test_exploration_goes_on_from_an_accept_that_was_cut_off() -> None:
    follows = explored(Profile()).follows
    walk = WorkersContract().walk()

    def behind(broken: Operation) -> set[str]:
        scenes = (Scene(walk, stream(seed, "test"), {}) for seed in range(20))
        return {type(one).__name__ for scene in scenes for one in follows(scene, broken)}

    assert behind(POINTS[0]) == {"MoveSource", "Up"}
    assert behind(common.CrashAt(op.Add("alpha"), 0)) == {"Up", "Add"}


def test_what_a_crash_has_left_is_judged_once_something_was_started() -> None:
    contract = WorkersContract()
    assert contract.cannot_be_seen(POINTS[0], True)
    assert contract.cannot_be_seen(MOVED[0], True)
    assert contract.cannot_be_seen(MOVED[0], False)  # git was left locked
    assert not contract.cannot_be_seen(op.MoveSource(), True)


def test_exploration_tells_no_agent_to_work_for_longer_than_anybody_waits() -> None:
    supported = explored(Profile()).supported
    assert supported(op.Behave("alpha", ("slow:600", "obey")))
    assert not supported(op.Behave("alpha", ("slow:60000", "obey")))


def test_who_died_off_its_branch_may_be_followed_by_one_that_does_not_end() -> None:
    assert ("die-detached", "hang") in TURNS
    assert ("die-detached", "obey") in TURNS


def test_a_text_may_begin_like_a_command_of_the_agents_own() -> None:
    assert PATH_FIRST in texts(("Create a.txt",))
    assert not strange(op.Start("alpha", PATH_FIRST))
