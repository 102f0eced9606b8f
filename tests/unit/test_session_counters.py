"""Figures of a session: the last line of metrics, and what is done about too little memory."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from test_contract_session import (
    API,
    CALLS,
    CONTRACT,
    FAILED,
    REFUSED,
    at,
    broken,
    call,
    dishonest,
    error,
    event,
    lines,
    seen,
)

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.judge import SessionJudge
from mutiny.contracts.session.model import SessionModel
from mutiny.kit.answer import Answer
from mutiny.kit.questions import Heard
from mutiny.model.result import OperationResult


@pytest.mark.parametrize("name", ["model_calls", "tool_calls", "errors_encountered"])
def test_a_counter_at_the_end_is_held_to_the_logs(name: str) -> None:
    def found(count: int) -> bool:
        metrics = lines({name: count})
        after = seen("session.pause", metrics=metrics)
        return "metrics_add_up" in broken(after, model=at("paused"))

    assert found(1000)
    assert not found(0)


def test_too_little_memory_is_not_passed_over() -> None:
    squeezed = seen(heedless_s=9.0)
    assert "memory_bounded" in broken(squeezed, op.MemoryPressure())
    assert "memory_bounded" not in broken(seen(), op.MemoryPressure())
    assert "memory_bounded" not in broken(squeezed, op.Status())


def test_every_line_of_metrics_has_all_that_is_measured() -> None:
    promised = replace(at("running"), measured=("tool_calls",))
    lacking = seen(metrics=lines({"tool_calls": 1}, {}))
    assert "metrics_regular" in broken(lacking, model=promised)
    assert "metrics_regular" not in broken(lacking)
    assert "metrics_regular" not in broken(seen(metrics=lines({"tool_calls": 1})), model=promised)


def test_what_was_used_long_before_a_line_is_counted_in_it() -> None:
    late = {"elapsed_seconds": 100.0, "at": 100.0}
    short = seen("session.pause", metrics=lines({**late, "total_tokens_consumed": 0}))
    assert "metrics_add_up" in broken(short, model=at("paused"))
    disturbed = replace(at("paused"), faults=("SystemCrash()",))
    assert "metrics_add_up" not in broken(short, model=disturbed)


@pytest.mark.parametrize("other", [False, True], ids=["only one was asked", "the other one, too"])
def test_a_session_with_another_model_is_not_given_up_before_that_was_asked(other: bool) -> None:
    votes = [{**FAILED, "last": f"[c2] Vote shape by {who}: which one?"} for who in "abc"]
    failures = (*votes * 4, *([{**votes[0], "model": "another"}] if other else ()))
    after = seen("session.pause", api=failures)
    believed = replace(at("paused"), has_fallback=True)
    assert ("switches_model" in broken(after, model=believed)) is not other


def test_who_was_paused_by_an_error_is_not_well() -> None:
    paused = seen("session.pause", more=(error("disk_full", "critical", action="pause"),))
    assert dishonest(op.Health(), {}, paused) == "health_true"
    asked = seen("session.pause")
    assert dishonest(op.Health(), {}, asked) == ""


def test_tests_that_nobody_ends_are_told_also_behind_a_lost_task() -> None:
    begins = call("begin", 11.0, "t", name="run_tests")
    goes_on = call("begin", 40.0, "u", name="write_file")
    after = seen("session.complete", supervisors=0, calls=(*CALLS, begins, goes_on))
    believed = at("complete")
    believed = replace(believed, knobs=believed.knobs.set("test_time_s", "1"))

    def found(*faults: str) -> bool:
        hit = functools.reduce(SessionModel.fault, faults, believed)
        return "tests_bounded" in broken(after, model=replace(hit, faults=()))

    assert found("BadWork(endless)")
    assert not found("BadWork(endless)", "KillAgent()")


def test_who_asks_in_vain_for_a_vote_does_not_ask_for_ever() -> None:
    vote = {**FAILED, "last": "Vote v by a: which?"}
    assert "retries_bounded" in broken(seen(api=[vote] * 90))
    assert "retries_bounded" not in broken(seen(api=[vote] * 5))


def test_an_error_that_was_to_pause_a_session_pauses_it() -> None:
    critical = error("disk_full", "critical", action="pause")
    later = event("task.start", 60.0)
    assert "severity_obeyed" in broken(seen(more=(critical, later)))
    assert "severity_obeyed" not in broken(seen("session.pause", more=(critical,)))
    assert "severity_obeyed" not in broken(seen(more=(critical,))), "it may be about to"


@pytest.mark.parametrize(
    ("checks", "lies"),
    [
        ({"supervisor": False, "checkpoint": True}, False),
        ({"supervisor": True, "checkpoint": True}, True),
        ({"supervisor": False, "checkpoint": False}, True),
        ({}, False),
    ],
)
def test_what_is_told_as_not_well_is_told_truly(checks: dict[str, bool], lies: bool) -> None:
    dead = seen(supervisors=0)
    told = Answer(ok=False, error="unhealthy", said={"checks": checks})
    heard = Heard(op.Health(), OperationResult(1), told, alone=True)
    judge = SessionJudge(CONTRACT, dead, dead, 0.0)
    found = judge.untrue_refusal(at("interrupted"), heard)
    assert (found is not None) is lies, found


def test_what_passes_by_itself_is_tried_again_at_once_as_often_as_is_said() -> None:
    again = error("network_timeout", "transient", action="retry")
    waits = error("network_timeout", "transient", action="backoff", wait_s=60)
    assert "backs_off" in broken(seen(more=(again, waits)))
    assert "backs_off" not in broken(seen(more=(again, again, again, waits)))
    assert "backs_off" not in broken(seen(more=(again, waits)), retries="1")
    other = error("overload", "recoverable", action="backoff", wait_s=60)
    assert "backs_off" not in broken(seen(more=(other,))), "that is waited for from the first"
    assert "backs_off" in broken(seen(more=({**other, "action": "retry"},)))


def test_an_agent_that_nobody_has_killed_does_not_die() -> None:
    died = seen(more=(error("agent_lost", "degraded", action="restart"),))
    assert "no_crash" in broken(died)
    for harmless in ("ModelError('hang')", "ToolTimeout()"):
        assert "no_crash" in broken(died, model=at("running").fault(harmless))
    for deadly in ("KillAgent()", "LimitProcesses(2)"):
        hit = at("running").fault(deadly)
        assert "no_crash" not in broken(died, model=hit)
        settled = replace(hit, faults=())
        assert "no_crash" not in broken(died, model=settled), (
            "the line stays, and so does its reason"
        )


def test_a_phase_is_left_once() -> None:
    left = event("phase.complete", phase="one")
    assert "phases_in_order" in broken(seen(more=(left, left)))
    again = event("session.continue")
    assert "phases_in_order" not in broken(seen(more=(left, again, left)))
    assert "phases_in_order" not in broken(seen(more=(left,)))


def test_who_says_the_same_for_ever_stands_still() -> None:
    left = event("phase.complete", phase="one")
    assert seen(more=(left,)).standing() == seen(more=(left, left)).standing()
    assert seen(more=(left,)).standing() != seen().standing()


def test_an_error_of_the_model_is_told_as_what_it_is() -> None:
    again = (FAILED, {**FAILED, "fault": None})
    right, wrong = error("overload", "recoverable"), error("server", "recoverable")
    assert "severity_obeyed" in broken(seen(api=again, more=(wrong,)))
    assert "severity_obeyed" not in broken(seen(api=again, more=(wrong, right)))
    assert "severity_obeyed" not in broken(seen(api=again[:1], more=(wrong,))), "not yet"
    assert "severity_obeyed" not in broken(seen(api=again)), "it tells of no errors at all"


def test_every_call_has_a_name_of_its_own() -> None:
    assert "logs_whole" in broken(seen(calls=(*CALLS, call("begin", 6.0, "c2"))))
    assert "logs_whole" not in broken(seen(calls=(*CALLS, call("begin", 6.0, "c3"))))


def test_a_request_of_what_a_fault_has_damaged_may_be_refused() -> None:
    assert "requests_readable" in broken(REFUSED)
    assert "requests_readable" not in broken(replace(REFUSED, damaged=frozenset({"1"})))
    damaged = replace(at("running"), faults=("DamageFile(file='state')",))
    assert "requests_readable" not in broken(REFUSED, model=damaged)


def test_who_is_paused_begins_nothing() -> None:
    paused = event("session.pause", 11.0, reason="asked")
    begun = tuple(call("begin", 11.0, f"n{place}") for place in range(4))
    before = seen(more=(paused,))
    busy = seen(more=(paused,), calls=(*CALLS, *begun))
    assert "pause_holds" in broken(busy, before=before)
    assert "pause_holds" in broken(seen(more=(paused,), api=API * 5), before=before)
    ending = seen(more=(paused,), calls=(*CALLS, *begun[:3]))
    assert "pause_holds" not in broken(ending, before=before), "what was under way ends"
    assert "pause_holds" not in broken(busy, before=seen()), "it was paused only now"
    again = seen(more=(paused, event("session.continue"), paused), calls=(*CALLS, *begun))
    assert "pause_holds" not in broken(again, before=before), "it went on in between"
