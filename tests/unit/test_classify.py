"""Five rules, and the two that make refusals worth something."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from builders import PATTERNS, ok, refused
from mutiny.contracts.plain.contract import Nothing
from mutiny.contracts.workers import operations as op
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer, matched_classes, says, text_answer
from mutiny.kit.base import ContractBase
from mutiny.kit.beliefs import ModelBase
from mutiny.kit.judging import Judge, Judged, Moment
from mutiny.kit.outcome import Outcome, no
from mutiny.kit.outcome import ok as served
from mutiny.model.expectation import Expectation
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict

ACCEPT = op.Accept("alpha")
MUST = Expectation(True, frozenset(), "it is ready")
REFUSE = Expectation(False, frozenset({"not_needs_review"}), "it is idle")
EITHER = Expectation(True, frozenset({"not_needs_review"}), "it may be ready")
NOT_READY = "Worker 'alpha' is not in needs_review state (status: idle)"


@dataclass(frozen=True)
class Expecting(ContractBase[ModelBase, Nothing]):
    """A contract of which only one expectation is known."""

    expectation: Expectation
    patterns: Mapping[str, Sequence[str]] = field(default_factory=lambda: PATTERNS)
    excused: tuple[str, ...] = ()
    name = "workers"

    @property
    def not_applicable(self) -> Mapping[str, str]:
        return dict.fromkeys(self.excused, "it is not promised")

    def outcomes(
        self, model: ModelBase, operation: Operation, moment: Moment[Nothing]
    ) -> Sequence[Outcome[ModelBase]]:
        due = self.expectation
        found = [served(model, due.reason)] if due.success else []
        return [*found, no(model, due.reason, *due.rejections)] if due.rejections else found

    def read(self, result: OperationResult) -> Answer:
        return text_answer(result, self.patterns)


class Serving(Judge[ModelBase, Nothing]):
    """What a command does that is served although it should not be: nothing."""

    def forced(self, model: ModelBase, operation: Operation, moment: Moment[Nothing]) -> ModelBase:
        return model


def judged_by(
    contract: Expecting, operation: Operation, result: OperationResult
) -> Judged[ModelBase]:
    return Serving(contract, Nothing(), Nothing(), 0.0).judge(ModelBase(), operation, result)


def judge(
    result: OperationResult,
    expectation: Expectation = MUST,
    operation: Operation = ACCEPT,
) -> Judged[ModelBase]:
    return judged_by(Expecting(expectation), operation, result)


def rule(judged: Judged[ModelBase]) -> str | None:
    return judged.violation.rule if judged.violation else None


# --- the five rules -------------------------------------------------------------------------------


@pytest.mark.parametrize("expectation", [REFUSE, EITHER])
def test_rule_1_a_known_refusal_that_is_true_is_expected(expectation: Expectation) -> None:
    found = judge(refused(NOT_READY), expectation)
    assert found.verdict is Verdict.EXPECTED
    assert found.violation is None


@pytest.mark.parametrize("expectation", [MUST, REFUSE, EITHER])
def test_rule_2_an_unknown_text_is_a_bug(expectation: Expectation) -> None:
    found = judge(refused("worktree has uncommitted changes"), expectation)
    assert found.verdict is Verdict.BUG
    assert rule(found) == "workers.fails_clearly"
    assert "worktree has uncommitted changes" in found.violation.message  # type: ignore[union-attr]


@pytest.mark.parametrize("expectation", [MUST, REFUSE, EITHER])
@pytest.mark.parametrize("signal", [6, 9, 11])
def test_rule_3_a_signal_is_a_bug(expectation: Expectation, signal: int) -> None:
    # Even when the text before the crash looks like a refusal.
    found = judge(refused(NOT_READY, exit_code=None, signal=signal), expectation)
    assert (found.verdict, rule(found)) == (Verdict.BUG, "workers.no_crash")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 'alpha'\n",
            "KeyError: 'alpha'",
        ),
        (
            "thread 'main' panicked at src/state.rs:142:9:\ncalled `Option::unwrap()` on a `None` value",
            "thread 'main' panicked at src/state.rs:142:9:",
        ),
        ("panic: runtime error: index out of range\n\ngoroutine 1:", "panic: runtime error"),
        ("Segmentation fault (core dumped)", "Segmentation fault"),
        ("thread 'main' (114) panicked at src/main.rs:3:5:\nboom", "src/main.rs:3:5: boom"),
    ],
)
@pytest.mark.parametrize("expectation", [MUST, REFUSE, EITHER])
def test_rule_3_a_panic_or_a_traceback_is_a_bug(
    text: str, line: str, expectation: Expectation
) -> None:
    found = judge(OperationResult(101, stderr=f"{NOT_READY}\n{text}"), expectation)
    assert (found.verdict, rule(found)) == (Verdict.BUG, "workers.no_crash")
    assert line in found.violation.message  # type: ignore[union-attr]


def test_rule_4_is_judged_by_the_invariants_and_leaves_a_good_answer_alone() -> None:
    assert (judge(ok()).verdict, judge(ok()).violation) == (Verdict.SUCCESS, None)


@pytest.mark.parametrize("expectation", [MUST, REFUSE, EITHER])
def test_rule_5_out_of_time_is_a_timeout(expectation: Expectation) -> None:
    late = OperationResult(None, timed_out=True, signal=9, duration_ms=30_000)
    found = judge(late, expectation)
    assert (found.verdict, rule(found)) == (Verdict.TIMEOUT, "workers.answers_in_time")
    assert "30.0s" in found.violation.message  # type: ignore[union-attr]


# --- refusals that mean something -----------------------------------------------------------------


def test_success_where_a_refusal_was_due_is_a_bug() -> None:
    found = judge(ok(), REFUSE)
    assert (found.verdict, rule(found)) == (Verdict.BUG, "workers.rejects_illegal")
    assert "it is idle" in found.violation.message  # type: ignore[union-attr]


def test_a_refusal_where_success_was_due_is_a_bug() -> None:
    found = judge(refused(NOT_READY), MUST)
    assert (found.verdict, rule(found)) == (Verdict.BUG, "workers.serves_legal")


@pytest.mark.parametrize("expectation", [REFUSE, EITHER])
def test_a_known_refusal_that_is_not_true_is_a_bug(expectation: Expectation) -> None:
    found = judge(refused("Worker 'alpha' does not exist"), expectation)
    assert (found.verdict, rule(found)) == (Verdict.BUG, "workers.rejects_truthfully")


def test_either_answer_is_right_where_the_pace_decides() -> None:
    assert judge(ok(), EITHER).verdict is Verdict.SUCCESS
    assert judge(refused(NOT_READY), EITHER).verdict is Verdict.EXPECTED


def test_a_refusal_may_stand_on_standard_output() -> None:
    found = judge(OperationResult(1, stdout=NOT_READY), REFUSE)
    assert found.verdict is Verdict.EXPECTED


def test_a_failure_without_a_word_is_a_bug() -> None:
    found = judge(OperationResult(1), REFUSE)
    assert (found.verdict, rule(found)) == (Verdict.BUG, "workers.fails_clearly")
    assert "(no text)" in found.violation.message  # type: ignore[union-attr]


def test_evidence_holds_exit_code_and_the_end_of_the_text() -> None:
    found = judge(refused("x" * 9000, exit_code=3))
    assert found.violation is not None
    assert found.violation.evidence["exit_code"] == 3
    assert len(str(found.violation.evidence["stderr"])) == 2000


# --- what could not be tested ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", [ACCEPT, op.KillDaemon(), op.WaitForIdle("a"), common.Sleep()]
)
def test_a_harness_error_is_inconclusive_whatever_the_rest_says(operation: Operation) -> None:
    for result in (ok(), refused(NOT_READY), ok(fired=True), ok(timed_out=True, signal=11)):
        broken = replace(result, harness_error="the box is gone")
        judged = judge(broken, MUST, operation)
        assert (judged.verdict, judged.violation) == (Verdict.INCONCLUSIVE, None)


@pytest.mark.parametrize("fired", [False, None])
def test_a_fault_that_did_not_fire_is_inconclusive(fired: bool | None) -> None:
    assert judge(ok(fired=fired), MUST, op.KillDaemon()).verdict is Verdict.INCONCLUSIVE


def test_a_fault_that_fired_is_done() -> None:
    assert judge(ok(fired=True), MUST, op.KillDaemon()).verdict is Verdict.SUCCESS


@pytest.mark.parametrize("operation", [op.WaitForIdle("a"), common.Sleep()])
def test_own_steps_that_fail_are_inconclusive_until_somebody_says_more(
    operation: Operation,
) -> None:
    assert judge(refused("not yet"), MUST, operation).verdict is Verdict.INCONCLUSIVE
    assert judge(ok(), MUST, operation).verdict is Verdict.SUCCESS


# --- texts ----------------------------------------------------------------------------------------


def test_every_text_of_the_seed_is_its_own_class() -> None:
    texts = {
        "Worker 'x' does not exist": "no_such_worker",
        "Worker 'x' is not idle (status: working)": "not_idle",
        "Worker 'x' is not in needs_review state (status: idle)": "not_needs_review",
        "Worker 'x' already exists": "already_exists",
        "No worker has been reviewed recently": "nothing_reviewed",
        "Daemon is already running": "daemon_running",
        "Daemon is not running": "daemon_down",
        "Cannot rebase while worker is in idle state": "wrong_state",
    }
    for text, name in texts.items():
        assert matched_classes(f"Error: {text}\n", PATTERNS) == {name}


def test_a_text_may_belong_to_several_classes() -> None:
    patterns = {"a": ("x",), "b": ("xy", "z"), "c": ("q",)}
    assert matched_classes("xy", patterns) == {"a", "b"}
    assert matched_classes("", patterns) == frozenset()


def test_the_patterns_are_valid() -> None:
    for choices in PATTERNS.values():
        for choice in choices:
            re.compile(choice)


@pytest.mark.parametrize(
    ("excused", "exit_code", "text", "expectation", "verdict", "rule"),
    [
        ("rejects_illegal", 0, "", Expectation(False, frozenset({"busy"})), "success", None),
        ("fails_clearly", 1, "hm", Expectation(False, frozenset({"busy"})), "expected", None),
        ("fails_clearly", 1, "hm", Expectation(True), "bug", "workers.serves_legal"),
        ("fails_clearly", 1, "", Expectation(True), "bug", "workers.serves_legal"),
        (
            "rejects_truthfully",
            1,
            "gone",
            Expectation(False, frozenset({"busy"})),
            "expected",
            None,
        ),
        ("rejects_truthfully", 1, "gone", Expectation(True), "bug", "workers.serves_legal"),
        ("rejects_truthfully", 1, "hm", Expectation(True), "bug", "workers.fails_clearly"),
    ],
)
def test_an_excuse_changes_what_is_expected_and_never_makes_a_failure_a_success(
    excused: str,
    exit_code: int,
    text: str,
    expectation: Expectation,
    verdict: str,
    rule: str | None,
) -> None:
    patterns = {"busy": ["busy"], "gone": ["gone"]}
    answer = OperationResult(exit_code, stderr=text)
    contract = Expecting(expectation, patterns, (f"workers.{excused}",))
    judged = judged_by(contract, op.Init(), answer)
    assert judged.verdict.value == verdict
    assert (None if judged.violation is None else judged.violation.rule) == rule


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("tasks", True),
        ("votes", False),
        ("tasks.done", True),
        ("tasks.left", False),
        ("votes.open", True),  # it says nothing of votes: another name asks for that
        ("agents.name", True),
        ("agents.role", False),
        ("runs.*.status", True),
        ("runs.*.reason", False),
        ("nobody.name", True),
        ("id.name", False),
    ],
)
def test_fields_of_an_answer_also_below_others(name: str, told: bool) -> None:
    said = {
        "id": 7,
        "tasks": {"done": 1},
        "agents": [{"name": "a", "role": "x"}, {"name": "b"}],
        "runs": {"r1": {"status": "", "reason": ""}, "r2": {"status": ""}},
        "nobody": [],
    }
    assert says(said, name) is told
