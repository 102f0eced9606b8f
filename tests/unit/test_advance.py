"""How outcomes change the beliefs, command by command and fault by fault."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_operations import SAMPLES

from builders import OK, REFUSED, TOKEN, UNKNOWN, advance, agent, belief, model, picture, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import Work, WorkersModel
from mutiny.contracts.workers.operations import STATUSES
from mutiny.contracts.workers.outcomes import expect
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.model.operation import Operation

NOW = 50.0


def after(believed: WorkersModel, operation: Operation, *tokens: str) -> WorkersModel:
    return advance(believed, operation, OK, tokens=tokens, now=NOW)


def busy(*statuses: str, **changes: object) -> WorkersModel:
    """One worker with an acknowledged task."""
    worker = belief("alpha", *(statuses or ("working",)), tokens=(TOKEN,), due_at=1.0)
    return model(worker, work=(Work(TOKEN, "task", "alpha"),), **changes)


def alpha(believed: WorkersModel) -> frozenset[str]:
    return believed.workers["alpha"].statuses


# --- one command after the other ------------------------------------------------------------------


def test_a_life() -> None:
    """From nothing to merged work, as the symbolic walk of the explorer goes."""
    now = WorkersModel()
    now = after(now, op.Init())
    assert (now.initialised, now.daemon_certain) == (True, False)
    now = after(now, op.Up())
    assert now.daemon_certain is True
    now = after(now, op.Add("alpha"))
    assert now.allowed("alpha") == {"idle", "offline"}
    now = after(now, op.WaitForIdle("alpha"))
    assert now.allowed("alpha") == {"idle"}
    now = after(now, op.Start("alpha", "x"), TOKEN)
    assert now.allowed("alpha") == {"working", "needs_review", "no_changes"}
    assert now.workers["alpha"].due_at == NOW
    assert now.work[TOKEN] == Work(TOKEN, "task", "alpha", "open", "x")
    now = after(now, op.WaitForNeedsReview("alpha"))
    assert now.allowed("alpha") == {"needs_review"}
    assert now.workers["alpha"].due_at is None
    now = after(now, op.Review("alpha"))
    assert now.last_reviewed == "alpha"
    now = after(now, op.Reject("again"), "MT-7f3a-2")
    assert alpha(now) == {"rejected"}
    assert now.workers["alpha"].tokens == (TOKEN, "MT-7f3a-2")
    assert now.work["MT-7f3a-2"].kind == "reject"
    now = after(now, op.WaitForNeedsReview("alpha"))
    now = after(now, op.Accept("alpha"))
    assert alpha(now) == {"idle"}
    assert now.workers["alpha"].tokens == ()
    assert {work.fate for work in now.work.values()} == {"merged"}
    now = after(now, op.Down())
    assert now.daemon_certain is False
    assert "offline" in now.allowed("alpha")


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_a_refusal_changes_nothing(operation: Operation) -> None:
    before = busy("working", last_reviewed="alpha")
    assert advance(before, operation, REFUSED, tokens=("MT-0-9",), now=NOW) == before


@pytest.mark.parametrize("outcome", [OK, REFUSED, UNKNOWN])
@pytest.mark.parametrize("seen", [None, picture(view("alpha"))], ids=["blind", "seen"])
@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_no_answer_of_a_target_can_break_the_model(
    operation: Operation, seen: object, outcome: str
) -> None:
    """Also not the answer 'done' to a command about a worker that does not exist."""
    for before in (model(), model(belief("gamma")), WorkersModel(), busy()):
        made = advance(before, operation, outcome, tokens=("MT-0-9",), seen=seen)  # type: ignore[arg-type]
        assert isinstance(made, WorkersModel)


@pytest.mark.parametrize("operation", SAMPLES, ids=lambda sample: sample.type)
def test_an_unknown_worker_stays_unknown(operation: Operation) -> None:
    if isinstance(operation, op.Add):
        return
    assert set(after(model(), operation, "MT-0-9").workers) == set()


def test_an_unknown_outcome_believes_everything() -> None:
    made = advance(busy(), op.Accept("alpha"), UNKNOWN, tokens=("MT-0-9",), now=NOW)
    assert made.allowed("alpha") == set(STATUSES)
    assert made.work["MT-0-9"].fate == "unknown"
    assert made.work[TOKEN].fate == "open"
    assert made.faults == ("Accept with unknown outcome",)


def test_an_unknown_outcome_of_a_reject_is_about_the_reviewed_worker_and_nobody_elses_is() -> None:
    before = busy(last_reviewed="alpha")
    assert advance(before, op.Reject("x"), UNKNOWN).allowed("alpha") == set(STATUSES)
    assert alpha(advance(before, op.Up(), UNKNOWN)) == alpha(before)


# --- work -----------------------------------------------------------------------------------------


def test_a_start_that_only_queues_may_still_be_idle() -> None:
    slow = model(belief(), profile=Profile(start_is_immediate=False))
    made = after(slow, op.Start("alpha", "x"), TOKEN)
    assert alpha(made) == {"idle", "working"}
    assert made.allowed("alpha") >= {"idle", "working", "needs_review"}


def test_a_new_task_begins_with_no_hits_and_a_fresh_base() -> None:
    tired = model(belief("alpha", hits=5, stale_base=True))
    made = after(tired, op.Start("alpha", "x"), TOKEN).workers["alpha"]
    assert (made.hits, made.stale_base, made.tokens) == (0, False, (TOKEN,))


@pytest.mark.parametrize(
    ("status", "promised", "hits"), [("error", True, 0), ("error", False, 3), ("working", True, 3)]
)
def test_a_message_to_a_worker_that_was_given_up_begins_anew_where_that_is_promised(
    status: str, promised: bool, hits: int
) -> None:
    tired = model(belief("alpha", status, hits=3), profile=Profile(message_begins_anew=promised))
    assert after(tired, op.Message("alpha", "x"), TOKEN).workers["alpha"].hits == hits


@pytest.mark.parametrize("status", ["working", "needs_review", "rejected", "error"])
def test_a_message_is_work_too(status: str) -> None:
    made = after(busy(status), op.Message("alpha", "x"), "MT-0-2")
    assert "working" in alpha(made)
    assert status in alpha(made)
    assert made.work["MT-0-2"].kind == "message"
    assert made.workers["alpha"].tokens == (TOKEN, "MT-0-2")


@pytest.mark.parametrize("behaviour", ["hang", "exit", "swallow", "nothing", "no-stop"])
def test_nothing_is_due_from_an_agent_that_will_not_finish(behaviour: str) -> None:
    made = after(model(belief()), op.Behave("alpha", (behaviour,)))
    made = after(made, op.Start("alpha", "x"), TOKEN)
    assert made.workers["alpha"].due_at is None
    assert "error" in made.allowed("alpha")


@pytest.mark.parametrize("turns", [("hang", "obey"), ("obey", "hang"), ("obey", "slow:5", "exit")])
def test_nothing_is_due_when_any_turn_of_the_script_may_not_finish(turns: tuple[str, ...]) -> None:
    """A turn that is delivered again uses up the next one: nobody knows which turn comes."""
    made = after(model(belief()), op.Behave("alpha", turns))
    made = after(made, op.Start("alpha", "x"), TOKEN)
    assert made.workers["alpha"].due_at is None
    assert not made.workers["alpha"].will_complete


def test_a_script_is_remembered_for_a_worker_that_comes_later() -> None:
    early = after(model(), op.Behave("alpha", ("hang",)))
    made = after(after(early, op.Add("alpha")), op.Start("alpha", "x"), TOKEN)
    assert made.workers["alpha"].due_at is None


def test_init_makes_a_new_workspace_but_no_new_box() -> None:
    before = after(WorkersModel(), op.Behave("alpha", ("hang",)))
    before = after(before, op.DirtySource())
    made = after(before, op.Init())
    assert made.initialised
    assert made.source_dirty
    assert not after(made, op.Add("alpha")).workers["alpha"].will_complete


def test_a_script_outlives_its_worker() -> None:
    """The double goes by the worker's name: a new worker of that name finds the old script."""
    made = after(model(belief()), op.Behave("alpha", ("hang",)))
    for operation in (op.Nuke("alpha"), op.Add("alpha"), op.Start("alpha", "x")):
        made = after(made, operation)
    assert not made.workers["alpha"].will_complete


