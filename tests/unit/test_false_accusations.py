"""Nothing is said that is not so: pictures of a correct target in which a rule could point at it by
mistake, class by class. Next to each stands what must still be found.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ledger_cases import LEDGER_CASES
from rule_cases import STATE_CASES, Case

from builders import (
    AT,
    CONTRACT,
    DAEMON,
    TOKEN,
    agent,
    belief,
    beliefs,
    model,
    ok,
    picture,
    refused,
    view,
    worktree,
)
from mutiny.contracts import faults
from mutiny.contracts.workers import contract as workers_contract
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.advance import OK, advance
from mutiny.contracts.workers.invariants import INVARIANTS
from mutiny.contracts.workers.judge import check_state
from mutiny.contracts.workers.keepers import KEEPERS, Keeper, is_kept
from mutiny.contracts.workers.model import Work, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.rules import RULES
from mutiny.model.verdict import Verdict

CASES = (*STATE_CASES, *LEDGER_CASES)


def accused(believed: WorkersModel, seen: Observation, **how: object) -> set[str]:
    """The rules that some picture breaks."""
    operation = how.get("operation", op.Sleep())
    assert isinstance(operation, op.Operation)
    broken, _ = check_state(believed, operation, True, seen, seen, {})
    return {item.violation.rule for item in broken}


# --- somebody must be there to keep a rule true ---------------------------------------------------


def test_every_rule_that_is_judged_by_looking_has_a_keeper() -> None:
    assert set(KEEPERS) == {case.rule for case in CASES}
    assert set(INVARIANTS) <= set(KEEPERS) <= set(RULES)


DEAD = {"daemons": (), "daemon_flag": True}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.removeprefix("workers."))
def test_what_the_daemon_keeps_is_not_asked_while_it_is_dead(case: Case) -> None:
    looked = case.broken
    dead = replace(looked.seen, daemons=())
    broken, _ = check_state(
        looked.model, looked.operation, looked.succeeded, looked.before, dead, {}
    )
    found = {item.violation.rule for item in broken}
    assert not {rule for rule in found if KEEPERS[rule] is Keeper.DAEMON}


def test_an_agent_that_ends_its_rebase_while_the_daemon_is_dead_is_nobodys_fault() -> None:
    rebasing = view("alpha", "rebasing")
    believed = model(belief("alpha", "rebasing"), daemon=frozenset({False}), daemon_killed=True)
    ended = {"alpha": worktree(rebasing, rebasing=False, branch=rebasing.branch)}
    seen = picture(rebasing, worktrees=ended)
    assert accused(believed, replace(seen, **DEAD)) == set()
    assert accused(replace(believed, daemon=frozenset({True})), seen) == {
        "workers.rebasing_is_in_rebase"
    }


def test_without_a_process_list_the_rule_is_asked_and_the_step_is_inconclusive() -> None:
    blind = picture(view(), daemons=None)
    assert all(is_kept(rule, model(belief()), blind) for rule in KEEPERS)


# --- what a fault wrote is not what the target said ----------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule.removeprefix("workers."))
def test_no_rule_about_the_state_is_asked_of_what_a_fault_wrote(case: Case) -> None:
    looked = case.broken
    seen = replace(looked.seen, state_as_left=True)
    hurt = replace(looked.model, state_damaged=True)
    broken, _ = check_state(hurt, looked.operation, looked.succeeded, looked.before, seen, {})
    assert {item.violation.rule for item in broken} <= {
        rule for rule, keeper in KEEPERS.items() if keeper is Keeper.ALWAYS
    }


DAMAGES = (
    *(op.CorruptState(how) for how in op.CORRUPTIONS),
    *(faults.DamageFile(how) for how in faults.DAMAGES),
)
FLIPPED = view("alpha", "working", prompt="")  # one wrong bit in the name of the field


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
@pytest.mark.parametrize(
    "left",
    [
        picture(FLIPPED, state_as_left=True),
        picture(view("alpha", "needs_review"), state_as_left=True),
        picture(state_as_left=True),
        picture(state_as_left=True, state_exists=False, daemon_flag=None),
        picture(state_as_left=True, state_error="not valid JSON", daemon_flag=None),
    ],
    ids=["field", "old", "nobody", "gone", "junk"],
)
@pytest.mark.parametrize("notices", [True, False])
def test_a_damage_accuses_nobody_whatever_follows_at_once(
    damage: op.Operation, left: Observation, notices: bool
) -> None:
    profile = Profile(notices_damage=notices)
    contract = replace(CONTRACT, profile=profile)
    busy = belief("alpha", "working", tokens=(TOKEN,))
    believed = model(busy, work=(Work(TOKEN, "task", "alpha"),), profile=profile)
    before = picture(view("alpha", "working"))
    current, was = beliefs(believed), before
    # The daemon dies at once: nobody is there who could put anything right.
    dead = replace(left, daemons=())
    for operation, seen in ((damage, left), (op.KillDaemon(), dead), (op.Settle(), dead)):
        done = ok(fired=True)
        answered = contract.judge(current, operation, done, was, seen, AT)
        checked = contract.check(answered.model, operation, True, was, seen)
        assert (answered.violation, checked.broken, checked.settling) == (None, (), ())
        current, was = checked.model, seen
    assert contract.pending(current, dead) == ()


def test_a_damage_that_the_daemon_does_not_repair_is_still_a_failure() -> None:
    hurt = advance(model(belief()), op.CorruptState("delete"), OK)
    gone = picture(state_as_left=True, state_exists=False, daemon_flag=None)
    assert hurt.pending(gone) == ("the state file is gone",)
    settled = advance(hurt, op.Settle(), OK)
    assert accused(settled, gone) == {"workers.state_readable"}


def test_a_target_with_a_checksum_must_write_its_state_again() -> None:
    profile = Profile(notices_damage=True)
    hurt = advance(model(belief(), profile=profile), faults.DamageFile("flip"), OK)
    assert hurt.pending(picture(view(), state_as_left=True)) == (
        "the state file is still what the fault made of it",
    )
    # What it then wrote is its own.
    own = picture(view("alpha", "working", prompt=""))
    assert "workers.working_has_prompt" in accused(advance(hurt, op.Settle(), OK), own)


def test_what_a_target_without_a_checksum_makes_of_it_is_not_known() -> None:
    believed = model(belief("alpha", "working", tokens=(TOKEN,)), work=(Work(TOKEN, "t", "alpha"),))
    hurt = advance(
        believed, faults.DamageFile("flip"), OK, seen=picture(FLIPPED, state_as_left=True)
    )
    assert hurt.doubtful
    later = picture(view("alpha", "working", prompt=""), view("alphb", "idle"))
    assert accused(hurt, later) == set()
    assert hurt.pending(later) == ()
    # Its daemon may not die of it, though, and no command may crash.
    assert accused(hurt, replace(later, daemons=(DAEMON, replace(DAEMON, pid=7)))) == {
        "workers.one_daemon"
    }
    for answer in (ok(), refused("Worker 'alpha' does not exist")):
        judged = CONTRACT.judge(beliefs(hurt), op.Nuke("alpha"), answer, later, later, AT)
        assert judged.violation is None


def test_a_damaged_state_does_not_narrow_the_beliefs() -> None:
    believed = model(belief("alpha", "idle", "working"))
    assert believed.see(picture(view("alpha", "idle"), state_as_left=True)).workers == (
        believed.workers
    )


# --- worlds that were given up -------------------------------------------------------------------


def test_parallel_commands_leave_every_order_possible() -> None:
    both = op.Parallel((op.Start("alpha", "Create a.txt"), op.ResetWorker("alpha")))
    answers = ok(inner=(ok(tokens=(TOKEN,)), ok()))
    before = picture(view())
    ends = {
        "idle": picture(view("alpha", "idle")),
        "working": picture(view("alpha", "working"), agents=(agent(busy=True),)),
    }
    for status, seen in ends.items():
        answered = CONTRACT.judge(beliefs(model(belief())), both, answers, before, seen, AT)
        assert answered.violation is None
        checked = CONTRACT.check(answered.model, both, True, before, seen)
        assert (checked.broken, checked.settling) == ((), ()), status
    odd = picture(view("alpha", "rejected"))
    answered = CONTRACT.judge(beliefs(model(belief())), both, answers, before, odd, AT)
    assert CONTRACT.check(answered.model, both, True, before, odd).broken


def test_worlds_that_were_dropped_mean_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_contract, "MOST_ALTERNATIVES", 1)
    start = op.Start("alpha", "Create a.txt")
    both = op.Parallel((start, op.ResetWorker("alpha")))
    before = picture(view())
    kept_idle = picture(view("alpha", "working"), agents=(agent(busy=True),))
    answered = CONTRACT.judge(
        beliefs(model(belief())),
        both,
        ok(inner=(ok(tokens=(TOKEN,)), ok())),
        before,
        picture(view("alpha", "idle")),
        AT,
    )
    assert answered.model.dropped
    checked = CONTRACT.check(answered.model, op.Sleep(), True, before, kept_idle)
    assert (checked.broken, checked.settling) == ((), ())
    assert "more than" in checked.unreadable[0]
    refusal = refused("Worker 'alpha' is not idle")
    judged = CONTRACT.judge(answered.model, start, refusal, before, before, AT)
    assert (judged.verdict, judged.violation) == (Verdict.INCONCLUSIVE, None)
    # What is wrong in every world stays wrong.
    crash = replace(refused("boom"), exit_code=None, signal=11)
    judged = CONTRACT.judge(answered.model, start, crash, before, before, AT)
    assert judged.violation is not None
