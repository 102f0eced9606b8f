"""Where agents of a session may write, and what becomes of a word to go on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_contract_session import (
    API,
    CALLS,
    CONTRACT,
    FRESH,
    PLAN,
    RESTORED,
    at,
    broken,
    call,
    event,
    point,
    seen,
    sha,
)

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.supported import supported
from mutiny.kit.judging import Moment
from mutiny.model.operation import Operation


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
