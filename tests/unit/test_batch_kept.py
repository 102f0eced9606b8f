"""What a batch orchestrator shows is what it keeps, and what it keeps is so; nobody is accused wrongly."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from test_contract_batch import BEFORE, begun, seen

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.contract import BatchContract
from mutiny.contracts.batch.kept import kept_true
from mutiny.contracts.batch.observation import (
    Attempt,
    BatchRow,
    BatchSeen,
    Line,
    RunSeen,
    TaskSeen,
)
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.tasks import rows_of
from mutiny.kit.checking import Check
from mutiny.kit.moments import At, KillOrchestrator
from mutiny.kit.operations import Parallel
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult

# --- what is shown is what is kept --------------------------------------------------------------------

STATE: dict[str, Any] = {
    "id": "r1",
    "main": "master",
    "status": "complete",
    "reason": "",
    "tasks": {"a": {"id": "a", "status": "complete", "attempts": 1, "files": ["work/a.txt"]}},
    "batches": [{"id": 1, "tasks": ["a"], "phase": "complete"}],
}
LINES = tuple(
    Line({"ts": at, "type": kind, "run_id": "r1", **({"task_id": task} if task else {})}, task)
    for at, kind, task in ((1, "run.start", ""), (2, "worker.start", "a"), (3, "run.complete", ""))
)
PLAN = op.Plan(("a", "b needs=a"))
KEPT = seen(
    kept={"r1": STATE},
    lines={"r1": LINES},
    logged={("r1", ""): 3, ("r1", "a"): 1},
    planned={"tasks": rows_of(PLAN.parsed())},
)


def told(
    operation: Operation,
    said: Mapping[str, Any],
    *,
    before: BatchSeen = KEPT,
    after: BatchSeen = KEPT,
    code: int = 0,
    promised: bool = True,
    **beliefs: Any,
) -> str | None:
    """The rule that an answer breaks."""
    contract = BatchContract(BatchProfile(shows_kept=promised))
    model = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    known = replace(contract.initial(), alternatives=(replace(model, **beliefs),))
    judged = contract.judge(
        known, operation, OperationResult(code, json.dumps(said)), before, after, 1.0
    )
    return judged.violation.rule.removeprefix("batch.") if judged.violation else None


def changed(state: Mapping[str, Any], **parts: Any) -> dict[str, Any]:
    """The same with other parts of its only task, or of itself."""
    new = copy.deepcopy(dict(state))
    for name, value in parts.items():
        (new["tasks"]["a"] if name in new["tasks"]["a"] and name != "id" else new)[name] = value
    return new


@pytest.mark.parametrize(
    "said",
    [
        changed(STATE, attempts=0),
        changed(STATE, files=[]),
        changed(STATE, main="trunk"),
        changed(STATE, reason="tired"),
        changed(STATE, batches=[]),
        changed(STATE, id="r2"),
        {**STATE, "tasks": {**STATE["tasks"], "b": {"status": "complete"}}},
    ],
    ids=["a number", "a list", "a text", "a reason", "batches", "its name", "a task more"],
)
def test_a_run_is_shown_as_it_is_kept(said: Mapping[str, Any]) -> None:
    assert told(op.Status(), STATE) is None
    assert told(op.Status(), said) == "status_true"
    assert told(op.Status(), said, promised=False) is None
    assert told(op.Resume(), said) == "status_true"


def test_what_is_only_shown_or_only_kept_is_no_lie() -> None:
    less = {key: value for key, value in STATE.items() if key != "batches"}
    assert told(op.Status(), less) is None
    assert told(op.Status(), {**STATE, "hint": "all is well"}) is None
    assert told(op.Status(), STATE, after=seen(kept={}), before=seen(kept={})) is None


def test_whoever_looks_may_have_looked_before_somebody_saved() -> None:
    later = replace(KEPT, kept={"r1": changed(STATE, attempts=2)})
    assert told(op.Status(), STATE, after=later) is None
    assert told(op.Status(), changed(STATE, attempts=3), after=later) == "status_true"
    at_work = replace(later, processes=("an agent",))
    assert told(op.Status(), changed(STATE, attempts=3), after=at_work) is None
    assert told(op.Status(), changed(STATE, main="x"), after=at_work) == "status_true"


def test_to_resume_what_is_complete_shows_it_as_it_was() -> None:
    after = replace(KEPT, kept={"r1": changed(STATE, reason="resumed")})
    assert told(op.Resume(), STATE, after=after) is None, "another promise is broken"
    assert told(op.Resume(), changed(STATE, reason="tired"), after=after) == "status_true"


def test_a_run_that_nobody_works_on_may_be_called_so() -> None:
    left = replace(KEPT, kept={"r1": changed(STATE) | {"status": "running"}})
    said = changed(STATE) | {"status": "interrupted", "reason": "nobody works on it"}
    assert told(op.Status(), said, before=left, after=left) is None
    assert told(op.Status(), said) == "status_true"


def test_beside_others_and_under_faults_nothing_is_compared() -> None:
    said = changed(STATE, attempts=0)
    beside = Parallel((op.Status(), op.Status()))
    contract = BatchContract(BatchProfile(shows_kept=True))
    model = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    known = replace(contract.initial(), alternatives=(model,))
    answers = tuple(OperationResult(0, json.dumps(said)) for _ in range(2))
    both = OperationResult(0, inner=answers)
    assert contract.judge(known, beside, both, KEPT, KEPT, 1.0).violation is None
    assert told(op.Status(), said, lasting=(op.EngineOutage(),)) is None
    assert told(op.Status(), said, after=replace(KEPT, error="cut off")) is None


def test_a_run_shows_its_own_state_and_that_at_its_end() -> None:
    before = seen(runs={}, kept={}, landed={})
    assert told(op.Run(), STATE, before=before) is None
    assert told(op.Run(), changed(STATE, attempts=0), before=before) == "status_true"
    other = replace(
        KEPT,
        runs={**KEPT.runs, "mine": RunSeen("mine", "complete", "", KEPT.runs["r1"].tasks)},
        kept={"r1": changed(STATE, attempts=7), "mine": changed(STATE, id="mine")},
    )
    assert told(op.Run("mine"), changed(STATE, id="mine"), after=other) is None


def test_a_run_that_ends_badly_is_shown_truly() -> None:
    failed = changed(STATE) | {"status": "failed", "reason": "a"}
    ended = {"r1": RunSeen("r1", "failed", "a", {"a": TaskSeen("failed", 1, "no")})}
    after = replace(KEPT, runs=ended, kept={"r1": failed})
    right: dict[str, Any] = {
        "before": seen(runs={}, kept={}, landed={}),
        "after": after,
        "code": 1,
    }
    assert told(op.Run(), failed, **right) is None
    assert told(op.Run(), failed | {"reason": "b"}, **right) == "status_true"


def test_a_plan_is_shown_as_it_was_given_and_is_kept() -> None:
    rows = rows_of(PLAN.parsed())
    assert told(PLAN, {"tasks": rows}) is None
    assert told(PLAN, {"tasks": rows[::-1]}) == "answers_truly", "kept in another order"
    without = [{**row, "depends": []} for row in rows]
    assert told(PLAN, {"tasks": without}) == "answers_truly"
    assert told(PLAN, {"tasks": without}, promised=False) is None
    unread = replace(KEPT, planned=None)
    assert told(PLAN, {"tasks": rows}, after=unread) is None
    assert told(PLAN, {"tasks": rows[:1]}, after=unread) == "answers_truly"
    assert told(PLAN, {"tasks": without}, after=unread) == "answers_truly"
    assert told(PLAN, {"count": 2}) is None, "a field that is absent"


def test_the_lines_that_are_shown_are_those_that_were_written() -> None:
    lines = [dict(one.said) for one in LINES]
    assert told(op.LogsTimeline(), {"events": lines}) is None
    assert told(op.LogsTimeline(), {"events": lines[::-1]}) == "answers_truly"
    assert told(op.LogsTimeline(), {"events": lines[1:]}) == "answers_truly"
    assert told(op.LogsQuery("a"), {"events": lines[1:2]}) is None
    assert told(op.LogsQuery("a"), {"events": lines[:1]}) == "answers_truly"
    growing = replace(KEPT, lines={"r1": (*LINES, LINES[0])})
    assert told(op.LogsTimeline(), {"events": lines[1:]}, after=growing) is None
    torn = replace(KEPT, bad_events=("it is no JSON",))
    assert told(op.LogsTimeline(), {"events": lines[1:]}, before=torn, after=torn) is None


def test_clean_names_what_it_took() -> None:
    after = seen(runs={}, kept={})
    assert told(op.Clean(), {"cleaned": "r1"}, after=after) is None
    assert told(op.Clean(), {"cleaned": "r2"}, after=after) == "answers_truly"
    assert told(op.Clean(), {}, after=after) is None


# --- what is kept is so -------------------------------------------------------------------------------

GIT = {
    "commits": frozenset({"c0", "w1", "c1"}),
    "steps": ("c1", "c0"),
    "brought": {"a": ("c1",)},
}
PLANNED = {key: value for key, value in rows_of(op.Plan(("a",)).parsed())[0].items() if key != "id"}
GOOD = TaskSeen("complete", 0, "", 50, 1, 0, "w1", "c0", "c1", PLANNED)
BATCH = BatchRow(1, ("a",), True, "c0", "c1")
LOG = (
    Line({"type": "batch.start"}, "", ("a",), "1"),
    Line({"type": "worker.start"}, "a", begins=True, tells={"begun": 1}),
    Line({"type": "worker.complete"}, "a", tells={"tokens": 50}),
    Line({"type": "task.validated"}, "a", tells={"commit": "w1"}),
    Line({"type": "task.complete"}, "a", tells={"merged": "c1"}),
)


def after_run(
    task: TaskSeen = GOOD, batches: tuple[BatchRow, ...] = (BATCH,), **more: Any
) -> BatchSeen:
    """A run of one task that went well, with all that a target may keep of it."""
    run = RunSeen("r1", "complete", "", {"a": task}, 50, batches)
    words = frozenset({"begun", "tokens", "commit", "merged", "conflicts"})
    known = {"events": 5, "lines": {"r1": LOG}, "logs": words, "logs_starts": True}
    return seen(runs={"r1": run}, **{**GIT, **known, **more})


def untrue(after: BatchSeen, operation: Operation | None = None, **beliefs: Any) -> list[str]:
    """What the rule finds."""
    knobs = beliefs.pop("knobs", {})
    model = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    for name, value in knobs.items():
        model = replace(model, knobs=model.knobs.set(name, value))
    check = Check(replace(model, **beliefs), after, BEFORE, operation or op.Run())
    return [one.message for one in kept_true(check)]


def test_a_good_run_is_kept_truly() -> None:
    assert untrue(after_run()) == []


@pytest.mark.parametrize(
    "task",
    [
        replace(GOOD, merged="c0"),
        replace(GOOD, merged="c9"),
        replace(GOOD, merged=""),
        replace(GOOD, commit="w9"),
        replace(GOOD, base="c9"),
        replace(GOOD, begun=2),
        replace(GOOD, attempts=2),
        replace(GOOD, tokens=49),
        replace(GOOD, conflicts=1),
        replace(GOOD, planned={**PLANNED, "prompt": "rest"}),
        replace(GOOD, planned={**PLANNED, "files": []}),
    ],
    ids=str,
)
def test_what_is_kept_of_a_task_is_so(task: TaskSeen) -> None:
    assert untrue(after_run(task))


def test_what_a_target_does_not_keep_is_no_lie() -> None:
    assert untrue(after_run(TaskSeen("complete", 0), (), lines={}, logs=frozenset())) == [
        "The log tells of 0 attempts at a; 1 agents were started."
    ]
    none = {"lines": {}, "logs": frozenset(), "logs_starts": False}
    assert untrue(after_run(TaskSeen("complete", 0), (), **none)) == []
    wider = replace(GOOD, planned={**PLANNED, "files": ["work/a.txt", "extra/a.txt"]})
    assert untrue(after_run(wider)) == [], "it has declared more since"
    turned = replace(GOOD, planned={"files": ["work/a.txt", "work/a.txt"]})
    assert untrue(after_run(turned)) == []


@pytest.mark.parametrize(
    "batches",
    [
        (BATCH, BATCH),
        (replace(BATCH, tasks=("a", "z")),),
        (replace(BATCH, landed=False),),
        (replace(BATCH, target="c0"),),
        (replace(BATCH, base="c1"),),
        (replace(BATCH, tasks=()),),
        (replace(BATCH, id=2),),
    ],
    ids=["two of one number", "a stranger", "not landed", "target", "base", "left out", "number"],
)
def test_batches_are_kept_truly(batches: tuple[BatchRow, ...]) -> None:
    assert untrue(after_run(batches=batches))


def test_a_target_may_choose_how_batches_are_called() -> None:
    named = (Line({}, "", ("a",), "first"), *LOG[1:])
    assert untrue(after_run(batches=(replace(BATCH, id="first"),), lines={"r1": named})) == []
    again = (BatchRow(1, ("a",)), replace(BATCH, id=2))
    assert untrue(after_run(batches=again)) == [], "tried with one, landed with another"


@pytest.mark.parametrize(
    "at",
    [
        (0, Line({}, "", ("z",), "1")),
        (0, Line({}, "", ("a",), "7")),
        (1, Line({}, "z", begins=True)),
        (1, Line({}, "a")),
        (2, Line({}, "a", tells={"tokens": 49})),
        (3, Line({}, "a", tells={"commit": "w2"})),
        (4, Line({}, "a")),
    ],
    ids=["a stranger", "no batch", "of a stranger", "no start", "tokens", "commit", "not told"],
)
def test_the_log_agrees_with_the_state(at: tuple[int, Line]) -> None:
    place, line = at
    log = (*LOG[:place], line, *LOG[place + 1 :])
    assert untrue(after_run(lines={"r1": log}))


def test_whoever_was_disturbed_may_have_lost_a_line_or_an_attempt() -> None:
    late = after_run(replace(GOOD, begun=2, attempts=3, tokens=9), lines={"r1": LOG[:2]})
    assert untrue(late)
    assert untrue(late, faults=("kill",)) == []
    assert untrue(late, lost=frozenset({"a"})) == []
    assert untrue(late, knobs={"agent_timeout_s": "1"}) == []
    assert untrue(late, knobs={"workers": "container"}) == []
    assert untrue(late, At("worker", op.Run(), KillOrchestrator())) == []
    assert untrue(late, Parallel((op.Run(), op.Run()))) == []
    assert untrue(late, Parallel((op.Run(), op.SetTaskStatus("a", "pending")))) == []


def test_a_state_that_is_damaged_or_another_run_is_not_judged() -> None:
    wrong = after_run(replace(GOOD, merged="c9"))
    assert untrue(wrong)
    assert untrue(wrong, doubted=True) == []
    assert untrue(replace(wrong, error="cut off")) == []
    other = begun("a").run
    assert other is not None
    assert untrue(wrong, run=replace(other, name="r7")) == []
    assert untrue(wrong, run=replace(other, again=True)) == []


def test_a_task_that_is_not_merged_may_have_any_commit() -> None:
    waiting = replace(GOOD, status="review", commit="w9", merged="")
    assert untrue(after_run(waiting, (replace(BATCH, landed=False, target=""),))) == []
    assert untrue(after_run(waiting)), "its batch has landed"


def test_what_was_done_in_an_earlier_step_was_told_of_then() -> None:
    before = replace(
        BEFORE,
        attempts=seen().attempts,
        runs={"r1": RunSeen("r1", "paused", "edited", {"a": replace(GOOD, status="validated")})},
        lines={"r1": LOG[:4]},
    )
    model = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    told = Check(model, after_run(), before, op.Resume())
    assert list(kept_true(told)) == []
    silent = Check(model, after_run(lines={"r1": LOG[:4]}), before, op.Resume())
    assert [one.subject for one in kept_true(silent)] == ["a"], "that it was merged is new"


def test_attempts_of_older_runs_are_not_counted() -> None:
    two = (Attempt("a", 1, frozenset()), Attempt("a", 2, frozenset(), True, 0, 50))
    check = Check(
        begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"})),
        after_run(attempts=two),
        replace(BEFORE, attempts=two[:1]),
        op.Run(),
    )
    assert list(kept_true(check)) == []
