"""Each promise of a board: a case that breaks it and one that comes close."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from mutiny.contracts.board import invariants
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.damage import hurt
from mutiny.contracts.board.invariants import INVARIANTS, Check, answers_in_time
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import AgentRun, BoardObservation, TaskView
from mutiny.contracts.board.profile import BoardProfile, Figures
from mutiny.contracts.board.rules import RULES
from mutiny.contracts.board.tasks import Breaker, Bucket, Leader, Task
from mutiny.kit.beliefs import Beliefs, Span
from mutiny.kit.faults import DamageFile
from mutiny.kit.operations import CrashAt, Parallel
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

NOW = 100.0
PROFILE = BoardProfile(figures=Figures(), breaker=True)


def board(*tasks: Task, **changes: object) -> BoardModel:
    """Beliefs in these tasks, of a board that is there."""
    heard = {task.owner: Span(NOW, NOW) for task in tasks if task.owner}
    made = BoardModel(
        PROFILE, initialised=True, tasks={task.id: task for task in tasks}, heard=heard
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def held(name: str = "a", owner: str = "w1", epoch: int = 1, **changes: object) -> Task:
    task = Task(name, status="claimed", owner=owner, epoch=epoch, order=1)
    return replace(task, **changes)  # type: ignore[arg-type]


def view(task: Task, **changes: object) -> TaskView:
    """A task seen just as it is believed in."""
    seen = TaskView(
        task.id,
        task.status,
        task.owner,
        task.epoch,
        task.attempts,
        task.max_attempts,
        task.priority,
        task.depends,
        1 if task.status == "done" else 0,
        task.output,
    )
    return replace(seen, **changes)  # type: ignore[arg-type]


def picture(*views: TaskView, **changes: object) -> BoardObservation:
    seen = BoardObservation(NOW, NOW, NOW, {one.id: one for one in views}, absent=False, token=0)
    return replace(seen, **changes)  # type: ignore[arg-type]


def of(model: BoardModel, **changes: object) -> BoardObservation:
    """A picture of all that is believed."""
    return picture(*(view(task) for task in model.tasks.values()), **changes)


# --- state ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StateCase:
    """A rule, a picture that breaks it, and the same without the one fact that does."""

    rule: str
    broken: Check
    sound: Check


A, DONE = Task("a", order=1), Task("a", order=1, status="done", owner="w1", epoch=1, output="x")
B_AFTER_A = Task("b", depends=("a",), order=2, status="blocked")
ONE = board(A)
FREED = board(A, profile=replace(PROFILE, frees_owner=True))
HELD = board(held())
LIST = op.List()
TOLD = board(replace(A, size=10), profile=BoardProfile(tells_payload=True))
CALLED_OFF = board(replace(A, status="cancelled"))


def case(
    rule: str,
    model: BoardModel,
    seen: BoardObservation,
    operation: Operation = LIST,
    before: BoardObservation | None = None,
    sound: BoardObservation | None = None,
) -> StateCase:
    earlier = of(model) if before is None else before
    good = of(model) if sound is None else sound
    return StateCase(
        rule, Check(model, seen, earlier, operation), Check(model, good, earlier, operation)
    )


def run(pid: int, task: str = "a", **changes: object) -> AgentRun:
    """An agent of the board's own at work."""
    return replace(AgentRun("agent-1", task, (pid, 1), alive=True, busy=True), **changes)  # type: ignore[arg-type]


