"""Parts of answers and of lines of metrics against what a session has written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from test_contract_session import (
    API,
    CALLS,
    CONTRACT,
    LINE,
    PLAN,
    at,
    broken,
    call,
    event,
    point,
    seen,
    sha,
    state,
)

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.judge import SessionJudge
from mutiny.contracts.session.observation import Row, SessionSeen
from mutiny.contracts.session.telling import Told, lies
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult

ROLES = replace(PLAN, roles={"a": "coder"})
STARTED = event("supervisor.start", 0.0, pid=13, start=99)


def view(told: str = "", *more: Row, rest: bool = False, **changes: Any) -> SessionSeen:
    made = seen(told, more, 0 if rest else 1, plan=ROLES, hours=0.1, **changes)
    assert made.session is not None
    events = (STARTED if row["type"] == STARTED["type"] else row for row in made.session.events)
    return replace(made, session=replace(made.session, events=tuple(events)))


def told(operation: Operation, said: Mapping[str, Any], after: SessionSeen, **more: Any) -> str:
    one = after.session
    assert one is not None
    found = next(lies(Told(operation, said, one, one, **more)), ("", ""))
    return found[0]


AGENT = {"name": "a", "role": "coder", "trust": 0.9}
USED = {"agent": "a", "role": "coder", "tokens": 30, "tool_calls": 1}
SPENT = {"total_tokens_consumed": 30, "model_calls": 1, "tool_calls": 1}
NOW = view()
ENDED = view("session.complete", rest=True)
BY_HAND = {"name": "a", "role": "coder", "tokens": 30, "tool_calls": 1, "tasks": ["t1", "t2"]}
TRUE: list[tuple[Operation, dict[str, Any], SessionSeen]] = [
    (op.Status(), {}, NOW),
    (op.Status(), {"session": "s1", "pid": 13, "start": 99, "agents": [AGENT]}, NOW),
    (op.Status(), {"pid": 0, "agents": [AGENT], "checkpoint": 1, "deltas": 0}, ENDED),
    (op.Status(), {"errors": 0, "recoveries": 0, "remaining_s": 200, "elapsed_s": 10.4}, NOW),
    (op.Status(), {"votes": {"v": "open"}}, view("", event("vote.open", 3.0, vote="v"))),
    (op.Status(), {"git_commit": "c1"}, NOW),
    (
        op.StartSession(agents=3, hours=0.1),
        {"agents": 3, "hours": 0.1, "phases": ["one", "two"]},
        NOW,
    ),
    (op.Health(), {"checks": {"disk": True}, "status": "running"}, NOW),
    (op.Metrics(), {**SPENT, "agent_utilization": [USED], "phase": "one"}, NOW),
    (op.Metrics(), {"tasks_completed": 1, "tasks_remaining": 1, "progress": 0.5}, NOW),
    (
        op.Metrics(),
        {"planned_seconds": 360, "estimated_remaining": 350, "checkpoint_count": 3},
        NOW,
    ),
    (op.VerifyCheckpoint(), {"checkpoints": [{"checkpoint": 0}, {"checkpoint": 1}]}, NOW),
    (op.VerifyCheckpoint(), {"last_valid": {"checkpoint": 1, "deltas": 0}}, NOW),
    (op.Report(), {"project_type": "demo", "agent_performance": [BY_HAND]}, ENDED),
    (op.Report(), {"code_quality": {"files": 1, "lines_of_code": 77}}, ENDED),
    (op.Metrics(written=True), {"number": 1}, NOW),
]
FALSE: list[tuple[str, Operation, dict[str, Any], SessionSeen]] = [
    ("status_true", op.Status(), {"session": "s2"}, NOW),
    ("status_true", op.Status(), {"pid": 14}, NOW),
    ("status_true", op.Status(), {"agents": [{**AGENT, "role": "tester"}]}, NOW),
    ("status_true", op.Status(), {"agents": [{**AGENT, "trust": 1.9}]}, NOW),
    ("status_true", op.Status(), {"agents": []}, NOW),
    ("status_true", op.Status(), {"errors": 1}, NOW),
    ("status_true", op.Status(), {"recoveries": 2}, NOW),
    ("status_true", op.Status(), {"remaining_s": 4000}, NOW),
    ("status_true", op.Status(), {"elapsed_s": 2.0}, NOW),
    ("status_true", op.Status(), {"elapsed_s": 900.0}, NOW),
    (
        "status_true",
        op.Status(),
        {"votes": {"v": "won"}},
        view("", event("vote.open", 3.0, vote="v")),
    ),
    ("status_true", op.Status(), {"votes": {"w": "open"}}, NOW),
    ("status_true", op.Status(), {"git_commit": "c9"}, NOW),
    ("status_true", op.Status(), {"deltas": 4}, ENDED),
    ("status_true", op.Status(), {"checkpoint": 0}, ENDED),
    ("status_true", op.StartSession(agents=3), {"agents": 2}, NOW),
    ("status_true", op.StartSession(), {"phases": ["one"]}, NOW),
    ("health_true", op.Health(), {"checks": {"disk": False}}, NOW),
    ("health_true", op.Health(), {"status": "complete"}, NOW),
    ("metrics_add_up", op.Metrics(), {**SPENT, "total_tokens_consumed": 31}, NOW),
    ("metrics_add_up", op.Metrics(), {**SPENT, "tool_calls": 5}, NOW),
    ("metrics_add_up", op.Metrics(), {"agent_utilization": [{**USED, "tokens": 90}]}, NOW),
    ("metrics_add_up", op.Metrics(), {"agent_utilization": [USED, USED]}, NOW),
    ("metrics_add_up", op.Metrics(), {"agent_utilization": [{**USED, "agent": "z"}]}, NOW),
    ("metrics_add_up", op.Metrics(), {"tasks_completed": 1, "tasks_remaining": 7}, NOW),
    ("metrics_add_up", op.Metrics(), {"tasks_completed": 1, "progress": 0.9}, NOW),
    ("metrics_add_up", op.Metrics(), {"phase": "three"}, NOW),
    ("metrics_add_up", op.Metrics(), {"planned_seconds": 10}, NOW),
    ("metrics_add_up", op.Metrics(), {"estimated_remaining": 999}, NOW),
    ("verify_true", op.VerifyCheckpoint(), {"checkpoints": [{"checkpoint": 0}]}, NOW),
    ("verify_true", op.VerifyCheckpoint(), {"last_valid": {"checkpoint": 0}}, NOW),
    ("report_true", op.Report(), {"project_type": "other"}, ENDED),
    ("report_true", op.Report(), {"agent_performance": [{**BY_HAND, "tokens": 29}]}, ENDED),
    ("report_true", op.Report(), {"agent_performance": [{**BY_HAND, "tasks": ["t1"]}]}, ENDED),
    ("report_true", op.Report(), {"agent_performance": [{**BY_HAND, "restarts": 9}]}, ENDED),
    ("report_true", op.Report(), {"error_log": [{"kind": "x"}]}, ENDED),
    ("report_true", op.Report(), {"recoveries": {"crash": {"count": 1}}}, ENDED),
    ("report_true", op.Report(), {"code_quality": {"files": 7}}, ENDED),
]


@pytest.mark.parametrize(("operation", "said", "after"), TRUE)
def test_what_is_so(operation: Operation, said: dict[str, Any], after: SessionSeen) -> None:
    assert told(operation, said, after) == ""


@pytest.mark.parametrize(("rule", "operation", "said", "after"), FALSE)
def test_what_never_was_so(
    rule: str, operation: Operation, said: dict[str, Any], after: SessionSeen
) -> None:
    assert told(operation, said, after) == rule


def test_where_a_line_may_be_missing_nothing_is_counted() -> None:
    assert told(op.Status(), {"errors": 1}, NOW, sure=False) == ""
    assert told(op.Metrics(), {**SPENT, "total_tokens_consumed": 31}, NOW, sure=False) == ""


def test_what_goes_back_with_a_restored_state_may_be_less() -> None:
    back = view("", event("error", 4.0, kind="x"), event("session.restore", 10.5))
    assert told(op.Status(), {"errors": 0}, back) == ""
    assert told(op.Status(), {"errors": 2}, back) == "status_true"


def test_the_file_that_was_named_holds_the_answer() -> None:
    asked = op.Metrics(written=True)
    assert told(asked, {"number": 1}, NOW, written={"number": 1}) == ""
    assert told(asked, {"number": 1}, NOW, written=None) == "metrics_add_up"
    assert told(asked, {"number": 1}, NOW, written={"number": 2}) == "metrics_add_up"
    assert told(op.Metrics(), {"number": 1}, NOW, written=None) == ""


def test_a_line_that_is_told_is_the_line_that_was_written() -> None:
    line = {**LINE, "ts": 7.5, "elapsed_seconds": 10, "memory_usage_mb": 40}
    kept = view(metrics=(line,))
    assert told(op.Metrics(), line, kept) == ""
    assert told(op.Metrics(), {**line, "memory_usage_mb": 4}, kept) == "metrics_add_up"
    assert told(op.Metrics(), {**line, "ts": 7.6, "memory_usage_mb": 4}, kept) == ""


def test_a_new_line_of_metrics_counts_what_stands_in_the_logs() -> None:
    line = {
        **LINE,
        "number": 2,
        "elapsed_seconds": 9,
        "model_calls": 1,
        "agent_utilization": [USED],
    }
    assert broken(seen(metrics=(LINE, line))) == set()
    assert "metrics_add_up" in broken(seen(metrics=(LINE, {**line, "model_calls": 3})))
    mixed = {**line, "agent_utilization": [{**USED, "tokens": 10}]}
    assert "metrics_add_up" in broken(seen(metrics=(LINE, mixed)))
    hurt = replace(at("running"), faults=("FillDisk()",))
    assert broken(seen(metrics=(LINE, {**line, "model_calls": 3})), model=hurt) == set()


def test_a_call_ends_before_the_next_one_begins() -> None:
    second = call("begin", 2.5, "c9", "model")
    assert "one_at_a_time" in broken(seen(calls=(CALLS[0], second, *CALLS[1:])))
    replaced = (event("agent.start", 2.4, agent="a"),)
    assert "one_at_a_time" not in broken(seen(calls=(CALLS[0], second, *CALLS[1:]), more=replaced))
    assert broken(seen(calls=(*CALLS, {**second, "at": 6.0}))) == set()


def test_what_nothing_drives_is_as_old_as_its_checkpoint() -> None:
    dead = view(rest=True)
    assert told(op.Status(), {"elapsed_s": 10.0}, dead) == ""
    young = view(rest=True, points=(point(0),))
    assert told(op.Status(), {"elapsed_s": 0.0}, young) == ""
    assert told(op.Status(), {"elapsed_s": 0.0}, dead) == "status_true"


def test_what_changed_meanwhile_is_left_alone() -> None:
    first, after = (
        view().session,
        view(points=(point(0), point(1), point(2, states=(state(2),)))).session,
    )
    assert first is not None
    assert after is not None
    rows = [{"checkpoint": 0}, {"checkpoint": 1}]
    assert list(lies(Told(op.VerifyCheckpoint(), {"checkpoints": rows}, first, after))) == []


def test_what_was_asked_before_it_went_back_need_not_be_there() -> None:
    tool: dict[str, Any] = {"name": "write_file", "path": "y.py", "sha256": sha("y")}
    first: dict[str, Any] = {**API[0], "tools": [tool]}
    assert "bytes_as_asked" in broken(seen(api=(first,)))
    assert "bytes_as_asked" not in broken(seen(api=(first, *API)))


def test_what_is_left_of_a_session_that_was_paused_meanwhile() -> None:
    first, after = seen(), seen("session.pause")
    result = OperationResult(0, json.dumps({"ok": True, "status": "paused", "tasks": {"left": 1}}))
    judge = SessionJudge(CONTRACT, first, after, 0.0)
    assert judge.judge(at("paused"), op.Status(), result).violation is None


def test_what_there_was_no_room_to_write_down_is_not_unsaid_by_an_old_log() -> None:
    paused = seen("session.pause")
    assert at("running").see(paused).status == {"paused"}
    assert replace(at("running"), cramped=True).see(paused).status == {"running", "paused"}
