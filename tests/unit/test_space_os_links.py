"""Runs that are put together from what the agents noted."""

from __future__ import annotations

from mutiny.contracts.spawns.observation import Invocation, Message, Run
from mutiny.targets.spawns.links import Linked, Links, Noted, Row


def row(status: str, *, lasting: bool = False, pid: int = 0) -> Row:
    return Row(Run(1, "prime", "dev", 0, status), "u-1", pid, lasting)


def invoked(pid: int, task: str, code: int | None) -> Invocation:
    return Invocation(0, 1, "prime", (pid, 7), code is None, task, exit_code=code, at=float(pid))


def link(links: Links, rows: list[Row], texts: list[str], *invocations: Invocation) -> Linked:
    messages = {
        number: Message(number, "dev", "human", text) for number, text in enumerate(texts, 1)
    }
    noted = {one.identity: Noted("u-1", 5) for one in invocations}
    return links.link(rows, messages, invocations, noted, ())


def test_a_retry_is_a_second_attempt_of_one_run() -> None:
    tries = (invoked(10, "@prime a", 1), invoked(11, "@prime a", None))
    found = link(Links(), [row("running", pid=11)], ["@prime a"], *tries)
    assert [run.attempt for run in found.runs.values()] == [2]
    assert [one.attempt for one in found.invocations] == [1, 2]
    assert found.runs[1001].message == 1
    assert found.runs[1001].provider == (11, 7)


def test_a_row_that_is_used_again_is_one_run_for_each_mention() -> None:
    turns = (invoked(10, "@prime a", 0), invoked(11, "@prime b", None))
    found = link(Links(), [row("running", pid=11)], ["@prime a", "@prime b"], *turns)
    assert {one.id: (one.status, one.message) for one in found.runs.values()} == {
        1001: ("completed", 1),
        1002: ("running", 2),
    }


def test_a_turn_that_was_over_stays_over_when_its_row_begins_again() -> None:
    links, done = Links(), invoked(10, "@prime a", 0)
    link(links, [row("completed", lasting=True, pid=10)], ["@prime a"], done)
    found = link(links, [row("running", pid=10)], ["@prime a", "@prime b"], done)
    assert {one.id: (one.status, one.message) for one in found.runs.values()} == {
        1001: ("completed", 1),
        1002: ("pending", 2),
    }


def test_a_turn_that_is_stopped_before_its_agent_noted_a_word_is_not_gone() -> None:
    links, done = Links(), invoked(10, "@prime a", 0)
    said = ["@prime a", "@prime b"]
    link(links, [row("completed", lasting=True, pid=10)], said[:1], done)
    never_begun = link(links, [row("stopped", pid=10)], said, done)
    assert set(never_begun.runs) == {1001}
    link(links, [row("running", pid=10)], said, done)
    found = link(links, [row("stopped", pid=10)], said, done)
    assert {one.id: one.status for one in found.runs.values()} == {
        1001: "completed",
        1002: "stopped",
    }


def test_a_row_that_does_not_last_may_not_change_its_result() -> None:
    links, done = Links(), invoked(10, "@prime a", 0)
    link(links, [row("completed", pid=10)], ["@prime a"], done)
    found = link(links, [row("failed", pid=10)], ["@prime a"], done)
    assert found.runs[1001].status == "failed"


def test_two_runs_with_the_text_of_one_message_both_belong_to_it() -> None:
    turns = (invoked(10, "@prime a", 0), invoked(11, "@prime a", 0))
    found = link(Links(), [row("completed", pid=11)], ["@prime a"], *turns)
    assert [run.message for run in found.runs.values()] == [1, 1]


def test_a_message_belongs_to_the_run_that_noted_it() -> None:
    one = invoked(10, "@prime a", None)
    messages = {
        1: Message(1, "dev", "human", "@prime a"),
        2: Message(2, "dev", "prime", "done"),
        3: Message(3, "dev", "prime", "done"),
    }
    noted = {one.identity: Noted("u-1", 5, ("done",))}
    found = Links().link([row("running", pid=10)], messages, (one,), noted, ())
    assert [said.spawn for said in found.messages.values()] == [None, 1001, None]
