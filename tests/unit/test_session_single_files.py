"""Sessions that are single files: what a file and its deltas say, and the rules that look at them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.box.results import ProcessInfo
from mutiny.contracts.session import operations as op
from mutiny.contracts.session.checkpoints import TORN, Point, State, digest_of, opened
from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.session.judge import SessionJudge
from mutiny.contracts.session.looking import BOOK
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import Plan, Processes, Row, SessionSeen, SessionView
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.recipes import QUICK
from mutiny.contracts.session.single_file import Form, kept_of, said_of, within
from mutiny.contracts.session.supported import PACE
from mutiny.kit.checking import Check
from mutiny.kit.judging import Moment
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.registry import find_spec
from mutiny.targets.session.file_observer import FileObserver
from mutiny.targets.session.spec import SessionSpec

KEY = b"k" * 32
FORM = Form()
TASKS = {"t1": "one.txt", "t2": "two.txt"}


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def sealed(value: Mapping[str, Any], key: bytes = KEY) -> str:
    return json.dumps({"sha256": digest_of(value, key), "payload": value})


def whole(**changes: Any) -> dict[str, Any]:
    made = {
        "session": "s1",
        "created": "2026-01-01T00:00:00Z",
        "status": "in_progress",
        "version": 3,
        "messages": said("begin"),
        "calls": [{"given": json.dumps({"path": "one.txt"})}],
    }
    return {**made, **changes}


def delta(start: int, **changes: Any) -> dict[str, Any]:
    made = {"from": start, "to": start + 1, "messages": said(f"more {start}"), "calls": []}
    return {**made, **changes}


def test_a_file_with_its_deltas() -> None:
    more = delta(3, calls=[{"given": {"path": "two.txt"}}], status="completed")
    text = f"{sealed(more)}\n{sealed(delta(4))}\n"
    kept = kept_of(1, sealed(whole()), text, KEY, FORM, TASKS)
    assert kept.point.valid
    assert not kept.point.cut
    assert kept.status == "completed"
    assert kept.point.session == "s1"
    assert [one.deltas for one in kept.point.states] == [0, 1, 2]
    assert kept.point.state.tasks == {"t1": "done", "t2": "waiting"}
    assert kept.point.states[1].tasks["t2"] == "done"
    assert kept.created == 1767225600.0
    assert [one.elapsed_s for one in kept.point.states] == [3, 4, 5]
    assert kept.point.states[2].messages == said_of(said("begin", "more 3", "more 4"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        (sealed(whole(), b"another key"), "digest"),
        (sealed(whole())[:90], "no JSON"),
        (json.dumps(whole()), "no payload"),
        (sealed({"session": "s1"}), "not one of a session"),
    ],
)
def test_a_file_that_is_not_valid(text: str, why: str) -> None:
    kept = kept_of(0, text, "", KEY, FORM, TASKS)
    assert not kept.point.valid
    assert why in kept.point.why


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        (sealed(delta(3)), TORN),
        (f"{sealed(delta(3))}\n{sealed(delta(7))}\n", "version 7, and this is 4"),
        (f"{sealed(delta(3), b'x')}\n", "line 1: its digest"),
        (f"{sealed(delta(3))[:40]}\n", "line 1: it is no JSON"),
    ],
)
def test_deltas_end_at_the_first_that_does_not_follow(text: str, cut: str) -> None:
    point = kept_of(0, sealed(whole()), text, KEY, FORM, TASKS).point
    assert point.valid
    assert cut in point.cut


def test_deltas_from_before_the_file_are_left_over() -> None:
    text = f"{sealed(delta(1))}\n{sealed(delta(2))}\n{sealed(delta(3))}\n"
    point = kept_of(0, sealed(whole()), text, KEY, FORM, TASKS).point
    assert (point.cut, len(point.states)) == ("", 2)


def test_what_was_said_is_compared_without_the_system() -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": "be"}, {"text": "gin"}]}]
    assert said_of(parts) == said_of(said("begin"))
    assert said_of([{"role": "system", "content": "x"}, *said("a")]) == said_of(said("a"))
    assert said_of(None) == ()
    assert within("ac", "abc") == 2
    assert within("ca", "abc") == 1
    assert within("", "abc") == 0


# --- rules -----------------------------------------------------------------------------------------------

PLAN = Plan(tasks={name: {"path": path} for name, path in TASKS.items()})
CONTRACT = SessionContract(SessionProfile(stop_is_no_end=True, side_by_side=True))


def seen(supervisors: int = 0, cut: str = "", **changes: Any) -> SessionSeen:
    of_seen = {key: changes.pop(key) for key in list(changes) if key in SessionSeen.__annotations__}
    state = State(0, tasks={"t1": "done", "t2": "waiting"}, messages=("a", "b"))
    view = SessionView(
        name="s1",
        plan=PLAN,
        points=(Point(0, True, digest="d", session="s1", states=(state,), cut=cut),),
        events=({"type": "session.start", "at": 0.0},),
        processes=Processes(supervisors),
        written={"one.txt": "1"},
    )
    made = SessionSeen(names=("s1",), session=replace(view, **changes))
    return replace(made, **of_seen)


def at(status: str = "interrupted", **changes: Any) -> SessionModel:
    made = SessionModel(names=(None,), status=frozenset({status}), killed=True)
    return replace(made, **changes)


def broken(after: SessionSeen, model: SessionModel) -> set[str]:
    look = Check(model, after, after, op.Status())
    return {name for name, (ask, _) in BOOK.rules.items() if any(ask(look))}


def test_a_quiet_session_breaks_nothing() -> None:
    assert broken(seen(), at()) == set()


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ((("old",), ("a", "x", "b", "new")), set()),
        ((("old",), ("b",)), {"session.restores_last_valid"}),
        ((("old",), ()), {"session.restores_last_valid"}),
        ((("old",),), set()),
    ],
)
def test_the_first_request_tells_what_was_restored(
    asked: tuple[tuple[str, ...], ...], rule: set[str]
) -> None:
    model = at("running", owed=("a", "b"), owed_since=1)
    assert broken(seen(1, asked=asked), model) == rule


def test_bringing_it_back_owes_what_its_checkpoint_holds() -> None:
    before = seen(asked=(("a",), ("a", "b")))
    (found,) = CONTRACT.outcomes(at(), op.Recover(), Moment(before=before))
    assert (found.after.owed, found.after.owed_since) == (("a", "b"), 2)


def test_what_a_crash_and_what_a_stop_may_cost() -> None:
    lost = seen(written={"one.txt": "1", "two.txt": "2"})
    assert broken(lost, at()) == set()
    assert broken(lost, at(ended_by_word=True)) == {"session.work_kept"}
    assert broken(lost, at(damaged=True, ended_by_word=True)) == set()
    (stopped,) = CONTRACT.outcomes(at("paused"), op.Stop(), Moment(before=seen(1)))
    assert stopped.after.ended_by_word
    assert stopped.after.status == {"interrupted"}


def row(**changes: Any) -> Row:
    made = {"time": 0.0, "number": 1, "last": "do it", "fault": None, "retry_after_s": None}
    return {**made, "tools": [], "meant": [], **changes}


@pytest.mark.parametrize(
    ("again_s", "last", "rule"), [(0.2, "do it", 1), (1.0, "do it", 0), (0.2, "no", 0)]
)
def test_who_was_told_to_wait_waits(again_s: float, last: str, rule: int) -> None:
    api = (row(fault="429", retry_after_s=1), row(time=again_s, last=last))
    assert len(broken(seen(1, api=api), at("running")) & {"session.backs_off"}) == rule


def test_what_lies_there_is_what_was_asked_for_also_by_a_broken_answer() -> None:
    tool = {"name": "file_write", "path": "one.txt", "sha256": "2"}
    assert broken(seen(1, api=(row(tools=[tool]),)), at("running")) == {"session.bytes_as_asked"}
    half = row(fault="malformed-event", meant=[tool])
    assert broken(seen(1, api=(half,)), at("running")) == {"session.bytes_as_asked"}
    assert broken(seen(1, api=(half, row(tools=[{**tool, "sha256": "1"}]))), at("running")) == set()


def recovered(before: SessionSeen, answer: Mapping[str, Any]) -> str:
    result = OperationResult(0, json.dumps({"ok": True, **answer}))
    judge = SessionJudge(CONTRACT, before, replace(before), 0.0)
    judged = judge.judge(at(), op.Recover(), result)
    return judged.violation.rule if judged.violation else ""


def test_what_was_left_out_is_told_to_whoever_brings_it_back() -> None:
    assert recovered(seen(cut="line 2: bad"), {}) == "session.fallback_told"
    assert recovered(seen(cut="line 2: bad"), {"fell_back": True}) == ""
    assert recovered(seen(cut=TORN), {}) == ""
    assert recovered(seen(), {}) == ""


def status(words: str, supervisors: int) -> str:
    look = seen(supervisors)
    result = OperationResult(0, json.dumps({"ok": True, "status": words}))
    judged = SessionJudge(CONTRACT, look, look, 0.0).judge(at("interrupted"), op.Status(), result)
    return judged.violation.rule if judged.violation else ""


def test_a_status_may_leave_open_whether_it_runs() -> None:
    assert status("running|interrupted", 0) == ""
    assert status("running", 0) == "session.status_true"
    assert status("none", 0) == "session.status_true"


def test_a_session_that_lies_there_is_there() -> None:
    nothing = SessionModel()  # believed after a beginning that was broken off
    assert CONTRACT.outcomes(nothing, op.Status(), Moment(before=seen())) == ()
    (found,) = CONTRACT.outcomes(nothing, op.Status(), Moment(before=SessionSeen()))
    assert not found.success


def test_sessions_side_by_side() -> None:
    outcomes = CONTRACT.outcomes(at("running"), op.StartSession(), Moment())
    assert [one.success for one in outcomes] == [True]


def test_scenarios_are_said_without_what_a_target_lacks() -> None:
    few = SessionContract(SessionProfile(lacks=("Checkpoint", "Restore"), settable=()))
    steps = few.scenarios["system_crash"]
    assert not any(isinstance(one, op.Configure | op.Checkpoint) for one in steps)
    assert any(isinstance(one, op.WaitForTasks) for one in steps)  # still expected
    assert set(QUICK) <= set(PACE), "what every scenario sets may be left out"

    def wants(name: str) -> tuple[Operation, ...]:
        return few.scenarios[name]

    assert not any(isinstance(one, op.WaitForStatus) for one in wants("cost_overrun"))


@pytest.mark.parametrize("agents", [0, 9])
def test_who_is_not_told_a_number_of_agents_refuses_none(agents: int) -> None:
    start = op.StartSession(agents=agents)
    told = CONTRACT.outcomes(SessionModel(), start, Moment())
    assert [one.success for one in told] == [False]
    silent = SessionContract(replace(CONTRACT.profile, takes_agents=False))
    assert [one.success for one in silent.outcomes(SessionModel(), start, Moment())] == [True]


def test_a_target_file_tells_whether_a_number_of_agents_can_be_said() -> None:
    for name, due in (("selfware", False), ("longboat-session", True)):
        spec = find_spec(name)[0]
        assert isinstance(spec, SessionSpec)
        assert spec.profile.takes_agents is due


def test_a_scenario_that_lost_what_it_is_about_is_no_second_one() -> None:
    halves = {"crash_in_a_line", "crash_in_a_file", "crash_in_git"}
    assert halves <= set(SessionContract().scenarios)
    left = set(SessionContract(SessionProfile(lacks=("HalfDone",))).scenarios)
    assert "system_crash" in left
    assert not halves & left, "they would crash it once more, and pass under another name"


class OfTwo(FileObserver):
    """One that knows its sessions."""

    def __init__(self) -> None:
        """Without a target."""

    def names(self) -> tuple[str, ...]:
        return ("s1", "s2")


@pytest.mark.parametrize(
    ("words", "due"),
    [
        ((), 0),
        (("run",), 1),
        (("run", "run"), 1),  # two sessions side by side
        (("s2", "s2"), 2),
        (("s2", "s1"), 1),
        (("run", "s2"), 2),
    ],
)
def test_processes_of_other_sessions_do_not_drive_this_one(
    words: tuple[str, ...], due: int
) -> None:
    drivers = [
        ProcessInfo(9 + place, 1, 0, "S", "selfware", ("selfware", "-c", one), 1, False)
        for place, one in enumerate(words)
    ]
    assert OfTwo().driving(drivers, "s2") == due


class InOnePlace(FileObserver):
    """One whose files and key lie in one directory."""

    def __init__(self, place: Path, form: Form) -> None:
        """Of a target that is only a file."""
        live: Any = SimpleNamespace(
            spec=SimpleNamespace(key="key", form=form),
            notes=SimpleNamespace(tasks=TASKS),
            filled=str,
            outside=lambda name: BoxPath(place) / name,
        )
        super().__init__(live)
        self._place = BoxPath(place)

    def place(self) -> BoxPath:
        return self._place


def test_the_newest_session_is_the_one_that_came_last_whatever_the_clock_says(
    tmp_path: Path,
) -> None:
    """Seed 5100012: the clock was set back, and a new session begun."""
    observer = InOnePlace(tmp_path, Form())
    assert observer._in_order({"b": 200.0, "a": 100.0}) == ("a", "b")
    assert observer._in_order({"b": 200.0, "a": 100.0, "c": 50.0}) == ("a", "b", "c")
    assert observer._in_order({"b": 200.0, "c": 50.0}) == ("b", "c"), "one is gone"
    assert observer._in_order({"a": 300.0, "b": 200.0, "c": 50.0}) == ("b", "c", "a"), "begun anew"


def test_a_checkpoint_without_a_field_is_as_its_program_would_have_written_it(
    tmp_path: Path,
) -> None:
    payload = whole(talk=said("begin"))
    del payload["messages"]
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "s1.json").write_text(sealed(payload))
    assert InOnePlace(tmp_path, Form(messages="talk")).damage("s1", "field") == ("0",)
    found = opened((tmp_path / "s1.json").read_text(), KEY)
    assert not isinstance(found, str), "its digest fits"
    assert "talk" not in found[0]


def test_who_is_told_to_stop_may_have_come_to_its_end_just_then() -> None:
    found = CONTRACT.outcomes(at("running"), op.Stop(), Moment(before=seen(1)))
    served = {word for one in found if one.success for word in one.after.status}
    assert served == {"interrupted", "complete"}
