"""Soaks without a target: where to go on after a kill, lines of metrics, and what is refused."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.soak import FAULTS, begin, middle
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import UsageError
from mutiny.kit.operations import Reset
from mutiny.kit.soaking import SCHEDULES, SoakAsk
from mutiny.modes import soak
from mutiny.system.processes import start_ticks
from mutiny.targets.session.recorder import FILE, Recorder, last_line, with_all_fields
from mutiny.targets.session.troubles import LEAST_S, PATIENCE_S, patience_s

ASK = SoakAsk("demo", 1.0, 3, 60.0, "mini", 3)
PLAN = (Reset(), *begin(ASK), *middle(ASK))


def journal(*operations: Any, trouble: str | None = None) -> list[Mapping[str, Any]]:
    return [
        {"operation": json.loads(json.dumps(one.as_json())), "result": {"harness_error": trouble}}
        for one in operations
    ]


def test_the_journal_says_where_to_go_on() -> None:
    assert soak.reached(PLAN, []) == 0
    assert soak.reached(PLAN, journal(*PLAN[:4])) == 4
    again = journal(op.Record(30.0, 60.0), op.Status(), op.Recover())
    assert soak.reached(PLAN, [*journal(*PLAN[:4]), *again]) == 4
    assert soak.reached(PLAN, [*journal(*PLAN[:4]), *again, *journal(*PLAN[4:6])]) == 6
    assert soak.reached(PLAN, journal(*PLAN)) == len(PLAN)


def test_a_step_that_was_not_carried_out_is_done_again() -> None:
    broken = journal(PLAN[4], trouble="Mutiny was asked to stop")
    assert soak.reached(PLAN, [*journal(*PLAN[:4]), *broken]) == 4


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_has_faults(schedule: str) -> None:
    ask = SoakAsk("demo", SCHEDULES[schedule].hours, 3, 60.0, schedule, 1)
    faults = [one for one in middle(ask) if one.kind.value == "fault"]
    assert len(faults) >= 3
    looks = [one for one in middle(ask) if isinstance(one, op.Metrics)]
    assert len(looks) == int(SCHEDULES[schedule].hours)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("hours", [0.5, 1.0, 6.0])
def test_a_soak_of_any_length_has_a_crash_to_recover_from(schedule: str, hours: float) -> None:
    for seed in range(20):
        plan = middle(SoakAsk("demo", hours, 3, 60.0, schedule, seed))
        crash = next(place for place, one in enumerate(plan) if isinstance(one, op.SystemCrash))
        assert any(isinstance(one, op.Recover) for one in plan[crash:])


def test_a_fault_without_its_moment_does_not_wait_through_the_session() -> None:
    assert patience_s(30.0, 1.0) == 30.0
    assert patience_s(90.0, 60.0) * 60.0 == PATIENCE_S
    assert patience_s(30.0, 3600.0) == LEAST_S
    assert patience_s(3.0, 60.0) == 3.0


# --- what is refused -------------------------------------------------------------------------------------


def plan(directory: Path, **changes: Any) -> RunDirectory:
    made = RunDirectory(directory)
    whole = {"ask": vars_of(ASK), "target_file": "t.toml", **changes}
    made.write_json(made.plan_path, whole)
    return made


def vars_of(ask: SoakAsk) -> dict[str, Any]:
    return {name: getattr(ask, name) for name in SoakAsk.__dataclass_fields__}


def test_a_soak_that_can_be_resumed(tmp_path: Path) -> None:
    assert soak.begun(plan(tmp_path)) == soak.Begun(ASK, "t.toml")


def test_what_is_no_soak_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no soak"):
        soak.begun(RunDirectory(tmp_path))
    with pytest.raises(UsageError, match="is no soak"):
        soak.begun(plan(tmp_path, ask=["demo"]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ask": {"project": "demo"}}, "ask.hours: is missing"),
        ({"ask": {**vars_of(ASK), "hours": "six"}}, "ask.hours: expected a number, got 'six'"),
        ({"ask": {**vars_of(ASK), "hours": float("nan")}}, "ask.hours: expected a number that can"),
        ({"ask": {**vars_of(ASK), "hours": 1e9}}, "hours must be between 0.01 and 24"),
        ({"ask": {**vars_of(ASK), "rate": 0}}, "rate must be between 0.1 and 1000"),
        ({"ask": {**vars_of(ASK), "agents": 0}}, "agents must be between 1 and 64"),
        ({"ask": {**vars_of(ASK), "schedule": "giga"}}, "schedule is one of mini, standard"),
        ({"target_file": 7}, "target_file: expected text, got 7"),
        ({"plant": None}, "plant: expected text"),
        ({"process": [1]}, "process: expected a table"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_in_one_line(
    tmp_path: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError) as error:
        soak.begun(plan(tmp_path, **changes))
    assert told in str(error.value)
    assert len(str(error.value).splitlines()) <= 5


@pytest.mark.parametrize("line", ["{}", '{"operation": "x"}', '{"operation": {}, "result": "x"}'])
def test_a_journal_whose_lines_are_no_steps_is_refused(tmp_path: Path, line: str) -> None:
    made = plan(tmp_path)
    made.journal_path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="line 1: it is no step"):
        soak._journalled(made)


def test_metrics_and_events_that_are_no_lines_are_named(tmp_path: Path) -> None:
    for name, reads in ((soak.METRICS, soak.read_metrics), (soak.EVENTS, _legs_of)):
        (tmp_path / name).write_text('{"number": 1}\nnonsense\n{"numb', encoding="utf-8")
        with pytest.raises(UsageError, match=f"{name}: line 2: it is no JSON object"):
            reads(tmp_path)


def _legs_of(path: Path) -> object:
    return soak._legs(RunDirectory(path))


def test_half_an_event_is_cut_off_before_others_follow(tmp_path: Path) -> None:
    events = tmp_path / soak.EVENTS
    events.write_text('{"what": "resumed"}\n{"wha', encoding="utf-8")
    soak._cut_half_a_line(events)
    soak.note(RunDirectory(tmp_path), {"what": "resumed"})
    assert len(soak._legs(RunDirectory(tmp_path))) == 2


def test_a_soak_that_runs_or_has_ended_is_refused(tmp_path: Path) -> None:
    own = {"pid": os.getpid(), "start": start_ticks(os.getpid())}
    with pytest.raises(UsageError, match="still runs"):
        soak.begun(plan(tmp_path, process=own))
    made = plan(tmp_path)
    made.write_json(made.summary_path, {})
    with pytest.raises(UsageError, match="come to its end"):
        soak.begun(made)


def test_a_torn_journal_is_cut_off(tmp_path: Path) -> None:
    made = plan(tmp_path)
    whole = json.dumps({"format": 1, **journal(Reset())[0]})
    made.journal_path.write_text(f'{whole}\n{{"oper', encoding="utf-8")
    assert len(soak._journalled(made)) == 1
    assert made.journal_path.read_text(encoding="utf-8") == f"{whole}\n"


# --- the recorder ----------------------------------------------------------------------------------------


def record(directory: Path, clock: list[float], until: int) -> list[dict[str, Any]]:
    """Lines up to a number, by a clock that the test moves."""
    recorder = Recorder(directory, 30.0, lambda: clock[0], lambda: 60.0, lambda: {"x": 1})
    recorder.start()
    deadline = time.monotonic() + 20
    lines: list[dict[str, Any]] = []
    last = 1000.0 + until * 30.0
    while len(lines) < until and time.monotonic() < deadline:
        clock[0] = min(clock[0] + 5.0, last)
        threading.Event().wait(0.002)
        text = (directory / FILE).read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
    recorder.close()
    assert not recorder.trouble
    return lines


def test_no_line_is_lost_or_doubled(tmp_path: Path) -> None:
    first = record(tmp_path, [1000.0], 4)
    assert [line["number"] for line in first] == [1, 2, 3, 4]
    assert first[0]["began"] == 1000.0
    with (tmp_path / FILE).open("a", encoding="utf-8") as file:
        file.write('{"number": 5, "sess')  # killed in the middle of a line
    second = record(tmp_path, [1000.0 + 4 * 30.0], 8)
    assert [line["number"] for line in second] == list(range(1, 9))
    assert [line["session_seconds"] for line in second] == [30.0 * n for n in range(1, 9)]


def test_the_last_line(tmp_path: Path) -> None:
    assert last_line(tmp_path / FILE) is None
    (tmp_path / FILE).write_text('{"number": 1}\n{"num', encoding="utf-8")
    assert last_line(tmp_path / FILE) == {"number": 1}


def test_every_field_is_there_before_there_are_figures() -> None:
    assert with_all_fields(None)["test_coverage"] is None
    found = with_all_fields({"test_coverage": 80.0, "phase": "one", "other": 1})
    assert found["test_coverage"] == 80.0
    assert found["phase"] == "one"
    assert "other" not in found


def test_a_soak_is_a_function_of_its_seed() -> None:
    ask = SoakAsk("demo", 6.0, 6, 60.0, "mega", 5)
    assert middle(ask) == middle(ask)
    assert middle(ask) != middle(replace(ask, seed=6))
    kinds = {one.type for one in middle(ask) if one.kind.value == "fault"}
    assert len(kinds) >= 6
    times = [one.seconds for one in middle(ask) if isinstance(one, op.RunUntil)]
    assert times == sorted(times)
    assert max(times) < 6 * 3600
    assert len(FAULTS) >= 10
