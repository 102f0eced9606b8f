"""Figures, picture and log from journals: the same lines always tell the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mutiny.contracts.spawns.metrics import measure
from mutiny.errors import UsageError
from mutiny.kit.measuring import Bar
from mutiny.report.experiment_log import entries, markdown, page
from mutiny.report.tree import tree


def run(
    number: int, agent: str, message: int, status: str = "completed", **more: Any
) -> dict[str, Any]:
    times = {"created": 100.0 + number, "started": 101.0 + number, "ended": 103.0 + number}
    own = {"id": number, "agent": agent, "channel": "dev", "message": message, "status": status}
    return {**own, "reason": "", "attempt": 1, "alive": False, **times, **more}


STATE = {
    "agents": {"prime": "claude", "hailot": "claude", "sentinel": "codex"},
    "messages": [
        [1, "dev", "human", None, False, 100.5],
        [2, "dev", "prime", 1, False, 103.5],
        [3, "dev", "hailot", 2, True, 104.5],
    ],
    "runs": [
        run(1, "prime", 1),
        run(2, "hailot", 2),
        run(3, "sentinel", 2, "failed", reason="exit 1", attempt=2),
        run(4, "prime", 3, "refused", reason="ended", started=0, ended=0, attempt=0),
    ],
    "posts": {"s1": 1, "s2": 1, "s3": 0},
}


def line(number: int, kind: str, state: Any, at: float = 0.0, **more: Any) -> dict[str, Any]:
    told = {
        "sequence_id": number,
        "timestamp_unix": 1000.0 + at,
        "operation": {"type": kind, "args": more.pop("args", {})},
        "result": {"argv": [], "stderr": "", "fired": None, **more.pop("result", {})},
        "post_state": state,
        "classification": "success",
        "violations": [],
        "inconclusive": [],
        "technique": None,
    }
    return {**told, **more}


JOURNAL = [line(1, "Reset", {}), line(2, "Send", STATE, 1.0), line(3, "StopAll", STATE, 6.0)]


def test_the_figures_of_a_raid() -> None:
    measured = measure(JOURNAL)
    assert measured is not None
    figures = measured.figures
    assert figures["time_to_first_completion_s"] == 3.5
    assert (figures["spawns_triggered"], figures["spawns_expected"]) == (3, 1)
    assert figures["spawns_refused"] == 1
    assert figures["failed_by_provider"] == {"claude": 0, "codex": 1}
    assert figures["human_interventions"] == 1
    assert figures["tthi_s"] == 5.0
    assert figures["deepest"] == 1
    assert figures["latency_by_agent"]["prime"]["mean_s"] == 3.0  # type: ignore[index]
    roles = {name: row["role"] for name, row in figures["delegation"].items()}  # type: ignore[attr-defined]
    assert roles == {"prime": "delegated", "hailot": "delegated", "sentinel": "watched"}
    assert [(bar.id, bar.parent) for bar in measured.bars][:3] == [
        ("s1", ""),
        ("s2", "s1"),
        ("s3", "s1"),
    ]


def test_who_does_not_say_when_it_ended_has_no_latency() -> None:
    state = {**STATE, "runs": [run(1, "prime", 1, ended=0), run(2, "hailot", 2)]}
    measured = measure([line(1, "Send", state)])
    assert measured is not None
    assert set(measured.figures["latency_by_agent"]) == {"hailot"}  # type: ignore[call-overload]


def test_a_fast_clock_makes_hours_of_minutes() -> None:
    fast = line(2, "SkewClock", {}, args={"rate": 60, "lasting": True})
    measured = measure([JOURNAL[0], fast, *JOURNAL[1:]])
    assert measured is not None
    assert measured.figures["tthi_s"] == 300.0


def test_nothing_is_measured_where_nobody_was_summoned() -> None:
    assert measure([line(1, "Reset", {})]) is None
    assert measure([line(1, "Init", {"runs": []})]) is None


def test_children_stand_below_whoever_started_them() -> None:
    bars = [
        Bar("s1", "a", "", 0, 9, "completed"),
        Bar("s2", "b", "", 1, 2, "failed", "exit 1"),
        Bar("s3", "c", "s1", 2, 3, "refused"),
        Bar("s4", "d", "gone", 2, 3, "running", open=True),
    ]
    drawn = tree(bars)
    assert [bar["name"] for bar in drawn["bars"]] == ["a s1", "c s3", "b s2", "d s4"]
    assert [bar["link"] is not None for bar in drawn["bars"]] == [False, True, False, False]
    assert all(bar["x"] + bar["width"] <= drawn["width"] for bar in drawn["bars"])


def kept(root: Path, name: str, lines: list[Any], plant: str = "", at: float = 1000.0) -> None:
    place = root / f"run_{name}"
    place.mkdir()
    plan = {
        "mode": "experiment",
        "title": "Raid",
        "contract": "spawns",
        "target": "longboat-spawns",
        "plant": plant,
        "question": "Does it end?",
        "started_unix": at,
    }
    (place / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    text = "\n".join(json.dumps(each) for each in lines)
    (place / "operations.jsonl").write_text(text + "\n", encoding="utf-8")


def test_the_log_grows_with_every_run_and_knows_what_was_not_seen_again(tmp_path: Path) -> None:
    bad = line(
        4,
        "Settle",
        STATE,
        8.0,
        classification="bug",
        violations=[{"rule": "spawns.row_true", "message": "s1 is dead.", "subject": "prime"}],
    )
    kill = line(3, "KillSender", STATE, 7.0, technique="SIGKILL", result={"fired": True})
    kept(tmp_path, "1", [*JOURNAL[:2], kill, bad])
    first = entries(tmp_path)
    assert [(one.result, one.bugs[0].name) for one in first] == [("FAIL", "BUG-001")]
    assert first[0].bugs[0].status == "Open"
    assert "KillSender" in first[0].bugs[0].cause
    kept(tmp_path, "2", JOURNAL, at=2000.0)
    kept(tmp_path, "3", [*JOURNAL, bad], "late-pid", at=3000.0)
    found = entries(tmp_path)
    assert [one.result for one in found] == ["FAIL", "PASS", "FAIL"]
    assert "run_2" in found[0].bugs[0].status
    assert found[2].bugs[0].name == "BUG-002"
    text = markdown(found, "Log")
    for words in (
        "## Experiment 2: Raid",
        "**Question:** Does it end?",
        "| Human interventions | 1 |",
    ):
        assert words in text
    html = page(found, "Log")
    assert html.count('aria-label="who started whom') == 3
    assert "1 of 3 passed" in html


def test_a_directory_without_experiments_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no experiments"):
        entries(tmp_path)
