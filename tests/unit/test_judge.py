"""From an answer to a verdict: waits, refusals that were asked for, commands at once, and honesty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from builders import (
    CONTRACT,
    PATTERNS,
    TOKEN,
    belief,
    judge_answer,
    model,
    ok,
    picture,
    refused,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.judge import WorkersJudge
from mutiny.contracts.workers.looking import BOOK, Check
from mutiny.contracts.workers.model import Work, WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.judging import Judged
from mutiny.kit.operations import CrashAt
from mutiny.model.operation import Operation
from mutiny.model.pace import Pace
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

NOW = 2000.0
HEALTHY = picture(view())


def judge(
    believed: WorkersModel,
    operation: Operation,
    result: OperationResult,
    seen: Observation = HEALTHY,
    before: Observation | None = None,
) -> Judged[WorkersModel]:
    looked = seen if before is None else before
    return judge_answer(believed, operation, result, looked, seen, PATTERNS, NOW)


def verdict(answer: Judged[WorkersModel]) -> tuple[Verdict, str | None]:
    violation = answer.violation
    return answer.verdict, violation.rule if violation else None


def message(answer: Judged[WorkersModel]) -> str:
    assert answer.violation is not None
    return answer.violation.message


def timed_out(text: str = "alpha is working") -> OperationResult:
    return OperationResult(None, stderr=text, timed_out=True, duration_ms=15_000)


SUCCESS = (Verdict.SUCCESS, None)
EXPECTED = (Verdict.EXPECTED, None)
INCONCLUSIVE = (Verdict.INCONCLUSIVE, None)


def bug(rule: str) -> tuple[Verdict, str]:
    return Verdict.BUG, f"workers.{rule}"


# --- plain commands -------------------------------------------------------------------------------


def test_a_command_that_works_moves_the_beliefs() -> None:
    seen = picture(view("alpha", "working"))
    answer = judge(model(belief()), op.Start("alpha", "x"), ok(tokens=(TOKEN,)), seen, HEALTHY)
    assert verdict(answer) == SUCCESS
    assert answer.models[0].work[TOKEN] == Work(TOKEN, "task", "alpha", said="x")
    assert answer.models[0].workers["alpha"].statuses == {"working"}


def test_a_point_that_was_not_reached_leaves_a_command_that_ran() -> None:
    seen = picture(view("alpha", "working"))
    ran = replace(ok(tokens=(TOKEN,)), exit_code=1, fired=False, inner=(ok(tokens=(TOKEN,)),))
    point = CrashAt(op.Start("alpha", "x"), 99)
    answer = judge(model(belief()), point, ran, seen, HEALTHY)
    assert verdict(answer) == INCONCLUSIVE
    assert answer.models[0].workers["alpha"].statuses == {"working"}


def test_a_refused_task_is_no_work() -> None:
    before = model(belief("alpha", "working"))
    seen = picture(view("alpha", "working"))
    answer = judge(
        before, op.Start("alpha", "x"), refused("Worker 'alpha' is not idle", tokens=(TOKEN,)), seen
    )
    assert verdict(answer) == EXPECTED
    assert answer.models[0].work == {}


@pytest.mark.parametrize(
    "operation",
    [
        op.Start("nobody", "x"),
        op.Message("nobody", "x"),
        op.Review("nobody"),
        op.Accept("nobody"),
        op.Rebase("nobody"),
        op.ResetWorker("nobody"),
        op.Nuke("nobody"),
        op.Reject("x"),
    ],
    ids=str,
)
@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "expected"])
def test_a_target_that_always_says_yes_is_caught(operation: Operation, wrapped: bool) -> None:
    """And does not bring Mutiny down with it."""
    asked = common.ExpectError(operation) if wrapped else operation
    result = ok(tokens=(TOKEN,))
    answer = judge(model(belief()), asked, replace(result, inner=(result,) if wrapped else ()))
    assert verdict(answer) == bug("rejects_illegal")


def test_what_was_seen_before_the_command_counts() -> None:
    believed = model(belief("alpha", "working"))
    result = refused("Worker 'alpha' is not in needs_review state (status: working)")
    ready = picture(view("alpha", "needs_review"))
    busy = picture(view("alpha", "working"))
    assert verdict(judge(believed, op.Accept("alpha"), result, ready, busy)) == EXPECTED
    assert verdict(judge(believed, op.Accept("alpha"), result, ready, ready)) == bug("serves_legal")


def test_the_answer_names_what_was_expected() -> None:
    answer = judge(model(belief()), op.Accept("alpha"), ok())
    assert "idle" in answer.reason


@pytest.mark.parametrize("name", ["auto-1", "a b"])
def test_a_name_that_was_taken_may_not_be_called_bad_later(name: str) -> None:
    no = refused("nobody here may have such a name")
    assert verdict(judge(model(), op.Add(name), no)) == EXPECTED
    assert verdict(judge(model(belief(name)), op.Nuke(name), no)) == bug("fails_clearly")
    assert verdict(judge(model(), op.Nuke(name), no)) == EXPECTED


# --- waits ----------------------------------------------------------------------------------------


def waiting(status: str, **changes: object) -> WorkersModel:
    return model(belief("alpha", status, **changes))


def test_a_wait_that_is_over_is_believed() -> None:
    seen = picture(view("alpha", "needs_review"))
    answer = judge(waiting("working", due_at=1.0), op.WaitForNeedsReview("alpha"), ok(), seen)
    assert verdict(answer) == SUCCESS
    assert answer.models[0].workers["alpha"].statuses == {"needs_review"}


def test_work_that_was_due_and_does_not_come_is_a_bug() -> None:
    seen = picture(view("alpha", "working"))
    answer = judge(
        waiting("working", due_at=1.0), op.WaitForNeedsReview("alpha"), timed_out(), seen
    )
    assert verdict(answer) == bug("completes")
    assert "stays working" in message(answer)


def test_work_that_was_never_due_is_only_late() -> None:
    seen = picture(view("alpha", "working"))
    answer = judge(
        waiting("working", behaviours=("hang",)), op.WaitForNeedsReview("alpha"), timed_out(), seen
    )
    assert verdict(answer) == (Verdict.INCONCLUSIVE, None)


@pytest.mark.parametrize(
    ("agents", "waited_s", "expected"),
    [((), 60.0, bug("recovers")), ((), 1.0, INCONCLUSIVE), (None, 60.0, INCONCLUSIVE)],
    ids=["its agent is gone", "not for long", "nobody could look"],
)
def test_work_of_which_the_agent_is_gone_for_good_is_a_bug(
    agents: tuple[()] | None, waited_s: float, expected: tuple[Verdict, str | None]
) -> None:
    seen = picture(view("alpha", "working"), agents=agents)
    late = replace(timed_out(), duration_ms=1000 * waited_s)
    believed = waiting("working", behaviours=("crash-in-commit",))
    assert verdict(judge(believed, op.WaitForNeedsReview("alpha"), late, seen)) == expected


@pytest.mark.parametrize(("waited_s", "expected"), [(31.0, bug("recovers")), (29.0, INCONCLUSIVE)])
def test_a_wait_is_judged_at_the_pace_that_it_waited_at(
    waited_s: float, expected: tuple[Verdict, str | None]
) -> None:
    """The machine is busier by the time somebody looks: that takes nothing from what was waited for."""
    seen = replace(picture(view("alpha", "working"), agents=()), pace=Pace(crowding=4.0))
    late = replace(timed_out(), duration_ms=1000 * waited_s, details={"stretch": 2.0})
    believed = waiting("working", behaviours=("crash-in-commit",))
    assert verdict(judge(believed, op.WaitForNeedsReview("alpha"), late, seen)) == expected


@pytest.mark.parametrize("status", ["offline", "idle"])
def test_a_worker_that_does_not_come_back_is_a_bug(status: str) -> None:
    seen = picture(view("alpha", status), agents=())
    believed = waiting("idle", offline_allowed=True)
    assert verdict(judge(believed, op.WaitForIdle("alpha"), timed_out(), seen)) == bug("recovers")


def test_a_worker_that_vanished_does_not_come_back_either() -> None:
    answer = judge(waiting("idle"), op.WaitForIdle("alpha"), timed_out(), picture())
    assert verdict(answer) == bug("recovers")


def test_a_status_that_had_to_come_is_a_bug_when_it_does_not() -> None:
    answer = judge(
        waiting("rebasing"),
        op.WaitForState("alpha", "rebasing"),
        timed_out(),
        picture(view("alpha", "needs_review")),
    )
    assert verdict(answer) == bug("status_follows_model")


def test_an_error_that_nothing_explains_is_a_bug() -> None:
    seen = picture(view("alpha", "error", error_reason="out of paper"))
    result = OperationResult(1, stderr="alpha entered the error state: out of paper")
    answer = judge(waiting("working", due_at=1.0), op.WaitForNeedsReview("alpha"), result, seen)
    assert verdict(answer) == bug("completes")
    assert "out of paper" in message(answer)


@pytest.mark.parametrize(
    "excuse", [{"hits": 2}, {"behaviours": ("exit",)}, {"behaviours": ("give-up", "obey")}]
)
def test_an_error_that_the_model_allows_is_no_bug_but_proves_nothing(
    excuse: dict[str, object],
) -> None:
    """After two faults on one task a target may give up and say so."""
    seen = picture(view("alpha", "error"))
    result = OperationResult(1, stderr="alpha entered the error state")
    answer = judge(
        waiting("working", due_at=1.0, **excuse), op.WaitForNeedsReview("alpha"), result, seen
    )
    assert verdict(answer) == INCONCLUSIVE


def test_waiting_for_an_error_is_fine() -> None:
    seen = picture(view("alpha", "error"))
    answer = judge(waiting("working", hits=2), op.WaitForState("alpha", "error"), ok(), seen)
    assert verdict(answer) == SUCCESS


def test_without_a_daemon_a_late_wait_is_only_late() -> None:
    believed = replace(waiting("working", due_at=1.0), daemon=frozenset({False}))
    seen = picture(view("alpha", "working"), daemons=())
    answer = judge(believed, op.WaitForNeedsReview("alpha"), timed_out(), seen)
    assert verdict(answer) == (Verdict.INCONCLUSIVE, None)


def test_waiting_for_nobody_is_only_late() -> None:
    answer = judge(model(), op.WaitForIdle("nobody"), timed_out(), picture())
    assert verdict(answer) == (Verdict.INCONCLUSIVE, None)


@pytest.mark.parametrize(
    "operation", [op.WaitForIdle("alpha"), common.Settle(), op.AssertState("alpha", "idle")]
)
def test_a_step_that_could_not_be_done_is_inconclusive(operation: Operation) -> None:
    result = OperationResult(None, harness_error="the box is gone", timed_out=True)
    assert verdict(judge(model(belief()), operation, result)) == INCONCLUSIVE


# --- settle and assertions ------------------------------------------------------------------------


def test_a_system_that_settles_is_well() -> None:
    believed = model(
        belief("alpha", "working", due_at=1.0, disturbed="KillAgent", offline_allowed=True),
        faults=("KillAgent(...)",),
    )
    seen = picture(view("alpha", "needs_review"))
    answer = judge(believed, common.Settle(), ok(), seen)
    assert verdict(answer) == SUCCESS
    assert answer.models[0].faults == ()
    assert answer.models[0].allowed("alpha") == {"needs_review"}


def test_a_system_that_does_not_settle_is_a_bug_and_says_what_is_missing() -> None:
    believed = model(belief("alpha", "working", due_at=1.0), belief("beta"))
    seen = picture(view("alpha", "working"), view("beta", "offline"))
    answer = judge(believed, common.Settle(), timed_out("pending"), seen)
    assert verdict(answer) == bug("recovers")
    assert "alpha is still working" in message(answer)
    assert "beta is offline" in message(answer)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        (op.AssertState("alpha", "idle"), "worker alpha is working, not idle"),
        (op.AssertWorkerExists("alpha"), "worker alpha is not in the state"),
        (op.AssertSessionAlive("alpha"), "no session for worker alpha"),
    ],
)
def test_an_assertion_that_does_not_hold_is_a_bug(operation: Operation, text: str) -> None:
    answer = judge(model(belief()), operation, OperationResult(1, stderr=text))
    assert verdict(answer) == (Verdict.BUG, "workers.assertion")
    assert text in message(answer)
    assert verdict(judge(model(belief()), operation, ok())) == SUCCESS


# --- refusals that a scenario asks for ------------------------------------------------------------


def expected_error(
    believed: WorkersModel, inner: Operation, result: OperationResult
) -> Judged[WorkersModel]:
    return judge(believed, common.ExpectError(inner), replace(result, inner=(result,)))


def test_the_refusal_that_was_asked_for() -> None:
    believed = model(belief())
    answer = expected_error(
        believed,
        op.Accept("alpha"),
        refused("Worker 'alpha' is not in needs_review state (status: idle)"),
    )
    assert verdict(answer) == EXPECTED
    assert answer.models[0] == believed.see(HEALTHY)


def test_success_is_not_what_was_asked_for() -> None:
    answer = expected_error(model(belief()), op.Start("alpha", "x"), ok(tokens=(TOKEN,)))
    assert verdict(answer) == bug("rejects_illegal")


def test_where_the_pace_decides_the_scenario_insists_on_the_refusal() -> None:
    believed = model(belief("alpha", "working"))
    accept = op.Accept("alpha")
    text = "Worker 'alpha' is not in needs_review state (status: working)"
    assert verdict(expected_error(believed, accept, refused(text))) == EXPECTED
    assert verdict(expected_error(believed, accept, ok())) == bug("rejects_illegal")


def test_the_reason_must_be_true_all_the_same() -> None:
    answer = expected_error(
        model(belief()), op.Accept("alpha"), refused("Worker 'alpha' does not exist")
    )
    assert verdict(answer) == (Verdict.BUG, "workers.rejects_truthfully")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (refused("disk on fire"), bug("fails_clearly")),
        (OperationResult(None, signal=11), bug("no_crash")),
        (timed_out(), (Verdict.TIMEOUT, "workers.answers_in_time")),
        (OperationResult(1, harness_error="no"), INCONCLUSIVE),
    ],
)
def test_other_failures_are_no_refusals(
    result: OperationResult, expected: tuple[Verdict, str | None]
) -> None:
    assert verdict(expected_error(model(belief()), op.Accept("alpha"), result)) == expected


def test_words_that_nobody_told_of_accuse_nobody() -> None:
    """Where a refusal is right and the file has no words for it, its writer is asked, not the target."""
    few = WorkersContract(patterns={"no_such_worker": PATTERNS["no_such_worker"]})
    asked = WorkersJudge(few, HEALTHY, HEALTHY, NOW)
    believed = model(belief())
    unheard = asked.judge(believed, op.Accept("alpha"), refused("alpha has nothing for you"))
    assert (unheard.verdict, unheard.violation) == (Verdict.INCONCLUSIVE, None)
    assert "[rejections]" in unheard.reason
    silent = asked.judge(believed, op.Accept("alpha"), OperationResult(1))
    assert verdict(silent) == bug("fails_clearly"), "who says nothing has failed without a word"
    known = asked.judge(believed, op.Nuke("nobody"), refused("nobody is not here, sorry"))
    assert verdict(known) == bug("fails_clearly"), "of this the file tells how it sounds"
    due = asked.judge(believed, op.Nuke("alpha"), refused("I would rather not"))
    assert verdict(due) == bug("fails_clearly"), "no refusal at all would be right"


def test_who_removes_what_half_a_command_left_is_right() -> None:
    believed = model(belief())
    asked = WorkersJudge(CONTRACT, HEALTHY, picture(), NOW)
    gone = model()
    assert verdict(judge(gone, op.Nuke("alpha"), ok())) == bug("rejects_illegal")
    broken_off = asked.unknown(believed, op.Nuke("alpha"), asked.moment(refused("disk full")))
    left = next(one for one in broken_off if "alpha" in one.unfinished)
    again = judge(left, op.Nuke("alpha"), ok(), picture())
    assert verdict(again) == SUCCESS
    assert (
        verdict(judge(left, op.Nuke("alpha"), refused("Worker 'alpha' does not exist"))) == EXPECTED
    )
    third = judge(again.models[0], op.Nuke("alpha"), ok(), picture())
    assert verdict(third) == bug("rejects_illegal"), "nothing is left by now"
    never = asked.unknown(gone, op.Add("alpha"), asked.moment(refused("killed")))
    assert any("alpha" in one.unfinished for one in never)


# --- commands at once -----------------------------------------------------------------------------

NOT_READY = refused("Worker 'alpha' is not in needs_review state (status: idle)")
ACCEPTS = common.Parallel((op.Accept("alpha"), op.Accept("alpha")))


def accepted_at_once(
    *answers: OperationResult, stale: bool = False, status: str = "idle"
) -> Judged[WorkersModel]:
    worker = belief("alpha", "needs_review", tokens=(TOKEN,), stale_base=stale)
    believed = model(worker, work=(Work(TOKEN, "task", "alpha"),))
    return judge(
        believed,
        ACCEPTS,
        OperationResult(inner=answers),
        picture(view("alpha", status)),
        picture(view("alpha", "needs_review")),
    )


@pytest.mark.parametrize("answers", [(ok(), NOT_READY), (NOT_READY, ok())])
def test_exactly_one_of_two_accepts_may_win(answers: tuple[OperationResult, ...]) -> None:
    answer = accepted_at_once(*answers)
    assert verdict(answer) == SUCCESS
    assert answer.models[0].work[TOKEN].fate == "merged"


def test_both_accepts_cannot_win() -> None:
    answer = accepted_at_once(ok(), ok())
    assert verdict(answer) == (Verdict.BUG, "workers.parallel_is_serial")
    assert "exit 0" in message(answer)


def test_both_accepts_cannot_lose() -> None:
    assert verdict(accepted_at_once(NOT_READY, NOT_READY)) == bug("parallel_is_serial")


def test_a_conflict_merges_nothing_also_when_two_accepts_met_it() -> None:
    busy = refused("Worker 'alpha' is not in needs_review state (status: rebasing)")
    answer = accepted_at_once(ok(), busy, stale=True, status="rebasing")
    assert verdict(answer) == SUCCESS
    assert answer.models[0].work[TOKEN].fate == "open"
    merged = accepted_at_once(ok(), NOT_READY, stale=True, status="idle")
    assert merged.models[0].work[TOKEN].fate == "merged"


def test_the_order_is_found_wherever_it_is() -> None:
    """The reset came first though it is written last: then the add was right to succeed."""
    parts = common.Parallel((op.Add("alpha"), op.Start("alpha", "x"), op.Nuke("alpha")))
    answers = (ok(), ok(tokens=(TOKEN,)), ok())
    answer = judge(
        model(belief("alpha", "needs_review")),
        parts,
        OperationResult(inner=answers),
        picture(view("alpha", "working")),
        picture(view("alpha", "needs_review")),
    )
    assert verdict(answer) == SUCCESS
    assert answer.models[0].workers["alpha"].tokens == (TOKEN,)


def test_two_starts_give_one_task() -> None:
    parts = common.Parallel((op.Start("alpha", "x"), op.Start("alpha", "y")))
    late = refused("Worker 'alpha' is not idle (status: working)", tokens=("MT-0-2",))
    answer = judge(
        model(belief()),
        parts,
        OperationResult(inner=(ok(tokens=(TOKEN,)), late)),
        picture(view("alpha", "working")),
        HEALTHY,
    )
    assert verdict(answer) == SUCCESS
    assert set(answer.models[0].work) == {TOKEN}


def test_down_and_up_at_once_have_an_order() -> None:
    parts = common.Parallel((op.Up(), op.Down()))
    for seen, answers in (
        (HEALTHY, (ok(), ok())),
        (picture(view(), daemons=()), (refused("Daemon is already running"), ok())),
    ):
        result = OperationResult(inner=answers)
        assert verdict(judge(model(belief()), parts, result, seen, HEALTHY)) == SUCCESS


@pytest.mark.parametrize(
    ("worse", "expected"),
    [
        (OperationResult(None, signal=6), bug("no_crash")),
        (refused("disk on fire"), bug("fails_clearly")),
        (timed_out(), (Verdict.TIMEOUT, "workers.answers_in_time")),
        (OperationResult(1, harness_error="no"), INCONCLUSIVE),
    ],
)
def test_a_part_that_fails_by_itself_is_told_as_that(
    worse: OperationResult, expected: tuple[Verdict, str | None]
) -> None:
    assert verdict(accepted_at_once(ok(), worse)) == expected
    assert verdict(accepted_at_once(worse, ok())) == expected


def test_a_part_that_is_wrong_alike_in_every_order_is_told_as_that() -> None:
    believed = replace(model(belief()), daemon=frozenset({False}))
    parts = common.Parallel((op.Up(), op.Rebase("nobody")))
    answers = (refused("Daemon is already running"), refused("Worker 'nobody' does not exist"))
    answer = judge(believed, parts, OperationResult(inner=answers), picture(view(), daemons=()))
    assert verdict(answer) == bug("rejects_truthfully")
    assert "Up() was refused" in message(answer)


def test_a_part_without_an_answer_is_inconclusive() -> None:
    assert verdict(accepted_at_once(ok())) == INCONCLUSIVE
    answer = judge(
        model(belief("alpha", "needs_review")), ACCEPTS, OperationResult(1, harness_error="no")
    )
    assert verdict(answer) == INCONCLUSIVE


# --- a command while something hangs --------------------------------------------------------------


def paused(
    result: OperationResult, *, fired: bool = True, inner: bool = True
) -> Judged[WorkersModel]:
    operation = op.PauseProcess("daemon", 0.4, during=op.Message("alpha", "x"))
    whole = replace(result, inner=(result,) if inner else (), fired=fired)
    seen = picture(view("alpha", "working"))
    return judge(model(belief("alpha", "working")), operation, whole, seen)


def test_during_a_pause_a_command_may_work_or_say_why_not() -> None:
    assert verdict(paused(ok(tokens=(TOKEN,)))) == SUCCESS
    for text in ("Daemon is not running", "state is locked by pid 7", "1 problem found"):
        assert verdict(paused(refused(text))) == EXPECTED


def test_during_a_pause_a_command_may_not_lie() -> None:
    assert verdict(paused(refused("Worker 'alpha' does not exist"))) == bug("rejects_truthfully")
    assert verdict(paused(OperationResult(None, signal=11))) == bug("no_crash")


@pytest.mark.parametrize(("fired", "inner"), [(False, True), (True, False)])
def test_a_pause_that_did_not_happen_proves_nothing(fired: bool, inner: bool) -> None:
    assert verdict(paused(ok(), fired=fired, inner=inner)) == INCONCLUSIVE


def test_a_pause_is_remembered_as_a_fault() -> None:
    assert len(paused(ok(tokens=(TOKEN,))).models[0].faults) == 1


# --- honesty --------------------------------------------------------------------------------------

DEAD = picture(view(), daemons=(), daemon_flag=True)
DOWN = picture(view("alpha", "offline"), daemons=(), daemon_flag=False)


def status(
    claim: object, seen: Observation, before: Observation | None = None
) -> Judged[WorkersModel]:
    believed = model(belief(offline_allowed=True), daemon=frozenset({True, False}))
    return judge(believed, op.Status(), ok(details={"daemon_running": claim}), seen, before)


@pytest.mark.parametrize(("claim", "seen"), [(True, DOWN), (False, HEALTHY)])
def test_status_may_not_lie_about_the_daemon(claim: bool, seen: Observation) -> None:
    answer = status(claim, seen)
    assert verdict(answer) == (Verdict.BUG, "workers.status_is_honest")


@pytest.mark.parametrize(("claim", "seen"), [(True, HEALTHY), (False, DOWN), (None, HEALTHY)])
def test_status_that_is_true_or_says_nothing(claim: object, seen: Observation) -> None:
    assert verdict(status(claim, seen)) == SUCCESS


def test_status_is_not_blamed_for_what_changed_meanwhile() -> None:
    assert verdict(status(True, DOWN, HEALTHY)) == SUCCESS
    assert verdict(status(False, HEALTHY, DOWN)) == SUCCESS


@pytest.mark.parametrize("claim", [True, False])
def test_status_is_not_blamed_when_the_processes_could_not_be_seen(claim: bool) -> None:
    blind = picture(view(), daemons=None)
    assert verdict(status(claim, blind)) == SUCCESS
    assert verdict(status(claim, blind, HEALTHY)) == SUCCESS
    assert verdict(status(claim, HEALTHY, blind)) == SUCCESS


def doctor(
    seen: Observation, before: Observation | None = None, *, repair: bool = False
) -> Judged[WorkersModel]:
    believed = model(belief(), faults=("KillDaemon()",), daemon=frozenset({False}))
    return judge(believed, op.Doctor(repair=repair, yes=repair), ok(), seen, before)


UNREADABLE = picture(state_error="not valid JSON")


@pytest.mark.parametrize("seen", [DEAD, UNREADABLE], ids=["dead daemon", "unreadable state"])
def test_doctor_may_not_call_healthy_what_is_visibly_ill(seen: Observation) -> None:
    assert verdict(doctor(seen)) == (Verdict.BUG, "workers.health_is_honest")
    assert verdict(doctor(seen, repair=True)) == (Verdict.BUG, "workers.repair_is_honest")


def test_doctor_is_right_when_all_is_well_or_has_become_so() -> None:
    assert verdict(doctor(HEALTHY)) == SUCCESS
    assert verdict(doctor(HEALTHY, DEAD)) == SUCCESS
    assert verdict(doctor(DEAD, HEALTHY)) == SUCCESS
    assert verdict(doctor(HEALTHY, DEAD, repair=True)) == SUCCESS


def test_a_repair_is_judged_by_what_is_there_afterwards() -> None:
    assert verdict(doctor(DEAD, HEALTHY, repair=True)) == bug("repair_is_honest")


def test_doctor_is_not_blamed_when_the_processes_could_not_be_seen() -> None:
    blind = picture(view(), daemons=None, daemon_flag=True)
    assert verdict(doctor(blind)) == SUCCESS
    assert verdict(doctor(blind, repair=True)) == SUCCESS


@pytest.mark.parametrize("repair", [True, False])
def test_a_doctor_may_not_complain_and_end_well(repair: bool) -> None:
    said = ok(stdout="1 problem found")
    answer = judge(model(belief()), op.Doctor(repair=repair, yes=repair), said, HEALTHY)
    assert verdict(answer) == (Verdict.BUG, "workers.doctor_agrees")
    fine = judge(model(belief()), op.Doctor(repair=repair, yes=repair), ok(stdout="well"), HEALTHY)
    assert verdict(fine) == SUCCESS


def test_a_doctor_that_complains_claims_nothing() -> None:
    believed = model(belief(), faults=("KillDaemon()",), daemon=frozenset({False}))
    answer = judge(believed, op.Doctor(), refused("1 problem found"), DEAD)
    assert verdict(answer) == EXPECTED


SESSIONLESS = picture(view(), sessions=frozenset(), agents=(), daemons=(), daemon_flag=False)


def test_doctor_sees_an_agent_that_died_while_no_daemon_runs() -> None:
    assert verdict(doctor(SESSIONLESS)) == (Verdict.BUG, "workers.health_is_honest")
    assert verdict(doctor(replace(SESSIONLESS, sessions=HEALTHY.sessions), HEALTHY)) == SUCCESS
    attended = replace(SESSIONLESS, daemons=HEALTHY.daemons, daemon_flag=True)
    assert verdict(doctor(attended)) == SUCCESS, "its daemon may be about to put it right"


def told(workers: object, seen: Observation = HEALTHY, before: Observation | None = None) -> object:
    result = replace(ok(), details={"daemon_running": True, "workers": workers})
    return verdict(judge(model(belief()), op.Status(), result, seen, before))


def test_status_tells_of_workers_as_the_state_does() -> None:
    shown = view().as_json()
    assert told({"alpha": shown}) == SUCCESS
    lie = (Verdict.BUG, "workers.status_is_honest")
    assert told({"alpha": {**shown, "status": "working"}}) == lie
    assert told({}) == lie
    assert told("no workers in it") == lie
    working = picture(view("alpha", "working"))
    assert told({"alpha": shown}, working, HEALTHY) == SUCCESS, "it changed meanwhile"


def test_an_answer_of_fields_is_held_to_what_is_seen() -> None:
    idle = model(belief())
    untrue = (Verdict.BUG, "workers.answers_truly")
    reset = op.ResetWorker("alpha")
    right = f'{{"worker": "alpha", "branch": "{view().branch}"}}'
    assert verdict(judge(idle, reset, replace(ok(), stdout=right))) == SUCCESS
    assert verdict(judge(idle, reset, replace(ok(), stdout='{"worker": "beta"}'))) == untrue
    wrong = '{"worker": "alpha", "branch": "elsewhere"}'
    assert verdict(judge(idle, reset, replace(ok(), stdout=wrong))) == untrue
    assert verdict(judge(idle, reset, replace(ok(), stdout="Reset worker beta"))) == SUCCESS
    for status, expected in (("idle", SUCCESS), ("needs_review", untrue), ("unheard-of", SUCCESS)):
        was = f'{{"worker": "alpha", "previous_status": "{status}"}}'
        assert verdict(judge(idle, reset, replace(ok(), stdout=was))) == expected


@pytest.mark.parametrize(
    ("told", "right"), [('{"pid": 100}', True), ('{"pid": 7}', False), ("null", False)]
)
def test_status_tells_of_the_daemon_that_runs(told: str, right: bool) -> None:
    assert HEALTHY.daemons is not None
    assert HEALTHY.daemons[0].pid == 100
    result = replace(ok(), stdout=f'{{"daemon": {told}}}')
    found = verdict(judge(model(belief()), op.Status(), result))
    assert found == (SUCCESS if right else (Verdict.BUG, "workers.answers_truly"))


def misused(answer: OperationResult, operation: Operation | None = None) -> Judged[WorkersModel]:
    wrong = common.Misuse(operation or op.Nuke("alpha"))
    return judge(model(belief()), wrong, replace(answer, inner=(answer,)))


def test_a_command_said_wrongly_may_be_refused_in_any_words() -> None:
    refused_it = misused(OperationResult(2, stderr="usage: boat [--yes]"))
    assert verdict(refused_it) == EXPECTED
    assert [list(one.workers) for one in refused_it.models] == [["alpha"]]


def test_a_command_said_wrongly_may_be_taken_as_it_was_meant() -> None:
    taken = misused(ok())
    assert verdict(taken) == SUCCESS
    assert {"alpha" in one.workers for one in taken.models} == {True, False}


def test_what_nobody_has_said_yes_to_has_not_happened() -> None:
    """A program may call that a good end."""
    for answer in (ok(), OperationResult(2, stderr="Say --yes when nobody can be asked")):
        wrong = common.Misuse(op.Nuke("alpha"), common.UNCONFIRMED)
        found = judge(model(belief()), wrong, replace(answer, inner=(answer,)))
        assert verdict(found) == EXPECTED
        assert [list(one.workers) for one in found.models] == [["alpha"]]


def test_with_which_model_a_worker_was_added_is_unknown_when_it_was_said_wrongly() -> None:
    added = [
        one.workers["beta"] for one in misused(ok(), op.Add("beta")).models if "beta" in one.workers
    ]
    assert [one.model for one in added] == [""]


def test_a_command_said_wrongly_does_not_crash_and_says_something() -> None:
    crashed = OperationResult(
        1, stderr='Traceback (most recent call last):\n  File "x"\nKeyError: 1'
    )
    assert verdict(misused(crashed)) == (Verdict.BUG, "workers.no_crash")
    assert verdict(misused(OperationResult(1))) == (Verdict.BUG, "workers.fails_clearly")


def test_a_stop_that_failed_under_a_fault_may_have_reached_the_daemon() -> None:
    stopped = faults.Forbid(what="all", during=op.Down())
    result = OperationResult(inner=(refused("config cannot be read"),), fired=True)
    answer = judge(model(belief()), stopped, result, HEALTHY, HEALTHY)
    assert all(one.daemon_told for one in answer.models)
    later = Check(answer.models[0], picture(view(), daemons=()), HEALTHY, op.Status())
    survives, _ = BOOK.rules["workers.daemon_survives"]
    assert not list(survives(later))
    sure = replace(answer.models[0], daemon_told=False)
    assert list(survives(replace(later, model=sure)))


def test_who_is_in_doubt_expects_no_refusal() -> None:
    for doubted, expected in ((True, INCONCLUSIVE), (False, bug("rejects_illegal"))):
        believed = replace(model(belief()), doubted=doubted)
        result = OperationResult(inner=(ok(),))
        answer = judge(believed, common.ExpectError(op.Up()), result, HEALTHY, HEALTHY)
        assert verdict(answer) == expected
