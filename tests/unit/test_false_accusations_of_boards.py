"""What a board is not guilty of: what a fault wrote, what nobody could follow, what is only slow.

Each example was a wrong accusation once; beside it stands what comes close and is a broken promise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from test_contract_board_rules import (
    DONE,
    HELD,
    NOW,
    ONE,
    PROFILE,
    A,
    board,
    held,
    no,
    of,
    ok,
    picture,
    view,
)

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.invariants import Check, no_stuck_claim
from mutiny.contracts.board.model import MOST_UNDECIDED, BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.outcomes import MOST_DOUBTFUL, reaped
from mutiny.contracts.board.profile import BoardProfile, Figures
from mutiny.contracts.board.sentences import understand
from mutiny.contracts.board.tasks import Leader, Task
from mutiny.kit import beliefs as worlds
from mutiny.kit import faults
from mutiny.kit.beliefs import Beliefs, Span
from mutiny.kit.faults import DAMAGES
from mutiny.kit.operations import CrashAt, Misuse, Parallel, Reset
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.targets.registry import find_target

pytestmark = pytest.mark.usefixtures("by_chance_alone")

UNREADABLE = BoardObservation(NOW, NOW, NOW, None, "it is no JSON", absent=False)
FIRED = OperationResult(0, fired=True)
OLD = picture(view(A, epoch=1))
"""The board before the last change: an older epoch, nobody's task."""


TRACEBACK = """Traceback (most recent call last):
  File "board.py", line 1, in <module>
    main()
KeyError: 'a'
"""


def said(answer: dict[str, object], at: float = NOW) -> OperationResult:
    code = 0 if answer["ok"] else 1
    return OperationResult(code, details={"answer": answer, "invoked": at, "returned": at})


def judged(
    model: BoardModel | Beliefs[BoardModel],
    operation: Operation,
    result: OperationResult,
    before: BoardObservation,
    seen: BoardObservation,
    contract: BoardContract | None = None,
) -> tuple[Verdict, list[str], Beliefs[BoardModel]]:
    """One step as the engine sees it: verdict, broken rules, beliefs."""
    contract = contract or BoardContract(PROFILE)
    beliefs = model if isinstance(model, Beliefs) else Beliefs((model,))
    answered = contract.judge(beliefs, operation, result, before, seen, NOW)
    rules = [] if answered.violation is None else [answered.violation.rule]
    if answered.verdict is Verdict.INCONCLUSIVE:
        return answered.verdict, rules, answered.model
    checked = contract.check(answered.model, operation, result.succeeded, before, seen)
    rules += [one.rule for one in (*checked.broken, *checked.settling)]
    verdict = Verdict.INCONCLUSIVE if checked.unreadable and not rules else answered.verdict
    assert checked.model is not None
    return verdict, rules, checked.model


# --- a fault's step is not judged by what the fault wrote ------------------------------------------

FINISHED = board(replace(DONE, epoch=1))
WAYS = {
    "an older epoch": (HELD, picture(view(A, epoch=0))),
    "a task that was done is free": (FINISHED, picture(view(A, epoch=1))),
    "a claim is gone": (HELD, OLD),
    "a task is gone": (HELD, picture()),
    "a task nobody added": (ONE, picture(view(A), view(Task("b")))),
    "nobody's claim": (HELD, picture(view(held(), owner=None))),
    "a circle": (ONE, picture(view(A, depends=("a",), status="blocked"))),
    "completed twice": (FINISHED, picture(view(DONE, completions=2))),
    "too many attempts": (ONE, picture(view(A, attempts=9))),
    "a lower token": (board(A, top_token=3), picture(view(A), token=1)),
    "unreadable": (HELD, UNREADABLE),
}


def damages(how: str) -> Iterator[Operation]:
    yield op.CorruptBoard(how)
    yield faults.DamageFile(how=how)
    yield faults.DamageFile(how=how, lasting=True)
    yield faults.DamageFile(how=how, file="agents")


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("what", WAYS)
def test_the_step_of_a_damage_breaks_nothing(how: str, what: str) -> None:
    model, seen = WAYS[what]
    for fault in damages(how):
        verdict, rules, _ = judged(model, fault, FIRED, of(model), seen)
        assert (verdict, rules) == (Verdict.SUCCESS, []), fault


