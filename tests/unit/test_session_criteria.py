"""What gates say is held against the files of the checkpoint; and who wins a vote has the most trust."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from test_contract_session import (
    CALLS,
    GATE,
    PLAN,
    WRITTEN,
    at,
    broken,
    call,
    error,
    event,
    point,
    seen,
)

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.criteria import JUDGED, contradicted
from mutiny.contracts.session.observation import Processes, Row
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.supported import supported
from mutiny.targets.session.model_api import SPOILERS

GOOD = {
    "README.md": "A project.\n",
    "VERSION": "1.0.0\n",
    "release.json": json.dumps({"version": "1.0.0"}),
    "a/b.py": '"""A module."""\n\nX = 1\n',
    "tests/test_b.py": "eval('1')\n",
}
MEMORY = {"review.a/b.py": "fine"}


def against(files: dict[str, str], memory: dict[str, str] = MEMORY) -> set[str]:
    payload = {
        "file_system_state": {name: {"text": text} for name, text in files.items()},
        "working_memory": memory,
    }
    return set(contradicted(payload))


@pytest.mark.parametrize(
    ("changes", "memory", "found"),
    [
        ({}, MEMORY, set()),
        ({}, {}, {"reviewed"}),
        ({"a/c.py": '"""Another."""\n'}, MEMORY, {"reviewed"}),
        ({"README.md": " \n"}, MEMORY, {"documentation"}),
        ({"a/b.py": "X = 1\n"}, MEMORY, {"documentation"}),
        ({"a/b.py": '"""A module."""\nX = eval("1")\n'}, MEMORY, {"no_security_findings"}),
        ({"a/b.py": "X =\n"}, MEMORY, {"compiles"}),
        ({"VERSION": "2.0.0\n"}, MEMORY, {"release"}),
        ({"release.json": "no JSON"}, MEMORY, {"release"}),
    ],
)
def test_what_speaks_against_a_criterion(
    changes: dict[str, str], memory: dict[str, str], found: set[str]
) -> None:
    assert against({**GOOD, **changes}, memory) == found
    assert found <= set(JUDGED)


@pytest.mark.parametrize("before", [True, False], ids=["kept, then told", "told, then kept"])
def test_a_phase_is_not_left_against_what_its_checkpoint_says(before: bool) -> None:
    plan = replace(PLAN, criteria=(("reviewed", "coverage>=80"), ()))
    gate = {**GATE, "criteria": {"reviewed": True, "coverage>=80": True}}
    passed, over = event("phase.gate", 11.0, **gate), event("phase.complete", 11.0, phase="one")
    more = (passed, WRITTEN, over) if before else (passed, over, WRITTEN)
    promised = replace(at("running"), criteria=("reviewed",))

    def found(**changes: Any) -> set[str]:
        points = (point(0), point(1, **changes))
        return broken(seen(more=more, points=points, plan=plan), model=promised)

    assert "gates_hold" not in found()
    assert "gates_hold" not in found(against={"release": "no word of it"})
    assert "gates_hold" not in found(against={"reviewed": "nobody"}, trigger="time")
    assert "gates_hold" in found(against={"reviewed": "nobody"})
    assert "gates_hold" in found(coverage=50.0)
    unpromised = seen(more=more, points=(point(0), point(1, against={"reviewed": "x"})), plan=plan)
    assert "gates_hold" not in broken(unpromised, model=at("running"))


def test_a_gate_does_not_stay_shut_where_nothing_went_wrong() -> None:
    shut = event("phase.gate", 11.0, **{**GATE, "passed": False, "criteria": {"reviewed": False}})
    again = error("gate", "degraded", action="retry")
    given_up = error("gate_failed", "critical", action="pause")

    def found(*more: Row, **changes: Any) -> bool:
        believed = replace(at("paused"), **changes)
        return "gates_hold" in broken(seen("session.pause", more=more), model=believed)

    assert found(shut, again, given_up)
    assert not found(shut, again, given_up, faults=("BadWork()",))
    settled = replace(at("paused").fault("BadWork('raises')"), faults=())
    assert not found(shut, again, given_up, met=settled.met)
    assert not found(shut, error("tool_timeout", "transient"), again, given_up)
    assert not found(shut, again)  # somebody has paused it meanwhile
    assert not found(shut, again, event("phase.gate", 11.0, **GATE))


def ballot(agent: str, option: str, trust: float) -> dict[str, Any]:
    return dict(event("vote.ballot", vote="v", agent=agent, option=option, trust=trust))


@pytest.mark.parametrize(
    ("ballots", "right"),
    [
        ((("a", "yes", 0.6), ("b", "no", 0.5)), True),
        ((("a", "yes", 0.5), ("b", "no", 0.5)), False),
        ((("a", "yes", 0.4), ("b", "no", 0.5)), False),
        ((("a", "yes", 0.1), ("b", "yes", 0.2), ("c", "no", 0.3)), False),
        ((("a", "yes", 0.9),), True),
        # A second round: the ballots of the first do not count any more.
        ((("a", "no", 0.5), ("b", "yes", 0.5), ("a", "yes", 0.5), ("b", "yes", 0.5)), True),
        # Somebody had no voice in the second round: nobody knows what counted.
        ((("a", "no", 0.5), ("b", "yes", 0.5), ("b", "yes", 0.5)), True),
    ],
)
def test_a_vote_is_won_by_more_trust_than_any_other_option_has(
    ballots: tuple[tuple[str, str, float], ...], right: bool
) -> None:
    cast = tuple(ballot(*one) for one in ballots)
    won = event("vote.won", vote="v", option="yes")
    found = broken(seen(more=(event("vote.open", vote="v"), *cast, won)))
    assert ("votes_true" not in found) is right


@pytest.mark.parametrize(
    ("ballots", "wrong"),
    [
        ((("a", "yes", 0.9), ("b", "no", 0.9)), False),
        ((("a", "yes", 0.91), ("b", "no", 0.9)), True),
        ((("a", "yes", 0.9),), False),  # who has not voted could have made it a draw
        ((("a", "yes", 0.9), ("b", "no", 0.8), ("b", "no", 0.8)), False),
    ],
)
def test_what_somebody_has_won_is_no_deadlock(
    ballots: tuple[tuple[str, str, float], ...], wrong: bool
) -> None:
    opened = event("vote.open", vote="v", voters=["a", "b"])
    told = event("vote.deadlock", vote="v", rounds=1)
    found = broken(seen(more=(opened, *(ballot(*one) for one in ballots), told)))
    assert ("votes_true" in found) is wrong


def test_a_tool_that_is_being_called_may_run() -> None:
    busy = (*CALLS, call("begin", 6.0, "c3", name="run"))
    assert "processes_end" not in broken(seen(processes=Processes(1, 1, tools=1), calls=busy))
    assert "processes_end" in broken(seen(processes=Processes(1, 1, tools=2), calls=busy))


def test_only_gates_that_are_promised_are_tried() -> None:
    assert set(op.SPOILS.values()) <= set(JUDGED)
    assert set(SPOILERS) == set(op.SPOILS)
    for how, criterion in op.SPOILS.items():
        assert not supported(SessionProfile(), op.BadWork(how))
        assert supported(SessionProfile(criteria=(criterion,)), op.BadWork(how))
    assert supported(SessionProfile(), op.BadWork("raises"))


def test_bad_work_changes_one_thing_of_an_answer() -> None:
    page = {"name": "write_file", "input": {"path": "README.md", "content": "x"}}
    reviews = [
        {"name": "remember", "input": {"key": f"review.{name}", "value": "fine"}} for name in "ab"
    ]
    assert SPOILERS["unreviewed"]([page, *reviews]) == [page, reviews[0]]
    assert SPOILERS["unreviewed"]([page, reviews[0]]) == [page, reviews[0]]
    assert SPOILERS["undocumented"]([page])[0]["input"]["content"].strip() == ""
    assert SPOILERS["dangerous"]([page]) == [page]


def test_nobody_votes_on_what_was_never_opened() -> None:
    cast = ballot("a", "yes", 0.9)
    assert "votes_true" in broken(seen(more=(cast,)))
    assert "votes_true" not in broken(seen(more=(event("vote.open", vote="v"), cast)))
    assert "votes_true" not in broken(seen(more=(cast,), bad_lines=("events.jsonl: no JSON",)))
