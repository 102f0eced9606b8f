"""Where agents of a session may write, and what becomes of a word to go on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from test_contract_session import (
    API,
    CALLS,
    CONTRACT,
    FRESH,
    PLAN,
    RESTORED,
    STATUS,
    at,
    broken,
    call,
    event,
    point,
    seen,
    sha,
)

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.judge import SessionJudge, _phase_too_short
from mutiny.contracts.session.knobs import Knobs
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.supported import supported
from mutiny.kit.judging import Moment
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult


def test_an_agent_writes_nothing_but_files_of_the_project() -> None:
    outside = op.OUT_OF_BOUNDS["git"]
    tool = {"name": "write_file", "path": outside, "sha256": sha("git")}
    asked_for = (*API, {**API[0], "tools": [tool]})
    wrote = call("end", 5.5, "c3", ok=True, path=outside, sha256=sha("git"))
    refused = {**wrote, "ok": False, "error": "refused"}
    assert "bytes_as_asked" in broken(seen(api=asked_for, calls=(*CALLS, wrote)))
    assert "bytes_as_asked" not in broken(seen(api=asked_for, calls=(*CALLS, refused)))
    assert not supported(SessionProfile(), op.Trespass())
    assert supported(SessionProfile(walled=True), op.Trespass())


@pytest.mark.parametrize(
    ("asked", "promise"),
    [
        (op.AgentDeadlock("mute"), {"votes_without": True}),
        (op.LetRun(6, misset=True), {"keeps_settings": True}),
        (op.SystemCrash(told="task.done"), {"logs_events": True}),
    ],
)
def test_what_not_every_session_bears(asked: Operation, promise: dict[str, bool]) -> None:
    assert not supported(SessionProfile(), asked)
    assert supported(SessionProfile(**promise), asked)  # type: ignore[arg-type]
    assert supported(SessionProfile(), op.AgentDeadlock())
    assert supported(SessionProfile(), op.LetRun(6))


@pytest.mark.parametrize(
    ("after_s", "rule"),
    [(11.0, False), (30.0, True)],
    ids=["only the rest", "all of it again"],
)
@pytest.mark.parametrize("disturbed", ["", "error", "limit.reached"])
def test_a_task_that_a_crash_broke_off_takes_only_the_rest_of_its_time(
    after_s: float, rule: bool, disturbed: str
) -> None:
    plan = replace(PLAN, tasks={**PLAN.tasks, "t2": {**PLAN.tasks["t2"], "minutes": 1.0}})
    rows = (
        event("task.start", 10.0, task="t2", agent="a"),
        *((event(disturbed, 20.0),) if disturbed else ()),
        event("session.restore", 60.0, checkpoint=1, deltas=0, fell_back=[]),
        event("supervisor.start", 60.0, 2),
        event("task.start", 61.0, 2, task="t2", agent="a"),
        event("task.done", 61.0 + after_s, 2, task="t2", agent="a"),
    )
    found = seen(more=rows, plan=plan, hours=2.0)
    model = replace(at("running"), keeps_progress=True)
    assert ("work_kept" in broken(found, model=model)) is (rule and not disturbed)
    assert "work_kept" not in broken(found, model=replace(model, keeps_progress=False))


def test_what_was_told_to_go_on_is_not_brought_back_paused() -> None:
    told = (event("session.pause", 11.0, reason="asked"), event("session.continue", 11.0))
    back = event("session.restore", 10.0, checkpoint=1, deltas=0, fell_back=[], status="paused")
    after = seen(more=(*told, back, RESTORED[1]), points=(point(0), point(1), FRESH))
    right = CONTRACT.outcomes(at("paused"), op.Continue(), Moment())
    assert all(one.after.going for one in right)
    assert "answers_truly" in broken(after, model=at("paused", killed=True, going=True))
    for excused in ({"going": False}, {"going": True, "damaged": True}):
        assert "answers_truly" not in broken(after, model=at("paused", killed=True, **excused))
    again = seen(more=(*told, told[0], back, RESTORED[1]), points=(point(0), point(1), FRESH))
    assert "answers_truly" not in broken(again, model=at("paused", killed=True, going=True))


@pytest.mark.parametrize(
    ("lasted_s", "kept", "rule"),
    [(2.8, True, ""), (0.4, True, "status_true"), (0.4, False, "")],
    ids=["since it was begun", "since it was gone on with", "where that is promised"],
)
def test_how_long_a_phase_has_lasted_is_counted_over_a_crash(
    lasted_s: float, kept: bool, rule: str
) -> None:
    begun = event("phase.start", 8.2, phase="two")
    again = (event("supervisor.start", 10.5, 2), event("phase.start", 10.6, 2, phase="two"))
    now = seen(more=(event("phase.complete", 8.0, phase="one"), begun, *again))
    phase = {"index": 1, "name": "two", "elapsed_s": lasted_s}
    said = {**STATUS, "elapsed_s": 11.0, "phase": phase}
    result = OperationResult(0, json.dumps({"ok": True, **said}))
    judge = SessionJudge(CONTRACT, now, now, 0.0)
    found = judge.judge(at("running", keeps_phase=kept), op.Status(), result).violation
    assert (found.rule if found else "") == (f"session.{rule}" if rule else "")


def test_a_phase_that_was_begun_twice_may_have_begun_late() -> None:
    """Somebody went back to before it, and then to a checkpoint of its first time."""
    rows = (
        *(event("phase.complete", 8.0, phase="one"), event("phase.start", 8.2, phase="two")),
        *(event("phase.complete", 4.0, phase="one"), event("phase.start", 4.1, phase="two")),
    )
    said: dict[str, Any] = {"elapsed_s": 9.0, "phase": {"name": "two", "elapsed_s": 0.8}}
    session = seen(more=rows).session
    assert session is not None
    assert _phase_too_short(said, session) is None
    assert _phase_too_short({**said, "elapsed_s": 11.0}, session) is not None


@pytest.mark.parametrize(("calls", "early"), [(1, True), (2, False)])
def test_who_waits_for_a_limit_has_used_all_of_it(calls: int, early: bool) -> None:
    made = tuple(call("begin", 10.5 + n / 10, f"c{5 + n}") for n in range(calls - 1))
    waits = event("limit.reached", 11.0, limit="agent_calls_hour", agent="a", action="wait")
    found = seen(more=(waits,), calls=(*CALLS, *made))
    model = at("running", knobs=Knobs(agent_calls_hour=2), uses_limits=True)
    assert ("limits_have_reason" in broken(found, model=model)) is early
    others = replace(model, uses_limits=False)
    assert "limits_have_reason" not in broken(found, model=others)
