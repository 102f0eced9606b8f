"""The chaos report as Markdown and as JUnit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.model.duration import show_duration
from mutiny.model.verdict import Verdict
from mutiny.report.escape import defused
from mutiny.report.junit import Case, suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutiny.report.experiment import ExperimentReport, FaultRecord, Score

VERDICT_WORDS = {
    "success": "PASSED",
    "bug": "FAILED",
    "recovery_bug": "FAILED",
    "timeout": "FAILED (timeout)",
    "inconclusive": "INCONCLUSIVE",
}


def recovery_text(report: ExperimentReport) -> str:
    """`4.2 seconds (target: <30s)`, or why there is no figure."""
    score = report.score
    target = f"(target: <{score.target_s:g}s)"
    if score.recovered is None:
        return f"{'not measured' if report.fired else 'nothing to recover from'} {target}"
    if score.recovery_s is None:
        return f"did not recover {target}"
    return f"{score.recovery_s:.1f} seconds {target}"


def recovered_text(report: ExperimentReport, fault: FaultRecord) -> str:
    """How long the recovery from one fault took; what never recovered has no time."""
    if fault.recovered_s is not None:
        return f"{fault.recovered_s:.1f} s"
    return "not measured" if report.score.recovered is None else "did not recover"


def availability_text(score: Score) -> str:
    """`97.5% during chaos (120 samples at 9.8 Hz)`."""
    if score.availability is None:
        return "not measured"
    return f"{score.availability:.1f}% during chaos ({score.samples} samples at {score.rate_hz:.1f} Hz)"


def markdown(report: ExperimentReport) -> str:
    """The whole report."""
    return "\n".join(map(defused, _lines(report))) + "\n"


def _lines(report: ExperimentReport) -> Iterator[str]:
    yield f"## Chaos Report: {report.name}"
    yield ""
    yield "### Summary"
    yield f"- **Verdict**: {VERDICT_WORDS[report.verdict]}"
    if report.reason:
        yield f"- **Reason**: {report.reason}"
    if report.hypothesis:
        yield f"- **Hypothesis**: {report.hypothesis}"
    plant = f" (planted: {report.plant})" if report.plant else ""
    yield f"- **Target**: {report.target}{plant}, seed {report.seed}"
    yield f"- **Duration**: {show_duration(report.duration_s)}"
    planned = len(report.faults)
    missing = f" of {planned} planned" if planned != report.fired else ""
    yield f"- **Faults Injected**: {report.fired}{missing}"
    yield f"- **Failures Found**: {len(report.findings)}"
    yield f"- **Severity**: {report.severity}"
    yield f"- **Blast Radius**: {report.blast_radius or 'not declared'}"
    if report.changes:
        yield f"- **Adapted to the Target**: {'; '.join(report.changes)}"
    if report.not_applicable:
        yield f"- **Not Checked** (not promised by the target): {', '.join(report.not_applicable)}"
    yield ""
    yield "### Findings"
    if not report.findings:
        yield ""
        yield "None."
    for number, finding in enumerate(report.findings, 1):
        yield ""
        yield f"#### Finding {number}: {finding.title}"
        yield f"- **Symptom**: {finding.symptom}"
        yield f"- **Root Cause**: {finding.root_cause}"
        yield f"- **Impact**: {finding.impact}"
        yield f"- **Recommendation**: {finding.recommendation}"
        told = f"; {report.replay}" if report.replay else ""
        yield f"- **Test Case**: `{finding.test_case}` (breaks `{finding.rule}`{told})"
    yield ""
    yield "### Resilience Score"
    yield f"- Recovery Time: {recovery_text(report)}"
    yield f"- Data Integrity: {report.score.integrity}"
    yield f"- Availability: {availability_text(report.score)}"
    yield from _faults(report)
    yield from _steady(report)
    yield from _steps(report)


def _faults(report: ExperimentReport) -> Iterator[str]:
    if not report.faults:
        return
    yield ""
    yield "### Faults"
    yield ""
    yield "| at | fault | technique | recovered after |"
    yield "|---:|---|---|---:|"
    for fault in report.faults:
        took = recovered_text(report, fault) if fault.fired else "**did not fire**"
        yield f"| {fault.at_s:.1f} s | `{fault.text}` | {fault.technique or '-'} | {took} |"


def _steady(report: ExperimentReport) -> Iterator[str]:
    if not report.steady_state:
        return
    yield ""
    yield "### Steady state"
    yield ""
    yield "| line | before | during | after |"
    yield "|---|---|---|---|"
    for line in report.steady_state:
        cells = " | ".join(_cell(text) for text in (line.before, line.during, line.after))
        yield f"| {_cell(line.text)} | {cells} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _steps(report: ExperimentReport) -> Iterator[str]:
    yield ""
    yield "### Steps"
    yield ""
    yield "| phase | from | to | step | outcome |"
    yield "|---|---:|---:|---|---|"
    for step in report.steps:
        outcome = step.verdict + (f": {_cell(step.note)}" if step.note else "")
        yield (
            f"| {step.phase} | {step.begin_s:.2f} | {step.end_s:.2f} | `{_cell(step.text)}` | {outcome} |"
        )


def case_of(report: ExperimentReport) -> Case:
    """An experiment as a test case for JUnit."""
    verdict = Verdict(report.verdict)
    rule = report.findings[0].rule if report.findings else report.verdict
    details = markdown(report) if report.exit_code else ""
    return Case(
        report.name, report.target, verdict, report.duration_s, report.reason, rule, details
    )


def junit(reports: Sequence[ExperimentReport]) -> str:
    """JUnit XML: one test case an experiment."""
    return suite("mutiny experiments", [case_of(report) for report in reports])
