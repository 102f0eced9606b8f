"""Exactly-once delivery as a state machine: what each hook means at each stage."""

from __future__ import annotations

import pytest

from longboat.workers import delivery, spool
from longboat.workers.delivery import apply
from longboat.workers.landing import split_trailers, squash_message
from longboat.workers.spool import Event
from longboat.workers.state import CLEARED, CLEARING, RECEIVED, TYPED, TYPING, Agent, Prompt, Worker

AGENT = Agent(10, 20, "mark", "%3", 5, 6, since=1.0, ready=True)
PROMPT = Prompt("p1", "task", "Create x", "t1")


def worker(stage: str = "", status: str = "working", **agent: object) -> Worker:
    one = Worker("alpha", status, "longboat/alpha", "/w", "longboat-alpha")
    one = one._replace(agent=AGENT._replace(**agent), inbox=(PROMPT,), current_prompt="Create x")  # type: ignore[arg-type]
    if stage:
        one = delivery.begin_typing(one, AGENT, "head", now=100.0)
        assert one.inflight is not None
        one = one._replace(
            inflight=one.inflight._replace(stage=stage),
            agent=AGENT._replace(**agent),  # type: ignore[arg-type]
        )
    return one


def event(kind: str, *, spawn: str = "mark", time: float = 101.0, **fields: str) -> Event:
    return Event("1.hook", kind, "alpha", spawn, time, **fields)


def stage_of(one: Worker) -> str:
    return one.inflight.stage if one.inflight else ""


def test_typing_counts_an_attempt_and_takes_the_prompt_from_the_inbox() -> None:
    one = delivery.begin_typing(worker(), AGENT, "head", now=5.0)
    assert one.inbox == ()
    assert one.inflight is not None
    assert one.inflight.prompt.attempts == 1
    assert (one.inflight.pid, one.inflight.start, one.inflight.head) == (10, 20, "head")
    assert one.agent is not None
    assert one.agent.task_id == "t1"


@pytest.mark.parametrize("stage", [TYPING, TYPED])
def test_receipt(stage: str) -> None:
    outcome = apply(worker(stage), event("UserPromptSubmit", prompt="Create x"))
    assert stage_of(outcome.worker) == RECEIVED
    assert not outcome.turn_ended


def test_receipt_from_before_the_typing_is_somebody_elses() -> None:
    outcome = apply(worker(TYPED), event("UserPromptSubmit", time=99.0))
    assert stage_of(outcome.worker) == TYPED


@pytest.mark.parametrize("kind", ["SessionStart", "UserPromptSubmit", "Stop"])
@pytest.mark.parametrize("stage", [TYPING, TYPED, RECEIVED, CLEARING])
def test_hooks_of_an_earlier_agent_change_nothing(kind: str, stage: str) -> None:
    before = worker(stage)
    outcome = apply(before, event(kind, spawn="old", source="clear"))
    assert outcome.worker == before
    assert not outcome.turn_ended


def test_end_of_the_turn() -> None:
    assert apply(worker(RECEIVED), event("Stop")).turn_ended


@pytest.mark.parametrize("stage", [TYPING, TYPED])
def test_end_without_receipt_is_the_end_because_a_turn_must_have_begun(stage: str) -> None:
    assert apply(worker(stage), event("Stop")).turn_ended


def test_end_that_is_owed_for_an_earlier_turn_is_not_the_end_of_this_one() -> None:
    outcome = apply(worker(TYPED, owes_stop=True), event("Stop"))
    assert not outcome.turn_ended
    assert outcome.worker.agent is not None
    assert not outcome.worker.agent.owes_stop
    assert apply(outcome.worker, event("Stop")).turn_ended


def test_late_end_with_nothing_in_flight() -> None:
    idle = worker(status="idle")._replace(inbox=(), current_prompt="")
    assert not apply(idle, event("Stop")).turn_ended