# --- giving up ------------------------------------------------------------------------------------


def test_nuke_forgets_the_worker_and_discards_its_work() -> None:
    done = Work("MT-0-8", "task", "alpha", "merged")
    other = Work("MT-0-9", "task", "beta")
    before = model(
        belief("alpha", "working", tokens=(TOKEN,)),
        belief("beta", "working", tokens=("MT-0-9",)),
        work=(Work(TOKEN, "task", "alpha"), done, other),
    )
    made = after(before, op.Nuke("alpha"))
    assert set(made.workers) == {"beta"}
    assert {token: work.fate for token, work in made.work.items()} == {
        TOKEN: "discarded",
        "MT-0-8": "merged",
        "MT-0-9": "open",
    }


def test_reset_keeps_the_worker_and_discards_its_work() -> None:
    made = after(busy("error", state_damaged=False), op.ResetWorker("alpha"))
    assert made.allowed("alpha") == {"idle", "offline"}
    assert made.workers["alpha"].tokens == ()
    assert made.work[TOKEN].fate == "discarded"


@pytest.mark.parametrize(
    "path",
    [
        (op.Accept("alpha"),),
        (op.ResetWorker("alpha"),),
        (op.Nuke("alpha"), op.Add("alpha")),
    ],
    ids=["accept", "reset", "nuke"],
)
def test_a_review_is_used_up_with_its_task(path: tuple[Operation, ...]) -> None:
    """Some targets forget it then, some do not: both answers to a later reject are right."""
    made = after(busy("needs_review"), op.Review("alpha"))
    for operation in (*path, op.WaitForIdle("alpha")):
        made = after(made, operation)
    idle = expect(made, op.Reject("x"), None)
    assert idle.rejection_due
    assert idle.rejections >= {"nothing_reviewed", "not_needs_review"}
    made = after(made, op.Start("alpha", "y"), "MT-0-2")
    made = after(made, op.WaitForNeedsReview("alpha"))
    ready = expect(made, op.Reject("x"), None)
    assert ready.success
    assert ready.rejections == {"nothing_reviewed"}
    again = after(made, op.Review("alpha"))
    assert expect(again, op.Reject("x"), None).success_due


