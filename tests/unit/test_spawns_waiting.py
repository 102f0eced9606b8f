"""Waiting in the spawns contract: for a call, and before the next attempt."""

from __future__ import annotations

from dataclasses import replace

from test_contract_spawns import (
    NOW,
    broken,
    completed,
    ended,
    judged,
    message,
    model,
    posted,
    seen,
)

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.observation import SpawnsSeen
from mutiny.contracts.spawns.profile import SpawnsProfile
from mutiny.contracts.spawns.supported import supported
from mutiny.model.verdict import Verdict


def test_who_waits_for_a_call_is_told_of_the_first_agent_that_called() -> None:
    own = message(2, "@human I am there myself")
    calls = {3: posted(3, 1, "@human done"), 4: posted(4, 1, "@human again")}
    before = seen(completed(), messages={1: message(), 2: own})
    after = seen(completed(), messages={1: message(), 2: own, **calls})
    wait = op.AwaitHuman("dev")

    def told(number: int, look: SpawnsSeen) -> tuple[Verdict, str]:
        return judged(wait, {"ok": True, "message": {"id": number}}, look)

    late = {"ok": False, "error": "timeout", "message": "nobody asked"}
    assert told(3, after)[0] is Verdict.SUCCESS
    assert told(2, before) == (Verdict.BUG, "answers_truly")
    assert told(4, after) == (Verdict.BUG, "answers_truly")
    assert judged(wait, late, before)[0] is Verdict.EXPECTED
    assert judged(wait, late, after) == (Verdict.BUG, "answers_truly")
    assert judged(op.AwaitHuman("nowhere"), {"ok": True}, after)[0] is Verdict.BUG


def test_an_attempt_comes_after_the_pause_that_was_set() -> None:
    def tried(after_s: float) -> SpawnsSeen:
        first = ended(at=NOW - 8, identity=(12, 1), session="b")
        again = ended(attempt=2, at=NOW - 8 + after_s)
        return seen(completed(attempt=2), invocations=(replace(first, exit_code=1), again))

    patient = model(settings={**model().settings, "retry_delay_s": 3})
    assert "retries" in broken(tried(0.4), patient)
    assert "retries" not in broken(tried(3.1), patient)
    for excused in ({"retuned": True}, {"hit": frozenset({1})}, {"bent": True}):
        assert "retries" not in broken(tried(0.4), replace(patient, **excused))


def test_who_waits_for_what_was_stopped_or_refused_is_told_so() -> None:
    wait = op.Await(("prime",), "dev")
    for status in ("stopped", "refused", "failed"):
        look = seen(replace(completed(), status=status, reason=status))
        told = {"ok": True, "spawns": [{"id": "s1", "agent": "prime", "status": status}]}
        assert judged(wait, told, look) == (Verdict.BUG, "answers_truly")


def test_only_who_ends_all_before_it_is_over_is_asked_for_that() -> None:
    late = op.KillSupervisor("prime", over=True)
    assert not supported(SpawnsProfile(), late)
    assert supported(SpawnsProfile(ends_first=True), late)
    assert supported(SpawnsProfile(), op.KillSupervisor("prime"))
