"""The board as a sequential specification, and how a history of a board is cut by task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mutiny.errors import UsageError
from mutiny.history.board import BoardModel, Silence
from mutiny.history.checker import Verdict, check
from mutiny.history.events import Entry

Line = tuple[str, object]


def said(line: Line, begun: float, ended: float | None = None) -> Entry:
    """`("claim a t1 1", "ok")`: verb, then worker, task and epoch as the verb has them."""
    words, answer = line
    verb, *rest = words.split()
    arguments: dict[str, object] = {}
    full: dict[str, object] = {"ok": True}
    if verb in ("claim", "start", "complete", "fail", "release", "heartbeat"):
        arguments["worker"] = rest.pop(0)
    if rest:
        arguments["id" if verb == "add" else "task"] = rest.pop(0)
    if rest and verb == "claim":
        full |= {"task": arguments.pop("task"), "epoch": int(rest.pop(0))}
    elif rest:
        arguments["epoch"] = int(rest.pop(0))
    if isinstance(answer, str) and answer != "ok":
        full = {"ok": False, "error": answer}
    if answer is None:
        return Entry("p", verb, arguments, None, begun, None)
    over = begun + 0.5 if ended is None else ended
    return Entry("p", verb, arguments, answer if isinstance(answer, dict) else full, begun, over)


def verdict(*lines: Line, model: BoardModel | None = None) -> Verdict:
    """One line after the other."""
    entries = [said(line, float(number)) for number, line in enumerate(lines)]
    return check(entries, model or BoardModel()).verdict


ADDED: Line = ("add t1", "ok")
CLAIMED: tuple[Line, ...] = (ADDED, ("claim a t1 1", "ok"))
STARTED: tuple[Line, ...] = (*CLAIMED, ("start a t1 1", "ok"))
DONE: tuple[Line, ...] = (*STARTED, ("complete a t1 1", "ok"))

RIGHT: list[tuple[Line, ...]] = [
    DONE,
    (*CLAIMED, ("complete a t1", "ok")),
    (*DONE, ("complete a t1 1", "wrong_status")),
    (*DONE, ("complete b t1 1", "not_owner"), ("cancel t1", "wrong_status")),
    (
        *STARTED,
        ("release a t1 1", "ok"),
        ("claim b t1 2", "ok"),
        ("complete a t1 1", "stale_epoch"),
    ),
    (*STARTED, ("fail a t1 1", "ok"), ("claim b t1 5", "ok"), ("complete b t1 5", "ok")),
    (*STARTED, ("fail a t1 1", "ok"), ("retry t1", "ok"), ("claim b t1 2", "ok")),
    (*CLAIMED, ("cancel t1", "ok"), ("complete a t1 1", "wrong_status")),
    (*CLAIMED, ("add t1", "duplicate_id"), ("start b t1", "not_owner")),
    (("start a t1", "unknown_task"), ADDED, ("claim a t1", {"ok": False, "error": "rate_limited"})),
    (*CLAIMED, ("recover", {"ok": True, "returned": ["t1"]}), ("claim b t1 2", "ok")),
    (*CLAIMED, ("complete a t1 1", None), ("complete a t1 1", "wrong_status")),
    (*CLAIMED, ("complete a t1 1", None), ("complete a t1 1", "ok")),
    (ADDED, ("claim b", None), ("complete b t1 1", "ok")),
    (("add", None), ("claim b t9 1", "ok")),
    (
        *CLAIMED,
        (
            "list",
            {"ok": True, "tasks": [{"id": "t1", "status": "claimed", "owner": "a", "epoch": 1}]},
        ),
    ),
]
WRONG: list[tuple[Line, ...]] = [
    (*CLAIMED, ("claim b t1 2", "ok")),
    (*DONE, ("claim b t1 2", "ok")),
    (*DONE, ("complete a t1 1", "ok")),
    (*DONE, ("cancel t1", "ok")),
    (*DONE, ("complete a t1 1", "not_owner")),
    (*STARTED, ("release a t1 1", "ok"), ("claim b t1 1", "ok")),
    (*STARTED, ("complete b t1 1", "ok")),
    (*STARTED, ("complete a t1 1", "wrong_status")),
    (*STARTED, ("complete a t1 1", "not_owner")),
    (*STARTED, ("complete a t1 1", "stale_epoch")),
    (*STARTED, ("complete a t1 2", "ok")),
    (("claim a t1 1", "ok"),),
    (ADDED, ("claim a t1", "nothing_to_claim"), ("add t1", "ok")),
    (ADDED, ("start a t1", "unknown_task")),
    (ADDED, ("retry t1", "ok")),
    (ADDED, ("recover", {"ok": True, "returned": ["t1"]})),
    (ADDED, ("claim a t1", {"ok": False, "error": "no_such_error"})),
    (*CLAIMED, ("list", {"ok": True, "tasks": []})),
    (
        *CLAIMED,
        (
            "list",
            {"ok": True, "tasks": [{"id": "t1", "status": "claimed", "owner": "b", "epoch": 1}]},
        ),
    ),
]


@pytest.mark.parametrize("lines", RIGHT)
def test_right(lines: tuple[Line, ...]) -> None:
    assert verdict(*lines) is Verdict.LINEARIZABLE


@pytest.mark.parametrize("lines", WRONG)
def test_wrong(lines: tuple[Line, ...]) -> None:
    assert verdict(*lines) is Verdict.NOT_LINEARIZABLE


def test_two_owners_are_named() -> None:
    entries = [
        said(ADDED, 0),
        replace(said(("claim a t1 1", "ok"), 1, 3), process="p1"),
        replace(said(("claim b t1 1", "ok"), 2, 4), process="p2"),
        said(("start a t1 1", "ok"), 5),
    ]
    report = check(entries, BoardModel())
    assert report.render().splitlines()[1:] == [
        "t1: 2 of 4 fit",
        "  these 2 operations cannot be ordered (at first: absent):",
        "    p1 [1, 3] claim worker=a -> ok task=t1 epoch=1",
        "    p2 [2, 4] claim worker=b -> ok task=t1 epoch=1",
    ]


def test_a_refusal_needs_only_one_moment_of_its_call() -> None:
    refusal = said(("complete b t1 1", "not_owner"), 2.2, 9.0)
    lines = [said(line, float(number)) for number, line in enumerate(DONE)]
    assert check([*lines, refusal], BoardModel()).verdict is Verdict.LINEARIZABLE
    too_late = said(("claim b t1", "dependencies_open"), 2.2, 9.0)
    assert check([*lines, too_late], BoardModel()).verdict is Verdict.NOT_LINEARIZABLE


def test_a_crashed_claim_takes_at_most_one_owner_from_each_task() -> None:
    """It is allowed for in every task, but it happens once in each."""
    lost: Line = ("claim b", None)
    assert verdict(*CLAIMED, lost, ("fail a t1 1", "ok"), ("start b t1", "ok")) is (
        Verdict.LINEARIZABLE
    )
    again = (("release b t1", "ok"), ("start b t1", "not_owner"), ("complete b t1", "ok"))
    assert verdict(ADDED, lost, ("start b t1", "ok"), *again) is Verdict.NOT_LINEARIZABLE


def test_dependencies_may_be_met_at_any_time_and_never_unmet() -> None:
    add = Entry("p", "add", {"id": "t2", "depends": ["t1"]}, {"ok": True, "task": "t2"}, 0, 1)
    blocked = said(("claim a t2", "dependencies_open"), 2)
    claimed = said(("claim a t2 1", "ok"), 3)
    assert check([add, blocked, claimed], BoardModel()).verdict is Verdict.LINEARIZABLE
    late = said(("claim b t2", "dependencies_open"), 4)
    assert check([add, claimed, late], BoardModel()).verdict is Verdict.NOT_LINEARIZABLE


def test_attempts_are_counted_when_there_is_a_limit() -> None:
    lines: list[Line] = [ADDED]
    for epoch in (1, 2):
        lines += [(f"claim a t1 {epoch}", "ok"), (f"fail a t1 {epoch}", "ok")]
    once_more: Line = ("claim a t1 3", "ok")
    assert verdict(*lines, once_more) is Verdict.LINEARIZABLE
    assert verdict(*lines, once_more, model=BoardModel(max_attempts=3)) is Verdict.LINEARIZABLE
    two = BoardModel(max_attempts=2)
    assert verdict(*lines, once_more, model=two) is Verdict.NOT_LINEARIZABLE
    assert verdict(*lines, ("retry t1", "ok"), once_more, model=two) is Verdict.LINEARIZABLE


def leased(*entries: Entry) -> Verdict:
    return check(entries, BoardModel.of(entries, lease_s=2.0)).verdict


def test_only_the_claim_of_a_silent_worker_runs_out() -> None:
    begin = (said(ADDED, 0), said(("claim a t1 1", "ok"), 1, 1.5))
    robbed = said(("claim b t1 2", "ok"), 3.2, 3.4)
    assert leased(*begin, robbed) is Verdict.LINEARIZABLE
    assert leased(*begin, said(("claim b t1 2", "ok"), 2, 2.9)) is Verdict.NOT_LINEARIZABLE
    beat = said(("heartbeat a", "ok"), 2, 2.2)
    assert leased(*begin, beat, robbed) is Verdict.NOT_LINEARIZABLE
    recovered = said(("recover", {"ok": True, "returned": ["t1"]}), 3.2)
    assert leased(*begin, recovered) is Verdict.LINEARIZABLE
    assert leased(*begin, beat, recovered) is Verdict.NOT_LINEARIZABLE
    # One that was silent, and lives again, has lost its claim all the same.
    back = said(("heartbeat a", "ok"), 9, 9.1)
    assert leased(*begin, back, said(("claim b t1 2", "ok"), 9.5)) is Verdict.LINEARIZABLE


def test_a_slow_sign_of_life_proves_nothing_about_a_moment() -> None:
    silence = Silence(2.0, {"a": [(0.0, 10.0), (1.0, 1.1)]})
    assert silence.first("a", 0.0) == 3.0  # the slow one may have counted at 0 or at 10
    steady = Silence(2.0, {"a": [(float(n), n + 0.1) for n in range(10)]})
    assert steady.first("a", 0.0) == 11.0
    assert silence.first("nobody", 4.0) == 6.0


def test_what_says_nothing_about_a_task_is_left_out_and_said() -> None:
    entries = [
        *(said(ADDED, 0), said(("claim a", "nothing_to_claim"), 1), said(("heartbeat a", "ok"), 2)),
        *(said(("status", "ok"), 3), said(("recover", "busy"), 4)),
    ]
    parts = BoardModel().partition(entries)
    assert list(parts.by_key) == ["t1"]
    assert sorted(parts.left_out.values()) == [1, 1, 1, 1]
    assert "a claim that got nothing says nothing about one task" in parts.left_out
    assert "not checked: 1 x" in check(entries, BoardModel()).render()


def test_a_batch_is_one_add_for_each_task() -> None:
    tasks = [{"id": "t1", "description": "x"}, {"description": "y"}]
    batch = Entry("p", "add-batch", {"tasks": tasks}, {"ok": True, "tasks": ["t1", "t2"]}, 0, 1)
    claims = [said(("claim a t1 1", "ok"), 2), said(("claim b t2 1", "ok"), 2)]
    assert check([batch, *claims], BoardModel()).verdict is Verdict.LINEARIZABLE
    lost = replace(batch, answer=None, returned=None)
    assert check([lost, *claims], BoardModel()).verdict is Verdict.LINEARIZABLE
    again = said(("add t2", "ok"), 3)
    assert check([batch, again], BoardModel()).verdict is Verdict.NOT_LINEARIZABLE


def test_an_answer_that_does_not_know_is_no_answer() -> None:
    unsure = {"ok": False, "error": "no_space", "happened": "unknown"}
    done: Line = ("complete a t1 1", unsure)
    assert verdict(*STARTED, done, ("complete a t1 1", "wrong_status")) is Verdict.LINEARIZABLE
    assert verdict(*STARTED, done, ("complete a t1 1", "ok")) is Verdict.LINEARIZABLE
    sure: Line = ("complete a t1 1", {"ok": False, "error": "no_space", "happened": "no"})
    wrong = verdict(*STARTED, sure, ("complete a t1 1", "wrong_status"))
    assert wrong is Verdict.NOT_LINEARIZABLE


def test_tasks_that_were_there_before() -> None:
    model = BoardModel(present=frozenset({"t1"}))
    assert verdict(("claim a t1 4", "ok"), model=model) is Verdict.LINEARIZABLE
    assert verdict(("add t1", "ok"), model=model) is Verdict.NOT_LINEARIZABLE


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (("restore", "ok"), "end the history before it"),
        (("start a", "ok"), "which task"),
        (("paint t1", "ok"), "a task has add, claim"),
    ],
)
def test_what_cannot_be_checked_is_refused(line: Line, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        check([said(line, 0)], BoardModel())
