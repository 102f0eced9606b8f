"""What some batch orchestrators promise beyond the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from test_contract_batch import BEFORE, CONTRACT, ONE, begun, broken, run_with, seen

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.contract import BatchContract
from mutiny.contracts.batch.forecast import forecast
from mutiny.contracts.batch.observation import Attempt, RunSeen, TaskSeen
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.supported import supported
from mutiny.doubles.tasks import agent
from mutiny.kit.judging import Moment
from mutiny.kit.operations import Parallel
from mutiny.model.result import OperationResult


def test_what_is_removed_is_to_be_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = {"manifest": "block", "rescope": "off"}
    planned = begun("a", "b does=removes needs=a", knobs=strict)
    assert forecast(planned, None).tasks["b"] == frozenset({"review"})
    monkeypatch.chdir(tmp_path)
    agent.act("a", 1, "works", "")
    agent.act("b", 1, "removes", "")
    assert [one.name for one in (tmp_path / "work").iterdir()] == ["b.txt"]
    for files, right in (({"work/a.txt", "work/b.txt"}, True), ({"work/b.txt"}, False)):
        after = seen(landed={"a": 1, "b": 1}, files=frozenset(files))
        there = seen(landed={"a": 1})
        found = broken(after, before=there, run=planned.run, knobs=strict)
        assert ("declared" not in found) is right


def test_what_is_renamed_is_removed_under_its_old_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = {"manifest": "block", "rescope": "off"}
    planned = begun("a", "b does=renames needs=a", knobs=strict)
    assert forecast(planned, None).tasks["b"] == frozenset({"review"})
    monkeypatch.chdir(tmp_path)
    agent.act("a", 1, "works", "")
    text = (tmp_path / "work/a.txt").read_text()
    agent.act("b", 1, "renames", "")
    assert [one.name for one in (tmp_path / "work").iterdir()] == ["b.txt"]
    assert (tmp_path / "work/b.txt").read_text() == text, "git shows a renamed file"
    for files, right in (({"work/a.txt", "work/b.txt"}, True), ({"work/b.txt"}, False)):
        after = seen(landed={"a": 1, "b": 1}, files=frozenset(files))
        found = broken(after, before=seen(landed={"a": 1}), run=planned.run, knobs=strict)
        assert ("declared" not in found) is right


def test_a_task_is_done_again_as_often_as_it_may_conflict() -> None:
    tries = tuple(Attempt("a", n, frozenset()) for n in range(5))
    assert "attempts_bounded" not in broken(seen(attempts=tries))
    assert "attempts_bounded" in broken(seen(attempts=tries), knobs={"max_conflicts": "1"})


def test_what_went_wrong_before_is_not_told_of_what_is_done_where_that_is_promised() -> None:
    done = seen(runs=run_with("complete", TaskSeen("complete", 1, "the first agent died")))
    assert "failure_has_text" in broken(done, forgets_errors=True)
    assert "failure_has_text" not in broken(done)
    assert "failure_has_text" not in broken(seen(), forgets_errors=True)


@pytest.mark.parametrize(
    ("batches", "rule"),
    [
        ([{"id": 1, "tasks": ["a"]}, {"id": 2, "tasks": []}], None),
        ([{"id": 0, "tasks": ["a"]}, {"id": 0, "tasks": ["b"]}], "batch.answers_truly"),
        ([{"id": 1, "tasks": ["b"]}], "batch.answers_truly"),
    ],
    ids=["so it is", "two of one number", "forgotten"],
)
def test_the_batches_that_are_told_of_are_those_that_were(
    batches: list[dict[str, object]], rule: str | None
) -> None:
    profile = BatchProfile(answers={"Status": ("batches.tasks",)})
    contract = BatchContract(profile)
    model = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    beliefs = replace(contract.initial(), alternatives=(model,))
    said = {"id": "r1", "tasks": {"a": {"status": "complete"}}, "batches": batches}
    answer = OperationResult(0, json.dumps(said))
    told = contract.judge(beliefs, op.Status(), answer, seen(), seen(), 1.0)
    assert (told.violation.rule if told.violation else None) == rule


@pytest.mark.parametrize(
    ("promised", "told", "parts", "rule"),
    [
        (True, 90, (50, 40), None),
        (True, 50, (50, 40), "batch.tokens_true"),
        (False, 50, (50, 40), None),
        (True, 50, (50, None), None),
        (True, None, (50, 40), None),
    ],
    ids=["so it is", "one is left out", "not promised", "not told of one", "not told of all"],
)
def test_what_a_run_has_used_is_what_its_tasks_have(
    promised: bool, told: int | None, parts: tuple[int | None, ...], rule: str | None
) -> None:
    contract = BatchContract(BatchProfile(totals=promised))
    model = begun("a").ended({"a": frozenset({"complete"})}, frozenset({"complete"}))
    beliefs = replace(contract.initial(), alternatives=(model,))
    tasks = {
        name: {"status": "complete", "tokens": part} for name, part in zip("ab", parts, strict=True)
    }
    answer = OperationResult(0, json.dumps({"id": "r1", "tokens": told, "tasks": tasks}))
    judged = contract.judge(beliefs, op.Status(), answer, seen(), seen(), 1.0)
    assert (judged.violation.rule if judged.violation else None) == rule


def test_what_went_well_is_done_once_where_that_is_promised() -> None:
    twice = seen(attempts=(*ONE, Attempt("a", 2, frozenset(), True, 0, 50)))
    assert "attempts_bounded" in broken(twice, done_once=True)
    assert "attempts_bounded" not in broken(twice)
    assert "attempts_bounded" not in broken(twice, done_once=True, gates={"doctor": "fail"})
    assert "attempts_bounded" not in broken(twice, done_once=True, lost=frozenset({"a"}))
    shared = begun("a does=shares").run
    assert "attempts_bounded" not in broken(twice, done_once=True, run=shared)
    failed = seen(attempts=(Attempt("a", 1, frozenset(), True, 1), *ONE))
    assert "attempts_bounded" not in broken(failed, done_once=True)
    one_after_the_other = Parallel((op.Run(), op.Run()))
    assert "attempts_bounded" not in broken(twice, one_after_the_other, done_once=True)
    thrice = seen(attempts=(*twice.attempts, Attempt("a", 3, frozenset(), True, 0, 50)))
    assert "attempts_bounded" in broken(thrice, one_after_the_other, done_once=True)


def test_what_is_merged_stands_in_the_list_of_what_was_merged() -> None:
    assert "merged_is_complete" in broken(seen(ledger=frozenset({("r0", "a")})))
    assert "merged_is_complete" not in broken(seen(ledger=frozenset({("r1", "a")})))
    assert "merged_is_complete" not in broken(seen(ledger=None))


def test_somebody_else_on_the_machine_is_no_excuse() -> None:
    elsewhere = op.RunElsewhere()
    assert not supported(BatchProfile(), elsewhere)
    assert supported(BatchProfile(neighbours=True), elsewhere)
    judge = CONTRACT.judge_class(CONTRACT, seen(), seen(), 0.0)
    assert judge.excuses(elsewhere) == frozenset()
    assert judge.excuses(op.RunElsewhere("a")) == frozenset(), "whatever his task is called"
    assert judge.follows(begun("a"), elsewhere, Moment(BEFORE, BEFORE)) == (begun("a"),)


def test_a_run_that_is_complete_may_leave_what_an_older_one_keeps() -> None:
    theirs, own = "the reference refs/x/r1/a", "the reference refs/x/r2/a"
    failed = RunSeen("r1", "failed", "too dear", {"a": TaskSeen("validated", 0)})
    done = RunSeen("r2", "complete", "", {"a": TaskSeen("complete", 0)})
    before = seen(runs={"r1": failed}, left=(theirs,))

    def left(*what: str, older: RunSeen = failed) -> bool:
        after = seen(runs={"r1": older, "r2": done}, left=what)
        return "nothing_left" in broken(after, op.Run(), before)

    assert not left(theirs)
    assert not left("the reference refs/x/r1/b"), "it says whose it is"
    assert left(theirs, own)
    assert left("the remote x"), "it is new"
    assert left(theirs, older=replace(failed, status="complete")), "nobody goes on with that"


def test_a_budget_may_end_a_run_before_all_tries_have_failed() -> None:
    """Seed 7300027; and what somebody left out may keep its attempts (seed 7300036)."""
    knobs = {"budget": "block", "run_tokens": "500"}
    model = begun("a does=fails", "b tokens=300", knobs=knobs, gates={"lint": "fail"})
    found = forecast(model, None)
    assert found.run == {"failed"}
    assert found.tasks["b"] == {"failed", "pending"}
    cheap = forecast(begun("b", knobs=knobs, gates={"lint": "fail"}), None)
    assert cheap.tasks["b"] == {"failed"}


def test_what_was_left_out_has_used_its_part_of_a_budget() -> None:
    knobs = {"budget": "block", "run_tokens": "400"}
    planned = begun("a does=fails tokens=120", "b tokens=100", "c needs=a tokens=100", knobs=knobs)
    settled = {name: frozenset({word}) for name, word in (("a", "skipped"), ("b", "complete"))}
    model = planned.ended({**settled, "c": frozenset({"pending"})}, frozenset({"paused"}))
    tries = (*(Attempt("a", n, frozenset(), True, 1, 120) for n in (1, 2)),)
    tries = (*tries, Attempt("b", 1, frozenset(), True, 0, 100))
    assert forecast(model, seen(attempts=tries)).run == {"failed"}
    cheap = tuple(replace(one, tokens=10) for one in tries)
    assert forecast(model, seen(attempts=cheap)).run == {"complete"}


def test_who_sets_a_task_of_an_interrupted_run_may_leave_the_run_as_it_stands() -> None:
    settled = {"a": frozenset({"failed"})}
    command = op.SetTaskStatus("a", "skipped")
    for status, right in (("running", {"running", "paused"}), ("failed", {"paused"})):
        model = begun("a").ended(settled, frozenset({status}))
        (done, *_) = CONTRACT.outcomes(model, command, Moment(before=BEFORE))
        assert done.after.run is not None
        assert done.after.run.status == right