@pytest.mark.parametrize("how", ["stale", "flip", "append"])
def test_an_old_state_that_reads_well_cannot_be_recognised(how: str) -> None:
    """Whatever is answered to it is nobody's broken promise, until a repair was answered."""
    _, _, beliefs = judged(FINISHED, op.CorruptBoard(how), FIRED, of(FINISHED), OLD)
    again = picture(view(held(epoch=2)))
    claim = said(ok(task="a", epoch=2))
    verdict, rules, beliefs = judged(beliefs, op.Claim("w2"), claim, OLD, again)
    assert (verdict, rules) == (Verdict.SUCCESS, [])
    twice = picture(view(DONE, epoch=2, completions=2))
    done = said(ok(task="a"))
    verdict, rules, beliefs = judged(beliefs, op.Complete("w2", "a"), done, again, twice)
    assert (verdict, rules) == (Verdict.SUCCESS, [])
    wrong = OperationResult(1, stderr="task a is done, not available")
    verdict, rules, _ = judged(beliefs, op.AssertStatus("a", "available"), wrong, twice, twice)
    assert (verdict, rules) == (Verdict.INCONCLUSIVE, [])
    _, _, beliefs = judged(beliefs, op.Repair(), said(ok()), twice, twice)
    back = picture(view(A, epoch=2))
    _, rules, _ = judged(beliefs, op.List(), said(ok()), twice, back)
    assert "board.terminal_is_terminal" in rules, "from the repair on promises count again"


def test_an_old_state_is_not_recognised_either_where_nobody_could_look() -> None:
    """The server of the board did not run when the old state was put there."""
    down = BoardObservation(servers=0)
    for how, rules_then in (("stale", []), ("garbage", ["board.completion_kept"])):
        fault = op.CorruptBoard(how)
        verdict, _, beliefs = judged(FINISHED, fault, FIRED, of(FINISHED), down)
        assert verdict is Verdict.SUCCESS
        _, rules, _ = judged(beliefs, op.List(), said(ok()), down, replace(OLD, servers=1))
        assert rules[:1] == rules_then, how


@pytest.mark.parametrize("how", ["garbage", "empty", "delete", "truncate"])
def test_rubbish_that_is_taken_for_an_empty_board_is_forgetting(how: str) -> None:
    _, _, beliefs = judged(ONE, op.CorruptBoard(how), FIRED, of(ONE), picture())
    nothing = said(no("nothing_to_claim"))
    _, rules, _ = judged(beliefs, op.Claim("w1"), nothing, picture(), picture())
    assert rules[0] == "board.add_kept"
    _, rules, _ = judged(beliefs, op.List(), said(ok(tasks=[])), picture(), picture())
    assert rules[0] == "board.add_kept"


def test_a_damage_that_was_noticed_must_be_repaired() -> None:
    for how in DAMAGES:
        _, _, beliefs = judged(ONE, op.CorruptBoard(how), FIRED, of(ONE), UNREADABLE)
        _, rules, _ = judged(beliefs, op.Repair(), said(ok()), UNREADABLE, picture())
        assert rules[0] == "board.repair_keeps_data", how


def test_a_board_that_nobody_repaired_has_nothing_due() -> None:
    model = replace(ONE, damaged=True, spawned={"w": "healthy"})
    seen = replace(UNREADABLE, living=frozenset({"w"}))
    assert model.pending(seen) == ()
    verdict, rules, _ = judged(model, op.Settle(), OperationResult(), seen, seen)
    assert (verdict, rules) == (Verdict.INCONCLUSIVE, [])


def test_completions_that_were_there_before_are_not_done_now() -> None:
    twice = picture(view(DONE, completions=2))
    _, rules, _ = judged(board(DONE), op.List(), said(ok()), twice, twice)
    assert rules == []


# --- worlds that were given up ---------------------------------------------------------------------

MANY = board(
    *(held(f"t{number}", f"w{number}") for number in range(MOST_DOUBTFUL + 1)),
    heard={f"w{number}": Span(NOW - 2.2, NOW) for number in range(MOST_DOUBTFUL + 1)},
)