def test_reviewing_somebody_else_counts() -> None:
    before = model(belief("alpha", "needs_review"), belief("beta", "needs_review"))
    made = after(after(after(before, op.Review("alpha")), op.Accept("alpha")), op.Review("beta"))
    assert expect(made, op.Reject("x"), None).success_due


# --- merging --------------------------------------------------------------------------------------


def test_accepting_one_makes_the_base_of_the_others_stale() -> None:
    before = model(
        belief("alpha", "needs_review", tokens=(TOKEN,)),
        belief("beta", "working", tokens=("MT-0-2",)),
        belief("gamma"),
    )
    made = after(before, op.Accept("alpha"))
    assert [made.workers[name].stale_base for name in ("alpha", "beta", "gamma")] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("operation", [op.Review("alpha"), op.Rebase("alpha")])
def test_a_stale_base_may_end_in_a_conflict(operation: Operation) -> None:
    fresh = after(busy("needs_review"), operation)
    assert "rebasing" not in fresh.allowed("alpha")
    stale = after(after(busy("needs_review"), op.MoveSource()), operation)
    assert stale.allowed("alpha") >= {"rebasing", "needs_review"}
    assert stale.workers["alpha"].due_at == NOW


def test_a_rebase_that_was_put_off_comes_after_a_look_at_finished_work() -> None:
    """It was seen ready for review, and the conflict came a moment later (`--seed 7700174`)."""
    asked = after(after(busy("working"), op.MoveSource()), op.Rebase("alpha"))
    ready = asked.see(picture(view("alpha", "needs_review")))
    assert "rebasing" in ready.allowed("alpha")
    merged = after(ready.see(picture(view("alpha", "idle"))), op.Start("alpha", "two"))
    again = after(merged, op.MoveSource()).see(picture(view("alpha", "needs_review")))
    assert "rebasing" not in again.allowed("alpha")


