"""The workers contract as the engine sees it: all parts together, and what may be the case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders import (
    CONTRACT,
    DAEMON,
    HISTORY,
    PATTERNS,
    TOKEN,
    agent,
    belief,
    beliefs,
    commit,
    model,
    ok,
    picture,
    receipt,
    refused,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.contract import Answered
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

NOW = 2000.0
HEALTHY = picture(view())
IDLE = model(belief())


def judge(
    believed: Beliefs[WorkersModel],
    operation: Operation,
    result: OperationResult,
    seen: Observation = HEALTHY,
    before: Observation = HEALTHY,
) -> Answered[Any]:
    return CONTRACT.judge(believed, operation, result, before, seen, NOW)


def test_the_beginning() -> None:
    assert CONTRACT.initial().alternatives == (WorkersModel(),)
    assert CONTRACT.nothing_seen() == Observation()
    assert CONTRACT.starts_afresh(common.Reset())
    assert not CONTRACT.starts_afresh(op.Init())


def test_a_choice_is_replaced_by_what_was_chosen() -> None:
    choice = common.Choice((op.Up(), op.Down()))
    assert CONTRACT.resolve(choice, lambda options: options[-1]) == op.Down()
    assert CONTRACT.resolve(op.Up(), lambda options: op.Down()) == op.Up()


def test_an_answer_against_a_rule_that_does_not_apply_is_let_pass() -> None:
    lenient = WorkersContract(
        Profile(not_applicable={"workers.rejects_illegal": "it serves everything"}), PATTERNS
    )
    accept = op.Accept("alpha")
    answered = lenient.judge(beliefs(IDLE), accept, ok(), HEALTHY, HEALTHY, NOW)
    assert (answered.verdict, answered.violation) == (Verdict.SUCCESS, None)
    assert judge(beliefs(IDLE), accept, ok()).verdict is Verdict.BUG


def test_what_is_broken_is_kept_apart_from_what_may_heal() -> None:
    seen = picture(view(), agents=(agent(), agent(pid=201)), daemons=(DAEMON,), state_in_place=True)
    checked = CONTRACT.check(beliefs(IDLE), common.Sleep(), True, seen, seen)
    assert [violation.rule for violation in checked.broken] == ["workers.state_atomic"]
    assert [violation.rule for violation in checked.settling] == ["workers.one_agent"]
    assert checked.unreadable == ()


def test_a_whole_task_is_accounted_for() -> None:
    """End to end: acknowledged, delivered, committed, merged, and then merged again."""
    believed = model(belief("alpha", "needs_review", tokens=(TOKEN,)))
    believed = believed.with_work(TOKEN, "task", "alpha", sure=True)
    on_branch, on_default = commit(on_default=False), commit(on_default=True)
    before = picture(view("alpha", "needs_review"), receipts=(receipt(),), commits=(on_branch,))
    merged = picture(view(), receipts=(receipt(),), commits=(*HISTORY, on_default))
    answered = judge(beliefs(believed), op.Accept("alpha"), ok(), merged, before)
    assert answered.verdict is Verdict.SUCCESS
    checked = CONTRACT.check(answered.model, op.Accept("alpha"), True, before, merged)
    assert (checked.broken, checked.unreadable) == ((), ())
    again = (*HISTORY, on_default, replace(on_default, sha="d" * 40))
    checked = CONTRACT.check(
        answered.model, common.Sleep(), True, merged, replace(merged, commits=again)
    )
    assert [violation.rule for violation in checked.broken] == ["workers.merged_once"]


# --- alternatives --------------------------------------------------------------------------------

WORKING = model(belief("alpha", "working"))
READY = model(belief("alpha", "needs_review"))


def test_an_answer_drops_the_alternatives_that_it_refutes() -> None:
    text = "Worker 'alpha' is not in needs_review state (status: idle)"
    answered = judge(beliefs(IDLE, READY), op.Accept("alpha"), refused(text))
    assert answered.verdict is Verdict.EXPECTED
    assert [one.allowed("alpha") for one in answered.model.alternatives] == [{"idle"}]


def test_an_answer_that_no_alternative_explains_is_a_bug() -> None:
    text = "Worker 'alpha' does not exist"
    answered = judge(beliefs(IDLE, READY), op.Accept("alpha"), refused(text))
    assert answered.verdict is Verdict.BUG


def test_a_look_drops_the_alternatives_that_it_refutes() -> None:
    seen = picture(view("alpha", "needs_review"))
    checked = CONTRACT.check(beliefs(IDLE, READY), common.Sleep(), True, seen, seen)
    assert checked.broken == ()
    assert checked.model == beliefs(READY)


def test_a_look_that_no_alternative_explains_is_a_bug() -> None:
    seen = picture(view("alpha", "error"))
    checked = CONTRACT.check(beliefs(IDLE, READY), common.Sleep(), True, seen, seen)
    found = [item.rule for item in checked.broken]
    assert found == ["workers.error_has_cause", "workers.status_follows_model"]


def test_seeing_and_waiting_go_over_all_alternatives() -> None:
    seen = picture(view("alpha", "working"))
    due = model(belief("alpha", "working", due_at=1.0))
    assert CONTRACT.see(beliefs(due, WORKING), seen).alternatives == (
        due.see(seen),
        WORKING.see(seen),
    )
    assert CONTRACT.pending(beliefs(due), seen) == ("worker alpha is still working",)
    assert CONTRACT.pending(beliefs(due, WORKING), seen) == ()


# --- coverage ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "cell"),
    [
        (op.Start("alpha", "x"), ("idle", "Start", "none", "success")),
        (op.Start("beta", "x"), ("absent", "Start", "none", "success")),
        (common.ExpectError(op.Accept("alpha")), ("idle", "Accept", "none", "success")),
        (op.KillDaemon(), ("-", "KillDaemon", "KillDaemon", "success")),
        (common.CrashAt(op.Accept("alpha"), 3), ("idle", "Accept", "CrashAt", "success")),
        (op.Up(), ("-", "Up", "none", "success")),
    ],
    ids=str,
)
def test_the_coverage_cell(operation: Operation, cell: tuple[str, str, str, str]) -> None:
    found = CONTRACT.coverage(operation, HEALTHY, Verdict.SUCCESS, beliefs(IDLE))
    assert tuple(found[key] for key in ("status", "operation", "fault", "outcome")) == cell


def test_the_coverage_cell_names_the_last_fault_and_the_reviewed_worker() -> None:
    believed = model(belief(), last_reviewed="alpha", faults=('KillAgent("alpha")', "KillDaemon()"))
    found = CONTRACT.coverage(op.Reject("x"), HEALTHY, Verdict.EXPECTED, beliefs(believed))
    assert found["status"] == "idle"
    assert found["fault"] == "KillDaemon"
    assert CONTRACT.disturbed(beliefs(believed)) == believed.faults