def test_more_doubtful_claims_than_can_be_followed_prove_nothing() -> None:
    """Any three of them may have been returned; not all combinations are tried."""
    returned = said(ok(returned=["t0", "t2", "t4"]))
    seen = picture(
        *(
            view(task) if name not in ("t0", "t2", "t4") else view(Task(name, epoch=1, attempts=1))
            for name, task in MANY.tasks.items()
        )
    )
    verdict, rules, _ = judged(MANY, op.Recover(), returned, of(MANY), seen)
    assert (verdict, rules) == (Verdict.INCONCLUSIVE, [])


def test_few_doubtful_claims_are_followed_exactly() -> None:
    few = replace(MANY, tasks=dict(list(MANY.tasks.items())[:MOST_DOUBTFUL]))
    assert len(list(reaped(few, Span(NOW, NOW)))) == 2**MOST_DOUBTFUL
    assert not any(one.guessed for one in reaped(few, Span(NOW, NOW)))


def test_worlds_that_differ_in_moments_only_are_joined() -> None:
    many = [replace(HELD, heard={"w1": Span(NOW - number, NOW)}) for number in range(100)]
    (joined,) = worlds.distinct(many)
    assert joined.heard["w1"] == Span(NOW - 99, NOW)
    assert not joined.guessed
    assert len(worlds.distinct(many[:3])) == 3, "few are kept apart"


def test_what_is_given_up_is_remembered() -> None:
    many = [board(replace(A, epoch=number)) for number in range(worlds.MOST_WORLDS + 1)]
    kept = worlds.distinct(many)
    assert len(kept) == worlds.MOST_WORLDS
    assert all(one.guessed for one in kept)
    others = [replace(ONE, tasks={"a": replace(A, epoch=n)}) for n in range(MOST_UNDECIDED + 2)]
    assert ONE.or_else(others).guessed


@pytest.mark.parametrize(
    ("operation", "answer", "seen"),
    [
        (op.Claim("w1"), no("nothing_to_claim"), of(ONE)),
        (op.Claim("w1", "a"), no("task_not_available"), of(ONE)),
        (op.AddTask("b"), ok(task="b"), of(ONE)),
        (op.List(), ok(), picture()),
        (op.List(), ok(), picture(view(A), view(Task("b")))),
        (op.List(), ok(), picture(view(held()))),
        (op.Complete("w1", "a"), ok(task="a"), picture(view(DONE))),
    ],
)
def test_a_contradiction_after_giving_up_is_inconclusive(
    operation: Operation, answer: dict[str, object], seen: BoardObservation
) -> None:
    verdict, rules, _ = judged(replace(ONE, guessed=True), operation, said(answer), of(ONE), seen)
    assert (verdict, rules) == (Verdict.INCONCLUSIVE, [])
    _, rules, _ = judged(ONE, operation, said(answer), of(ONE), seen)
    assert rules, "with all worlds it is a broken promise"


@pytest.mark.parametrize(
    ("result", "rule"),
    [
        (OperationResult(1, stderr=TRACEBACK), "no_crash"),
        (said(no("whatever")), "fails_clearly"),
        (OperationResult(None, timed_out=True), "answers_in_time"),
    ],
)
def test_what_no_belief_excuses_stays_a_bug(result: OperationResult, rule: str) -> None:
    _, rules, _ = judged(replace(ONE, guessed=True), op.Claim("w1"), result, of(ONE), of(ONE))
    assert rules[:1] == [f"board.{rule}"]


# --- slow is not stuck -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", [op.Settle(), op.WaitForSettled(), op.WaitForStatus("a", "done")]
)
def test_who_still_moves_at_the_bound_is_not_stuck(operation: Operation) -> None:
    working = replace(HELD, spawned={"w": "healthy"})
    seen = of(working, living=frozenset({"w"}))
    late = OperationResult(None, timed_out=True, details={"moving": True})
    assert judged(working, operation, late, seen, seen)[:2] == (Verdict.INCONCLUSIVE, [])
    stuck = OperationResult(None, timed_out=True, details={})
    assert judged(working, operation, stuck, seen, seen)[1] == ["board.no_stuck_claim"]


# --- nobody looked ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sentence",
    [
        "n1 leads",
        "nobody leads",
        "no task is tried more often than allowed",
        "no task is completed twice",
    ],
)
def test_what_a_board_does_not_show_nobody_can_say(sentence: str) -> None:
    bare = replace(view(A), attempts=None, completions=None)
    seen = picture(bare, token=None, leader=None)
    assert understand(sentence).of(seen).so is None
    assert understand(sentence).of(BoardObservation()).so is None


