"""The chaos report as one HTML file: verdict, score, time line, findings; nothing is loaded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from mutiny.kit.measuring import Measured
from mutiny.model.duration import show_duration
from mutiny.report.experiment import ExperimentReport, Score
from mutiny.report.experiment_markdown import (
    VERDICT_WORDS,
    availability_text,
    recovered_text,
    recovery_text,
)
from mutiny.report.measured import shown
from mutiny.report.page import render
from mutiny.report.timeline import timeline

LEGEND = {
    "fault": "var(--bad)",
    "command": "var(--good)",
    "check": "var(--check)",
    "wait": "var(--wait)",
    "could not be told": "var(--unsure)",
}
TRUTHS = {"holds": "holds", "kept": "holds", "broken": "broken", "unknown": "doubt"}
"""How the word of a steady state looks."""
VERDICTS = {"success": "holds", "expected": "holds", "inconclusive": "doubt"}
"""How the verdict of a step looks; every other one is broken."""


def page(
    report: ExperimentReport,
    links: Mapping[str, str] | None = None,
    measured: Measured | None = None,
) -> str:
    """The whole page; `links`: where its run is."""
    planned = len(report.faults)
    return render(
        "experiment.html",
        kind="Chaos report",
        title=report.name,
        verdict=report.verdict,
        word=VERDICT_WORDS[report.verdict],
        lead=report.hypothesis,
        reason=report.reason,
        facts={
            "Target": report.target + (f" (planted: {report.plant})" if report.plant else ""),
            "Duration": show_duration(report.duration_s),
            "Faults injected": f"{report.fired}"
            + (f" of {planned}" if planned != report.fired else ""),
            "Failures found": len(report.findings),
            "Severity": report.severity,
            "Blast radius": report.blast_radius or "not declared",
            "Adapted to the target": "; ".join(report.changes) or "nothing: it has every word",
            "Not checked": ", ".join(report.not_applicable) or "nothing: every rule was asked",
            "Seed": report.seed,
            "Started": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(report.started_unix)),
        },
        links=links,
        report=report,
        cards=[_recovery(report), _integrity(report.score), _available(report)],
        faults=[(fault, recovered_text(report, fault)) for fault in report.faults],
        picture=timeline(report),
        colours=LEGEND,
        truths=TRUTHS,
        verdicts=VERDICTS,
        **shown(measured),
    )


def _card(
    title: str, figure: str, note: str, share: float | None, colour: str, mark: str = ""
) -> dict[str, Any]:
    """One figure of the score, with a ring that is filled to a share."""
    shown = {"title": title, "figure": figure, "note": note}
    return {**shown, "share": share, "colour": colour, "mark": mark}


def _recovery(report: ExperimentReport) -> dict[str, Any]:
    score = report.score
    note = f"target: under {score.target_s:g} s"
    title = "Recovery time"
    if score.recovery_s is not None:
        share = score.recovery_s / score.target_s
        colour = "var(--good)" if score.recovery_s < score.target_s else "var(--bad)"
        figure, mark = f"{score.recovery_s:.1f} s", f"{share * 100:.0f}%"
        return _card(title, figure, f"{note}, slowest fault", share, colour, mark)
    text = recovery_text(report).partition(" (")[0]
    never = score.recovered is False
    share = 1.0 if never else 0.0
    return _card(title, "no" if never else "–", f"{text}; {note}", share, "var(--bad)")


def _integrity(score: Score) -> dict[str, Any]:
    colour, mark, note = {
        "PASS": ("var(--good)", "✓", "every promise about data held at every step"),
        "FAIL": ("var(--bad)", "✕", "a promise about data was broken"),
    }.get(score.integrity, ("var(--unsure)", "?", "the run did not get far enough to tell"))
    return _card("Data integrity", score.integrity, note, 1.0, colour, mark)


def _available(report: ExperimentReport) -> dict[str, Any]:
    score = report.score
    title = "Availability"
    if score.availability is None:
        return _card(title, "–", availability_text(score), None, "var(--line)")
    share = score.availability / 100
    colour = "var(--good)" if share >= 0.99 else "var(--unsure)" if share >= 0.9 else "var(--bad)"
    note = f"during chaos; {score.samples} answers to {report.probe} at {score.rate_hz:.1f} Hz"
    return _card(title, f"{score.availability:.1f} %", note, share, colour)