SETTLED = board(DONE, replace(DONE, id="b", depends=("a",)))
BATCH = op.AddBatch(("x", "y"))
BATCHED = board(Task("x", order=1), Task("y", order=2))
STATE_CASES = (
    case("state_readable", ONE, BoardObservation(state_error="torn", absent=False)),
    case("no_crash", ONE, BoardObservation(crash="List crashed: KeyError: 'a'", absent=False)),
    case(
        "answers_truly",
        TOLD,
        of(TOLD, agents=(run(1, told=9),)),
        sound=of(TOLD, agents=(run(1, told=10), run(2, busy=False))),
    ),
    case("answers_in_time", ONE, of(ONE, silent="list: busy")),
    case(
        "status_is_honest",
        replace(CALLED_OFF, profile=BoardProfile(keeps_reasons=True)),
        of(CALLED_OFF),
        op.Cancel("a"),
        sound=picture(view(replace(A, status="cancelled"), reason="told: nobody needs a")),
    ),
    case("add_kept", ONE, picture()),
    case("rejects_truthfully", ONE, picture(view(A), view(Task("z")))),
    case("batch_is_atomic", board(), picture(view(Task("x"))), BATCH, picture(), picture()),
    case("batch_is_atomic", BATCHED, picture(view(Task("x"))), BATCH, picture()),
    case("single_owner", HELD, picture(view(held(), owner=None))),
    case("single_owner", FREED, picture(view(A, owner="w1")), sound=picture(view(A))),
    case("claim_kept", HELD, picture(view(A, epoch=1)), op.Claim("w1"), picture(view(A))),
    case("live_worker_kept", HELD, picture(view(A, epoch=1)), op.Recover()),
    case("no_stuck_claim", board(replace(A, epoch=1)), of(HELD), op.Recover(), of(HELD)),
    case("completion_kept", board(DONE), of(HELD), op.Complete("w1", "a"), of(HELD)),
    case("completion_kept", board(DONE), picture(view(DONE, output="y"))),
    case("terminal_is_terminal", board(DONE), picture(view(DONE, status="cancelled"))),
    case(
        "stop_costs_nothing",
        board(A, at_stop={"a": 0}),
        picture(view(A, attempts=1)),
        op.Up(),
        sound=picture(view(A)),
    ),
    case(
        "dependencies_respected",
        board(A, B_AFTER_A),
        picture(view(A), view(B_AFTER_A, status="claimed", owner="w")),
    ),
    case(
        "all_settle",
        board(DONE, replace(B_AFTER_A, status="available")),
        picture(view(DONE), view(B_AFTER_A)),
    ),
    case(
        "dependencies_respected",
        board(A, B_AFTER_A),
        picture(view(A), view(B_AFTER_A, status="available")),
    ),
    case(
        "cycles_refused",
        board(A, B_AFTER_A),
        picture(view(A, depends=("b",), status="blocked"), view(B_AFTER_A)),
    ),
    case("tokens_grow", HELD, picture(view(held(), epoch=0)), before=of(HELD)),
    case("tokens_grow", HELD, picture(view(held(), owner="w2")), before=of(HELD)),
    case("tokens_grow", board(top_token=3), picture(token=2), sound=picture(token=3)),
    case(
        "attempts_bounded",
        board(replace(A, attempts=2)),
        picture(view(A, attempts=3)),
        sound=picture(view(A, attempts=2)),
    ),
    *(
        case("numbers_are_true", ONE, picture(view(A, **{name: 2})))
        for name in ("attempts", "priority", "max_attempts")
    ),
    case(
        "numbers_are_true",
        board(held(), given={("w1", "a"): (1,)}),
        picture(view(held(), epoch=2)),
        sound=picture(view(held(), epoch=1)),
    ),
    case("no_double_effect", board(DONE), picture(view(DONE, completions=2))),
    case("one_server", ONE, of(ONE, servers=2), sound=of(ONE, servers=1)),
    case("checkpoint_exact", ONE, picture(), op.Restore("c")),
    case("checkpoint_exact", ONE, picture(view(DONE)), op.Restore("c")),
    case("repair_keeps_data", ONE, picture(), op.Repair()),
    case("status_is_honest", HELD, picture(view(held(), status="in_progress"))),
    case(
        "one_run",
        HELD,
        of(HELD, agents=(run(7), run(8))),
        sound=of(HELD, agents=(run(7, busy=False, ended=3), run(8))),
    ),
    case(
        "dependencies_respected",
        SETTLED,
        of(SETTLED, agents=(run(7, ended=4), run(8, "b", begun=2, ended=5))),
        sound=of(SETTLED, agents=(run(7, ended=4), run(8, "b", begun=5, ended=6))),
    ),
)