def test_a_batch_that_is_no_batch_may_come_half_way() -> None:
    contract = BoardContract(replace(PROFILE, batches=False))
    one = replace(ONE, profile=contract.profile)
    half = picture(view(A), view(Task("b", order=2)))
    refused = said(no("duplicate_id"))
    _, rules, after = judged(one, op.AddBatch(("b", "a")), refused, of(ONE), half, contract)
    assert rules == []
    assert set(after.alternatives[0].tasks) == {"a", "b"}
    cut = OperationResult(0, fired=True, inner=(OperationResult(None, signal=9),))
    point = CrashAt(op.AddBatch(("b", "c")), 3)
    for seen in (of(ONE), half, picture(view(A), view(Task("b")), view(Task("c")))):
        assert judged(one, point, cut, of(ONE), seen, contract)[1] == []


# --- not due yet -----------------------------------------------------------------------------------

PATIENT = BoardProfile(figures=Figures(lease_s=900.0, retry_base_s=30.0, retry_cap_s=3600.0))


def waiting_for(profile: BoardProfile, *tasks: Task) -> tuple[tuple[str, ...], frozenset[str]]:
    model = replace(board(*tasks), profile=profile, spawned={"w": "healthy"})
    seen = of(model, living=frozenset({"w"}))
    return model.pending(seen), model.later(seen)


def test_a_lease_of_a_quarter_of_an_hour_is_not_over_in_seconds() -> None:
    assert waiting_for(PATIENT, held()) == ((), {"a"})
    behind = Task("b", depends=("a",), status="blocked")
    assert waiting_for(PATIENT, held(), behind) == ((), {"a", "b"})
    assert waiting_for(PROFILE, held())[0] == ("task a is claimed by w1",)
    never = replace(PATIENT, leases=False)
    assert waiting_for(never, held())[0] == ("task a is claimed by w1",), "it is never returned"


def test_what_a_board_never_returns_by_intention_is_not_waited_for() -> None:
    excused = {"board.no_stuck_claim": "why"}
    never = replace(PATIENT, leases=False, not_applicable=excused)
    assert waiting_for(never, held()) == ((), {"a"})
    assert waiting_for(never, held(owner="w"))[0], "who holds it lives, and finishes"


def test_a_failure_that_was_undone_is_no_claim_that_is_stuck() -> None:
    failed = board(replace(A, status="failed", epoch=1))
    beside = Parallel((op.Fail("w1", "a"), op.Claim("w2")))
    assert not list(no_stuck_claim(Check(failed, of(HELD), of(HELD), beside)))
    assert list(no_stuck_claim(Check(failed, of(HELD), of(HELD), op.Claim("w2"))))


def test_a_worker_at_work_may_keep_a_command_out() -> None:
    for spawned, accused in (({"w": "healthy"}, False), ({}, True)):
        model = board(A, spawned=spawned)
        seen = of(model, living=frozenset(spawned))
        _, found = judged(
            model, op.AddTask("b"), said(no("busy")), seen, seen, BoardContract(PROFILE)
        )[:2]
        assert bool(found) is accused


def test_a_look_that_failed_shows_nobody_stuck() -> None:
    model = board(A, spawned={"w": "healthy"})
    late = OperationResult(None, timed_out=True)
    verdicts = {}
    for word, error in (("failed", None), ("garbage", "not valid JSON")):
        seen = BoardObservation(NOW, NOW, NOW, state_error=error, absent=False)
        judged = BoardContract(PROFILE).judge(
            Beliefs((model,)), op.Settle(), late, of(model), seen, NOW
        )
        verdicts[word] = judged.verdict
    assert verdicts["failed"] is Verdict.INCONCLUSIVE
    assert verdicts["garbage"] is not Verdict.INCONCLUSIVE


def test_who_works_on_it_now_has_to_finish_it() -> None:
    assert waiting_for(PATIENT, held(owner="w"))[0] == ("task a is claimed by w",)


def test_a_task_rests_as_long_as_the_board_says() -> None:
    retried = replace(A, rest=Span(NOW, NOW + 40))
    resting = replace(PATIENT, retry_rests=True)
    assert waiting_for(resting, retried) == ((), {"a"})
    assert waiting_for(replace(PROFILE, retry_rests=True), retried)[0]
    assert waiting_for(resting, A)[0], "it was never retried"