def test_accept_with_a_stale_base_is_merged_or_in_conflict_by_what_is_seen() -> None:
    stale = after(busy("needs_review"), op.MoveSource())

    def accepted(status: str) -> WorkersModel:
        seen = picture(view("alpha", status))
        return advance(stale, op.Accept("alpha"), OK, now=NOW, seen=seen)

    merged = accepted("idle")
    assert (alpha(merged), merged.work[TOKEN].fate) == ({"idle"}, "merged")
    conflict = accepted("rebasing")
    assert (alpha(conflict), conflict.work[TOKEN].fate) == ({"rebasing"}, "open")
    assert conflict.workers["alpha"].due_at == NOW
    blind = after(stale, op.Accept("alpha"))
    assert alpha(blind) == {"idle", "rebasing"}


# --- daemon and faults ----------------------------------------------------------------------------


def test_down_excuses_everybody_and_up_brings_everybody_back() -> None:
    down = after(busy(), op.Down())
    assert down.daemon_certain is False
    assert down.workers["alpha"].due_at is None
    assert "offline" in down.allowed("alpha")
    up = after(down, op.Up())
    assert up.daemon_certain is True
    assert up.workers["alpha"].due_at == NOW
    assert up.workers["alpha"].disturbed_at == NOW


def test_up_makes_nothing_due_from_a_resting_worker() -> None:
    assert after(busy("needs_review"), op.Up()).workers["alpha"].due_at is None


def test_up_ends_the_damage() -> None:
    assert not after(model(state_damaged=True), op.Up()).state_damaged
    assert not after(model(state_damaged=True), op.Doctor(repair=True)).state_damaged
    assert after(model(state_damaged=True), op.Doctor()).state_damaged


def test_killing_the_daemon_disturbs_no_worker() -> None:
    made = after(busy(), op.KillDaemon())
    assert made.daemon_certain is False
    assert made.workers["alpha"].disturbed is None
    assert made.faults == ("KillDaemon()",)


@pytest.mark.parametrize(
    ("fault", "hit"),
    [
        (op.KillTmuxSession("alpha"), {"alpha"}),
        (op.KillAgent("beta"), {"beta"}),
        (op.KillTmuxServer(), {"alpha", "beta"}),
        (op.KillAgent("nobody"), set()),
    ],
    ids=["session", "agent", "server", "nobody"],
)
def test_a_fault_disturbs_whom_it_hits(fault: Operation, hit: set[str]) -> None:
    before = model(belief("alpha", "working", due_at=1.0), belief("beta", "idle"))
    made = after(before, fault)
    for name, worker in made.workers.items():
        assert (worker.disturbed == str(fault)) == (name in hit)
        assert worker.hits == (1 if name in hit else 0)
        assert ("offline" in made.allowed(name)) == (name in hit)
    assert made.faults == (str(fault),)
    assert made.workers["alpha"].due_at == (NOW if "alpha" in hit else 1.0)


def test_after_two_faults_on_one_task_an_error_may_be_reported() -> None:
    once = after(busy(), op.KillAgent("alpha"))
    assert "error" not in once.allowed("alpha")
    assert "error" in after(once, op.KillAgent("alpha")).allowed("alpha")


@pytest.mark.parametrize("operation", [op.PauseProcess("daemon"), op.CorruptState("empty")])
def test_other_faults_are_remembered_until_the_system_is_settled(operation: Operation) -> None:
    made = after(busy(), operation)
    assert made.faults == (str(operation),)
    assert made.state_damaged == isinstance(operation, op.CorruptState)
    settled = after(made, common.Settle())
    assert (settled.faults, settled.state_damaged) == ((), False)