def test_clear_comes_first_when_the_agent_remembers_another_task() -> None:
    assert delivery.needs_clear(AGENT._replace(task_id="t0"), PROMPT)
    assert not delivery.needs_clear(AGENT._replace(task_id="t1"), PROMPT)
    assert not delivery.needs_clear(AGENT, PROMPT)
    one = delivery.begin_clear(worker(task_id="t0"), AGENT._replace(task_id="t0"), now=100.0)
    assert stage_of(one) == CLEARING
    assert one.inflight is not None
    assert one.inflight.prompt.attempts == 0
    same = apply(one, event("SessionStart", source="startup"))
    assert stage_of(same.worker) == CLEARING
    outcome = apply(one, event("SessionStart", source="clear"))
    assert stage_of(outcome.worker) == CLEARED
    typed = delivery.begin_typing(outcome.worker, AGENT, "head", now=101.0)
    assert typed.inbox == ()
    assert stage_of(typed) == TYPING


def test_session_start_makes_the_agent_ready_and_the_worker_idle() -> None:
    new = worker(status="offline", ready=False)._replace(inbox=(), spawn_failures=2)
    outcome = apply(new, event("SessionStart", source="startup", session_id="s1"))
    assert outcome.worker.status == "idle"
    assert outcome.worker.spawn_failures == 0
    assert outcome.worker.agent is not None
    assert (outcome.worker.agent.ready, outcome.worker.agent.session_id) == (True, "s1")


def test_prompt_typed_by_hand() -> None:
    idle = worker(status="idle")._replace(inbox=(), current_prompt="")
    outcome = apply(idle, event("UserPromptSubmit", prompt="do this"))
    assert outcome.manual_prompt == "do this"


def test_typing_that_certainly_failed_is_no_attempt() -> None:
    one = delivery.was_not_typed(worker(TYPING), "p1")
    assert one.inflight is None
    assert [p.attempts for p in one.inbox] == [0]
    clearing = delivery.begin_clear(worker(), AGENT, now=1.0)
    assert [p.attempts for p in delivery.was_not_typed(clearing, "p1").inbox] == [0]
    assert delivery.was_not_typed(worker(RECEIVED), "p1") == worker(RECEIVED)
    assert delivery.was_not_typed(worker(TYPING), "another") == worker(TYPING)
    assert stage_of(delivery.was_typed(worker(TYPING), "p1")) == TYPED
    assert stage_of(delivery.was_typed(worker(RECEIVED), "p1")) == RECEIVED


def test_after_death_the_prompt_is_queued_first_until_the_attempts_are_used_up() -> None:
    later = PROMPT._replace(id="p2")
    one = delivery.after_death(worker(RECEIVED)._replace(inbox=(later,)), max_attempts=3)
    assert [p.id for p in one.inbox] == ["p1", "p2"]
    assert one.status == "working"
    dying = worker(RECEIVED)
    assert dying.inflight is not None
    used_up = dying.inflight._replace(prompt=dying.inflight.prompt._replace(attempts=3))
    lost = delivery.after_death(dying._replace(inflight=used_up), max_attempts=3)
    assert lost.status == "error"
    assert [p.id for p in lost.inbox] == ["p1"]
    assert not delivery.wants_agent(lost)


def test_typed_text_has_nothing_that_a_terminal_obeys() -> None:
    assert delivery.typed_text("a\x1b[201~b\r\nc\td\x00\x7f\n\n") == "a[201~b\nc\td"


def test_spool_file_without_json_is_still_the_event() -> None:
    read = spool.parse("n", b"longboat-hook 1 Stop alpha mark 2500000000\nno json")
    assert (read.kind, read.worker, read.spawn, read.time) == ("Stop", "alpha", "mark", 2.5)
    with pytest.raises(ValueError, match="header"):
        spool.parse("n", b"torn")


def test_squashed_message_keeps_every_trailer_once() -> None:
    messages = [
        "Create a\n\nMutiny-Token: MT-1",
        "Work in progress",
        "Fix\n\nmore\n\nKey: x\nMutiny-Token: MT-1",
    ]
    text = squash_message(messages, "the prompt", "t1")
    assert text == "Create a\n\nFix\n\nmore\n\nMutiny-Token: MT-1\nKey: x\nLongboat-Task: t1\n"
    assert squash_message(["Work in progress"], "Do it\nnow", "t1").startswith("Do it\n\n")
    assert split_trailers("Subject: looks like one") == ("Subject: looks like one", [])
