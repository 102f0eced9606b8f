"""When are two failures the same? Names, numbers and texts may differ; what is said may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders import outcome, step
from mutiny.contracts.workers import operations as op
from mutiny.engine.signature import Failure, failure_of
from mutiny.model.result import OWN_NAME, OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation


def said(message: str, directory: Path, rule: str = "workers.x", **evidence: object) -> Failure:
    broken = Violation(rule, message, "", evidence)
    failed = step(op.WaitForIdle("alpha"), Verdict.BUG, 1, broken)
    found = failure_of(outcome(directory, failed), ("beta", "a", "w1"))
    assert found is not None
    return found


def test_names_that_a_program_gives_differ_from_run_to_run(tmp_path: Path) -> None:
    def refused(own: str, *, beside: bool) -> Failure:
        told = OperationResult(1, details={OWN_NAME: own})
        result = OperationResult(inner=(told,)) if beside else told
        message = f"Nuke was refused: no session found for agent: {own}"
        broken = Violation("workers.x", message, "", {})
        failed = replace(step(op.Nuke("alpha"), Verdict.BUG, 1, broken), result=result)
        found = failure_of(outcome(tmp_path, failed))
        assert found is not None
        return found

    assert refused("evelyn", beside=False) == refused("brian", beside=True)


SAME = [
    ("Worker 'alpha' is idle.", "Worker 'beta' is idle."),
    ("MT-5501-1 was acknowledged and is gone.", "MT-7-12 was acknowledged and is gone."),
    ("pids 12, 13.", "pids 4711, 4712."),
    ("Not settled: task a is claimed; worker w1 waits.", "Not settled: task a is claimed."),
    (
        "It names commit 0a1b2c3d4e5f but is at fffffff.",
        "It names commit 1234567890 but is at aaaaaaa.",
    ),
    (
        'Start(worker="alpha", prompt="x (y)") was refused.',
        'Start(worker="beta", prompt="Create") was refused.',
    ),
    (
        "Worker 'alpha' is still working 12s after it (pid 3).",
        "Worker 'a' is still working 7s after it.",
    ),
    ("cannot open /tmp/x/state.json: gone", "cannot open /var/y.json: gone"),
]
OTHER = [
    ("task a is claimed, not done", "task a is not there, not done"),
    ("Worker 'alpha' is idle.", "Worker 'alpha' is working."),
    ('Start(worker="alpha") was refused.', 'Accept(worker="alpha") was refused.'),
    ("Not settled: task a is claimed.", "Not settled: task a is claimed; worker w1 waits."),
]


@pytest.mark.parametrize(("whole", "shorter"), SAME)
def test_the_same(tmp_path: Path, whole: str, shorter: str) -> None:
    assert said(whole, tmp_path).covers(said(shorter, tmp_path))


@pytest.mark.parametrize(("whole", "shorter"), OTHER)
def test_something_else(tmp_path: Path, whole: str, shorter: str) -> None:
    assert not said(whole, tmp_path).covers(said(shorter, tmp_path))


def test_another_rule_or_sentence_is_another_failure(tmp_path: Path) -> None:
    whole = said("x", tmp_path, sentence="all tasks are done")
    assert whole.covers(said("x", tmp_path, sentence="all tasks are done"))
    assert not whole.covers(said("x", tmp_path, sentence="no task is lost"))
    assert not whole.covers(said("x", tmp_path, "workers.y", sentence="all tasks are done"))
    assert not whole.covers(None)
    assert whole.asserted


def test_what_either_run_showed_counts(tmp_path: Path) -> None:
    both = said("it died", tmp_path).joined(said("it hung", tmp_path))
    assert both.covers(said("it hung", tmp_path))
    assert both.covers(said("it died", tmp_path))
