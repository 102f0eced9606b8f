"""Beliefs: what may be, who is well, and what has still to happen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import AT, TOKEN, agent, belief, model, picture, receipt, view
from mutiny.contracts.workers.model import (
    STUBBORN_HITS,
    Work,
    WorkerBelief,
    WorkersModel,
    completing,
    is_well,
)
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile

IDLE = picture(view())


def test_in_an_empty_box_nothing_is_believed() -> None:
    empty = WorkersModel()
    assert (empty.initialised, empty.daemon_certain, empty.workers) == (False, False, {})
    assert (empty.source_dirty, empty.state_damaged, empty.daemon_killed) == ("", False, False)
    assert (empty.last_reviewed, empty.review_used, empty.faults) == (None, False, ())


# --- who is well ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "well"),
    [
        (IDLE, True),
        (picture(), False),
        (picture(view("alpha", "offline")), False),
        (picture(view("alpha", "error"), agents=(agent(),)), False),
        (picture(view(), sessions=frozenset({"longboat-alphabet"})), False),
        (picture(view(), agents=()), False),
        (picture(view(), agents=(agent(alive=False),)), False),
        (picture(view(), agents=(agent("beta"),)), False),
        # What cannot be seen is not held against the worker; the rules say that they cannot tell.
        (picture(view(), agents=None), True),
        (picture(view(), sessions=None), True),
    ],
)
def test_who_is_well(seen: Observation, well: bool) -> None:
    assert is_well(seen, "alpha") is well


def test_a_worker_seen_well_is_no_longer_excused() -> None:
    hit = model(belief(disturbed="KillAgent", offline_allowed=True))
    well = hit.see(IDLE).workers["alpha"]
    assert (well.disturbed, well.offline_allowed) == (None, False)
    ill = hit.see(picture(view(), agents=())).workers["alpha"]
    assert (ill.disturbed, ill.offline_allowed) == ("KillAgent", True)


def test_what_is_not_allowed_teaches_nothing() -> None:
    believed = model(belief())
    taught = replace(believed, looked_at=AT)
    assert believed.see(picture(view("alpha", "needs_review"))) == taught
    assert believed.see(picture(view("beta"))) == taught


def test_the_daemon_is_what_is_seen_and_stays_when_nothing_is() -> None:
    assert model().see(picture(daemons=())).daemon_certain is False
    assert model(daemon=frozenset({False})).see(picture()).daemon_certain is True
    unknown = model(daemon=frozenset({True, False}))
    assert unknown.daemon_certain is None
    assert unknown.see(picture(daemons=None)).daemon_certain is None


@pytest.mark.parametrize("status", ["needs_review", "no_changes", "error"])
def test_an_obligation_ends_when_the_agent_has_ended(status: str) -> None:
    believed = model(belief("alpha", "working", due_at=1.0, hits=STUBBORN_HITS))
    assert believed.see(picture(view("alpha", status))).workers["alpha"].due_at is None
    assert believed.see(picture(view("alpha", "working"))).workers["alpha"].due_at == 1.0


# --- what may be ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("worker", "allowed"),
    [
        (belief("alpha", "idle"), {"idle"}),
        (belief("alpha", "idle", offline_allowed=True), {"idle", "offline"}),
        (belief("alpha", "working"), {"working", "needs_review", "no_changes"}),
        (belief("alpha", "rejected"), {"rejected", "working", "needs_review", "no_changes"}),
        (belief("alpha", "rebasing"), {"rebasing", "needs_review"}),
        (belief("alpha", "reviewing"), {"reviewing", "needs_review"}),
        (belief("alpha", "needs_review"), {"needs_review"}),
        (belief("alpha", "error"), {"error"}),
        (
            belief("alpha", "working", hits=STUBBORN_HITS),
            {"working", "needs_review", "no_changes", "error"},
        ),
        (
            belief("alpha", "working", behaviours=("hang",)),
            {"working", "needs_review", "no_changes", "error"},
        ),
        (
            belief("alpha", "rebasing", behaviours=("give-up",)),
            {"rebasing", "needs_review", "error"},
        ),
        (belief("alpha", "idle", behaviours=("hang",), hits=9), {"idle"}),
        # A message that waited for the rebase to end sends the agent back to work.
        (
            belief("alpha", "rebasing", tokens=("a", "b")),
            {"rebasing", "needs_review", "working", "no_changes"},
        ),
    ],
)
def test_what_a_status_may_become_by_itself(worker: WorkerBelief, allowed: set[str]) -> None:
    assert model(worker).allowed("alpha") == allowed


def test_a_profile_may_know_more_moves() -> None:
    profile = Profile(extra_moves={"idle": ("needs_review",), "needs_review": ("rebasing",)})
    believed = model(belief(), profile=profile)
    assert believed.allowed("alpha") == {"idle", "needs_review", "rebasing"}


def test_a_queued_start_may_begin_at_any_time() -> None:
    profile = Profile(start_is_immediate=False)
    queued = model(belief(tokens=(TOKEN,)), profile=profile)
    assert queued.allowed("alpha") == {"idle", "working", "needs_review", "no_changes"}
    assert model(belief(), profile=profile).allowed("alpha") == {"idle"}


@pytest.mark.parametrize(
    ("seen", "possible"),
    [
        (None, {"working", "needs_review", "no_changes"}),
        ("working", {"working", "needs_review", "no_changes"}),
        ("needs_review", {"needs_review"}),
        ("idle", {"working", "needs_review", "no_changes"}),
    ],
)
def test_what_a_command_may_find(seen: str | None, possible: set[str]) -> None:
    assert model(belief("alpha", "working")).possible("alpha", seen) == possible


def test_a_command_may_find_an_excused_worker_away() -> None:
    believed = model(belief("alpha", "working", offline_allowed=True))
    assert believed.possible("alpha", "needs_review") == {"needs_review", "offline"}
    assert believed.possible("alpha", "offline") == believed.allowed("alpha")


@pytest.mark.parametrize(
    ("behaviour", "ends"), [("obey", True), ("slow:400", True), ("hang", False), ("no-stop", False)]
)
def test_which_turns_end_with_work_done(behaviour: str, ends: bool) -> None:
    assert completing(behaviour) is ends


# --- what has still to happen --------------------------------------------------------------------

BUSY = belief("alpha", "working", due_at=1.0, tokens=(TOKEN,))
DELIVERED = (receipt(),)


@pytest.mark.parametrize(
    ("believed", "seen", "pending"),
    [
        (model(belief()), IDLE, ()),
        (model(belief()), picture(), ("worker alpha is missing",)),
        (model(belief()), picture(view("alpha", "offline")), ("worker alpha is offline",)),
        (
            model(belief()),
            picture(view(), agents=()),
            ("worker alpha is idle but has no running agent",),
        ),
        (model(belief()), picture(view(), daemons=()), ("the daemon does not run",)),
        (
            model(belief()),
            picture(view(), state_error="not valid JSON"),
            ("the state file is unreadable: not valid JSON",),
        ),
        (
            model(BUSY),
            picture(view("alpha", "working"), receipts=DELIVERED),
            ("worker alpha is still working",),
        ),
        (model(BUSY), picture(view("alpha", "needs_review"), receipts=DELIVERED), ()),
        (
            model(BUSY),
            picture(view("alpha", "needs_review")),
            (f"worker alpha never received {TOKEN}",),
        ),
        (model(BUSY), picture(view("alpha", "needs_review"), receipts=None), ()),
        # An error is a report: nothing more is due.
        (model(BUSY), picture(view("alpha", "error")), ()),
        # Nothing is due from an agent that will not finish.
        (
            model(belief("alpha", "working", tokens=(TOKEN,), behaviours=("swallow",))),
            picture(view("alpha", "working")),
            (),
        ),
        # Without a daemon nobody can be waited for.
        (model(BUSY, daemon=frozenset({False})), picture(daemons=()), ()),
        (
            model(BUSY, daemon=frozenset({False})),
            picture(daemons=(), state_error="gone"),
            ("the state file is unreadable: gone",),
        ),
        (model(initialised=False), picture(state_error="gone"), ()),
    ],
)
def test_what_has_still_to_happen(
    believed: WorkersModel, seen: Observation, pending: tuple[str, ...]
) -> None:
    assert believed.pending(seen) == pending


# --- writing -------------------------------------------------------------------------------------


def test_beliefs_are_never_changed_in_place() -> None:
    before = model(belief(), work=(Work(TOKEN, "task", "alpha"),))
    before.with_worker(belief("alpha", "error"))
    before.without_worker("alpha")
    before.with_fate((TOKEN, "MT-0-9"), "merged")
    before.with_work("MT-0-2", "task", "alpha", sure=False)
    before.disturb("KillAgent", ("alpha", "nobody"), 5.0)
    assert before == model(belief(), work=(Work(TOKEN, "task", "alpha"),))


def test_fates() -> None:
    known = model(work=(Work(TOKEN, "task", "alpha"),))
    assert known.with_fate((TOKEN, "MT-0-9"), "merged").work == {
        TOKEN: Work(TOKEN, "task", "alpha", "merged")
    }
    assert known.with_work("MT-0-2", "message", "beta", sure=False).work["MT-0-2"].fate == "unknown"


def test_a_fault_is_counted_and_an_obligation_begins_again() -> None:
    made = model(BUSY, belief("beta")).disturb("KillAgent", ("alpha", "nobody"), 50.0)
    hit = made.workers["alpha"]
    assert (hit.disturbed, hit.disturbed_at, hit.hits, hit.due_at) == ("KillAgent", 50.0, 1, 50.0)
    assert made.workers["beta"] == belief("beta")
    assert made.faults == ("KillAgent",)
