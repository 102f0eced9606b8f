"""Sessions on a disk that is full, results that are kept, and what an agent may read."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
from test_contract_session import (
    API,
    CALLS,
    at,
    broken,
    call,
    event,
    lines,
    point,
    seen,
    state,
)

from longboat.complaints import complain
from mutiny.contracts.session import operations as op
from mutiny.contracts.session.checkpoints import state_of
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.supported import supported
from mutiny.kit.faults import FillDisk

LOST = {"dropped_before": 3}
"""An event that says that there was no room for those before it."""


def kept(tests: tuple[int, int] | None, *ran: tuple[bool, str]) -> set[str]:
    """What is broken by a checkpoint with these results, behind these runs of the tests."""
    ends = [
        call("end", 7.0 + place / 10, f"t{place}", ok=ok, name=name)
        for place, (ok, name) in enumerate(ran)
    ]
    points = (point(0), point(1, states=(state(1, tests=tests),)))
    after = seen(calls=(*CALLS, *ends), points=points)
    return broken(after, model=at("running", keeps_tests=True))


def test_what_the_last_run_of_the_tests_gave_is_kept() -> None:
    passed, failed = (True, "run_tests"), (False, "run_tests")
    assert "tests_kept" in kept((0, 0), passed)
    assert "tests_kept" in kept((4, 1), failed, passed)
    assert "tests_kept" not in kept((4, 0), failed, passed)
    assert "tests_kept" not in kept((4, 1), passed, failed), (
        "tests that were ended leave the old ones"
    )
    assert "tests_kept" not in kept((0, 0), passed, (True, "batch")), "nobody knows what ran last"
    assert "tests_kept" not in kept((0, 0)), "none have run"
    assert "tests_kept" not in kept(None, passed), "it keeps no results"
    late = call("end", 10.5, "late", ok=True, name="run_tests")
    zero = (point(0), point(1, states=(state(1, tests=(0, 0)),)))
    after = seen(calls=(*CALLS, late), points=zero)
    assert "tests_kept" not in broken(after, model=at("running", keeps_tests=True)), "not yet"


def test_only_who_promises_it_keeps_the_results_of_tests() -> None:
    ran = call("end", 7.0, "t", ok=True, name="run_tests")
    points = (point(0), point(1, states=(state(1, tests=(0, 0)),)))
    assert "tests_kept" not in broken(seen(calls=(*CALLS, ran), points=points))


def test_the_results_of_tests_are_read_from_a_payload() -> None:
    whole: dict[str, Any] = {"number": 1, "elapsed_s": 1.0, "phase": {"index": 0}}
    whole |= {"file_system_state": {}, "agent_states": []}
    told = {"test_results": {"total": 5, "failed": 1, "errors": 1}}
    assert state_of({**whole, **told}).tests == (5, 2)
    assert state_of(whole).tests is None
    assert state_of({**whole, **told}).differences(state_of(whole))


def test_what_stands_outside_of_a_project_is_not_read() -> None:
    assert "reads_own" in broken(seen(api=(*API, {**API[0], "marks": [op.SECRET]})))
    assert "reads_own" not in broken(seen(api=(*API, {**API[0], "marks": ["mutiny-secret-0"]})))
    look = op.Trespass("machine", reads=True)
    assert supported(SessionProfile(reads_with="read_file"), look)
    assert not supported(SessionProfile(walled=True), look), "who only promises not to write"
    with pytest.raises(ValueError, match="no secret"):
        op.Trespass("git", reads=True)


def test_what_there_was_no_room_for_is_no_lie() -> None:
    counted = lines({"errors_encountered": 1000})
    after = seen("session.pause", metrics=counted)
    full = at("paused").fault(str(FillDisk(lasting=True)))
    assert "metrics_add_up" in broken(after, model=full)
    assert "metrics_add_up" not in broken(after, model=replace(full, cramped=True))
    spent = seen("session.pause", metrics=lines({"tool_calls": 1000}))
    assert "metrics_add_up" in broken(spent, model=replace(full, cramped=True))


@pytest.mark.parametrize(
    ("more", "changes", "lies"),
    [
        ((), {}, True),
        ((), {"cramped": True}, True),
        ((), {"cramped": True, "lasting": (FillDisk(lasting=True),)}, False),
        ((event("task.start", 10.5, task="t2", agent="a", **LOST),), {"cramped": True}, False),
        ((event("task.start", 10.5, task="t2", agent="a", **LOST),), {}, True),
    ],
    ids=["well", "full before", "full now", "some were lost", "lost for no reason"],
)
def test_a_status_is_not_read_from_events_that_were_lost(
    more: tuple[Any, ...], changes: dict[str, Any], lies: bool
) -> None:
    found = broken(seen(more=more), model=replace(at("paused"), **changes))
    assert ("answers_truly" in found) is lies


def test_a_complaint_that_cannot_be_written_ends_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full:
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stderr", Full())
    complain("nothing can be written")


@pytest.mark.parametrize("anew", [False, True], ids=["goes on", "was withdrawn"])
def test_who_was_to_wait_in_a_vote_that_begins_anew_waits_no_longer(anew: bool) -> None:
    failed: Any = {"severity": "recoverable", "kind": "parse_failure", "agent": "a", "task": "v"}
    waits = [
        event("error", 11.0 + place, action="backoff", wait_s=wait_s, **failed)
        for place, wait_s in enumerate((5.0, 10.0))
    ]
    opened = event("vote.open", 12.1, vote="v")
    first = event("error", 12.3, action="backoff", wait_s=5.0, **failed)
    asked = call("begin", 12.2, "v1", "model", task="v")
    rows = (waits[1], *((opened, first) if anew else (first,)))
    found = broken(seen(more=(event("vote.open", 10.9, vote="v"), *rows), calls=(*CALLS, asked)))
    assert ("backs_off" not in found) is anew
