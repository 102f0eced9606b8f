"""Commands without a name: a review takes whoever has waited longest, an accept what was reviewed last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import AT, TOKEN, belief, judge_answer, model, ok, picture, refused, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.outcomes import expect
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.symbolic import Walk
from mutiny.kit import operations as common
from mutiny.kit.beliefs import ANYTIME, Span
from mutiny.kit.judging import Judged
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict

PATTERNS = {"not_needs_review": ("No worker is in needs_review",)}
BOTH = picture(view("alpha", "needs_review"), view("beta", "needs_review"))


def waiting(alpha: Span, beta: Span, profile: Profile | None = None) -> WorkersModel:
    """Two workers that wait for review, each since some moment."""
    known = (
        replace(belief(name, "needs_review"), waits=span, tokens=(f"{TOKEN}{name}",))
        for name, span in (("alpha", alpha), ("beta", beta))
    )
    made = model(*known)
    return made if profile is None else replace(made, profile=profile)


def judged(
    believed: WorkersModel, operation: Operation, said: str, seen: Observation = BOTH
) -> Judged[WorkersModel]:
    result = replace(ok(), stdout=f'{{"worker": "{said}"}}') if said else ok()
    return judge_answer(believed, operation, result, seen, seen, PATTERNS, AT + 1000)


EARLY, LATE = Span(10.0, 11.0), Span(12.0, 13.0)


def test_a_review_without_a_name_takes_whoever_has_waited_longest() -> None:
    right = judged(waiting(LATE, EARLY), op.ReviewNext(), "beta")
    assert (right.verdict, right.models[0].last_reviewed) == (Verdict.SUCCESS, "beta")
    wrong = judged(waiting(LATE, EARLY), op.ReviewNext(), "alpha")
    assert wrong.violation is not None
    assert wrong.violation.rule == "workers.longest_wait_first"


@pytest.mark.parametrize("span", [Span(10.5, 12.0), ANYTIME])
def test_nobody_is_accused_where_the_order_is_too_close_to_tell(span: Span) -> None:
    for name in ("alpha", "beta"):
        found = judged(waiting(span, EARLY), op.ReviewNext(), name)
        assert (found.verdict, found.models[0].last_reviewed) == (Verdict.SUCCESS, name)


def test_a_target_that_promises_no_order_may_take_anybody() -> None:
    believed = waiting(LATE, EARLY, Profile(picks_review="any"))
    assert judged(believed, op.ReviewNext(), "alpha").verdict is Verdict.SUCCESS


def test_who_does_not_say_whose_change_it_shows_leaves_it_open() -> None:
    found = judged(waiting(ANYTIME, ANYTIME), op.ReviewNext(), "")
    assert {one.last_reviewed for one in found.models} == {"alpha", "beta"}


def test_nobody_waits_for_review() -> None:
    idle, seen = model(belief()), picture(view())
    assert expect(idle, op.ReviewNext(), seen).rejection_due
    answer = refused("No worker is in needs_review state")
    found = judge_answer(idle, op.ReviewNext(), answer, seen, seen, PATTERNS, AT)
    assert found.verdict is Verdict.EXPECTED


def test_a_wait_begins_between_the_two_looks_that_show_it() -> None:
    working = replace(belief("alpha", "working"), tokens=(TOKEN,))
    before = replace(model(working), looked_at=AT - 5)
    after = before.see(picture(view("alpha", "needs_review")))
    assert after.workers["alpha"].waits == Span(AT - 5, AT)
    assert after.looked_at == AT
    again = model(replace(working, waits=EARLY)).see(picture(view("alpha", "working")))
    assert again.workers["alpha"].waits is None
    told = replace(working, tokens=(TOKEN, "MT-2"))  # it may have left and come back unseen
    seen = model(told).see(picture(view("alpha", "needs_review")))
    assert seen.workers["alpha"].waits == ANYTIME


def test_an_accept_without_a_name_is_about_the_worker_that_was_reviewed() -> None:
    believed = waiting(EARLY, LATE)
    assert expect(believed, op.AcceptReviewed(), BOTH).rejections == {"nothing_reviewed"}
    reviewed = replace(believed, last_reviewed="beta")
    merged = picture(view("alpha", "needs_review"), view("beta"))
    found = judged(reviewed, op.AcceptReviewed(), "beta", merged)
    assert found.verdict is Verdict.SUCCESS
    assert found.models[0].workers["beta"].tokens == ()
    assert found.models[0].workers["alpha"].tokens != ()
    lie = judged(reviewed, op.AcceptReviewed(), "alpha", merged)
    assert lie.violation is not None
    assert lie.violation.rule == "workers.answers_truly"


@pytest.mark.parametrize(("stale", "either"), [(True, True), (False, False)])
def test_a_review_that_met_a_conflict_may_have_shown_nothing(*, stale: bool, either: bool) -> None:
    """The agent has resolved it since, and the accept was refused: rightly (`--seed 7700039`)."""
    waits = replace(belief("alpha", "needs_review"), tokens=(TOKEN,), stale_base=stale)
    shown = picture(view("alpha", "needs_review"))
    reviewed = judged(model(waits), op.Review("alpha"), "alpha", shown)
    assert ("alpha" in {one.last_reviewed for one in reviewed.models}) is True
    assert (None in {one.last_reviewed for one in reviewed.models}) is either


@pytest.mark.parametrize("command", [op.AcceptReviewed(), op.Reject("again")])
def test_a_review_of_a_task_that_is_over_counts_no_longer_where_that_is_promised(
    command: Operation,
) -> None:
    for promised, success in ((True, False), (False, True)):
        believed = waiting(EARLY, LATE, Profile(review_per_task=promised))
        over = replace(believed, last_reviewed="beta", review_used=True, daemon=frozenset({True}))
        due = expect(over, command, BOTH)
        assert (due.success, "nothing_reviewed" in due.rejections) == (success, True)
        hit = expect(over.fault("a crash"), command, BOTH)
        assert hit.success, "after a fault nobody knows whether it was over"


def test_exploration_learns_nothing_from_a_review_whose_worker_the_target_chose() -> None:
    way = Walk(Profile())
    opening = (common.Reset(), op.Init(), op.Up(), op.Add("alpha"), op.Add("beta"))
    started = (op.Start("alpha", "one"), op.Start("beta", "two"))
    for operation in (*opening, *started, op.ReviewNext(), op.AcceptReviewed()):
        way.apply(operation)
    for name in ("alpha", "beta"):
        assert {"working", "idle"} <= way.model.allowed(name)
    assert way.served(op.AcceptReviewed()) is None
    assert way.served(op.Reject("again")) is None
    way.apply(op.Review("alpha"))
    assert not way.reviewed


def test_exploration_waits_for_nobody_who_may_have_been_accepted_beside_a_review() -> None:
    way = Walk(Profile())
    ready: list[Operation] = [common.Reset(), op.Init(), op.Up(), op.Add("alpha"), op.Add("beta")]
    for name in ("alpha", "beta"):
        ready += [op.WaitForIdle(name), op.Start(name, "one"), op.WaitForNeedsReview(name)]
    for operation in (*ready, op.Review("alpha")):
        way.apply(operation)
    assert "idle" not in way.model.workers["beta"].statuses
    way.apply(common.Parallel((op.AcceptReviewed(), op.ReviewNext())))
    assert "idle" in way.model.workers["beta"].statuses
