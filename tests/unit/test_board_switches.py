"""Every switch and figure of a board's profile is known everywhere where it counts.

A switch that the model honours and the invariants, the history or the waits do not is a wrong accusation
of every board that is so. The tables below must name every field: who adds one says here what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
from test_contract_board_rules import DONE, NOW, A, board, held, no, of, ok, picture, view
from test_false_accusations_of_boards import judged, said, waiting_for

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.damage import hurt
from mutiny.contracts.board.fault_scenarios import FAULT_SCENARIOS
from mutiny.contracts.board.limits import breaker_outcomes
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import AgentRun, BoardObservation
from mutiny.contracts.board.outcomes import outcomes
from mutiny.contracts.board.profile import BoardLimits, BoardProfile, Figures
from mutiny.contracts.board.supported import _waits, fit, supported
from mutiny.contracts.board.tasks import Breaker, Leader, Task
from mutiny.history.checker import Limits, Verdict, check
from mutiny.history.events import Entry
from mutiny.kit.beliefs import Span
from mutiny.kit.faults import DamageFile
from mutiny.kit.operations import ExpectError, KillDuring, Misuse, Sleep
from mutiny.model.operation import Operation, walk
from mutiny.targets.board.history import model_for

pytestmark = pytest.mark.usefixtures("by_chance_alone")

PLAIN = BoardProfile()
FAILED = replace(A, status="failed", attempts=1)
CANCELLED = replace(A, status="cancelled")
STILL_OWNED = replace(A, owner="w1")
WHEN = Span(NOW, NOW)
WROTE = (("n1", 1, "x"),)
AT_CALLS = {"CrashAt", "KillAt", "FailAt"}


# --- what a step, a history, a wait says under a profile --------------------------------------------


def broken(
    profile: BoardProfile,
    task: Task,
    operation: Operation,
    answer: dict[str, object],
    seen: BoardObservation,
    writes: tuple[tuple[str, int, str], ...] = (),
) -> bool:
    """Does one step break a promise of a board with this profile?"""
    model = replace(board(task), profile=profile, writes=writes)
    contract = BoardContract(profile)
    return bool(judged(model, operation, said(answer), of(model), seen, contract)[1])


def broken_empty(profile: BoardProfile) -> bool:
    """Does a list break a promise that is refused because nobody has added anything?"""
    model = replace(board(), profile=profile)
    contract = BoardContract(profile)
    answer = said(no("not_initialised"))
    return bool(judged(model, op.List(), answer, of(model), of(model), contract)[1])


def ordered(profile: BoardProfile, *events: tuple[str, dict[str, Any], dict[str, Any]]) -> bool:
    """Is there an order for commands that were given one after the other?"""
    entries = [
        Entry("p", name, given, answer, invoked=float(place), returned=place + 0.5)
        for place, (name, given, answer) in enumerate(events)
    ]
    report = check(entries, model_for(entries, profile), Limits(seconds=10))
    return report.verdict is Verdict.LINEARIZABLE


ADD = ("add", {"id": "a"}, {"ok": True, "task": "a"})
CLAIM = ("claim", {"worker": "w"}, {"ok": True, "task": "a"})
FAIL = ("fail", {"worker": "w", "task": "a"}, {"ok": True, "task": "a"})
CANCEL = ("cancel", {"task": "a"}, {"ok": True, "task": "a"})
RETRY = ("retry", {"task": "a"}, {"ok": True, "task": "a"})
CLAIM_B = ("claim", {"worker": "w"}, {"ok": True, "task": "b"})
HALF_A_BATCH = (
    "add-batch",
    {"tasks": [{"id": "b"}, {"id": "a"}]},
    {"ok": False, "error": "duplicate_id"},
)


def late(seconds: float) -> tuple[Any, ...]:
    """A claim by somebody else, so many seconds after the first one."""
    first = Entry("p", *ADD, invoked=0.0, returned=0.1)
    taken = Entry("p", *CLAIM, invoked=0.2, returned=0.3)
    other = ("claim", {"worker": "v"}, {"ok": True, "task": "a"})
    return (first, taken, Entry("q", *other, invoked=seconds, returned=seconds + 0.1))


def robs(profile: BoardProfile, seconds: float) -> bool:
    entries: Sequence[Entry] = late(seconds)
    report = check(entries, model_for(entries, profile), Limits(seconds=10))
    return report.verdict is not Verdict.LINEARIZABLE


def refusals(profile: BoardProfile, task: Task, operation: Operation) -> set[str]:
    model = replace(board(task), profile=profile)
    return {word for one in outcomes(model, operation, WHEN) for word in one.refusals}


def explored(profile: BoardProfile, seeds: int = 12) -> set[str]:
    """The operations and sentences of some explored sequences."""
    contract = BoardContract(profile)
    return {
        text
        for seed in range(seeds)
        for one in contract.generate(seed, 25)
        for text in (one.type, str(getattr(one, "sentence", "")))
    }


def added(profile: BoardProfile) -> list[Operation]:
    """What is added in some explored sequences."""
    contract = BoardContract(profile)
    return [one for seed in range(12) for item in contract.generate(seed, 25) for one in walk(item)]


def _only_usual(profile: BoardProfile, name: str) -> bool:
    """Does exploration say nothing special of new tasks?"""
    usual = getattr(op.AddTask("a"), name)
    tasks = [one for one in added(profile) if isinstance(one, op.AddTask)]
    return bool(tasks) and all(getattr(one, name) == usual for one in tasks)


def _alike_at_last(profile: BoardProfile) -> bool:
    """An urgent task is added like any other, and who gets it is no longer demanded."""
    fitted = fit(profile, (op.AddTask("a"), op.AddTask("b", priority=1), op.Claim("w"), IS_CLAIMED))
    return fitted.sequence == (op.AddTask("a"), op.AddTask("b"), op.Claim("w"))


IS_CLAIMED = op.AssertStatus("b", "claimed")
FITTING = {f"{letter}{number}" for letter in "tw" for number in range(200)}


def named(profile: BoardProfile) -> set[str]:
    """The tasks that some explored sequences add."""
    contract = BoardContract(profile)
    steps = (one for seed in range(12) for one in contract.generate(seed, 25))
    return {one.task for one in steps if isinstance(one, op.AddTask)}


def seen(task: Task) -> BoardObservation:
    return picture(view(task))


Allowed = Callable[[BoardProfile], bool]
"""Is something right that only a board with the switch may do?"""
CANCELLED_NOW = (op.Cancel("a"), ok(task="a"), seen(replace(FAILED, status="cancelled")))
GUARDED = (op.Cancel("a"), no("wrong_status"), seen(held()))
NOT_CANCELLED = ("cancel", {"task": "a"}, {"ok": False, "error": "wrong_status"})
AGAIN = (op.Claim("w1", "a"), ok(task="a"), seen(held()))
PARTLY = (op.AddBatch(("b", "a")), no("duplicate_id"), picture(view(A), view(Task("b"))))
BEHIND = Task("b", depends=("a",), status="blocked")
FAILED_NOW = (op.Fail("w1", "a"), ok(task="a"), picture(view(FAILED, epoch=1)))
START = ("start", {"worker": "w", "task": "a"}, {"ok": True})
HANDED_OVER = (
    *(op.Heartbeat("w1"), ok(worker="w1", tasks=[])),
    replace(seen(A), agents=(AgentRun("agent-1", "a", (1, 1), alive=True, busy=False, told=9),)),
)
"""An agent was told nine of ten characters."""
BEGUN = held(status="in_progress")
BEGIN_AGAIN = (op.Start("w1", "a"), ok(task="a"), seen(BEGUN))
BEHIND_A = op.AddTask("b", depends=("a",))
UNNAMED = (op.Claim("w1", "a"), ok(task="a", epoch=1), picture(view(held(), owner=None)))
"""A claim that is served, and a record that does not say by whom it is held."""
TWO_FREE = (op.Init(), op.AddTask("a"), op.AddTask("b"), op.Claim("w"))
ROBBERY, STRANGER = ExpectError(op.Claim("w2", "a")), ExpectError(op.Complete("w2", "a"))
BY_OTHER = ("claim", {"worker": "v"}, {"ok": True, "task": "a"})
DONE_BY_OTHER = ("complete", {"worker": "v", "task": "a"}, {"ok": True})
EDITED = (op.Claim("w2", "a"), ok(task="a"), seen(held(owner="w2", epoch=2)))
CLOSED = (
    op.Complete("w2", "a"),
    ok(task="a"),
    picture(view(replace(DONE, owner="w1", output="w2 did a"), epoch=1)),
)
EXCUSED = {"board.add_kept": "why", "board.status_is_honest": "why"}

MARKED = ok(task="a", isError=True)


def _given_again(profile: BoardProfile) -> bool:
    """Is a worker that claims anything given what it has already, and nobody else?"""
    model = replace(board(held(), replace(A, id="b", order=2)), profile=profile)
    mine, others = (
        {one.task for one in outcomes(model, op.Claim(who), WHEN)} for who in ("w1", "w2")
    )
    return mine == {"a", "b"} and others == {"b"}


SWITCHES: dict[str, dict[str, tuple[object, Allowed]]] = {
    "cancels_failed": {
        "step": (True, lambda one: not broken(one, FAILED, *CANCELLED_NOW)),
        "history": (True, lambda one: ordered(_once(one), ADD, CLAIM, FAIL, CANCEL)),
    },
    "cancels_held": {
        "step": (False, lambda one: not broken(one, held(), *GUARDED)),
        "history": (False, lambda one: ordered(one, ADD, CLAIM, NOT_CANCELLED)),
    },
    "cancelled_block": {
        "step": (True, lambda one: _blocked_is_right(one, CANCELLED)),
        "wait": (True, lambda one: not waiting_for(one, CANCELLED, BEHIND)[0]),
        "exploration": (True, lambda one: "all tasks are settled" not in explored(one)),
    },
    "owner_reclaims": {
        "nameless": (True, lambda one: _given_again(replace(one, names_tasks=False))),
        "step": (True, lambda one: not broken(replace(one, fences=False), held(), *AGAIN)),
        "history": (True, lambda one: ordered(one, ADD, CLAIM, CLAIM)),
        "start": (True, lambda one: not broken(replace(one, fences=False), BEGUN, *BEGIN_AGAIN)),
        "history of starts": (True, lambda one: ordered(one, ADD, CLAIM, START, START)),
    },
    "picks": {
        "step": ("any", lambda one: _given(one) == {"a", "b", "c"}),
        "words": ("urgent", lambda one: fit(one, TWO_FREE).sequence[-1] == op.Claim("w", "a")),
    },
    "shows_owners": {
        "step": (False, lambda one: not broken(one, A, *UNNAMED)),
        "words": (False, lambda one: not supported(one, op.AssertOwner("a", "w1"))),
        "sentences": (False, lambda one: not supported(one, op.Verify("task a belongs to w1"))),
    },
    "claims_exclude": {
        "step": (False, lambda one: not broken(replace(one, fences=False), held(), *EDITED)),
        "words": (False, lambda one: fit(one, (ROBBERY,)).sequence == (ROBBERY.inner,)),
        "history": (False, lambda one: ordered(one, ADD, CLAIM, BY_OTHER)),
    },
    "owner_speaks": {
        "step": (False, lambda one: not broken(replace(one, fences=False), held(), *CLOSED)),
        "words": (False, lambda one: fit(one, (STRANGER,)).sequence == (STRANGER.inner,)),
        "history": (False, lambda one: ordered(one, ADD, CLAIM, DONE_BY_OTHER)),
    },
    "opens_itself": {
        "step": (True, lambda one: "nothing_to_claim" in _too_early(one)),
        "exploration": (True, lambda one: "ExpectError" not in explored(one)),
    },
    "lists_files": {
        "step": (True, lambda one: _listed_while_down(one)),
    },
    "retry_rests": {
        "step": (True, lambda one: "task_not_available" in _after_retry(one)),
        "wait": (True, lambda one: not waiting_for(_patient(one), replace(A, rest=Span(NOW, NOW + 90)))[0]),
    },
    "fail_is_final": {
        "step": (True, lambda one: not broken(one, held(), *FAILED_NOW)),
        "history": (True, lambda one: ordered(one, ADD, CLAIM, FAIL, RETRY)),
    },
    "dependants_wait": {
        "step": (True, lambda one: _blocked_is_right(one)),
        "wait": (True, lambda one: not waiting_for(one, FAILED, BEHIND)[0]),
        "exploration": (True, lambda one: "all tasks are settled" not in explored(one)),
    },
    "typed": {
        "said": (("AddTask",), lambda one: supported(one, Misuse(op.AddTask("a"), "wrong_type"))),
    },
    "asks_first": {
        "said": (("Cancel",), lambda one: supported(one, Misuse(op.Cancel("a"), "unconfirmed"))),
    },
    "marks_refusals": {
        "step": (True, lambda one: broken(one, A, op.Cancel("a"), MARKED, seen(CANCELLED))),
    },
    "frees_owner": {
        "step": (True, lambda one: broken(one, A, op.List(), ok(tasks=[]), seen(STILL_OWNED))),
    },
    "gives_names": {
        "scenarios": ("t-{}", lambda one: "names_given" in BoardContract(one).scenarios),
    },
    "keeps_writes": {
        "step": (True, lambda one: broken(one, A, op.Status(), ok(writes=[]), seen(A), WROTE)),
    },
    "tells_guards": {
        "step": (
            True,
            lambda one: broken(one, A, op.Status(), ok(limiter={"rate": 9.0}), seen(A), WROTE),
        ),
    },
    "names_leader": {
        "said": (True, lambda one: supported(one, op.Renew("n", borrowed=True))),
    },
    "keeps_reasons": {
        "step": (True, lambda one: broken(one, A, op.Cancel("a"), ok(task="a"), seen(CANCELLED))),
    },
    "tells_payload": {
        "step": (True, lambda one: broken(one, replace(A, size=10), *HANDED_OVER)),
    },
    "has_backups": {
        "said": (True, lambda one: supported(one, DamageFile("garbage", file="backup"))),
    },
    "sums_checkpoints": {
        "said": (True, lambda one: supported(one, DamageFile("flip", file="checkpoint"))),
    },
    "heartbeat_files": {
        "said": (True, lambda one: supported(one, DamageFile("delete", file="heartbeat"))),
    },
    "urgencies": {
        "said": ((1, 5, 9), lambda one: not supported(one, op.AddTask("a", priority=10))),
    },
    "notices_damage": {
        "step": (True, lambda one: len(_worlds_after_a_flip(one)) == 1),
        "sweep": (True, lambda one: BoardContract(one).notices_damage),
    },
    "restore_keeps_claims": {
        "step": (True, lambda one: _restored(one) == "claimed"),
    },
    "batches": {
        "step": (False, lambda one: not broken(one, A, *PARTLY)),
        "history": (False, lambda one: ordered(one, ADD, HALF_A_BATCH, CLAIM_B)),
        "exploration": (False, lambda one: "AddBatch" not in explored(one)),
    },
    "leases": {
        "step": (False, lambda one: not _returned(one)),
        "history": (False, lambda one: robs(one, 50.0)),
        "wait": (False, lambda one: "never returns" in _stuck_text(one)),
    },
    "names_tasks": {
        "words": (False, lambda one: not supported(one, op.Claim("w", "a"))),
    },
    "fences": {
        "words": (False, lambda one: not supported(one, op.Complete("w", "a", stale=True))),
    },
    "names_new_tasks": {
        "words": (False, lambda one: bool(fit(one, (op.AddTask("a"), op.AddTask("a"))).nothing_left)),
        "exploration": (False, lambda one: not _adds_known(one)),
    },
    "has_init": {
        "step": (False, lambda one: not broken_empty(replace(one, opens_itself=True))),
    },
    "says_dependencies": {
        "words": (False, lambda one: not supported(one, BEHIND_A)),
        "batches": (False, lambda one: not supported(one, op.AddBatch(("b", "c:b")))),
        "exploration": (False, lambda one: not any(_waits(part) for part in added(one))),
    },
    "says_priorities": {
        "words": (False, lambda one: not supported(one, op.AddTask("a", priority=1))),
        "other words": (False, _alike_at_last),
        "scenarios": (False, lambda one: "priority" not in BoardContract(one).scenarios),
        "exploration": (False, lambda one: _only_usual(one, "priority")),
    },
    "says_attempts": {
        "words": (False, lambda one: not supported(one, op.AddTask("a", max_attempts=1))),
        "exploration": (False, lambda one: _only_usual(one, "max_attempts")),
    },
    "adds_dependencies": {
        "words": (False, lambda one: not supported(one, KillDuring(BEHIND_A, 5.0))),
    },
    "counts_completions": {
        "words": (False, lambda one: fit(one, (op.Verify("no task is completed twice"),)).sequence == ()),
        "exploration": (False, lambda one: "no task is completed twice" not in explored(one)),
    },
    "breaker": {
        "step": (True, lambda one: "breaker_open" in _with_open_breaker(one)),
        "words": (True, lambda one: "breaker" in BoardContract(one).scenarios),
        "wait": (True, lambda one: one.time_to_pass_s > PLAIN.time_to_pass_s),
    },
    "server": {
        "step": (True, lambda one: "server_down" in refusals(one, A, op.Claim("w"))),
        "words": (True, lambda one: "server_kill" in BoardContract(one).scenarios),
    },
    "works": {
        "step": (True, lambda one: not broken(one, A, op.List(), ok(), picture(view(DONE)))),
        "words": (True, lambda one: "agents" in BoardContract(one).scenarios),
    },
    "names": {"exploration": ("[tw][0-9]+", lambda one: named(one) <= FITTING)},
    "sure_calls": {"exploration": (6, lambda one: bool(AT_CALLS & explored(one, 20)))},
    "lacks": {
        "words": (("Cancel",), lambda one: not supported(one, op.Cancel("a"))),
        "exploration": (("Cancel",), lambda one: "Cancel" not in explored(one)),
    },
    "settable": {
        "words": (("jitter",), lambda one: not supported(one, op.Configure("lease_s", 1.0))),
    },
    "skips": {"words": ({"priority": "why"}, lambda one: "priority" not in BoardContract(one).scenarios)},
    "not_applicable": {
        "step": (EXCUSED, lambda one: not broken(one, A, op.List(), ok(), picture())),
    },
}  # fmt: skip
"""Switch -> where it counts -> its unusual value, and what is right only then."""


def _given(profile: BoardProfile) -> set[str | None]:
    """The tasks that a claim may get which names none."""
    free = (Task("a", order=1), Task("b", order=2), Task("c", priority=9, order=3))
    model = replace(board(*free), profile=profile)
    return {one.task for one in outcomes(model, op.Claim("w"), WHEN) if one.success}


def test_what_is_urgent_comes_first_whatever_comes_first_of_equals() -> None:
    assert _given(replace(PLAIN, picks="urgent")) == {"a", "b"}


def test_an_edit_may_take_up_again_what_is_done() -> None:
    again = picture(view(replace(DONE, status="available", owner=None)))
    for speaks, is_broken in ((True, True), (False, False)):
        profile = replace(PLAIN, owner_speaks=speaks, fences=False)
        assert broken(profile, DONE, op.Release("w1", "a"), ok(task="a"), again) is is_broken


def test_what_waits_for_others_still_waits_when_anybody_gives_it_back() -> None:
    waiting = Task("b", depends=("a",), status="blocked", order=2)
    model = replace(board(A, waiting), profile=replace(PLAIN, owner_speaks=False))
    (served, *_) = outcomes(model, op.Release("w", "b"), WHEN)
    assert served.after.tasks["b"].status == "blocked"
    (done, *_) = outcomes(
        replace(model, tasks={**model.tasks, "a": DONE}), op.Release("w", "b"), WHEN
    )
    assert done.after.tasks["b"].status == "available"


def _listed_while_down(profile: BoardProfile) -> bool:
    """May a list be answered while no server runs?"""
    down = replace(board(A), profile=replace(profile, server=True), up=frozenset({False}))
    return any(one.success for one in outcomes(down, op.List(), WHEN))


def _too_early(profile: BoardProfile) -> set[str]:
    """What a claim may hear before there is a board."""
    nothing = replace(board(), profile=profile, initialised=False)
    heard = outcomes(nothing, op.Claim("w"), WHEN)
    return {word for one in heard for word in one.refusals}


def _once(profile: BoardProfile) -> BoardProfile:
    """The first failure is the last."""
    return replace(profile, figures=Figures(max_attempts=1))


def _patient(profile: BoardProfile) -> BoardProfile:
    return replace(profile, figures=Figures(retry_base_s=60.0, retry_cap_s=600.0))


def _after_retry(profile: BoardProfile) -> set[str]:
    model = replace(board(FAILED), profile=replace(profile, figures=Figures(retry_base_s=9.0)))
    retried = next(one.after for one in outcomes(model, op.Retry("a"), WHEN) if one.success)
    soon = Span(NOW + 0.1, NOW + 0.2)
    return {word for one in outcomes(retried, op.Claim("w", "a"), soon) for word in one.refusals}


def _blocked_is_right(profile: BoardProfile, first: Task = FAILED) -> bool:
    model = replace(board(first, BEHIND), profile=profile)
    return not judged(model, op.List(), said(ok()), of(model), of(model), BoardContract(profile))[1]


def _restored(profile: BoardProfile) -> str:
    model = replace(board(A), profile=profile, checkpoints={"c": {"a": held()}})
    (outcome,) = outcomes(model, op.Restore("c"), WHEN)
    return outcome.after.tasks["a"].status


def _worlds_after_a_flip(profile: BoardProfile) -> tuple[BoardModel, ...]:
    """What may be so after a bit of the state file was flipped that still reads well."""
    flipped = picture(view(DONE))
    return hurt(replace(board(A), profile=profile), DamageFile(how="flip"), flipped)


def _returned(profile: BoardProfile) -> bool:
    model = replace(board(held()), profile=profile)
    long_after = Span(NOW + 1e6, NOW + 1e6)
    return any(not one.after.tasks["a"].held for one in outcomes(model, op.Recover(), long_after))


def _stuck_text(profile: BoardProfile) -> str:
    from mutiny.kit.beliefs import Beliefs
    from mutiny.model.result import OperationResult

    model = replace(board(held()), profile=profile, spawned={"w": "healthy"})
    shown = of(model, living=frozenset({"w"}))
    late_one = OperationResult(None, timed_out=True)
    judged = BoardContract(profile).judge(
        Beliefs((model,)), op.Settle(), late_one, shown, shown, NOW
    )
    return "" if judged.violation is None else judged.violation.message


def _with_open_breaker(profile: BoardProfile) -> set[str]:
    model = replace(board(A), profile=profile, breaker=Breaker(3, 0, WHEN))
    return {word for one in outcomes(model, op.Claim("w"), WHEN) for word in one.refusals}


def _adds_known(profile: BoardProfile) -> bool:
    contract = BoardContract(profile)
    for seed in range(40):
        names = [one.task for one in contract.generate(seed, 30) if isinstance(one, op.AddTask)]
        if len(set(names)) < len(names):
            return True
    return False


@pytest.mark.parametrize(
    ("switch", "where"),
    [
        # Exploring takes a second a case; what judges is asked of every switch.
        pytest.param(
            *(name, where),
            marks=[pytest.mark.slow] if where == "exploration" and number % 4 else [],
        )
        for number, (name, row) in enumerate(SWITCHES.items())
        for where in row
    ],
)
def test_a_switch_is_honoured_where_it_counts(switch: str, where: str) -> None:
    value, allowed = SWITCHES[switch][where]
    changed: dict[str, Any] = {switch: value}
    assert allowed(replace(PLAIN, **changed)), "a board that is so is accused"
    assert not allowed(PLAIN), "a board that is not so gets away with it"


def test_every_switch_has_its_row() -> None:
    tables = {"figures", "limits", "answers", "number_settings", "refused_settings"}
    assert set(SWITCHES) == {one.name for one in fields(BoardProfile)} - tables


# --- figures ---------------------------------------------------------------------------------------


def _leads(profile: BoardProfile, after_s: float) -> bool:
    model = replace(board(A), profile=profile, leader=Leader("n1", 1, WHEN), top_token=1)
    then = Span(NOW + after_s, NOW + after_s)
    return not any(one.success for one in outcomes(model, op.Elect("n2"), then))


def _rests(profile: BoardProfile, after_s: float, attempts: int = 0) -> bool:
    model = replace(board(held(attempts=attempts)), profile=profile)
    failed = next(one.after for one in outcomes(model, op.Fail("w1", "a"), WHEN) if one.success)
    then = Span(NOW + after_s, NOW + after_s)
    return not any(one.success for one in outcomes(failed, op.Claim("w", "a"), then))


def _held_for(profile: BoardProfile, after_s: float) -> bool | None:
    stale = replace(board(held()), profile=profile).stale("w1", Span(NOW + after_s, NOW + after_s))
    return None if stale is None else not stale


def _burst(profile: BoardProfile, count: int) -> bool:
    """Are so many commands at once all sure to get through?"""
    model = replace(board(*(Task(f"t{n}", order=n) for n in range(20))), profile=profile)
    for _ in range(count):
        found = outcomes(model, op.Claim("w"), WHEN)
        if any("rate_limited" in one.refusals for one in found):
            return False
        model = next(one.after for one in found if one.success)
    return True


def _half_open(profile: BoardProfile, probes: int, after_s: float = 50.0) -> set[bool]:
    tasks = frozenset(f"p{number}" for number in range(probes))
    opened = Breaker(3, 0, WHEN, tasks)
    model = replace(board(A), profile=replace(profile, breaker=True), breaker=opened)
    then = Span(NOW + after_s, NOW + after_s)
    return {through for through, _ in breaker_outcomes(model, then)}


def _opens_after(profile: BoardProfile) -> int:
    from mutiny.contracts.board.limits import fails

    model = replace(board(held()), profile=replace(profile, breaker=True))
    for count in range(1, 20):
        model = fails(model, held(), WHEN)
        if model.breaker.opened is not None:
            return count
    return 0


def _closes_after(profile: BoardProfile) -> int:
    from mutiny.contracts.board.limits import succeeds

    probes = frozenset({"a"})
    model = replace(board(held()), profile=replace(profile, breaker=True))
    model = replace(model, breaker=Breaker(3, 0, WHEN, probes))
    for count in range(1, 20):
        model = succeeds(model, held())
        if model.breaker.opened is None:
            return count
        model = replace(model, breaker=replace(model.breaker, probes=probes))
    return 0


def _figures(**changes: Any) -> BoardProfile:
    return replace(PLAIN, figures=Figures(**changes))


def _after_a_crash(profile: BoardProfile) -> tuple[Operation, ...]:
    return BoardContract(profile).recovery(op.Claim("w"), world_ended=True)


FIGURES: dict[str, Callable[[], bool]] = {
    "lease_s": lambda: _held_for(_figures(lease_s=900.0), 60.0) is True
    and not _held_for(PLAIN, 60.0)
    and robs(_figures(lease_s=900.0), 60.0)
    and not robs(PLAIN, 60.0)
    and not waiting_for(_figures(lease_s=900.0), held())[0],
    "shortest_lease_s": lambda: _held_for(_figures(lease_s=900.0, shortest_lease_s=120.0), 60.0)
    is True
    and _held_for(_figures(lease_s=900.0, shortest_lease_s=120.0), 300.0) is None
    and not robs(_figures(lease_s=900.0, shortest_lease_s=120.0), 300.0),
    "stale_lock_s": lambda: Sleep(9.0) in _after_a_crash(_figures(stale_lock_s=9.0))
    and not any(isinstance(one, Sleep) for one in _after_a_crash(PLAIN)),
    "leader_lease_s": lambda: _leads(_figures(leader_lease_s=60.0), 30.0) and not _leads(PLAIN, 30.0),
    "retry_base_s": lambda: _rests(_figures(retry_base_s=4.0), 2.0) and not _rests(PLAIN, 2.0),
    "retry_cap_s": lambda: not _rests(_figures(retry_base_s=99.0, retry_cap_s=1.0), 5.0),
    "jitter": lambda: not _rests(_figures(retry_base_s=4.0, jitter=0.9), 2.0),
    "max_attempts": lambda: not ordered(_figures(max_attempts=1), ADD, CLAIM, FAIL, CLAIM),
    "max_retries": lambda: refusals(_figures(max_retries=1), replace(FAILED, retries=1), op.Retry("a"))
    == {"retries_used", "wrong_status"}
    and not refusals(PLAIN, replace(FAILED, retries=9), op.Retry("a")),
    "breaker_failures": lambda: _opens_after(_figures(breaker_failures=5)) == 5,
    "breaker_open_s": lambda: _half_open(_figures(breaker_open_s=600.0), 0) == {False},
    "breaker_half_open": lambda: _half_open(_figures(breaker_half_open=2), 1) == {True},
    "breaker_successes": lambda: _closes_after(_figures(breaker_successes=4)) == 4,
    "rate_limit": lambda: not _burst(_figures(rate_limit=0.01), 15) and _burst(PLAIN, 15),
    "rate_burst": lambda: _burst(_figures(rate_limit=0.01, rate_burst=15), 15),
    "agent_timeout_s": lambda: _figures(agent_timeout_s=9.0).time_to_pass_s
    == PLAIN.time_to_pass_s + 9.0
    and _figures(agent_timeout_s=600.0).time_to_pass_s == PLAIN.time_to_pass_s,
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_counts(name: str) -> None:
    assert FIGURES[name]()


def test_every_figure_has_its_row() -> None:
    assert set(FIGURES) == {one.name for one in fields(Figures)}


def test_every_limit_is_used_somewhere() -> None:
    """Deadlines are the live target's: each is read there, or in the contract."""
    from importlib.resources import files

    used = "".join(
        path.read_text(encoding="utf-8")
        for package in (
            *("mutiny.targets.board", "mutiny.targets.kit", "mutiny.contracts.board", "mutiny.kit"),
        )
        for path in files(package).iterdir()
        if path.name.endswith(".py") and path.name != "profile.py"
    )
    assert [one.name for one in fields(BoardLimits) if f"limits.{one.name}" not in used] == []


def test_where_no_clock_can_be_bent_no_worker_has_a_bent_one() -> None:
    unbent = replace(PLAIN, lacks=("SkewClock",))
    for behaviour, left in (("skewed:3600", False), ("slow:1500", True)):
        worker = op.SpawnWorker("w1", behaviour)
        assert supported(PLAIN, worker)
        assert supported(unbent, worker) is left
    assert fit(unbent, FAULT_SCENARIOS["skewed_worker"]).nothing_left


def test_the_number_of_attempts_that_a_board_has_anyway_need_not_be_said() -> None:
    mute = replace(PLAIN, says_attempts=False)
    for own, left in ((1, True), (3, False)):
        profile = replace(mute, figures=replace(mute.figures, max_attempts=own))
        assert supported(profile, op.AddTask("a", max_attempts=1)) is left
        assert ("failed_not_completed" in BoardContract(profile).scenarios) is left
