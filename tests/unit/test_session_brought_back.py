"""Sessions that were brought back: what was decided, tested and left is held to what happened."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_contract_session import CALLS, DEAD, GATE, LINE, at, broken, call, event, seen, used

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.session.observation import Row
from mutiny.kit.judging import Moment

CONTRACT = SessionContract()
VOTED = (
    event("vote.open", vote="v"),
    event("vote.won", 0.5, vote="v", option="yes"),
    event("task.start", 1.0, task="t2", agent="a"),
)


@pytest.mark.parametrize(
    ("events", "again"),
    [
        (VOTED, True),
        (VOTED[:2], False),  # nothing has followed from it: it may be lost
        ((*VOTED, event("checkpoint.written", 12.0, checkpoint=5, digest="d5")), False),
        ((event("vote.open", vote="v"),), False),
    ],
)
def test_what_was_decided_stays_decided_over_a_crash(events: tuple[Row, ...], again: bool) -> None:
    back = event("session.restore", 12.0, checkpoint=1, deltas=0)
    after = seen(more=(*events, back, event("vote.open", 12.0, life=2, vote="v")))
    assert ("votes_true" in broken(after)) is again
    harmed = replace(at("running"), cramped=True)
    assert "votes_true" not in broken(after, model=harmed)


@pytest.mark.parametrize(
    ("ok", "at_s", "held"), [(True, 10.5, True), (False, 10.5, False), (False, 12.0, True)]
)
def test_a_phase_is_not_left_on_the_results_of_earlier_tests(
    ok: bool, at_s: float, held: bool
) -> None:
    good = call("end", 9.0, "c7", ok=True, name="run_tests")
    last = call("end", at_s, "c8", ok=ok, name="run_tests")
    left = (event("phase.gate", 11.0, **GATE), event("phase.complete", 11.0, phase="one"))
    found = broken(seen(more=left, calls=(*CALLS, good, last)))
    assert ("gates_hold" not in found) is held


def test_who_goes_back_to_an_older_checkpoint_has_not_missed_those_since() -> None:
    """Between two checkpoints little was used; behind the restored time it is more together."""
    spent = tuple(used(100, 5.0 + place, f"c{10 + place}") for place in range(12))
    back = event("session.restore", 1.0, checkpoint=0, deltas=0)
    for more in ((), (back,)):
        after = seen(more=more, calls=(*CALLS, *spent), supervisors=0)
        assert "checkpoint_by_tokens" not in broken(after, tokens_interval="200")


BACK_S = 12.0
"""To this moment a session went back that was a hundred times as old."""


@pytest.mark.parametrize(
    ("events", "idle"),
    [
        ((), False),
        ((event("supervisor.start", BACK_S, life=2),), False),
        (
            (
                event("supervisor.start", BACK_S, life=2),
                event("task.start", BACK_S, life=2, task="t2", agent="a"),
            ),
            False,
        ),
        (
            (
                event("supervisor.start", BACK_S, life=2),
                event("task.start", BACK_S, life=2, task="t2", agent="a"),
                event("checkpoint.written", BACK_S + 60, life=2, checkpoint=2, digest="d2"),
            ),
            True,
        ),
    ],
)
def test_what_was_written_before_it_went_back_says_nothing_of_its_age(
    events: tuple[Row, ...], idle: bool
) -> None:
    """Until the new life has written a line of metrics, the last one is of the life before."""
    old = {**LINE, "elapsed_seconds": 100 * BACK_S}
    back = event("session.restore", BACK_S, checkpoint=1, deltas=0)
    after = seen(more=(back, *events), metrics=(old,))
    assert after.session is not None
    assert after.session.elapsed_s == (BACK_S + 60 if idle else BACK_S)
    assert ("idle_reassigned" in broken(after, idle_s="10")) is idle


def test_a_named_checkpoint_may_be_one_of_an_end() -> None:
    dead = at("interrupted")
    after = SessionContract().outcomes(dead, op.Restore(checkpoint=1), Moment(DEAD, None, 0.0))
    assert [one.after.status for one in after] == [
        frozenset({"interrupted", "stopped", "complete", "failed"})
    ]


def test_what_somebody_leaves_who_dies_excuses_nothing() -> None:
    judge = CONTRACT.judge_class(CONTRACT, DEAD, DEAD, 0.0)
    model = at("interrupted")
    moment = Moment(DEAD, DEAD, 0.0)
    assert judge.follows(model, op.HalfDone("lock"), moment) == (model,)
    for wrong in (
        lambda: op.HalfDone("page"),
        lambda: op.FreezeAgent("home"),
        lambda: op.BadWork("x"),
    ):
        with pytest.raises(ValueError, match=r"is none of|one of"):
            wrong()


def test_who_named_an_older_checkpoint_may_have_to_decide_anew() -> None:
    """Also when the newest one was only written by a restore (seed 5200015)."""
    first = (event("session.restore", checkpoint=1, deltas=0), *VOTED)
    again = event("vote.open", 12.0, life=2, vote="v")
    named = event("session.restore", checkpoint=1, deltas=0)
    assert "votes_true" not in broken(seen(more=(*first, named, again)))
    crashed = event("session.restore", checkpoint=2, deltas=0)
    assert "votes_true" in broken(seen(more=(*first, crashed, again)))


def test_nobody_can_look_at_what_no_checkpoint_tells() -> None:
    """Nothing runs, and none is valid: a refusal is as right as an answer (seed 5200023)."""
    gone = replace(DEAD, session=replace(DEAD.session, points=()))  # type: ignore[type-var]
    for before, ways in ((DEAD, {True}), (gone, {True, False}), (None, {True})):
        found = CONTRACT.outcomes(at("interrupted"), op.Metrics(), Moment(before=before))
        assert {one.success for one in found} == ways


def test_who_restores_one_checkpoint_after_another_goes_back_in_time() -> None:
    """Each is told of at the time of what is restored (seed 5100021)."""
    later = event("session.restore", 12.0, checkpoint=1, deltas=0)
    earlier = event("session.restore", 1.0, checkpoint=0, deltas=0)
    assert "logs_whole" not in broken(seen(more=(later, earlier)))
    assert "logs_whole" in broken(seen(more=(later, event("error", 2.0, kind="x"))))
