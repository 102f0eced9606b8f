"""Checkpoints of a session as values: valid or not, what they hold, and what their deltas change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from test_contract_session import DEAD, broken, point, seen, sha

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.checkpoints import (
    CHECKLIST,
    METRICS,
    Point,
    digest_of,
    last_valid,
    point_of,
    state_of,
)
from mutiny.kit.operations import CrashAt, PowerLossAt, TearAt
from mutiny.model.operation import Operation


def payload(number: int = 0, **changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "number": number,
        "timestamp": 1000 + number,
        "elapsed_s": float(number),
        "session_id": "s1",
        "trigger": "phase",
        "phase": {"name": "one", "index": 0, "elapsed_s": 0.0},
        "agent_states": [
            {"name": "a", "role": "coder", "status": "idle", "trust": 0.9, "context": []}
        ],
        "working_memory": {"k": "v"},
        "file_system_state": {"x.py": {"sha256": sha("x = 1\n"), "size": 6, "text": "x = 1\n"}},
        "test_results": {"coverage": 90.0, "failed": 0, "errors": 0},
        "metrics": {**dict.fromkeys(METRICS, 0), "total_tokens_consumed": 30},
        "git_commit": "c1",
        "tasks": {"t1": {"status": "done"}, "t2": {"status": "working"}},
        "votes": {},
        "errors": [],
        "validation": dict.fromkeys(CHECKLIST, True),
        "previous": "",
        "restored_from": None,
    }
    return {**whole, **changes}


def sealed(value: Mapping[str, Any]) -> str:
    return json.dumps({"sha256": digest_of(value), "payload": value}) + "\n"


def delta(base: str, number: int, **changes: Any) -> dict[str, Any]:
    return {"base": 0, "delta": number, "previous": base, "elapsed_s": 5.0, **changes}


def test_a_checkpoint_and_its_deltas() -> None:
    whole = payload()
    first = delta(digest_of(whole), 1, tasks={"t2": {"status": "done"}})
    second = delta(digest_of(first), 2, files={"x.py": None}, agents={"b": {"name": "b"}})
    point = point_of(0, sealed(whole), sealed(first) + sealed(second))
    assert point.valid
    assert not point.cut
    assert not point.missing
    assert not point.unfit
    assert point.states[0].tasks == {"t1": "done", "t2": "waiting"}
    assert point.states[1].tasks["t2"] == "done"
    assert point.states[2].files == {}
    assert set(point.states[2].agents) == {"a", "b"}
    assert last_valid([point]) == point.states[2]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        (sealed(payload())[:200], "no JSON"),
        (sealed(payload()).replace('"v"', '"w"'), "digest"),
        (sealed(payload(1)), "number 1"),
        (sealed({"number": 0}), "not one of a session"),
        ("[]", "no payload"),
    ],
)
def test_what_is_not_valid(text: str, why: str) -> None:
    point = point_of(0, text, "")
    assert not point.valid
    assert why in point.why
    assert last_valid([point]) is None


def test_a_bad_delta_ends_the_chain() -> None:
    whole = payload()
    first = delta(digest_of(whole), 1)
    bad = sealed(first).replace("5.0", "6.0")
    assert point_of(0, sealed(whole), bad).cut.startswith("line 1")
    other = sealed(delta("another", 1))
    assert "does not follow" in point_of(0, sealed(whole), other).cut
    skipped = sealed(delta(digest_of(whole), 2))
    assert "is delta 2" in point_of(0, sealed(whole), skipped).cut


@pytest.mark.parametrize(
    ("changes", "missing", "unfit"),
    [
        ({"metrics": {}}, "metrics.", ""),
        ({"file_system_state": {"y": {"sha256": sha("a"), "text": "b"}}}, "another one", ""),
        ({"agent_states": [{"name": "a"}]}, "role", ""),
        ({"validation": {}}, "", "git_clean"),
        ({"votes": {"v": {"status": "open"}}}, "", "votes_resolved"),
        ({"errors": [{}]}, "", "errors_empty"),
        (
            {"file_system_state": {"y.py": {"sha256": sha("x ="), "text": "x ="}}},
            "",
            "tests_compile",
        ),
    ],
)
def test_what_a_checkpoint_must_hold(changes: dict[str, Any], missing: str, unfit: str) -> None:
    point = point_of(0, sealed(payload(**changes)), "")
    assert any(missing in text for text in point.missing) == bool(missing)
    assert any(unfit in text for text in point.unfit) == bool(unfit)


@pytest.mark.parametrize(
    ("operation", "accused"),
    [
        (op.Restore(), True),
        (PowerLossAt(op.Restore(), -1), True),
        (TearAt(op.Restore(), 3, "lie"), False),  # a disk that lies
        (CrashAt(op.Restore(), -1), False),
        (op.Status(), False),
    ],
)
def test_an_answered_restore_has_made_a_checkpoint(operation: Operation, accused: bool) -> None:
    points = (point(0), point(1), Point(2, False, "it is no JSON"))
    after = seen(points=points, supervisors=0)
    assert ("checkpoint_whole" in broken(after, operation, DEAD)) is accused
    assert "checkpoint_whole" not in broken(replace(after, damaged=frozenset("2")), operation, DEAD)
    assert "checkpoint_whole" not in broken(after, operation, after), "it was there before"


def test_a_vote_that_was_open_begins_anew_after_a_restore() -> None:
    held = {"shape": {"status": "open", "option": ""}, "ship": {"status": "won", "option": "yes"}}
    assert dict(state_of(payload(votes=held)).votes) == {"ship": "won yes"}