def first_broken(check: Check) -> str | None:
    contract = BoardContract(PROFILE)
    found = contract.check(Beliefs((check.model,)), check.operation, True, check.before, check.seen)
    assert not found.unreadable
    shown = (*found.broken, *found.settling)
    return shown[0].rule if shown else None


@pytest.mark.parametrize("one", STATE_CASES, ids=lambda one: one.rule)
def test_a_broken_state_breaks_its_rule(one: StateCase) -> None:
    assert first_broken(one.broken) == f"board.{one.rule}"


@pytest.mark.parametrize("one", STATE_CASES, ids=lambda one: one.rule)
def test_what_comes_close_breaks_nothing(one: StateCase) -> None:
    assert first_broken(one.sound) in (None, "board.terminal_is_terminal")


def test_a_damaged_board_may_be_unreadable() -> None:
    model = board(A, damaged=True)
    seen = BoardObservation(state_error="garbage", absent=False)
    assert first_broken(Check(model, seen, of(model), op.List())) is None


def test_what_others_work_on_may_change() -> None:
    model = board(held(owner="s"), spawned={"s": "healthy"})
    seen = picture(view(DONE, owner="s", epoch=1), living=frozenset({"s"}))
    assert first_broken(Check(model, seen, of(model), op.List())) is None


def test_every_invariant_names_a_rule_that_exists() -> None:
    for invariant in INVARIANTS:
        assert invariant.__doc__
    assert {f"board.{one.rule}" for one in STATE_CASES} <= set(RULES)
    assert invariants.INVARIANTS


# --- answers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnswerCase:
    """An answer that breaks a rule, and one to the same command that does not."""

    rule: str
    model: BoardModel
    operation: Operation
    broken: dict[str, object]
    sound: dict[str, object] | None = None
    at: Span = field(default=Span(NOW, NOW + 0.1))


def ok(**said: object) -> dict[str, object]:
    return {"ok": True, **said}


def no(error: str) -> dict[str, object]:
    return {"ok": False, "error": error, "message": error}


