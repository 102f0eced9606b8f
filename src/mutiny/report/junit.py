"""JUnit XML, which every CI can read: one test case a run; what proved nothing is skipped, never passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory, storing
from mutiny.model.verdict import Verdict
from mutiny.report.escape import escape


@dataclass(frozen=True)
class Case:
    """One run as a test case."""

    name: str
    group: str
    """What was tested: the target."""
    verdict: Verdict
    seconds: float
    reason: str = ""
    rule: str = ""
    details: str = ""
    """What a reader of a failed case wants to see below its reason."""
    known: str = ""
    """Why its failure is known already: it is shown, and fails nothing."""

    @property
    def skip(self) -> str:
        """Why it counts neither as passed nor as failed; empty when it does."""
        if self.known:
            return f"known: {self.known}"
        proved_nothing = self.verdict is Verdict.INCONCLUSIVE
        return (self.reason or "inconclusive") if proved_nothing else ""

    @property
    def failed(self) -> bool:
        """Was a promise broken that is no known finding?"""
        broken = self.verdict.stops_run and self.verdict is not Verdict.INCONCLUSIVE
        return broken and not self.known


def case_of(name: str, target: str, outcome: Outcome, known: str = "") -> Case:
    """A run of the one loop as a test case; `known`: why its failure is no news."""
    return Case(
        name,
        target,
        outcome.verdict,
        outcome.duration_s,
        outcome.reason,
        outcome.rule or "",
        read_on(outcome.directory) if outcome.verdict.stops_run else "",
        known,
    )


def read_on(directory: RunDirectory) -> str:
    """Where to read on after a failure, and how to repeat it."""
    return f"report: {directory.report_path}\nreplay: mutiny replay {directory.replay_path}\n"


def skipped(reasons: Mapping[str, str], group: str) -> list[Case]:
    """What could not be tried, by name, with its reason: skipped cases, never passed ones."""
    return [
        Case(name, group, Verdict.INCONCLUSIVE, 0.0, reason) for name, reason in reasons.items()
    ]


def suite(name: str, cases: Sequence[Case]) -> str:
    """All cases as one suite."""
    failures = sum(case.failed for case in cases)
    skipped = sum(bool(case.skip) for case in cases)
    total = sum(case.seconds for case in cases)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuite name={_quoted(name)} tests="{len(cases)}" failures="{failures}" '
        f'skipped="{skipped}" errors="0" time="{total:.3f}">',
    ]
    for case in cases:
        own, group = _quoted(case.name), _quoted(case.group)
        lines.append(f'  <testcase name={own} classname={group} time="{case.seconds:.3f}">')
        if case.skip:
            lines.append(f"    <skipped message={_quoted(case.skip)}/>")
        elif case.failed:
            kind = _quoted(case.rule or case.verdict.value)
            details = escape(_carried(case.details))
            lines.append(
                f"    <failure type={kind} message={_quoted(case.reason)}>{details}</failure>"
            )
        lines.append("  </testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def write_junit(path: Path, name: str, cases: Sequence[Case]) -> None:
    """The same, into a file."""
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(suite(name, cases), encoding="utf-8")


def _quoted(text: str) -> str:
    """A text as an XML attribute. (`xml.sax` would load half of the network library.)"""
    return '"' + escape(_carried(text)).replace("\n", "&#10;") + '"'


def _carried(text: str) -> str:
    """Without the control characters that XML cannot carry."""
    return "".join(
        char if char in "\n\t" or (ord(char) >= 32 and ord(char) not in (0xFFFE, 0xFFFF)) else "?"
        for char in text
    )
