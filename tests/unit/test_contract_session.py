"""The session contract without a target: outcomes, and every rule with its case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.about import ABOUT
from mutiny.contracts.session.checkpoints import (
    Point,
    State,
)
from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.session.judge import SessionJudge
from mutiny.contracts.session.looking import BOOK
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import (
    GitSeen,
    Plan,
    Processes,
    Row,
    SessionSeen,
    SessionView,
)
from mutiny.contracts.session.scenarios import SCENARIOS
from mutiny.contracts.session.soak import CRITERIA, account
from mutiny.kit.checking import Check
from mutiny.kit.judging import Moment
from mutiny.kit.operations import KillDuring
from mutiny.kit.soaking import judged, passed
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

CONTRACT = SessionContract()


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- outcomes --------------------------------------------------------------------------------------------


def served(model: SessionModel, operation: Operation) -> set[bool]:
    return {one.success for one in CONTRACT.outcomes(model, operation, Moment())}


def at(status: str, **changes: Any) -> SessionModel:
    model = SessionModel().begun("s1", "demo", 3).with_status(status)
    return replace(model, **changes)


OUTCOMES = [
    (SessionModel(), op.Status(), {False}),
    (SessionModel(), op.StartSession(), {True}),
    (SessionModel(), op.StartSession(project="nothing"), {False}),
    (SessionModel(), op.StartSession(agents=0), {False}),
    (SessionModel(), op.StartSession(agents=9), {False}),
    (SessionModel(), op.StartSession(name="../up"), {False}),
    (at("paused"), op.StartSession(), {False}),
    (at("stopped"), op.StartSession(), {True}),
    (at("stopped"), op.StartSession(name="s1"), {False}),
    (at("stopped"), op.Status(), {True}),
    (at("stopped"), op.Status(name="nobody"), {False}),
    (at("interrupted"), op.Restore(), {True}),
    (at("interrupted"), op.Restore(name="nobody"), {False}),
    (at("interrupted"), op.Recover(), {True}),
    (at("interrupted"), op.Health(), {False}),
    (at("interrupted"), op.Checkpoint(), {False}),
    (at("interrupted"), op.Pause(), {False}),
    (at("paused"), op.Restore(), {False}),
    (at("paused"), op.Pause(), {False}),
    (at("paused"), op.Continue(), {True}),
    (at("paused"), op.Stop(), {True}),
    (at("complete"), op.Continue(), {False}),
    (at("complete"), op.Restore(), {False}),
    (at("complete"), op.Recover(), {False}),
    (at("complete"), op.Report(), {True}),
]


@pytest.mark.parametrize(("model", "operation", "due"), OUTCOMES)
def test_what_is_served(model: SessionModel, operation: Operation, due: set[bool]) -> None:
    assert served(model, operation) == due


def test_what_is_left_decides_about_recovery() -> None:
    gone = seen(points=(Point(0, False, "gone"),), supervisors=0)
    found = CONTRACT.outcomes(at("interrupted"), op.Recover(), Moment(before=gone))
    assert [one.success for one in found] == [False]
    named = CONTRACT.outcomes(at("interrupted"), op.Restore(checkpoint=7), Moment(before=seen()))
    assert [one.refusals & {"no_checkpoint"} for one in named] == [{"no_checkpoint"}]


def test_a_session_goes_on_by_itself() -> None:
    model = at("running")
    assert model.now == {"running", "complete", "paused", "failed"}
    assert model.see(seen(told="session.complete")).status == {"complete"}
    assert model.died().status == {"interrupted", "complete", "failed"}


# --- rules -----------------------------------------------------------------------------------------------


def event(what: str, at_s: float = 0.0, life: int = 1, **more: Any) -> Row:
    return {"type": what, "at": at_s, "life": life, **more}


def call(state: str, at_s: float, number: str = "c1", kind: str = "tool", **more: Any) -> Row:
    return {
        "state": state,
        "at": at_s,
        "life": 1,
        "call": number,
        "kind": kind,
        "agent": "a",
        **more,
    }


def state(number: int, **changes: Any) -> State:
    tasks = {"t1": "done", "t2": "waiting"}
    return replace(
        State(number, 0, float(number) * 10, 0, tasks, {"x.py": sha("x")}, {"k": "v"}, {"a": "1"}),
        **changes,
    )


def point(number: int, **changes: Any) -> Point:
    whole = Point(
        number,
        True,
        digest=f"d{number}",
        previous=f"d{number - 1}" if number else "",
        trigger="phase",
        session="s1",
        commit="c1",
        blobs={"x.py": "b1"},
        states=(state(number),),
        tokens=30,
        coverage=90.0,
    )
    return replace(whole, **changes)


PLAN = Plan(
    ("one", "two"),
    (60.0, 60.0),
    (1.0, 1.0),
    (("tests_pass", "coverage>=80"), ()),
    {"t1": {"phase": "one"}, "t2": {"phase": "one", "needs": ["t1"]}},
    {"v": {"options": ["yes", "no"]}},
    ("a",),
)
EVENTS = (
    event("session.start", life=0),
    event("supervisor.start"),
    event("phase.start", phase="one"),
    event("checkpoint.written", 0.0, checkpoint=0, digest="d0"),
    event("agent.start", 0.1, agent="a"),
    event("task.start", 1.0, task="t1", agent="a"),
    event("task.done", 6.0, task="t1", agent="a"),
    event("checkpoint.written", 10.0, checkpoint=1, digest="d1"),
)
CALLS = (
    call("begin", 2.0, "c1", "model"),
    call("end", 3.0, "c1", "model", input_tokens=20, output_tokens=10, task="t1"),
    call("begin", 4.0, "c2", name="write_file"),
    call("end", 5.0, "c2", ok=True, path="x.py", sha256=sha("x")),
)
API = (
    {
        "last": "[c1] Task t1: it",
        "model": "m",
        "fault": None,
        "input_tokens": 20,
        "output_tokens": 10,
        "tools": [{"name": "write_file", "path": "x.py", "sha256": sha("x")}],
    },
)
LINE = {"elapsed_seconds": 5, "number": 1, "life": 1, "memory_usage_mb": 40, "descriptors": 16}


def seen(
    told: str = "", more: tuple[Row, ...] = (), supervisors: int = 1, **changes: Any
) -> SessionSeen:
    """A session at work, with one task done."""
    of_seen = {key: changes.pop(key) for key in list(changes) if key in SessionSeen.__annotations__}
    events = (*EVENTS, *more, *((event(told, 11.0),) if told else ()))
    view = SessionView(
        name="s1",
        project="demo",
        agents=3,
        plan=PLAN,
        points=(point(0), point(1)),
        events=events,
        calls=CALLS,
        metrics=(LINE,),
        git=GitSeen("c1", (), {"c1": {"x.py": "b1"}}),
        processes=Processes(supervisors, min(1, supervisors)),
        digest="d",
    )
    whole = SessionSeen(names=("s1",), session=replace(view, **changes), api=API)
    return replace(whole, **of_seen)


def broken(
    after: SessionSeen,
    operation: Operation = op.Status(),  # noqa: B008  a value
    before: SessionSeen | None = None,
    model: SessionModel | None = None,
    **knobs: str,
) -> set[str]:
    believed = model or at(after.status)
    for name, value in knobs.items():
        believed = replace(believed, knobs=believed.knobs.set(name, value))
    check = Check(believed, after, before or seen(), operation)
    return {
        found.rule.removeprefix("session.")
        for ask, _ in BOOK.rules.values()
        for found in ask(check)
    }


def test_a_good_session_breaks_nothing() -> None:
    assert broken(seen()) == set()
    ended = seen("session.complete", supervisors=0, points=(point(0), point(1, states=(DONE,))))
    assert broken(ended) == set()


DONE = state(1, tasks={"t1": "done", "t2": "done"})
DEAD = seen(supervisors=0)
RESTORED = (
    event("session.restore", 10.0, checkpoint=1, deltas=0, fell_back=[]),
    event("supervisor.start", 10.0, 2),
)
FRESH = point(2, restored_from=1, states=(state(2, elapsed_s=10.0),))
FAILED = {"last": "[c2] Task t2: it", "model": "m", "fault": "529", "tools": []}


def restored(row: Row | None = None, fresh: Point = FRESH, **changes: Any) -> SessionSeen:
    rows = (row, RESTORED[1]) if row is not None else RESTORED
    return seen(more=rows, points=(point(0), point(1), fresh), **changes)


def error(kind: str, severity: str, **more: Any) -> Row:
    return event("error", 10.5, kind=kind, severity=severity, agent="a", task="t2", **more)


def tools(count: int, start: float = 11.0) -> tuple[Row, ...]:
    rows: list[Row] = []
    for place in range(count):
        name = f"x{place}"
        rows += [call("begin", start + place, name), call("end", start + place + 0.5, name)]
    return (*CALLS, *rows)


def used(amount: int, at_s: float = 11.0, name: str = "c9") -> Row:
    return call("end", at_s, name, "model", input_tokens=amount, output_tokens=0)


def asked(amount: int) -> tuple[Row, ...]:
    more: Row = {"last": "", "fault": None, "input_tokens": amount, "output_tokens": 0, "tools": []}
    return (*API, more)


def lines(*changes: Mapping[str, Any]) -> tuple[Row, ...]:
    return tuple(
        {**LINE, "number": place, "elapsed_seconds": place * 30, **change}
        for place, change in enumerate(changes, 1)
    )


GATE: dict[str, Any] = {
    "phase": "one",
    "passed": True,
    "criteria": {"tests_pass": True, "coverage>=80": True},
}
WRITTEN = event("checkpoint.written", 12.0, checkpoint=1, digest="d1")

REFUSED = replace(
    seen(), api=(*API, {"path": "/v1/messages", "status": 400, "error": "messages.2: tool_use c1"})
)

CASES: list[tuple[str, SessionSeen, dict[str, Any]]] = [
    ("checkpoint_whole", seen(points=(point(0), Point(1, False, "torn"))), {}),
    ("checkpoint_whole", seen(points=(point(0),)), {}),
    ("checkpoint_whole", seen(points=(point(0), point(1, digest="other"))), {}),
    ("checkpoint_whole", seen(points=(point(0), point(1, cut="line 2: bad"))), {}),
    ("checkpoint_complete", seen(points=(point(0), point(1, missing=("it",)))), {}),
    ("checkpoint_complete", seen(points=(point(0), point(1, session="s2"))), {}),
    ("checkpoint_complete", seen(points=(point(0), point(1, states=(state(1, agents={}),)))), {}),
    ("checkpoint_complete", seen(points=(point(0), point(1, commit=None))), {}),
    ("checkpoint_valid", seen(points=(point(0), point(1, unfit=("it",)))), {}),
    ("checkpoint_valid", seen(points=(point(0), point(1, blobs={"x.py": "b2"}))), {}),
    (
        "checkpoint_valid",
        seen(calls=(*CALLS, call("begin", 9.0, "c3"), call("end", 11.0, "c3"))),
        {},
    ),
    ("checkpoint_chain", seen(points=(point(0), point(1, previous="x"))), {}),
    ("checkpoint_chain", seen(points=(point(0), point(1), point(3))), {}),
    ("checkpoint_by_time", seen(more=(event("task.start", 90.0, task="t2"),)), {}),
    ("checkpoint_by_calls", seen(calls=tools(9)), {"calls_interval": "2"}),
    (
        "checkpoint_by_tokens",
        seen(calls=(*CALLS, *(used(100, 11.0 + n, f"u{n}") for n in range(8))), api=asked(800)),
        {"tokens_interval": "100"},
    ),
    (
        "checkpoint_by_phase",
        seen(more=(event("phase.gate", 11.0, **GATE), event("phase.start", 12.0, phase="two"))),
        {},
    ),
    ("restores_last_valid", restored(event("session.restore", checkpoint=0, deltas=0)), {}),
    ("restores_last_valid", restored(fresh=replace(FRESH, states=(state(2, tasks={}),))), {}),
    ("work_kept", seen(more=(event("task.start", 11.0, task="t1"),)), {}),
    ("work_kept", seen(more=(event("task.done", 11.0, task="t2"),), supervisors=0), {}),
    (
        "bytes_as_asked",
        seen(calls=(*CALLS[:3], {**CALLS[3], "sha256": sha("y")})),
        {},
    ),
    ("bytes_as_asked", seen(points=(point(0), point(1, states=(state(1, files={}),)))), {}),
    ("phases_in_order", seen(more=(event("phase.start", 11.0, phase="nothing"),)), {}),
    (
        "phases_in_order",
        seen(events=(*EVENTS[:5], event("task.start", 1.0, task="t2", agent="a"))),
        {},
    ),
    ("gates_hold", seen(more=(event("phase.complete", 11.0, phase="one"),)), {}),
    (
        "gates_hold",
        seen(
            more=(event("phase.gate", 11.0, **GATE), WRITTEN, event("phase.complete", phase="one")),
            points=(point(0), point(1, coverage=50.0)),
        ),
        {},
    ),
    ("gates_hold", seen("session.complete", supervisors=0), {}),
    ("one_supervisor", seen(supervisors=2), {}),
    ("severity_obeyed", seen(more=(error("rate_limit", "fatal"),)), {}),
    ("severity_obeyed", seen("session.pause"), {}),
    ("severity_obeyed", seen("session.failed", supervisors=0), {}),
    ("retries_bounded", seen(api=(*API, *[FAILED] * 70)), {}),
    ("switches_model", seen(api=(*API, *[FAILED] * 12)), {}),
    ("backs_off", seen(more=(error("overload", "recoverable", action="backoff", wait_s=0),)), {}),
    (
        "backs_off",
        seen(
            more=(error("overload", "recoverable", action="backoff", wait_s=5),),
            calls=(*CALLS, call("begin", 11.0, "c4", "model", task="t2")),
        ),
        {},
    ),
    (
        "votes_true",
        seen(
            more=(
                event("vote.open", vote="v"),
                event("vote.ballot", vote="v", option="yes", trust=0.9),
                event("vote.ballot", vote="v", option="no", trust=0.5),
                event("vote.won", vote="v", option="no"),
            )
        ),
        {},
    ),
    ("votes_true", seen(more=(event("vote.deadlock", vote="v", rounds=5),)), {}),
    (
        "recovers_in_time",
        seen(more=(event("recovered", kind="memory_pressure", took_s=1000.0),)),
        {},
    ),
    (
        "agent_tokens",
        seen(calls=(*CALLS, used(90), used(90, 12.0), used(90, 13.0)), api=asked(270)),
        {"agent_tokens_hour": "100"},
    ),
    ("agent_calls", seen(calls=tools(5)), {"agent_calls_hour": "3"}),
    ("context_bounded", seen(api=asked(0), calls=CALLS), {"context_tokens": "10"}),
    (
        "idle_reassigned",
        seen(
            more=(
                event("task.start", 11.0, task="t2", agent="a"),
                event("checkpoint.written", 60.0, checkpoint=1, digest="d1"),
            )
        ),
        {"idle_s": "10"},
    ),
    (
        "total_tokens",
        seen(calls=(*CALLS, *(used(90, 11.0 + n) for n in range(9))), api=asked(810)),
        {"total_tokens": "100"},
    ),
    ("agents_bounded", seen(processes=Processes(1, 5)), {}),
    ("disk_bounded", seen(size_mb=9.0), {"disk_mb": "1"}),
    ("disk_bounded", seen("session.complete", supervisors=0, size_mb=9.0), {"disk_mb": "1"}),
    (
        "tests_bounded",
        seen(calls=(*CALLS, call("begin", 11.0, "t", name="run_tests"), call("end", 50.0, "t"))),
        {"test_time_s": "5"},
    ),
    (
        "limits_have_reason",
        seen(more=(event("budget.alert", 3.0, used=10, limit=5000),)),
        {"total_tokens": "5000"},
    ),
    (
        "limits_have_reason",
        seen(more=(event("limit.reached", 3.0, limit="idle", agent="ada", action="reassign"),)),
        {"idle_s": "600"},
    ),
    ("metrics_add_up", seen(calls=(*CALLS, used(500))), {}),
    ("metrics_add_up", seen(points=(point(0), point(1, tokens=500))), {}),
    ("metrics_add_up", seen(metrics=lines({"tool_calls": 9}, {"tool_calls": 2})), {}),
    ("requests_readable", REFUSED, {}),
    ("one_at_a_time", seen(calls=(CALLS[0], call("begin", 2.5, "c9", "model"), *CALLS[1:])), {}),
    ("metrics_regular", seen(metrics=lines({}, {}, {"number": 2})), {}),
    ("metrics_regular", seen(metrics=lines({}, {"elapsed_seconds": 300})), {}),
    ("logs_whole", seen(bad_lines=("events.jsonl: no JSON",)), {}),
    ("logs_whole", seen(more=(event("error", 2.0, kind="x"),)), {}),
    (
        "tests_kept",
        seen(
            calls=(*CALLS, call("end", 7.0, "c3", ok=True, name="run_tests")),
            points=(point(0), point(1, states=(state(1, tests=(4, 1)),))),
        ),
        {"model": at("running", keeps_tests=True)},
    ),
    ("reads_own", seen(api=(*API, {**API[0], "marks": [op.SECRET]})), {}),
    ("processes_end", seen("session.stop"), {}),
    ("processes_end", seen(processes=Processes(1, 1, tools=1)), {}),
    ("no_growth", seen(metrics=lines(*({"memory_usage_mb": 40 + n} for n in range(90)))), {}),
    ("no_growth", seen(metrics=lines(*({"descriptors": 10 + n} for n in range(90)))), {}),
    ("no_crash", DEAD, {"model": at("running")}),
    ("answers_truly", seen(), {"model": at("stopped")}),
]


@pytest.mark.parametrize(("rule", "after", "more"), CASES)
def test_every_rule_is_broken_by_its_case(
    rule: str, after: SessionSeen, more: dict[str, Any]
) -> None:
    assert rule in broken(after, before=DEAD, **more)


def test_every_rule_about_state_has_a_case() -> None:
    tried = {f"session.{rule}" for rule, _, _ in CASES}
    apart = {"fallback_told", "looks_only", "project_works", "memory_bounded", "pause_holds"}
    assert set(BOOK.rules) == tried | {f"session.{rule}" for rule in apart}


def test_what_nothing_drives_tells_the_metrics_of_an_earlier_time() -> None:
    earlier = seen(supervisors=0, metrics=({**LINE, "total_tokens_consumed": 7},))
    assert dishonest(op.Metrics(), {"total_tokens_consumed": 7}, earlier) == ""
    assert dishonest(op.Metrics(), {"total_tokens_consumed": 8}, earlier) == "metrics_add_up"


@pytest.mark.parametrize(("inner", "killed"), [(op.StartSession(), True), (op.Status(), False)])
def test_a_start_that_was_cut_off_may_have_begun_nothing(inner: Operation, killed: bool) -> None:
    cut, judge = KillDuring(inner, 200.0, whole=False), SessionJudge(CONTRACT, DEAD, DEAD, 0.0)
    assert judge.struck(at("running"), cut, Moment(DEAD, DEAD, 0.0)).killed is killed


def test_a_checkpoint_waits_for_a_call_until_its_agent_is_lost() -> None:
    late = event("checkpoint.written", 200.0, checkpoint=1, digest="d1")
    lost = event("agent.lost", 199.0, agent="a")
    points = (point(0), point(1), point(2, states=(state(20),)))
    known: Any = {"calls": (*CALLS, call("begin", 60.0, "t")), "points": points}
    assert "checkpoint_by_time" in broken(seen(more=(late,), **known), interval_s="60")
    assert "checkpoint_by_time" not in broken(seen(more=(lost, late), **known), interval_s="60")


def test_a_fallback_is_told() -> None:
    bad = Point(2, False, "its digest is wrong")
    before = seen(supervisors=0, points=(point(0), point(1), bad), damaged=frozenset({"2"}))
    fresh = point(3, restored_from=1, states=(state(3),))
    silent = seen(more=RESTORED, points=(point(0), point(1), bad, fresh), damaged=frozenset({"2"}))
    assert broken(silent, op.Recover(), before) == {"fallback_told"}
    row = event("session.restore", 10.0, checkpoint=1, deltas=0, fell_back=[{"checkpoint": 2}])
    told = seen(
        more=(row, RESTORED[1]), points=(point(0), point(1), bad, fresh), damaged=frozenset({"2"})
    )
    assert broken(told, op.Recover(), before) == set()


def test_the_newest_announced_may_make_room_for_two_that_were_restored() -> None:
    first = point(2, restored_from=1, states=(state(2),))
    second = point(3, restored_from=2, states=(state(3),))
    full = event("limit.reached", 11.0, limit="disk", agent="", action="cleanup")
    assert "checkpoint_whole" not in broken(seen(points=(first, second), more=(full,)))
    assert "checkpoint_whole" in broken(seen(points=(first,), more=(full,)))
    torn = Point(3, False, "torn")
    assert "checkpoint_whole" in broken(seen(points=(first, torn), more=(full,)))


def test_without_need_all_checkpoints_are_kept() -> None:
    first = point(2, restored_from=1, states=(state(2),))
    second = point(3, restored_from=2, states=(state(3),))
    few = seen(points=(first, second))
    assert "checkpoint_whole" in broken(few)
    assert "checkpoint_whole" not in broken(few, keep="2")
    cramped = replace(at("running"), cramped=True)
    assert "checkpoint_whole" not in broken(few, model=cramped)


@pytest.mark.parametrize(("last", "may_go_on"), [(point(1), False), (Point(1, False, "bad"), True)])
def test_an_end_whose_checkpoint_was_damaged_may_be_forgotten(last: Point, may_go_on: bool) -> None:
    ended = seen("session.complete", supervisors=0, points=(point(0), last))
    model = replace(at("complete"), damaged=True)
    found = CONTRACT.outcomes(model, op.Recover(), Moment(before=ended, seen=ended))
    assert {one.success for one in found} == ({True, False} if may_go_on else {False})


def test_a_look_changes_nothing() -> None:
    changed = seen(supervisors=0, digest="e")
    assert broken(changed, op.Status(), DEAD) == {"looks_only"}
    assert broken(changed, op.Restore(), DEAD) == set()


def test_what_is_left_works() -> None:
    ended = seen("session.complete", supervisors=0, points=(point(0), point(1, states=(DONE,))))
    works, fails = (replace(ended, built={"ok": ok, "why": "no"}) for ok in (True, False))
    assert broken(works, op.BuildProject()) == set()
    assert broken(fails, op.BuildProject()) == {"project_works"}


# --- what must not be accused ----------------------------------------------------------------------------

HARMLESS: list[tuple[SessionSeen, dict[str, Any]]] = [
    (restored(), {"model": at("running", killed=True)}),
    (seen(points=(point(0), Point(1, False, "x")), damaged=frozenset({"1"})), {}),
    (seen(points=(point(0), point(1, cut="the last line is torn"))), {}),
    (seen(calls=tools(9)), {"calls_interval": "0"}),
    (seen(calls=tools(9)), {"calls_interval": "20"}),
    (
        seen(more=(error("disk_full", "critical"), event("session.pause", 11.0, reason="disk"))),
        {},
    ),
    (seen(more=(event("session.pause", 11.0, reason="asked"),)), {}),
    (seen(api=(*API, *[FAILED] * 5)), {}),
    (seen(more=(error("overload", "recoverable", action="backoff", wait_s=5.0),)), {}),
    (seen(metrics=lines(*({"memory_usage_mb": 40 + n % 3} for n in range(90)))), {}),
    (DEAD, {"model": at("running", killed=True).died()}),
]


@pytest.mark.parametrize(("after", "more"), HARMLESS)
def test_what_is_right_is_not_accused(after: SessionSeen, more: dict[str, Any]) -> None:
    assert broken(after, before=DEAD, **more) == set()


# --- answers ---------------------------------------------------------------------------------------------


def dishonest(operation: Operation, said: Mapping[str, Any], after: SessionSeen) -> str:
    result = OperationResult(0, json.dumps({"ok": True, **said}))
    judge = SessionJudge(CONTRACT, after, after, 0.0)
    found = judge.judge(at(after.status), operation, result).violation
    return "" if found is None else found.rule.removeprefix("session.")


STATUS = {"status": "running", "checkpoint": 1, "tasks": {"done": 1}, "phase": {"index": 0}}
REPORT = {"checkpoint_history": [1, 2], "error_log": [], "agent_performance": [1]}
SECOND = (event("phase.start", 10.5, phase="two"),)
IN_PHASE_TWO = seen(more=SECOND)
CUT_OFF = seen(more=SECOND, supervisors=0)
"""A restore was cut off: its checkpoint, of the first phase, is written, and no event tells of it."""
JOINED = seen(more=(event("agent.start", 10.6, agent="late"),))
"""An agent came after the last checkpoint."""
IN_PHASE_TWO_SINCE_8 = seen(
    more=(event("phase.complete", 8.0, phase="one"), event("phase.start", 8.2, phase="two"))
)
LASTS_SINCE_8 = {"elapsed_s": 11.0, "phase": {"index": 1, "name": "two", "elapsed_s": 2.9}}
LASTS_FOR_ALL = {"elapsed_s": 11.0, "phase": {"index": 1, "name": "two", "elapsed_s": 11.0}}
ANSWERS = [
    (op.Status(), STATUS, seen(), ""),
    (op.Status(), {**STATUS, "status": "complete"}, seen(), "status_true"),
    (op.Status(), {**STATUS, "tasks": {"done": 5}}, seen(), "status_true"),
    (op.Status(), {**STATUS, "checkpoint": 7}, seen(), "status_true"),
    (op.Status(), {**STATUS, "tasks": {"done": 1, "left": 9}}, seen(), "status_true"),
    (op.Status(), {**STATUS, "tasks": {"done": 1, "flagged": 2}}, seen(), "status_true"),
    (op.Status(), {**STATUS, "agents": [{"name": "nobody"}]}, seen(), "status_true"),
    (op.Status(), STATUS, DEAD, "status_true"),
    (op.Status(), {**STATUS, "status": "interrupted"}, CUT_OFF, ""),
    (op.Status(), {**STATUS, "phase": {"index": 0}}, IN_PHASE_TWO, "status_true"),
    (op.Status(), {**STATUS, **LASTS_SINCE_8}, IN_PHASE_TWO_SINCE_8, ""),
    (op.Status(), {**STATUS, **LASTS_FOR_ALL}, IN_PHASE_TWO_SINCE_8, "status_true"),
    (op.Status(), {**STATUS, **LASTS_FOR_ALL}, IN_PHASE_TWO, ""),  # nobody tells since when
    (op.VerifyCheckpoint(), {"checkpoints": [{"checkpoint": 1, "valid": True}]}, seen(), ""),
    (
        op.VerifyCheckpoint(),
        {"checkpoints": [{"checkpoint": 1, "valid": False}]},
        seen(),
        "verify_true",
    ),
    (op.Metrics(), {"total_tokens_consumed": 30}, seen(), ""),
    (op.Metrics(), {"total_tokens_consumed": 99}, seen(), "metrics_add_up"),
    (op.Report(), {**REPORT, "final_status": "running"}, seen(), ""),
    (op.Report(), {**REPORT, "final_status": "complete"}, seen(), "report_true"),
    (op.Report(), {**REPORT, "final_status": "unreadable"}, seen(), "report_true"),
    (  # where no checkpoint is left that could be read, that is so (seed 5200035)
        op.Report(),
        {**REPORT, "final_status": "unreadable", "checkpoint_history": []},
        seen(points=(), supervisors=0),
        "",
    ),
    (op.Report(), {**REPORT, "final_status": "running"}, JOINED, ""),
    (
        op.Report(),
        {**REPORT, "final_status": "running", "agent_performance": []},
        seen(),
        "report_true",
    ),
    (
        op.Report(),
        {**REPORT, "final_status": "running", "error_log": [1] * 9},
        seen(),
        "report_true",
    ),
    (op.Checkpoint(), {"checkpoint": 1}, seen(), ""),
    (op.Checkpoint(), {"checkpoint": 9}, seen(), "checkpoint_whole"),
]


@pytest.mark.parametrize(("operation", "said", "after", "rule"), ANSWERS)
def test_what_is_said_is_so(
    operation: Operation, said: Mapping[str, Any], after: SessionSeen, rule: str
) -> None:
    assert dishonest(operation, said, after) == rule


def test_health_without_anything_that_runs_is_refused() -> None:
    result = OperationResult(0, '{"ok": true}')
    judged_ = SessionJudge(CONTRACT, DEAD, DEAD, 0.0).judge(at("interrupted"), op.Health(), result)
    assert judged_.verdict is Verdict.BUG


# --- scenarios and soaks ---------------------------------------------------------------------------------


def test_every_scenario_has_a_line() -> None:
    assert set(ABOUT) == set(SCENARIOS)


def test_the_account_of_a_soak() -> None:
    found = account(seen(more=(event("recovered", kind="overload", took_s=3.0),)), ())
    assert found.facts["recoveries"] == 1
    assert found.facts["recovery_kinds"] is None, "one kind was met: of three nobody can tell"
    assert found.facts["tokens"] == 30
    assert found.report["session_id"] == "s1"
    lines_ = judged(CRITERIA, found.facts)
    assert not passed(lines_)  # nobody has built it, and it is not complete
    whole = {one.fact: one.value for one in CRITERIA} | {"least_trust": 0.9, "coverage": 95.0}
    assert passed(judged(CRITERIA, whole))
    assert not passed(judged(CRITERIA, {**whole, "builds": None}))


def test_where_nothing_went_wrong_nobody_can_tell_whether_it_recovers() -> None:
    facts = account(seen(), ()).facts
    assert facts["recoveries"] is None
    word = {one.criterion.fact: one.word for one in judged(CRITERIA, facts)}
    assert word["recoveries"] == "unknown"