LATE = Span(NOW + 60, NOW + 60.1)
RESTING = replace(A, attempts=1, rest=Span(NOW + 10, NOW + 12))
LED = board(leader=Leader("n1", 2, Span(NOW, NOW)), top_token=2, tokens={"n1": (2,), "n2": (1,)})
OPEN = Breaker(3, 0, Span(NOW, NOW))
HALF = Breaker(3, 0, Span(NOW - 50, NOW - 50), frozenset({"x"}))
LIMITED = replace(PROFILE, figures=Figures(rate_limit=0.01, rate_burst=2))
EMPTY = Bucket(0.0, 0.0, Span(NOW, NOW))
URGENT = Task("u", priority=1, order=2)
GIVEN = {("w1", "a"): (1,), ("w2", "a"): (1,)}
ANSWER_CASES = (
    AnswerCase(
        "live_worker_kept", HELD, op.Claim("w2"), ok(task="a", epoch=2), no("nothing_to_claim")
    ),
    AnswerCase(
        "terminal_is_terminal",
        board(DONE),
        op.Claim("w2", "a"),
        ok(task="a", epoch=2),
        no("task_not_available"),
    ),
    AnswerCase(
        "terminal_is_terminal", board(DONE), op.Cancel("a"), ok(task="a"), no("wrong_status")
    ),
    AnswerCase(
        "dependencies_respected",
        board(A, B_AFTER_A),
        op.Claim("w", "b"),
        ok(task="b", epoch=1),
        no("dependencies_open"),
    ),
    AnswerCase(
        "backs_off", board(RESTING), op.Claim("w"), ok(task="a", epoch=1), no("nothing_to_claim")
    ),
    AnswerCase(
        "priority_respected",
        board(A, URGENT),
        op.Claim("w"),
        ok(task="a", epoch=1),
        ok(task="u", epoch=1),
    ),
    AnswerCase(
        "no_stuck_claim", HELD, op.Claim("w2"), no("nothing_to_claim"), ok(task="a", epoch=2), LATE
    ),
    AnswerCase("serves_legal", ONE, op.Claim("w"), no("nothing_to_claim"), ok(task="a", epoch=1)),
    AnswerCase(
        "only_owner_completes",
        board(held(), given=GIVEN),
        op.Complete("w2", "a"),
        ok(task="a"),
        no("not_owner"),
    ),
    AnswerCase(
        "only_owner_completes",
        board(held(epoch=2), given=GIVEN),
        op.Complete("w1", "a"),
        ok(task="a"),
        no("stale_epoch"),
    ),
    AnswerCase(
        "no_double_effect",
        board(DONE, given=GIVEN),
        op.Complete("w1", "a"),
        ok(task="a"),
        no("wrong_status"),
    ),
    AnswerCase("cycles_refused", board(), op.AddBatch(("x:y", "y:x")), ok(), no("cycle")),
    AnswerCase(
        "cycles_refused",
        board(),
        op.AddTask("x", depends=("x",)),
        ok(task="x"),
        no("dependency_missing"),
    ),
    AnswerCase(
        "answers_truly",
        board(),
        op.AddBatch(("x", "y")),
        ok(tasks=["x"]),
        ok(tasks=["y", "x"]),
    ),
    AnswerCase(
        "answers_truly",
        ONE,
        op.Claim("w"),
        ok(task="a", epoch=1, description="task b"),
        ok(task="a", epoch=1, description="task a"),
    ),
    AnswerCase(
        "answers_truly",
        board(replace(A, size=3)),
        op.Claim("w"),
        ok(task="a", epoch=1, payload=".."),
        ok(task="a", epoch=1, payload="..."),
    ),
    AnswerCase(
        "answers_truly",
        board(held(), given=GIVEN),
        op.Complete("w1", "a"),
        ok(task="a", epoch=7),
        ok(task="a", epoch=1),
    ),
    AnswerCase(
        "answers_truly",
        board(A, profile=replace(PROFILE, answers={"Claim": ("task", "lease_s")})),
        op.Claim("w"),
        ok(task="a", epoch=1),
        ok(task="a", epoch=1, lease_s=PROFILE.figures.lease_s),
    ),
    AnswerCase(
        "answers_truly", board(), op.Elect("n1"), ok(node="n2", token=1), ok(node="n1", token=1)
    ),
    AnswerCase("answers_truly", ONE, op.AddUnnamed(), ok(task="a"), ok(task="task-2")),
    AnswerCase("serves_legal", ONE, op.AddUnnamed(), no("duplicate_id"), ok(task="task-2")),
    AnswerCase(
        "answers_truly",
        board(A, profile=replace(PROFILE, keeps_writes=True), writes=(("n1", 1, "x"),)),
        op.Status(),
        ok(writes=[]),
        ok(
            writes=[
                {"node": "n0", "token": 1, "text": "y"},
                {"node": "n1", "token": 1, "text": "x"},
            ]
        ),
    ),
    AnswerCase("rejects_illegal", ONE, op.AddTask("a"), ok(task="a"), no("duplicate_id")),
    AnswerCase("rejects_truthfully", ONE, op.AddTask("a"), no("cycle"), no("duplicate_id")),
    AnswerCase("fails_clearly", ONE, op.AddTask("b"), no("oops"), ok(task="b")),
    AnswerCase("state_readable", ONE, op.AddTask("b"), no("unreadable"), ok(task="b")),
    AnswerCase(
        "repair_keeps_data",
        board(A, damaged=True),
        op.Repair(),
        no("unreadable"),
        ok(),
    ),
    AnswerCase("one_leader", LED, op.Elect("n2"), ok(token=3), no("leader_exists")),
    AnswerCase("tokens_grow", replace(LED, leader=None), op.Elect("n2"), ok(token=2), ok(token=3)),
    AnswerCase(
        "tokens_grow",
        board(replace(A, epoch=4)),
        op.Claim("w"),
        ok(task="a", epoch=4),
        ok(task="a", epoch=5),
    ),
    AnswerCase("old_token_refused", LED, op.WriteAsLeader("n2"), ok(), no("stale_token")),
    AnswerCase(
        "old_token_refused", LED, op.WriteAsLeader("n1", stale=True), ok(), no("stale_token")
    ),
    AnswerCase(
        "breaker_opens",
        board(A, breaker=OPEN),
        op.Claim("w"),
        ok(task="a", epoch=1),
        no("breaker_open"),
    ),
    AnswerCase(
        "breaker_half_opens",
        board(A, breaker=HALF),
        op.Claim("w"),
        ok(task="a", epoch=1),
        no("breaker_open"),
    ),
    AnswerCase(
        "breaker_half_opens",
        board(A, breaker=OPEN),
        op.Claim("w"),
        no("breaker_open"),
        ok(task="a", epoch=1),
        LATE,
    ),
    AnswerCase("breaker_closes", ONE, op.Claim("w"), no("breaker_open"), ok(task="a", epoch=1)),
    AnswerCase(
        "rate_limit_holds",
        board(A, profile=LIMITED, buckets={"w": EMPTY}),
        op.Claim("w"),
        ok(task="a", epoch=1),
        no("rate_limited"),
    ),
    AnswerCase(
        "rate_limit_holds",
        board(A, profile=LIMITED),
        op.Claim("w"),
        no("rate_limited"),
        ok(task="a", epoch=1),
    ),
    AnswerCase(
        "status_is_honest",
        ONE,
        op.Status(),
        ok(counts={"available": 2}),
        ok(counts={"available": 1}),
    ),
)


