"""Verdicts: what could not be tested never looks like what passed."""

from __future__ import annotations

import itertools

import pytest

from mutiny.contracts.board.rules import RULES as BOARD_RULES
from mutiny.contracts.workers.rules import RULES as WORKER_RULES
from mutiny.errors import (
    BoxError,
    FormatError,
    MutinyError,
    NotReproducible,
    StoreError,
    TargetMissing,
    UsageError,
)
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict, first_of_worst, of_step, worst
from mutiny.model.violation import Violation, most_telling_first, told

S, E, I, T, R, B = (  # noqa: E741
    Verdict.SUCCESS,
    Verdict.EXPECTED,
    Verdict.INCONCLUSIVE,
    Verdict.TIMEOUT,
    Verdict.RECOVERY_BUG,
    Verdict.BUG,
)


@pytest.mark.parametrize(
    ("verdicts", "whole"),
    [
        ([], I),
        ([S], S),
        ([E], S),
        ([S, E, S], S),
        ([S, I], I),
        ([I, T], T),
        ([T, R], R),
        ([R, B], B),
        ([B, S, I], B),
    ],
)
def test_the_worst_step_decides(verdicts: list[Verdict], whole: Verdict) -> None:
    assert worst(verdicts) is whole


def test_order_does_not_matter() -> None:
    for some in itertools.permutations([S, E, I, T]):
        assert worst(some) is T


@pytest.mark.parametrize(
    ("verdict", "code", "stops", "bug"),
    [
        (S, 0, False, False),
        (E, 0, False, False),
        (I, 3, True, False),
        (T, 4, True, False),
        (R, 1, True, True),
        (B, 1, True, True),
    ],
)
def test_what_each_verdict_means(verdict: Verdict, code: int, stops: bool, bug: bool) -> None:
    assert verdict.exit_code == code
    assert verdict.stops_run is stops
    assert verdict.is_bug is bug


def test_only_clean_verdicts_exit_with_zero() -> None:
    for verdict in Verdict:
        assert (verdict.exit_code == 0) == (not verdict.stops_run)


def test_the_seed_words_are_kept() -> None:
    assert {"expected", "bug", "recovery_bug", "timeout"} <= {verdict.value for verdict in Verdict}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MutinyError("x"), 70),
        (UsageError("x"), 2),
        (FormatError("f", ["a"]), 2),
        (NotReproducible("x"), 2),
        (TargetMissing("x"), 3),
        (BoxError("x"), 70),
        (StoreError("x"), 70),
    ],
)
def test_errors_carry_their_exit_codes(error: MutinyError, code: int) -> None:
    assert error.exit_code == code


def test_a_result_tells_only_what_it_knows() -> None:
    assert OperationResult(0, "out", "err", 1.23456).as_json() == {
        "exit_code": 0,
        "stdout": "out",
        "stderr": "err",
        "duration_ms": 1.235,
    }


def test_a_result_tells_all_that_it_knows() -> None:
    part = OperationResult(1)
    told = OperationResult(
        None,
        signal=9,
        timed_out=True,
        argv=("a",),
        fired=False,
        target_ms=2.0,
        inner=(part,),
        harness_error="no",
        details={"k": 1},
    ).as_json()
    assert told["signal"] == 9
    assert told["timed_out"] is True
    assert told["argv"] == ["a"]
    assert told["fired"] is False
    assert told["target_ms"] == 2.0
    assert told["harness_error"] == "no"
    assert told["details"] == {"k": 1}
    assert told["inner"] == [part.as_json()]


@pytest.mark.parametrize(
    ("result", "succeeded"),
    [
        (OperationResult(0), True),
        (OperationResult(1), False),
        (OperationResult(None), False),
        (OperationResult(0, timed_out=True), False),
        (OperationResult(0, harness_error="no"), False),
    ],
)
def test_success_is_claimed_only_by_a_plain_zero(result: OperationResult, succeeded: bool) -> None:
    assert result.succeeded is succeeded


def test_a_violation_is_known_by_rule_and_subject() -> None:
    first = Violation("workers.x", "now", "alpha", {"n": 1})
    second = Violation("workers.x", "later", "alpha")
    assert first.key == second.key != Violation("workers.x", "now", "beta").key
    assert first.as_json() == {
        "rule": "workers.x",
        "subject": "alpha",
        "message": "now",
        "evidence": {"n": 1},
    }


@pytest.mark.parametrize("answered", list(Verdict))
@pytest.mark.parametrize("doubtful", [False, True])
@pytest.mark.parametrize("disturbed", [False, True])
def test_a_broken_promise_outranks_every_doubt(
    answered: Verdict, doubtful: bool, disturbed: bool
) -> None:
    found = of_step(answered, violated=True, doubtful=doubtful, disturbed=disturbed)
    assert found is T if answered is T else found.is_bug
    assert found.exit_code in (1, 4)


@pytest.mark.parametrize("answered", [S, E, I])
def test_a_doubt_outranks_every_success(answered: Verdict) -> None:
    assert of_step(answered, violated=False, doubtful=True, disturbed=False) is I
    assert of_step(answered, violated=False, doubtful=False, disturbed=True) is answered


def test_of_many_the_one_with_the_verdict_of_the_whole_is_shown() -> None:
    for some in itertools.permutations([S, I, T, R, B]):
        assert first_of_worst(some, lambda verdict: verdict) is B
    assert first_of_worst([(1, I), (2, R), (3, R)], lambda one: one[1]) == (2, R)
    assert first_of_worst([S, E], lambda verdict: verdict) is None
    assert first_of_worst([], lambda verdict: verdict) is None


def test_a_symptom_never_names_what_another_rule_explains() -> None:
    lost = Violation("board.completion_kept", "The completion of a is gone.", "a")
    stuck = Violation("board.no_stuck_claim", "Not settled in time.", "a")
    owner = Violation("board.single_owner", "Two have it.", "a")
    for some in itertools.permutations([lost, stuck, owner]):
        assert most_telling_first(some, BOARD_RULES) == (lost, owner, stuck)


def test_every_class_of_rules_has_a_place_in_the_order() -> None:
    unknown = Violation("nobody.knows", "")
    for rules in (WORKER_RULES, BOARD_RULES):
        symptoms = [
            rule.id
            for rule in rules.values()
            if most_telling_first([unknown, Violation(rule.id, "")], rules)[0] is unknown
        ]
        assert {rules[name].category for name in symptoms} < {r.category for r in rules.values()}
        assert not {"Lost work", "Ownership", "Crashes"} & {
            rules[name].category for name in symptoms
        }
        assert any(name.endswith("assertion") for name in symptoms)


def test_what_waits_for_ever_names_more_than_a_status_that_is_not_as_due() -> None:
    stuck = Violation("board.all_settle", "b waits for ever.", "b")
    shown = Violation("board.status_is_honest", "b is blocked, but was due to be failed.", "b")
    assert most_telling_first([shown, stuck], BOARD_RULES) == (stuck, shown)


def test_a_symptom_of_what_is_told_already_is_left_out() -> None:
    robbed = Violation("board.live_worker_kept", "a is nobody's, but w1 holds it.", "a")
    shown = Violation("board.status_is_honest", "a is available, but was due to be claimed.", "a")
    other = Violation("board.status_is_honest", "b is gone.", "b")
    assert told([robbed, shown, other, other]) == (robbed, other)