def test_what_waits_for_a_retry_by_hand_is_not_stuck() -> None:
    failed = replace(A, status="failed")
    behind = Task("b", depends=("a",), status="blocked")
    assert waiting_for(replace(PROFILE, dependants_wait=True), failed, behind) == ((), {"b"})
    assert waiting_for(PROFILE, failed, behind)[0] == ("task b is blocked",)


@pytest.mark.parametrize("target", ["coordination-a", "coordination-b"])
def test_who_begins_what_it_has_begun_may_be_told_so_again(target: str) -> None:
    contract = find_target(target, program=sys.executable).contract()
    assert isinstance(contract, BoardContract)
    up = replace(HELD, profile=contract.profile, up=frozenset({True}))
    begun = replace(up, tasks={"a": held(status="in_progress")})
    seen = replace(of(begun), servers=int(contract.profile.server))
    again = said(ok(task="a"))
    verdict, rules, _ = judged(begun, op.Start("w1", "a"), again, seen, seen, contract)
    assert (verdict, rules) == (Verdict.SUCCESS, [])
    verdict, *_ = judged(begun, op.Start("w2", "a"), again, seen, seen, contract)
    assert verdict is Verdict.BUG


def test_a_board_without_repair_gets_a_new_one_after_a_damage() -> None:
    contract = BoardContract(BoardProfile(lacks=("Repair",)))
    for seed in range(40):
        sequence = contract.generate(seed, 25)
        for place, one in enumerate(sequence):
            if isinstance(one, op.CorruptBoard):
                assert Reset() in sequence[place + 1 : place + 4], seed


def test_a_node_that_is_elected_beside_its_own_command_shows_its_older_token() -> None:
    led = board(A, leader=Leader("n1", 1, Span(NOW, NOW)), top_token=1, tokens={"n1": (1,)})
    before, after = of(led, token=1), of(led, token=2)
    both = Parallel((op.Elect("n1"), op.WriteAsLeader("n1")))

    def verdict(refusal: str, seen: BoardObservation) -> Verdict:
        parts = (said(ok(token=2)), said(no(refusal)))
        return judged(led, both, OperationResult(inner=parts), seen, after)[0]

    assert verdict("stale_token", before).stops_run is False
    assert verdict("stale_token", after) is Verdict.BUG, "nobody gave it another one meanwhile"
    assert verdict("unknown_task", before) is Verdict.BUG


@pytest.mark.parametrize("priority", [1, 5])
def test_what_was_added_with_too_few_words_has_the_numbers_that_the_board_gave_it(
    priority: int,
) -> None:
    wrong = Misuse(op.AddTask("b", priority=1), "too_few")
    taken = replace(said(ok(task="b")), inner=(said(ok(task="b")),))
    seen = picture(view(A), view(Task("b", order=2, priority=priority)))
    verdict, rules, _ = judged(ONE, wrong, taken, of(ONE), seen)
    assert (verdict, rules) == (Verdict.SUCCESS, [])


def test_what_our_own_driver_did_not_ask_takes_nothing_from_the_command_beside_it() -> None:
    both = Parallel((op.AddTask("b", priority=1), op.AddTask("b")))
    unable = OperationResult(1, harness_error="nobody can add a task twice")
    result = OperationResult(inner=(unable, said(ok(task="b"))))
    contract = BoardContract(PROFILE)
    for seen, broken in (
        (picture(view(A), view(Task("b", order=2))), []),
        (of(ONE), ["board.add_kept"]),  # what was acknowledged has to be there all the same
    ):
        verdict, _, after = judged(ONE, both, result, of(ONE), seen, contract)
        assert verdict is Verdict.INCONCLUSIVE
        checked = contract.check(after, both, result.succeeded, of(ONE), seen)
        assert [one.rule for one in (*checked.broken, *checked.settling)] == broken


def test_a_board_that_gives_ids_is_never_told_to_add_one_task_twice_at_once() -> None:
    contract = find_target("coordination-b", program=sys.executable).contract()
    for seed in (992017, *range(60)):
        for one in contract.generate(seed, 30):
            if isinstance(one, Parallel):
                new = [part.task for part in one.operations if isinstance(part, op.AddTask)]
                assert len(new) == len(set(new)), seed