def judged(model: BoardModel, operation: Operation, answer: dict[str, object], at: Span) -> object:
    result = OperationResult(
        0 if answer["ok"] else 1,
        stderr=str(answer.get("message", "")),
        details={"answer": answer, "invoked": at.earliest, "returned": at.latest},
    )
    look = of(model)
    return BoardContract(model.profile).judge(Beliefs((model,)), operation, result, look, look, NOW)


@pytest.mark.parametrize("one", ANSWER_CASES, ids=lambda one: f"{one.rule}-{one.operation.type}")
def test_a_wrong_answer_breaks_its_rule(one: AnswerCase) -> None:
    found = judged(one.model, one.operation, one.broken, one.at).violation  # type: ignore[attr-defined]
    assert found is not None
    assert found.rule == f"board.{one.rule}"


@pytest.mark.parametrize("one", ANSWER_CASES, ids=lambda one: f"{one.rule}-{one.operation.type}")
def test_the_right_answer_breaks_nothing(one: AnswerCase) -> None:
    assert one.sound is not None
    found = judged(one.model, one.operation, one.sound, one.at)
    assert found.violation is None  # type: ignore[attr-defined]
    assert found.verdict in (Verdict.SUCCESS, Verdict.EXPECTED)  # type: ignore[attr-defined]


def test_two_claims_at_once_get_two_tasks() -> None:
    contract = BoardContract(PROFILE)
    both = Parallel((op.Claim("w1"), op.Claim("w2")))
    details = {"answer": ok(task="a", epoch=1), "invoked": NOW, "returned": NOW}
    part = OperationResult(0, details=details)
    look = of(ONE)
    found = contract.judge(
        Beliefs((ONE,)), both, OperationResult(inner=(part, part)), look, look, NOW
    )
    assert found.violation is not None
    assert found.violation.rule == "board.single_owner"


@pytest.mark.parametrize("happened", [True, False])
def test_a_command_that_was_cut_off_has_happened_or_not(happened: bool) -> None:
    contract = BoardContract(PROFILE)
    point = CrashAt(op.AddTask("b"), 3)
    cut = OperationResult(0, fired=True, inner=(OperationResult(None, signal=9),))
    seen = picture(view(A), *([view(Task("b", order=2))] if happened else []))
    answered = contract.judge(Beliefs((ONE,)), point, cut, of(ONE), seen, NOW)
    assert answered.violation is None
    checked = contract.check(answered.model, point, True, of(ONE), seen)
    assert not checked.broken
    assert checked.model is not None
    assert [("b" in one.tasks) for one in checked.model.alternatives] == [happened]


