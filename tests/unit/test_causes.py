"""Failing runs by their causes: what differs from run to run does not tell them apart."""

from __future__ import annotations

from pathlib import Path

from mutiny.contracts.workers import operations as op
from mutiny.engine.causes import Causes, cause_of
from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation


def failed(
    operation: Operation, message: str, rule: str = "workers.no_crash", steps: int = 2
) -> Outcome:
    verdicts = (*(Verdict.SUCCESS for _ in range(steps - 1)), Verdict.BUG)
    made = tuple(
        Step(
            sequence_id=number,
            timestamp_unix=0.0,
            pre_state={},
            post_state={},
            operation=operation if verdict is Verdict.BUG else op.Status(),
            result=OperationResult(),
            verdict=verdict,
            violations=(Violation(rule, message),) if verdict is Verdict.BUG else (),
        )
        for number, verdict in enumerate(verdicts)
    )
    return Outcome(Verdict.BUG, made, RunDirectory(Path("run")))


def test_names_and_numbers_are_not_part_of_a_cause() -> None:
    one = failed(op.Accept("alpha"), 'Accept(worker="alpha") crashed: line 12')
    other = failed(op.Accept("beta"), 'Accept(worker="beta") crashed: line 99')
    assert cause_of(one) == cause_of(other)


def test_rule_operation_and_what_is_said_are() -> None:
    crashed = "it crashed: no such key"
    found = {
        cause_of(failed(op.Accept("a"), crashed)),
        cause_of(failed(op.Nuke("a"), crashed)),
        cause_of(failed(common.CrashAt(op.Nuke("a"), 3), crashed)),
        cause_of(failed(op.Accept("a"), crashed, "workers.recovers")),
        cause_of(failed(op.Accept("a"), "it crashed: out of memory")),
    }
    assert len(found) == 5


def test_a_cause_is_new_once() -> None:
    causes, outcome = Causes(), failed(op.Accept("a"), "it crashed")
    assert [causes.is_new(outcome), causes.is_new(outcome)] == [True, False]


def test_the_commonest_comes_first_with_its_shortest_run() -> None:
    causes = Causes()
    causes.add("seed 1", failed(op.Nuke("a"), "it crashed"))
    causes.add("seed 2", failed(op.Accept("a"), "it crashed", steps=9))
    causes.add("seed 3", failed(op.Accept("b"), "it crashed", steps=4))
    first, second = causes.ordered()
    assert (first.count, first.first, first.as_json()["operations"]) == (2, "seed 2", 4)
    assert second.count == 1
    assert causes.told()[0] == "2 times, first seed 2: workers.no_crash at Accept: it crashed"


def test_a_cause_is_told_in_the_words_of_its_shortest_run() -> None:
    causes = Causes()
    causes.add("seed 1", failed(op.Accept("a"), "MT-1 is in 2 commits", steps=9))
    causes.add("seed 2", failed(op.Accept("a"), "MT-7 is in 3 commits", steps=4))
    assert causes.told()[0].endswith("workers.no_crash at Accept: MT-7 is in 3 commits")


def test_a_run_that_broke_no_rule_has_no_cause() -> None:
    causes, passed = Causes(), Outcome(Verdict.INCONCLUSIVE, (), RunDirectory(Path("run")))
    causes.add("seed 1", passed)
    assert causes.groups == []
    assert not causes.is_new(passed)
