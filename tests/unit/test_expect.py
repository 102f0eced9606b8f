"""Which answers are right: statuses and commands, the daemon, the user's checkout, and damage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_operations import SAMPLES

from builders import belief, model, picture, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import STATUSES
from mutiny.contracts.workers.outcomes import REJECTIONS, expect
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.model.expectation import Expectation
from mutiny.model.operation import Kind, Operation

SETTLED = [status for status in STATUSES if status != "offline"]

COMMANDS: dict[str, Operation] = {
    "Start": op.Start("alpha", "x"),
    "Message": op.Message("alpha", "x"),
    "Review": op.Review("alpha"),
    "Accept": op.Accept("alpha"),
    "Reject": op.Reject("x"),
    "Rebase": op.Rebase("alpha"),
}
LEGAL = {
    "Start": {"idle"},
    "Review": {"needs_review"},
    "Accept": {"needs_review"},
    "Reject": {"needs_review"},
    "Rebase": {"working", "needs_review"},
    "Message": set(SETTLED) - {"idle"},
}
REFUSAL = {
    "Start": "not_idle",
    "Review": "not_needs_review",
    "Accept": "not_needs_review",
    "Reject": "not_needs_review",
    "Rebase": "wrong_state",
    "Message": "wrong_state",
}
# Statuses that an agent leaves when it likes, and what they may have become meanwhile.
MOVES = {
    "working": {"needs_review", "no_changes"},
    "rejected": {"working", "needs_review", "no_changes"},
    "rebasing": {"needs_review"},
    "reviewing": {"needs_review"},
}


def kind(expectation: Expectation) -> str:
    if expectation.success_due:
        return "must"
    return "refuse" if expectation.rejection_due else "either"


def reviewed(*statuses: str, **changes: Any) -> object:
    return model(belief("alpha", *statuses), last_reviewed="alpha", **changes)


@pytest.mark.parametrize("status", SETTLED)
@pytest.mark.parametrize("command", COMMANDS)
def test_status_decides(command: str, status: str) -> None:
    """Every command in every status, by the table of expected errors."""
    believed = model(belief("alpha", status), last_reviewed="alpha")
    found = expect(believed, COMMANDS[command], None)
    possible = {status} | MOVES.get(status, set())
    legal = possible & LEGAL[command]
    if legal == possible:
        assert (kind(found), found.rejections) == ("must", frozenset())
        return
    assert kind(found) == ("either" if legal else "refuse")
    assert REFUSAL[command] in found.rejections
    # A target may have forgotten the review by then: for reject both words are true.
    assert found.rejections - {REFUSAL[command]} <= (
        {"nothing_reviewed"} if command == "Reject" else set()
    )
    assert status in found.reason


@pytest.mark.parametrize("command", COMMANDS)
def test_a_worker_that_may_be_away_may_refuse(command: str) -> None:
    ready = next(iter(sorted(LEGAL[command])))
    believed = model(belief("alpha", ready, offline_allowed=True), last_reviewed="alpha")
    found = expect(believed, COMMANDS[command], None)
    assert kind(found) == "either"
    assert REFUSAL[command] in found.rejections


def test_what_was_seen_narrows_what_a_command_may_find() -> None:
    believed = model(belief("alpha", "working"))
    accept = op.Accept("alpha")
    assert kind(expect(believed, accept, None)) == "either"
    assert kind(expect(believed, accept, picture(view("alpha", "needs_review")))) == "must"
    assert kind(expect(believed, accept, picture(view("alpha", "working")))) == "either"
    assert kind(expect(believed, accept, picture(view("alpha", "no_changes")))) == "refuse"
    # What the model does not allow is the invariants' business; it teaches nothing here.
    assert kind(expect(believed, accept, picture(view("alpha", "idle")))) == "either"


def test_seen_offline_means_that_anything_may_be_found() -> None:
    believed = model(belief("alpha", "idle", offline_allowed=True))
    found = expect(believed, op.Start("alpha", "x"), picture(view("alpha", "offline")))
    assert kind(found) == "either"


def test_a_start_that_only_queues_leaves_the_worker_idle_for_a_while() -> None:
    queued = belief("alpha", "working", "idle", tokens=("t",))
    slow = model(queued, profile=Profile(start_is_immediate=False))
    found = expect(slow, op.Start("alpha", "x"), picture(view("alpha", "idle")))
    assert kind(found) == "either"


# --- workers that are not there -------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation",
    [
        op.Start("nobody", "x"),
        op.Message("nobody", "x"),
        op.Attach("nobody"),
        op.Review("nobody"),
        op.Accept("nobody"),
        op.Rebase("nobody"),
        op.Nuke("nobody"),
        op.ResetWorker("nobody"),
    ],
    ids=lambda operation: operation.type,
)
def test_an_unknown_worker_is_refused(operation: Operation) -> None:
    found = expect(model(belief()), operation, None)
    assert found.rejection_due
    assert found.rejections == {"no_such_worker"}


def test_a_worker_is_added_once() -> None:
    assert expect(model(belief()), op.Add("beta"), None).success_due
    again = expect(model(belief()), op.Add("alpha"), None)
    assert (again.rejection_due, again.rejections) == (True, {"already_exists"})


@pytest.mark.parametrize("operation", [op.Nuke("alpha"), op.ResetWorker("alpha")])
@pytest.mark.parametrize("status", SETTLED)
def test_giving_up_is_always_served(operation: Operation, status: str) -> None:
    assert expect(model(belief("alpha", status)), operation, None).success_due


# --- reject ---------------------------------------------------------------------------------------


def test_reject_needs_a_review() -> None:
    found = expect(model(belief("alpha", "needs_review")), op.Reject("x"), None)
    assert (found.rejection_due, found.rejections) == (True, {"nothing_reviewed"})


def test_reject_after_the_reviewed_worker_is_gone() -> None:
    found = expect(model(belief("beta"), last_reviewed="alpha"), op.Reject("x"), None)
    assert found.rejection_due
    assert found.rejections == {"nothing_reviewed", "no_such_worker"}


# --- the daemon -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("daemon", "up", "down"),
    [
        (frozenset({True}), ("refuse", {"daemon_running"}), ("must", set())),
        (frozenset({False}), ("must", set()), ("either", {"daemon_down"})),
        (frozenset({True, False}), ("either", {"daemon_running"}), ("either", {"daemon_down"})),
    ],
    ids=["runs", "down", "unknown"],
)
def test_up_and_down(
    daemon: frozenset[bool], up: tuple[str, set[str]], down: tuple[str, set[str]]
) -> None:
    believed = model(daemon=daemon)
    for operation, (word, classes) in ((op.Up(), up), (op.Down(), down)):
        found = expect(believed, operation, None)
        assert (kind(found), set(found.rejections)) == (word, classes)


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_daemon_work_is_refused(command: str) -> None:
    ready = next(iter(sorted(LEGAL[command])))
    believed = model(belief("alpha", ready), last_reviewed="alpha", daemon=frozenset({False}))
    found = expect(believed, COMMANDS[command], None)
    assert found.rejection_due
    assert "daemon_down" in found.rejections


@pytest.mark.parametrize("command", COMMANDS)
def test_with_an_unknown_daemon_both_answers_are_right(command: str) -> None:
    both = frozenset({True, False})
    legal = model(belief("alpha", "needs_review"), last_reviewed="alpha", daemon=both)
    found = expect(legal, COMMANDS[command], None)
    assert "daemon_down" in found.rejections
    assert kind(found) == ("refuse" if command == "Start" else "either")


def test_a_missing_worker_and_a_missing_daemon_are_both_true_words() -> None:
    found = expect(model(daemon=frozenset({False})), op.Start("nobody", "x"), None)
    assert found.rejections == {"no_such_worker", "daemon_down"}


@pytest.mark.parametrize("operation", [op.Add("beta"), op.Nuke("alpha"), op.Status()])
def test_some_commands_do_not_need_the_daemon(operation: Operation) -> None:
    believed = model(belief(), daemon=frozenset({False}))
    assert expect(believed, operation, None).success_due


def test_a_profile_says_which_commands_need_the_daemon() -> None:
    believed = model(
        belief("alpha", "needs_review"),
        daemon=frozenset({False}),
        profile=Profile(needs_daemon=("Nuke",)),
    )
    assert expect(believed, op.Review("alpha"), None).success_due
    assert expect(believed, op.Nuke("alpha"), None).rejections == {"daemon_down"}


# --- workspace, checkout, health ------------------------------------------------------------------


def test_init_is_served_once() -> None:
    assert expect(model(initialised=False), op.Init(), None).success_due
    again = expect(model(), op.Init(), None)
    assert (again.rejection_due, again.rejections) == (True, {"already_initialised"})


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_before_init_every_command_may_be_refused_and_nothing_else(operation: Operation) -> None:
    found = expect(model(initialised=False), operation, None)
    if operation.kind is Kind.COMMAND and not isinstance(operation, op.Init):
        assert "not_initialised" in found.rejections
    else:
        assert found.success_due


@pytest.mark.parametrize("dirty", ["refuse", "either"])
def test_accept_into_a_dirty_checkout(dirty: str) -> None:
    profile = Profile(dirty_source=dirty)
    ready = model(belief("alpha", "needs_review"), source_dirty="edit", profile=profile)
    found = expect(ready, op.Accept("alpha"), None)
    assert (kind(found), found.rejections) == (dirty, {"source_dirty"})
    busy = replace(ready, workers={"alpha": belief("alpha", "working")})
    found = expect(busy, op.Accept("alpha"), None)
    assert (kind(found), found.rejections) == (dirty, {"source_dirty", "not_needs_review"})


@pytest.mark.parametrize(
    ("how", "answer"),
    [("edit", "refuse"), ("stage", "refuse"), ("merge", "refuse"), ("untracked", "either")],
)
def test_an_untracked_file_may_be_in_nobodys_way(how: str, answer: str) -> None:
    profile = Profile(dirty_source="refuse")
    ready = model(belief("alpha", "needs_review"), source_dirty=how, profile=profile)
    assert kind(expect(ready, op.Accept("alpha"), None)) == answer


@pytest.mark.parametrize("dirty", ["refuse", "either"])
def test_a_dirty_checkout_makes_nothing_legal(dirty: str) -> None:
    """A worker with nothing to accept is refused, whatever the target does about the checkout."""
    believed = model(
        belief("alpha", "idle"), source_dirty="edit", profile=Profile(dirty_source=dirty)
    )
    found = expect(believed, op.Accept("alpha"), None)
    assert found.rejection_due
    assert found.rejections == {"source_dirty", "not_needs_review"}


def test_a_dirty_checkout_concerns_accept_alone() -> None:
    believed = model(belief("alpha", "needs_review"), source_dirty="edit")
    assert expect(believed, op.Review("alpha"), None).success_due


@pytest.mark.parametrize("command", COMMANDS)
def test_damage_adds_a_true_word_but_no_success(command: str) -> None:
    for status in ("idle", "needs_review", "error"):
        sound = model(belief("alpha", status), last_reviewed="alpha")
        before = expect(sound, COMMANDS[command], None)
        after = expect(replace(sound, state_damaged=True), COMMANDS[command], None)
        assert after.success == before.success
        assert after.rejections == before.rejections | {"state_unreadable"}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "must"),
        ({"daemon": frozenset({False})}, "either"),
        ({"daemon": frozenset({True, False})}, "either"),
        ({"faults": ("KillDaemon()",)}, "either"),
        ({"state_damaged": True}, "either"),
    ],
)
def test_doctor_may_complain_only_when_something_may_be_wrong(
    changes: dict[str, Any], word: str
) -> None:
    for operation in (op.Doctor(), op.Doctor(repair=True, yes=True)):
        assert kind(expect(model(belief(), **changes), operation, None)) == word


@pytest.mark.parametrize(
    "worker",
    [belief("alpha", "error"), belief("alpha", offline_allowed=True)],
    ids=["error", "away"],
)
def test_doctor_may_complain_about_a_worker(worker: object) -> None:
    found = expect(model(worker), op.Doctor(), None)  # type: ignore[arg-type]
    assert (kind(found), found.rejections) == ("either", {"unhealthy"})


def test_attach_never_has_to_find_a_session() -> None:
    found = expect(model(belief()), op.Attach("alpha"), None)
    assert (kind(found), found.rejections) == ("either", {"session_missing"})


@pytest.mark.parametrize(
    "operation",
    [common.Sleep(), op.KillDaemon(), op.WaitForIdle("x"), common.Settle(), common.Reset()],
)
def test_own_steps_are_simply_due(operation: Operation) -> None:
    assert expect(model(), operation, None).success_due


def test_every_refusal_has_a_class_with_a_meaning() -> None:
    believed = model(belief("alpha"), last_reviewed="alpha", state_damaged=True)
    for command in COMMANDS.values():
        assert expect(believed, command, None).rejections <= set(REJECTIONS)


def test_a_profile_may_serve_a_command_in_any_status() -> None:
    anything = Profile(legal={"Rebase": ("*",), "Review": ("*",)})
    believed = model(belief("alpha", "idle"), profile=anything)
    assert expect(believed, op.Rebase("alpha"), None).success_due
    assert expect(believed, op.Review("alpha"), None).success_due