def test_half_of_a_batch_is_neither() -> None:
    contract = BoardContract(PROFILE)
    point = CrashAt(op.AddBatch(("b", "c")), 3)
    cut = OperationResult(0, fired=True, inner=(OperationResult(None, signal=9),))
    seen = picture(view(A), view(Task("b", order=2)))
    answered = contract.judge(Beliefs((ONE,)), point, cut, of(ONE), seen, NOW)
    checked = contract.check(answered.model, point, True, of(ONE), seen)
    assert checked.broken[0].rule == "board.batch_is_atomic"


def test_an_acknowledgement_under_a_fault_counts() -> None:
    """The disk was full and the board said yes: then it must have happened."""
    from mutiny.kit.faults import FillDisk

    contract = BoardContract(PROFILE)
    fault = FillDisk(during=op.AddTask("b"))
    said = OperationResult(0, details={"answer": ok(task="b"), "invoked": NOW, "returned": NOW})
    result = replace(said, inner=(said,), fired=True)
    answered = contract.judge(Beliefs((ONE,)), fault, result, of(ONE), of(ONE), NOW)
    checked = contract.check(answered.model, fault, True, of(ONE), of(ONE))
    assert checked.broken[0].rule == "board.add_kept"


def test_a_fault_that_did_not_fire_proves_nothing() -> None:
    contract = BoardContract(PROFILE)
    result = OperationResult(1, fired=False)
    point = CrashAt(op.AddTask("b"), 3)
    found = contract.judge(Beliefs((ONE,)), point, result, of(ONE), of(ONE), NOW)
    assert found.verdict is Verdict.INCONCLUSIVE


def repaired(model: BoardModel, *names: str) -> list[str]:
    """The rules that a repair breaks which brings these tasks back."""
    contract = BoardContract(PROFILE)
    seen = picture(*(view(Task(name, order=place)) for place, name in enumerate(names, 1)))
    said = OperationResult(0, details={"answer": ok(), "invoked": NOW, "returned": NOW})
    damaged = replace(model, damaged=True)
    unreadable = picture(tasks=None, state_error="garbage")
    answered = contract.judge(Beliefs((damaged,)), op.Repair(), said, unreadable, seen, NOW)
    checked = contract.check(answered.model, op.Repair(), True, unreadable, seen)
    return [found.rule for found in checked.broken][:1]


def test_a_repair_may_take_back_only_what_nobody_was_told_of() -> None:
    contract = BoardContract(PROFILE)
    two = picture(view(A), view(Task("b", order=2)))
    point = CrashAt(op.AddTask("b"), 3)
    cut = OperationResult(0, fired=True, inner=(OperationResult(None, signal=9),))
    answered = contract.judge(Beliefs((ONE,)), point, cut, of(ONE), two, NOW)
    left = contract.check(answered.model, point, True, of(ONE), two).model
    assert left is not None
    (happened,) = left.alternatives
    assert repaired(happened, "a", "b") == []
    assert repaired(happened, "a") == [], "it was seen, but never acknowledged"
    assert repaired(happened, "b") == ["board.repair_keeps_data"]
    said = OperationResult(0, details={"answer": ok(task="c"), "invoked": NOW, "returned": NOW})
    judged = contract.judge(Beliefs((happened,)), op.AddTask("c"), said, two, two, NOW)
    (later,) = judged.model.alternatives
    assert repaired(later, "a", "b", "c") == []
    assert repaired(later, "a", "b") == ["board.repair_keeps_data"]
    assert repaired(later, "a") == ["board.repair_keeps_data"], "c was built on b"


# --- what others did meanwhile --------------------------------------------------------------------


def after(
    model: BoardModel, operation: Operation, answer: dict[str, object], at: Span
) -> BoardModel:
    found = judged(model, operation, answer, at)
    return found.model.alternatives[0]  # type: ignore[attr-defined, no-any-return]