def test_the_users_edit_comes_and_goes() -> None:
    dirty = after(model(), op.DirtySource())
    assert dirty.source_dirty
    assert not after(dirty, op.DirtySource(undo=True)).source_dirty


# --- waiting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "offline"])
def test_a_wait_that_succeeded_is_believed(status: str) -> None:
    everything = belief("alpha", *STATUSES[:-2], "error", offline_allowed=True)
    made = after(model(everything), op.WaitForState("alpha", status))
    assert alpha(made) == {status}


def test_a_worker_that_was_seen_offline_may_come_back_as_what_it_was() -> None:
    hit = after(busy(), op.KillAgent("alpha"))
    made = after(hit, op.WaitForState("alpha", "offline"))
    assert made.allowed("alpha") >= {"offline", "working", "needs_review"}
    back = made.see(picture(view("alpha", "working")))
    assert back.allowed("alpha") == {"working", "needs_review", "no_changes"}


def test_waiting_for_idle_does_not_excuse_a_worker_that_is_not_well_yet() -> None:
    """The state may still say idle though the session has just been killed."""
    hit = after(model(belief()), op.KillTmuxSession("alpha"))
    gone = picture(view("alpha"), sessions=frozenset(), agents=(agent(alive=False),))
    still = advance(hit, op.WaitForIdle("alpha"), OK, now=NOW, seen=gone)
    assert "offline" in still.allowed("alpha")
    assert still.workers["alpha"].disturbed is not None
    well = advance(hit, op.WaitForIdle("alpha"), OK, now=NOW, seen=picture(view("alpha")))
    assert well.allowed("alpha") == {"idle"}
    assert well.workers["alpha"].disturbed is None


def test_settling_ends_what_was_due() -> None:
    made = after(busy(), common.Settle())
    assert alpha(made) == {"needs_review", "no_changes"}
    assert made.workers["alpha"].due_at is None


def test_settling_ends_every_excuse() -> None:
    hit = after(model(belief()), op.KillAgent("alpha"))
    made = after(hit, common.Settle())
    assert made.allowed("alpha") == {"idle"}
    assert made.workers["alpha"].disturbed is None


def test_settling_leaves_alone_what_was_never_due() -> None:
    hanging = replace(busy(), workers={"alpha": belief("alpha", "working", behaviours=("hang",))})
    assert alpha(after(hanging, common.Settle())) == {"working"}


def test_settling_without_a_daemon_promises_nothing_about_workers() -> None:
    down = after(busy(), op.Down())
    assert "offline" in after(down, common.Settle()).allowed("alpha")


# --- somebody types, somebody stops ------------------------------------------------------------------


def test_what_is_typed_to_an_agent_that_rests_is_work() -> None:
    typed = after(model(belief("alpha", "no_changes")), op.TypeIn("alpha", "Create x"), TOKEN)
    assert typed.work[TOKEN] == Work(TOKEN, "typed", "alpha")
    assert typed.allowed("alpha") == {"no_changes", "working", "needs_review"}
    unheard = typed.see(picture(view("alpha", "no_changes")))
    assert "working" in unheard.allowed("alpha"), "the daemon hears of it a moment later"
    heard = unheard.see(picture(view("alpha", "working"))).see(picture(view("alpha", "no_changes")))
    assert heard.allowed("alpha") == {"no_changes"}


def test_what_is_typed_in_the_middle_of_a_turn_may_go_anywhere() -> None:
    typed = after(busy(), op.TypeIn("alpha", "Create x"), "MT-0-2")
    assert typed.work["MT-0-2"].fate == "unknown"
    assert after(WorkersModel(), op.TypeIn("alpha", "Create x"), TOKEN).work == {}


@pytest.mark.parametrize("promised", [True, False])
def test_an_orderly_stop_is_no_failed_attempt_where_that_is_promised(promised: bool) -> None:
    believed = busy(profile=Profile(stop_costs_nothing=promised))
    for _ in range(3):
        believed = after(after(believed, op.Down()), op.Up())
    assert ("error" in believed.allowed("alpha")) is not promised
