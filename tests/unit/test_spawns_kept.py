"""What answers of a spawns target say of runs, messages and events, held against what it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from test_contract_spawns import (
    BEFORE,
    DONE,
    NOW,
    TEXT,
    broken,
    completed,
    ended,
    message,
    model,
    running,
    seen,
)

from mutiny.contracts.spawns import kept
from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.observation import Run, SpawnsSeen
from mutiny.kit.faults import SkewClock
from mutiny.model.operation import Operation

ROW = {
    "id": "s1",
    "agent": "Prime",
    "channel": "dev",
    "message": 1,
    "root": 1,
    "parent": None,
    "depth": 0,
    "status": "completed",
    "reason": "",
    "attempt": 1,
    "exit_code": 0,
    "pid": 11,
}
SAID = {"id": 1, "channel": "dev", "sender": "human", "text": TEXT, "root": 1, "spawn": None}
EVENTS = (
    {"seq": 2, "kind": "pending", "detail": "", "spawn": "s1"},
    {"seq": 3, "kind": "running", "detail": "1 11", "spawn": "s1"},
    {"seq": 5, "kind": "completed", "detail": "", "spawn": "s1"},
)


def keeps(
    *runs: Run,
    rows: Iterable[Mapping[str, Any]] = (ROW,),
    events: Iterable[Mapping[str, Any]] = EVENTS,
    **more: Any,
) -> SpawnsSeen:
    """A look at a target that tells what it keeps."""
    tables: dict[str, dict[str, Mapping[str, Any]]] = {
        "spawns": {str(row["id"]): row for row in rows},
        "messages": {"1": SAID},
        "events": {str(row["seq"]): row for row in events},
        "agents": {"Prime": {"agent": "Prime", "provider": "claude", "model": "opus"}},
    }
    return replace(seen(*(runs or (completed(),)), **more), kept=tables)


LOOK = keeps()
BEGUN = keeps(running(), rows=({**ROW, "status": "running", "exit_code": None},), events=EVENTS[:2])


def lies(
    operation: Operation,
    said: Mapping[str, Any],
    before: SpawnsSeen = LOOK,
    now: SpawnsSeen = LOOK,
    named: int = 1,
) -> list[str]:
    return [text for text, _ in kept.untrue(kept.Command(operation, said, named), before, now)]


@pytest.mark.parametrize(
    "changed",
    [{"attempt": 2}, {"reason": "exit 1"}, {"exit_code": 1}, {"pid": 12}, {"root": 7}],
    ids=str,
)
def test_a_row_is_as_it_is_kept(changed: dict[str, Any]) -> None:
    listing = op.ListSpawns()
    assert not lies(listing, {"spawns": [ROW]})
    assert not lies(listing, {"spawns": [{**ROW, "of its own": 7}]}), "nobody else has that"
    assert not lies(listing, {"spawns": [{"id": "s1"}]}), "fields that are left out"
    assert lies(listing, {"spawns": [{**ROW, **changed}]})
    assert not lies(listing, {"spawns": [{**ROW, **changed}]}, now=seen(completed()))


def test_of_a_run_that_goes_on_only_what_never_changes_is_compared() -> None:
    between = {**ROW, "status": "pending", "exit_code": 1, "reason": "exit 1", "attempt": 1}
    again = keeps(running(attempt=2), rows=({**ROW, "status": "running", "attempt": 2},))
    assert not lies(op.ListSpawns(), {"spawns": [between]}, BEGUN, again)
    assert lies(op.ListSpawns(), {"spawns": [{**between, "root": 7}]}, BEGUN, again)
    assert lies(op.ListSpawns(), {"spawns": [between]}, BEGUN, BEGUN), "nothing has happened to it"
    assert not lies(op.Chain(), {"tree": [between], "text": "s1 Prime pending"}, BEGUN, again)


def test_what_was_waited_for_is_told_as_it_has_ended() -> None:
    waited = op.Await(("prime",), "dev")
    assert not lies(waited, {"spawns": [ROW]}, BEGUN)
    assert lies(waited, {"spawns": [{**ROW, "status": "failed"}]}, BEGUN)
    started = op.Spawn("prime", TEXT, "dev", detach=False)
    none = keeps(rows=(), events=(), messages={}, runs={})
    assert not lies(started, {"spawn": ROW, "message": 1}, none)
    assert lies(started, {"spawn": {**ROW, "status": "stopped"}, "message": 1}, none)
    assert lies(started, {"spawn": ROW, "message": 4}, none)
    assert lies(op.Spawn("hailot", TEXT, "dev"), {"spawn": {**ROW, "status": "pending"}}, none)


@pytest.mark.parametrize(
    ("tree", "text", "right"),
    [
        ([ROW], "s1 Prime #dev completed", True),
        ([ROW], "|-- s1 Prime #dev completed 10:00", True),
        ([ROW], "s1 Prime #dev failed", False),
        ([ROW], "nobody", False),
        ([{**ROW, "depth": 3}], "s1 Prime completed", False),
        ([{**ROW, "status": "failed"}], "s1 Prime failed", False),
    ],
)
def test_a_chain_is_drawn_as_it_is(tree: list[dict[str, Any]], text: str, right: bool) -> None:
    assert (not lies(op.Chain(), {"tree": tree, "text": text})) is right
    assert bool(lies(op.Chain(), {"tree": tree})) is (tree != [ROW])


@pytest.mark.parametrize(
    ("events", "right"),
    [
        (EVENTS, True),
        (EVENTS[:2], False),
        ((*EVENTS, {**EVENTS[2], "seq": 9}), False),
        ((EVENTS[1], EVENTS[0], EVENTS[2]), False),
        ((EVENTS[0], {**EVENTS[1], "kind": "failed"}, EVENTS[2]), False),
    ],
    ids=["all", "not the last", "one that never was", "in another order", "another kind"],
)
def test_a_log_tells_all_that_happened(events: tuple[dict[str, Any], ...], right: bool) -> None:
    asked = op.Logs("prime", "dev")
    assert (not lies(asked, {"spawn": ROW, "events": list(events)})) is right
    assert not lies(asked, {"spawn": ROW, "events": list(EVENTS)}, BEGUN), "it has ended meanwhile"
    assert not lies(asked, {"spawn": ROW, "events": list(EVENTS[:2])}, BEGUN), "just before its end"
    assert lies(asked, {"spawn": {**ROW, "id": "s2"}})


def test_who_speaks_is_told_what_has_come_of_it() -> None:
    none = keeps(rows=(), events=(), messages={}, runs={})
    right: dict[str, Any] = {
        "message": 1,
        "root": 1,
        "unknown": [],
        "human": False,
        "ended": False,
        "spawns": [{"id": "s1", "agent": "Prime", "status": "pending", "reason": ""}],
    }
    assert not lies(op.Send("dev", TEXT), right, none)
    row = right["spawns"][0]
    lies_of_it: tuple[dict[str, Any], ...] = (
        {"root": 2},
        {"human": True},
        {"ended": True},
        {"unknown": ["prime"]},
        {"spawns": []},
        {"spawns": [{**row, "status": "queued"}]},
        {"spawns": [{**row, "reason": "depth"}]},
        {"spawns": [{**row, "agent": "hailot"}]},
    )
    for wrong in lies_of_it:
        assert lies(op.Send("dev", TEXT), {**right, **wrong}, none), wrong
    assert not lies(op.Send("dev", TEXT), {"message": 1}, none)
    newer = replace(none, agents={})
    assert not lies(op.Send("dev", TEXT), {**right, "unknown": ["prime"]}, newer), "added meanwhile"


@pytest.mark.parametrize(
    ("operation", "said", "right"),
    [
        (op.Register("PRIME"), {"agent": "Prime", "created": False}, True),
        (op.Register("prime"), {"agent": "prime", "created": True}, False),
        (op.Register("Prime"), {"agent": "Prime", "model": "haiku", "created": False}, False),
        (op.Register("Prime"), {"provider": "codex"}, False),
        (op.Register("Prime"), {}, True),
        (op.CreateChannel("Dev"), {"channel": "dev", "created": False}, True),
        (op.CreateChannel("dev"), {"channel": "ops"}, False),
        (op.CreateChannel("ops"), {"channel": "ops", "created": True}, True),
        (op.Init(), {"created": True}, False),
    ],
)
def test_what_is_new_is_called_so(operation: Operation, said: dict[str, Any], right: bool) -> None:
    assert (not lies(operation, said)) is right


def test_what_was_stopped_is_named() -> None:
    stopped = keeps(completed(status="stopped"), rows=({**ROW, "status": "stopped"},))
    assert not lies(op.Stop("prime", "dev"), {"stopped": ["s1"]}, BEGUN, stopped)
    assert lies(op.Stop("prime", "dev"), {"stopped": []}, BEGUN, stopped)
    assert not lies(op.Stop("prime", "dev"), {}, BEGUN, stopped)
    assert lies(op.StopAll(), {"stopped": []}, BEGUN, stopped)
    assert not lies(op.StopAll("ops"), {"stopped": []}, BEGUN, stopped), "it meant another channel"
    wished = replace(BEGUN, runs={1: running(stopping=True)})
    assert not lies(op.StopAll(), {"stopped": []}, wished, stopped), "it was stopped before"
    assert lies(op.Cleanup(), {"failed": ["s1"]}, BEGUN, stopped)
    assert not lies(op.Cleanup(), {"failed": [], "stopped": ["s1"]}, BEGUN, stopped)


def test_a_message_is_read_as_it_is_kept() -> None:
    assert not lies(op.Receive("dev"), {"messages": [SAID]})
    assert not lies(op.Receive("dev"), {"messages": [{**SAID, "id": 9}]}), "another rule's question"
    assert lies(op.Receive("dev"), {"messages": [{**SAID, "sender": "prime"}]})
    assert lies(op.AwaitHuman("dev"), {"message": {**SAID, "spawn": "s1"}})


# --- what rows say, and is known otherwise ---------------------------------------------------------------

AGENTS = (ended(session="a"),)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"exit_code": 0, "program": "claude", "root": 1, "depth": 0, "parent": 0}, None),
        ({"exit_code": 3}, "result_true"),
        ({"attempt": 2, "session": ""}, "result_true"),
        ({"program": "codex"}, "registered"),
        ({"session": "of nobody"}, "session_own"),
        ({"root": 2}, "origin_true"),
        ({"root": 1, "channel": "ops"}, "origin_true"),
        ({"depth": 1}, "origin_true"),
        ({"parent": 4}, "origin_true"),
        ({"created": NOW - 3600}, "times_true"),
        ({"ended": NOW - 5.5}, "times_true"),
    ],
    ids=str,
)
def test_rows_are_held_against_what_is_known_otherwise(
    changed: dict[str, Any], rule: str | None
) -> None:
    look = replace(LOOK, runs={1: completed(**changed)}, invocations=AGENTS)
    found = broken(look)
    assert (rule in found) if rule else not found


@pytest.mark.parametrize(
    ("changed", "right"),
    [({}, True), ({"agent": "hailot"}, False), ({"message": 4}, False), ({"message": None}, True)],
)
def test_an_agent_is_told_who_it_is_and_for_what(changed: dict[str, Any], right: bool) -> None:
    look = replace(LOOK, invocations=(replace(AGENTS[0], **changed),))
    assert ("text_received" not in broken(look)) is right
    assert "text_received" not in broken(replace(look, kept={}))


def test_rows_that_prove_nothing_are_not_accused() -> None:
    wrong = replace(LOOK, runs={1: completed(exit_code=-9, ended=NOW)}, invocations=AGENTS)
    assert "result_true" not in broken(wrong, model(hit=frozenset({1}))), "something was killed"
    stopped = completed(status="stopped", exit_code=-15, ended=NOW)
    assert "result_true" not in broken(replace(wrong, runs={1: stopped}), BEFORE_IT, LOOK)
    timed = completed(status="failed", reason="timeout", exit_code=-9, ended=NOW)
    ill = (replace(AGENTS[0], exit_code=1),)
    assert "result_true" not in broken(replace(wrong, runs={1: timed}, invocations=ill))
    late = replace(LOOK, runs={1: completed(created=NOW - 3600)}, invocations=AGENTS)
    assert "times_true" not in broken(late, before=late), "it was there before"
    lost = replace(BEFORE, home=False)
    assert "times_true" not in broken(late, before=lost), "nothing was to be seen before"
    assert "times_true" not in broken(late, model(bent=True))
    skewed = SkewClock(offset_s=-86400, during=op.Send("dev", TEXT))
    assert "times_true" not in broken(late, operation=skewed)
    own = replace(DONE, runs={1: completed(session="b")}, kept={})
    assert "session_own" not in broken(own), "sessions are no business of this target"
    orphan = replace(LOOK, messages={1: replace(message(), spawn=9)}, invocations=AGENTS)
    assert "origin_true" not in broken(orphan), "who started it is not to be seen"


BEFORE_IT = model(stopped=frozenset({1}))