def test_a_checkpoint_taken_while_others_work_may_hold_a_little_more() -> None:
    working = replace(HELD, spawned={"w": "healthy"})
    kept = after(working, op.Checkpoint("one"), ok(), Span(NOW, NOW))
    alone = replace(kept, spawned={}, tasks={"a": DONE})
    contract = BoardContract(PROFILE)
    done = picture(view(DONE))
    result = OperationResult(0, details={"answer": ok(tasks=1), "invoked": NOW, "returned": NOW})
    restored = contract.judge(Beliefs((alone,)), op.Restore("one"), result, done, done, NOW)
    assert restored.violation is None
    assert not contract.check(restored.model, op.Restore("one"), True, done, done).broken


def test_who_speaks_while_others_work_keeps_his_lease() -> None:
    working = replace(HELD, spawned={"w": "healthy"})
    later = Span(NOW + 1.5, NOW + 1.6)
    heard = after(working, op.Heartbeat("w1"), ok(), later)
    refused = after(working, op.Fail("w1", "b"), no("unknown_task"), later)
    assert heard.heard["w1"] == later
    assert refused.heard["w1"].latest == later.latest


def test_a_strange_name_may_be_refused_in_any_words_while_others_work() -> None:
    model = board(A, spawned={"s": "healthy"})
    said = {"ok": False, "message": "unknown option -zz9 of cancel"}
    assert judged(model, op.Cancel("-zz9"), said, Span(NOW, NOW + 0.1)).violation is None  # type: ignore[attr-defined]
    assert judged(model, op.Cancel("a"), said, Span(NOW, NOW + 0.1)).violation is not None  # type: ignore[attr-defined]


def test_how_often_others_failed_is_not_known_to_the_breaker() -> None:
    served = BoardContract(PROFILE).judge(
        Beliefs((ONE,)), op.SpawnWorker("w"), OperationResult(), of(ONE), of(ONE), NOW
    )
    assert served.model.alternatives[0].breaker.unsure


def test_a_board_that_is_hindered_may_have_no_time() -> None:
    seen = of(ONE, silent="list: busy")
    for hindered in (replace(ONE, damaged=True), replace(ONE, faults=("FillDisk",))):
        assert not list(answers_in_time(Check(hindered, seen, seen, LIST)))
    assert not list(answers_in_time(Check(ONE, seen, seen, op.HoldBoardLock())))


def test_an_epoch_from_before_a_restore_is_not_given_again() -> None:
    """The task was removed by a restore and added again: who held it then is still fenced."""
    again = replace(ONE, given={("w9", "a"): (1, 3)})
    at = Span(NOW, NOW)
    found = judged(again, op.Claim("w1"), ok(task="a", epoch=1), at).violation  # type: ignore[attr-defined]
    assert found is not None
    assert found.rule == "board.tokens_grow"
    assert judged(again, op.Claim("w1"), ok(task="a", epoch=4), at).violation is None  # type: ignore[attr-defined]


def test_beside_others_nobody_knows_what_a_vague_checkpoint_held() -> None:
    believed = replace(ONE, checkpoints={"c": {}}, vague=frozenset({"c"}))
    both = Parallel((op.Restore("c"), op.Claim("w1")))
    look = of(believed)
    parts = tuple(
        OperationResult(0, details={"answer": answer, "invoked": NOW, "returned": NOW})
        for answer in (ok(tasks=1), ok(task="a", epoch=1))
    )
    contract = BoardContract(believed.profile)
    result = OperationResult(inner=parts)
    told = contract.judge(Beliefs((believed,)), both, result, look, look, NOW)
    assert told.verdict is Verdict.INCONCLUSIVE
    failed_once = believed.with_task(replace(believed.tasks["a"], attempts=1))
    later = contract.judge(Beliefs((failed_once,)), both, result, of(failed_once), look, NOW)
    kept = later.model.alternatives[0].tasks["a"].attempts
    assert kept == 0, "the attempts of what came back are not counted on"


def test_who_has_lost_the_file_of_its_heartbeats_is_not_robbed() -> None:
    (after,) = hurt(HELD, DamageFile("delete", file="heartbeat"), of(HELD))
    assert not after.damaged
    assert after.heard["w1"].earliest == HELD.heard["w1"].earliest
