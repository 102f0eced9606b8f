"""A command broken at one system call has happened or it has not; half is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    AT,
    CONTRACT,
    TOKEN,
    TRACEBACK,
    belief,
    beliefs,
    model,
    ok,
    picture,
    refused,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import operations as common
from mutiny.kit.contract import Answered
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

START = op.Start("alpha", "x")
IDLE = picture(view())
WORKING = picture(view("alpha", "working"))
DEAD = OperationResult(None, signal=9, tokens=(TOKEN,))
ENDING: list[Operation] = [
    common.CrashAt(START, 1),
    common.PowerLossAt(START, 1),
    common.TearAt(START, 1),
]
SPARING: list[Operation] = [common.KillAt(START, 1), common.FailAt(START, 1)]


def judge(
    operation: Operation, answer: OperationResult, seen: Observation = IDLE, **changes: object
) -> Answered[Any]:
    whole = replace(ok(fired=True, inner=(answer,)), **changes)  # type: ignore[arg-type]
    return CONTRACT.judge(beliefs(model(belief())), operation, whole, IDLE, seen, AT)


def tokens(answered: Answered[Any]) -> list[set[str]]:
    return [set(one.work) for one in answered.model.alternatives]


@pytest.mark.parametrize("operation", [*ENDING, *SPARING], ids=lambda item: item.type)
def test_a_death_leaves_both_open(operation: Operation) -> None:
    answered = judge(operation, DEAD)
    assert answered.verdict is Verdict.SUCCESS
    assert sorted(map(sorted, tokens(answered))) == [[], [TOKEN]]


@pytest.mark.parametrize("operation", ENDING, ids=lambda item: item.type)
def test_when_the_world_ends_the_daemon_is_gone_and_everybody_is_excused(
    operation: Operation,
) -> None:
    ended = picture(view(), daemons=(), agents=(), sessions=frozenset())
    for one in judge(operation, DEAD, ended).model.alternatives:
        assert one.daemon_certain is False
        assert one.daemon_killed
        assert "offline" in one.allowed("alpha")


@pytest.mark.parametrize("operation", SPARING, ids=lambda item: item.type)
def test_an_acknowledgement_means_that_it_has_happened(operation: Operation) -> None:
    assert tokens(judge(operation, ok(tokens=(TOKEN,)), WORKING)) == [{TOKEN}]


def test_a_failure_with_any_text_leaves_both_open() -> None:
    answered = judge(common.FailAt(START, 1), refused("No space left on device", tokens=(TOKEN,)))
    assert answered.verdict is Verdict.SUCCESS
    assert sorted(map(sorted, tokens(answered))) == [[], [TOKEN]]


def test_a_traceback_is_a_bug_all_the_same() -> None:
    crash = OperationResult(1, stderr=TRACEBACK)
    answered = judge(common.FailAt(START, 1), crash)
    assert answered.verdict is Verdict.BUG
    assert answered.violation is not None
    assert answered.violation.rule == "workers.no_crash"


def test_what_must_be_refused_has_not_happened() -> None:
    answered = judge(common.CrashAt(op.Accept("alpha"), 2), DEAD)
    assert len(answered.model.alternatives) == 1


@pytest.mark.parametrize(
    "changes", [{"fired": False}, {"inner": ()}, {"harness_error": "the engine is gone"}]
)
def test_a_point_that_was_not_reached_proves_nothing(changes: dict[str, Any]) -> None:
    for operation in (*ENDING, *SPARING):
        assert judge(operation, DEAD, **changes).verdict is Verdict.INCONCLUSIVE


def test_the_next_look_decides_which_it_was() -> None:
    answered = judge(common.KillAt(START, 1), DEAD, WORKING)
    checked = CONTRACT.check(answered.model, common.Sleep(), True, IDLE, WORKING)
    assert checked.broken == ()
    # The other one stays possible for as long as a recovery may take, but it fits no more.
    assert checked.model is not None
    assert [set(one.work) for one in checked.model.alternatives] == [{TOKEN}, set()]
    assert checked.model.fitting == 1
    late = replace(WORKING, at=checked.model.undecided_until + 1)
    decided = CONTRACT.check(checked.model, common.Sleep(), True, IDLE, late)
    assert decided.model is not None
    assert [set(one.work) for one in decided.model.alternatives] == [{TOKEN}]


DIES = op.KillDaemon(START, 9)


def test_a_command_may_meet_its_daemon_alive_or_dead() -> None:
    for answer in (ok(tokens=(TOKEN,)), refused("no daemon is running", tokens=(TOKEN,))):
        answered = judge(DIES, answer, picture(view("alpha", "working"), daemons=()))
        assert not answered.verdict.stops_run
        for one in answered.model.alternatives:
            assert one.daemon_certain is False
            assert one.daemon_killed
    assert tokens(judge(DIES, ok(tokens=(TOKEN,)), WORKING)) == [{TOKEN}]


def test_a_daemon_that_could_not_be_killed_proves_nothing() -> None:
    assert judge(DIES, ok(tokens=(TOKEN,)), fired=False).verdict is Verdict.INCONCLUSIVE


def test_the_ways_back_from_a_dead_daemon() -> None:
    up, down = CONTRACT.daemon_deaths(START, 3)
    assert up[0] == down[0] == op.KillDaemon(START, 3)
    assert isinstance(up[1], op.Up)
    assert [type(one) for one in down[1:3]] == [op.Down, op.Up]
    without = replace(CONTRACT.profile, lacks=(*CONTRACT.profile.lacks, "KillDaemon"))
    assert type(CONTRACT)(without).daemon_deaths(START, 3) == ()


def test_points_beside_syncs_renames_and_the_end_come_first() -> None:
    from mutiny.modes.sweep import _chosen

    names = ["write"] * 20
    names[7], names[12] = "fsync", "renameat2"
    calls = [{"name": name, "reads": False} for name in names]
    points = [common.CrashAt(START, index) for index in range(21)]
    assert _chosen(points, calls, None) == points
    assert [one.call for one in _chosen(points, calls, 7)] == [0, 7, 8, 12, 13, 19, 20]
    few = [one.call for one in _chosen(points, calls, 3)]
    assert few[0] == 0
    assert few[-1] == 20
    more = [one.call for one in _chosen(points, calls, 10)]
    assert {0, 7, 8, 12, 13, 19, 20} < set(more)
    assert len(more) == 10
    full = [common.FullAt(START, index) for index in range(20)]
    some = _chosen([*points, *full], calls, 7)
    assert [one.call for one in some if one in full] == [0, 10, 19]
    assert len(some) == 7
    assert _chosen(full, calls, 100) == full
    assert len(_chosen(full, calls, 7)) == 7


def test_rows_of_calls_that_are_alike_come_after_what_stands_beside_them() -> None:
    from mutiny.modes.sweep import _chosen

    names = ["renameat2", *["unlinkat"] * 200, "rmdir", "openat", "unlink", "write"]
    calls = [{"name": name, "reads": False, "process": "p"} for name in names]
    points = [common.CrashAt(START, index) for index in range(len(names) + 1)]
    few = {one.call for one in _chosen(points, calls, 12)}
    assert {0, 1, 201, 202, 203, 204, 205} <= few
    assert len(few) == 12


def test_somebody_elses_commit_may_be_what_a_command_runs_against() -> None:
    from mutiny.errors import UsageError
    from mutiny.modes.sweep import rival

    scenario = (common.Reset(), op.Init(), START)
    assert rival(scenario, "MoveSource", op.OPERATIONS) == op.MoveSource()
    assert rival(scenario, "Start", op.OPERATIONS) == START
    with pytest.raises(UsageError, match="needs arguments"):
        rival(scenario, "KillAgent", op.OPERATIONS)
    with pytest.raises(UsageError, match="has no operation"):
        rival(scenario, "Accept", op.OPERATIONS)
