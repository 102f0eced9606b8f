"""What a board tells of its guards, leaders, workers, rests and tasks, held against what is believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.profile import BoardProfile, Figures
from mutiny.contracts.board.showing import untrue_guards, untrue_list
from mutiny.contracts.board.tasks import Breaker, Leader, Task
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import ANYTIME, Span
from mutiny.model.operation import Operation

FIGURES = Figures(lease_s=2.0, leader_lease_s=2.0, breaker_open_s=1.0)
PROFILE = BoardProfile(tells_guards=True, breaker=True, figures=FIGURES)
NOW = Span(100.0, 100.1)
JUST, LONG_AGO, NEARLY = Span(99.5, 99.6), Span(90.0, 90.1), Span(97.9, 98.1)
MODEL = BoardModel(profile=PROFILE, initialised=True)


def lies(operation: Operation, model: BoardModel = MODEL, **said: Any) -> list[str]:
    return list(untrue_guards(model, operation, Answer(True, "", said), NOW))


@pytest.mark.parametrize(
    ("known", "told", "right"),
    [
        (Breaker(), {"state": "closed", "failures": 0, "successes": 0}, True),
        (Breaker(2), {"state": "closed", "failures": 2}, True),
        (Breaker(2), {"state": "closed", "failures": 3}, False),
        (Breaker(2), {"state": "closed"}, True),
        (Breaker(2), {"state": "open"}, False),
        (Breaker(3, opened=JUST), {"state": "open", "failures": 0}, True),
        (Breaker(3, opened=JUST), {"state": "half_open"}, False),
        (Breaker(3, opened=LONG_AGO), {"state": "half_open", "successes": 0}, True),
        (Breaker(3, opened=LONG_AGO), {"state": "half_open", "successes": 1}, False),
        (Breaker(3, opened=LONG_AGO), {"state": "closed"}, False),
        (Breaker(3, opened=Span(98.9, 99.1)), {"state": "open"}, True),
        (Breaker(3, opened=Span(98.9, 99.1)), {"state": "half_open"}, True),
        (Breaker(2, unsure=True), {"state": "open"}, True),
    ],
)
def test_a_breaker_is_told_as_it_is(known: Breaker, told: dict[str, Any], right: bool) -> None:
    assert (not lies(op.Status(), replace(MODEL, breaker=known), breaker=told)) is right
    silent = replace(PROFILE, tells_guards=False)
    assert not lies(op.Status(), replace(MODEL, breaker=known, profile=silent), breaker=told)


def test_a_limit_is_told_as_it_is_set() -> None:
    assert not lies(op.Status(), limiter={"rate": 0.0, "burst": 10})
    assert not lies(op.Status(), limiter={})
    assert lies(op.Status(), limiter={"rate": 1.0})
    assert lies(op.Status(), limiter={"burst": 11})


@pytest.mark.parametrize(
    ("renewed", "told", "right"),
    [
        (JUST, {"node": "n1", "token": 4}, True),
        (JUST, {"node": "n2", "token": 4}, False),
        (JUST, {"node": "n1", "token": 3}, False),
        (JUST, None, False),
        (LONG_AGO, None, True),
        (LONG_AGO, {"node": "n1", "token": 4}, False),
        (NEARLY, None, True),
        (NEARLY, {"node": "n1", "token": 4}, True),
        (ANYTIME, None, True),
    ],
)
def test_a_leader_is_told_as_long_as_it_leads(
    renewed: Span, told: dict[str, Any] | None, right: bool
) -> None:
    led = replace(MODEL, leader=Leader("n1", 4, renewed), top_token=4)
    assert (not lies(op.Status(), led, leader=told)) is right
    assert not lies(op.Status(), replace(led, faults=("it was killed",)), leader=told)


def test_the_token_of_a_status_never_goes_down() -> None:
    given = replace(MODEL, top_token=4)
    assert not lies(op.Status(), given, token=4)
    assert lies(op.Status(), given, token=3)
    assert lies(op.Status(), given, token=5)
    hurt = replace(given, faults=("killed in the middle of an election",))
    assert not lies(op.Status(), hurt, token=5)
    assert lies(op.Status(), hurt, token=3)
    assert not lies(op.Status(), replace(given, damaged=True), token=3)


@pytest.mark.parametrize(
    ("heard", "told", "right"),
    [
        (JUST, {"alive": True, "last_heartbeat_age_s": 0.5}, True),
        (JUST, {"alive": False}, False),
        (JUST, {"alive": True, "last_heartbeat_age_s": 40}, False),
        (JUST, {"alive": True, "last_heartbeat_age_s": None}, True),
        (LONG_AGO, {"alive": False, "last_heartbeat_age_s": 10}, True),
        (LONG_AGO, {"alive": True}, False),
        (NEARLY, {"alive": True}, True),
        (NEARLY, {"alive": False}, True),
        (ANYTIME, {"alive": False, "last_heartbeat_age_s": 7}, True),
    ],
)
def test_who_is_alive(heard: Span, told: dict[str, Any], right: bool) -> None:
    known = replace(MODEL, heard={"w1": heard})
    assert (not lies(op.Status(), known, workers={"w1": told, "w2": {"alive": False}})) is right
    stood_still = replace(known, faults=("the world stood still",))
    assert not lies(op.Status(), stood_still, workers={"w1": told})


def test_how_long_a_failed_task_rests() -> None:
    once = replace(MODEL, tasks={"a": Task("a", attempts=1, status="in_progress", owner="w1")})
    failed = op.Fail("w1", "a")
    assert not lies(failed, once, status="available", retry_in_s=0.4)
    assert not lies(failed, once, status="available", retry_in_s=0.362)
    assert lies(failed, once, status="available", retry_in_s=0.2)
    assert lies(failed, once, status="available", retry_in_s=400)
    assert not lies(failed, once, status="failed", retry_in_s=0)
    assert not lies(failed, once, status="available")
    assert not lies(op.Fail("w1", "b"), once, status="available", retry_in_s=9)


def test_with_which_token_a_leader_was_served() -> None:
    led = replace(MODEL, tokens={"n1": (3, 4)}, leader=Leader("n1", 4, JUST), top_token=4)
    assert not lies(op.Renew("n1"), led, token=4)
    assert not lies(op.Renew("n1"), led)
    assert lies(op.Renew("n1"), led, token=5)
    assert lies(op.StepDown("n1"), led, token=3)
    assert not lies(op.Elect("n1"), led, token=5), "a new one"
    assert not lies(op.Renew("n2"), led, token=5), "nobody knows what it has shown"
    assert lies(op.Checkpoint("one"), checkpoint="two")
    assert not lies(op.Checkpoint("One"), checkpoint="one")


def test_a_list_tells_what_tasks_were_added_with() -> None:
    tasks = {
        "a": Task("a", order=1, size=3),
        "b": Task("b", order=2),
        "c": Task("c", order=3, named=False),
    }
    known = replace(MODEL, tasks=tasks)
    a: dict[str, Any] = {"id": "a", "description": "task a", "payload": "...", "order": 7}
    assert not lies(op.List(), known, tasks=[a, {"id": "b", "description": "task b", "order": 9}])
    assert not lies(op.List(), known, tasks=[{"id": "a"}, {"id": "z", "description": "hm"}])
    assert lies(op.List(), known, tasks=[{**a, "description": "task b"}])
    assert lies(op.List(), known, tasks=[{**a, "payload": ".."}])
    assert lies(op.List(), known, tasks=[a, {"id": "b", "order": 2}])
    assert not lies(op.List(), known, tasks=[{"id": "c", "description": "task without a name"}])
    assert not lies(op.List(), replace(known, damaged=True), tasks=[{**a, "payload": ".."}])


def test_a_list_tells_what_looks_before_and_after_it_agree_on() -> None:
    free, held = TaskView("a", "available", attempts=1), TaskView("a", "claimed", owner="w1")
    look, later = BoardObservation(tasks={"a": free}), BoardObservation(tasks={"a": held})

    def wrong(row: dict[str, Any], before: BoardObservation, seen: BoardObservation) -> list[str]:
        return list(untrue_list(MODEL, {"tasks": [{"id": "a", **row}]}, before, seen))

    assert not wrong({"status": "available", "attempts": 1, "owner": None}, look, look)
    assert wrong({"status": "done"}, look, look)
    assert wrong({"attempts": 2}, look, look)
    assert not wrong({}, look, look)
    assert not wrong({"status": "done"}, look, later), "it has changed meanwhile"
    assert not wrong({"status": "done"}, BoardObservation(), look)
    assert list(untrue_list(MODEL, {"tasks": []}, look, look))
    loose = replace(MODEL, spawned={"w1": "healthy"})
    assert not list(untrue_list(loose, {"tasks": []}, look, look))
