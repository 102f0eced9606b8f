"""What an experiment's report says: only what was seen, and only of the chaos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import CONTRACT, ok, outcome, step
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.engine.journal import Step
from mutiny.experiments.assess import assess
from mutiny.experiments.compile import Placed, Plan
from mutiny.experiments.experiment import Experiment
from mutiny.experiments.recorder import Recorder
from mutiny.kit import operations as common
from mutiny.kit.language import availability, of_chaos
from mutiny.kit.sentences import Deed, Sample
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.report.advice import advice
from mutiny.report.experiment import ExperimentReport
from mutiny.report.experiment_markdown import markdown

FIRED = ok(technique="SIGKILL by handle", fired=True)
LOST = Violation("workers.nothing_lost", "It is gone.", "MT-1")
EXPERIMENT = Experiment("x.yaml", "x", "", "workers", (), (), (), (), (), "one worker")


def at(seconds: float, one: Step) -> Step:
    return replace(one, timestamp_unix=seconds)


def report(
    directory: Path, recorder: Recorder, *steps: Step, contract: WorkersContract = CONTRACT
) -> ExperimentReport:
    plan = Plan(tuple(Placed(one.operation, "method", 3) for one in steps), ())
    told = outcome(directory, *steps)
    return assess(
        *(EXPERIMENT, plan, told, recorder, contract),
        target="longboat",
        plant="",
        seed=1,
        again="mutiny replay x",
    )


def shocked(operation: Operation, began: float, recovered_s: float | None) -> Recorder:
    recorder = Recorder()
    recorder.did(operation, FIRED, began, began + 0.1)
    recorder.shocks[-1].recovered_s = recovered_s
    return recorder


def test_a_broken_promise_is_a_finding_whatever_could_not_be_tested(tmp_path: Path) -> None:
    last = step(op.Up(), Verdict.RECOVERY_BUG, 1, LOST, inconclusive=("not readable",))
    found = report(tmp_path, Recorder(), last)
    assert [finding.rule for finding in found.findings] == ["workers.nothing_lost"]
    assert found.findings[0].test_case == "mutiny replay x"
    assert found.exit_code == 1


def test_what_could_not_be_tested_is_no_finding(tmp_path: Path) -> None:
    last = step(op.Up(), Verdict.INCONCLUSIVE, 1, inconclusive=("no answer",))
    assert report(tmp_path, Recorder(), last).findings == ()


def test_no_recovery_has_no_time_and_is_said(tmp_path: Path) -> None:
    kill = op.KillDaemon()
    steps = (
        at(10.0, step(kill, sequence_id=1, result=FIRED)),
        at(20.0, step(common.Settle(), Verdict.RECOVERY_BUG, 2, LOST)),
    )
    found = report(tmp_path, shocked(kill, 10.0, 0.3), *steps)
    assert found.score.recovery_s is None
    assert [fault.recovered_s for fault in found.faults] == [None]
    text = markdown(found)
    assert "- Recovery Time: did not recover" in text
    assert "| did not recover |" in text
    assert "0.3 s" not in text


@settings(max_examples=100, deadline=None)
@given(
    took=st.lists(st.none() | st.floats(0.0, 5.0), min_size=1, max_size=4),
    verdict=st.sampled_from([Verdict.SUCCESS, Verdict.BUG, Verdict.RECOVERY_BUG, Verdict.INCONCLUSIVE]),
)  # fmt: skip
def test_a_time_is_named_only_for_a_recovery_that_was_seen(
    tmp_path_factory: pytest.TempPathFactory, took: list[float | None], verdict: Verdict
) -> None:
    recorder = Recorder()
    steps = []
    for number, seconds in enumerate(took):
        kill = op.KillAgent(f"w{number}")
        recorder.did(kill, FIRED, 10.0 * number, 10.0 * number + 0.1)
        recorder.shocks[-1].recovered_s = seconds
        steps.append(at(10.0 * number, step(kill, sequence_id=number + 1, result=FIRED)))
    violations = (LOST,) if verdict.is_bug else ()
    end = step(common.Settle(), verdict, len(took) + 1, *violations)
    steps.append(at(10.0 * len(took), end))
    found = report(tmp_path_factory.getbasetemp(), recorder, *steps)
    for fault, seconds in zip(found.faults, took, strict=True):
        assert fault.recovered_s is None or seconds is not None
    if verdict.is_bug:
        assert found.faults[-1].recovered_s is None
        assert found.score.recovery_s is None
    if None in took:
        assert found.score.recovery_s is None
        word = "not measured" if verdict is Verdict.SUCCESS else "did not recover"
        assert word in markdown(found)


def test_a_forced_order_is_not_called_undisturbed(tmp_path: Path) -> None:
    both = common.Parallel((op.Up(), op.Up()))
    result = OperationResult(inner=(ok(), ok()))
    last = step(both, Verdict.BUG, 1, LOST, result=result)
    (finding,) = report(tmp_path, Recorder(), last).findings
    assert "No fault" not in finding.root_cause
    assert "at once" in finding.root_cause
    assert "one lock from the read to the write" in finding.recommendation


def test_a_fault_that_did_not_happen_is_not_the_cause(tmp_path: Path) -> None:
    never = step(op.KillDaemon(), sequence_id=1, result=ok(fired=False))
    (finding,) = report(tmp_path, Recorder(), never, step(op.Up(), Verdict.BUG, 2, LOST)).findings
    assert finding.root_cause.startswith("No fault happened, though one was asked for")


@pytest.mark.parametrize(
    ("cause", "word"),
    [
        ("death", "sync before the answer"),
        ("damage", "damaged or missing file"),
        ("refused call", "result of every write"),
        ("order", "one lock"),
        ("other", "Follow the piece"),
        ("", "Follow the piece"),
    ],
)
def test_what_helps_against_lost_work_depends_on_what_happened(cause: str, word: str) -> None:
    rule = CONTRACT.rules["workers.nothing_lost"]
    assert word in advice(rule.id, rule, cause).recommendation


# --- availability -------------------------------------------------------------------------------------


def deed(operation: Operation, began: float, ended: float) -> Deed:
    return Deed(operation, ok(), began, ended)


SAMPLES = [Sample(float(second), second not in (4, 5, 6, 9), 10.0) for second in range(12)]


def test_what_the_method_itself_stopped_does_not_count_as_an_outage() -> None:
    deeds = [deed(op.Down(), 3.9, 4.0), deed(op.Up(), 6.1, 6.5)]
    counted = of_chaos(SAMPLES, deeds)
    assert [sample.at for sample in counted if not sample.ok] == [9.0], "the outage of its own"
    assert availability(counted) == pytest.approx(100 * 8 / 9)


def test_without_a_way_up_nothing_counts_after_the_methods_own_down() -> None:
    assert [s.at for s in of_chaos(SAMPLES, [deed(op.Down(), 3.9, 4.0)])] == [0.0, 1.0, 2.0, 3.0]


def test_an_up_that_fails_does_not_end_the_silence_that_was_asked_for() -> None:
    deeds = [deed(op.Down(), 3.9, 4.0), Deed(op.Up(), OperationResult(1), 5.0, 5.1)]
    assert len(of_chaos(SAMPLES, deeds)) == 4


def test_calm_times_afterwards_do_not_dilute_it() -> None:
    assert [sample.at for sample in of_chaos(SAMPLES, [], until=5.0)] == [
        float(n) for n in range(6)
    ]


def test_an_answer_from_before_the_fault_is_no_recovery() -> None:
    recorder = Recorder()
    recorder.sampled(Sample(9.9, True, 1.0))
    recorder.did(op.KillDaemon(), FIRED, 10.0, 10.1)
    recorder.looked(10.2, None, ())
    assert recorder.shocks[0].recovered_s is None
    recorder.sampled(Sample(11.1, True, 1.0))
    assert recorder.shocks[0].recovered_s == pytest.approx(1.0)


def test_without_a_probe_a_command_that_is_served_shows_the_recovery() -> None:
    recorder = Recorder()
    recorder.did(op.KillDaemon(), FIRED, 10.0, 10.1)
    recorder.looked(10.2, None, ())
    assert recorder.shocks[0].recovered_s is None
    recorder.did(op.Up(), OperationResult(1), 10.3, 10.4)
    recorder.looked(10.5, None, ())
    assert recorder.shocks[0].recovered_s is None
    recorder.did(op.Up(), ok(), 11.0, 12.0)
    recorder.looked(12.1, None, ())
    assert recorder.shocks[0].recovered_s == pytest.approx(2.0)


def test_a_good_answer_after_a_calm_look_is_a_recovery() -> None:
    recorder = Recorder()
    recorder.did(op.KillDaemon(), FIRED, 10.0, 10.1)
    recorder.looked(10.2, None, ())
    recorder.sampled(Sample(10.5, False, 1.0))
    recorder.sampled(Sample(11.1, True, 1.0))
    assert recorder.shocks[0].recovered_s == pytest.approx(1.0)


def test_a_rule_that_was_not_asked_is_named(tmp_path: Path) -> None:
    profile = replace(CONTRACT.profile, not_applicable={"workers.delivered_once": "no record"})
    excusing = replace(CONTRACT, profile=profile)
    found = report(tmp_path, Recorder(), step(op.Up(), Verdict.SUCCESS, 1), contract=excusing)
    assert found.not_applicable == {"workers.delivered_once": "no record"}
    assert "workers.delivered_once" in markdown(found).partition("### Findings")[0]
