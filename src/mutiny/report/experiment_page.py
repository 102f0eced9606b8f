"""The chaos report as one HTML file: verdict, score, time line, findings; nothing is loaded."""

from __future__ import annotations

import math
import re
import time
from typing import TYPE_CHECKING

from mutiny.model.duration import show_duration
from mutiny.report.escape import escape
from mutiny.report.experiment_markdown import (
    VERDICT_WORDS,
    availability_text,
    recovered_text,
    recovery_text,
)
from mutiny.report.page import document
from mutiny.report.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mutiny.report.experiment import ExperimentReport, FindingRecord, Score


def page(report: ExperimentReport, links: Mapping[str, str] | None = None) -> str:
    """The whole page; `links`: where its run is."""
    started = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(report.started_unix))
    plant = f" (planted: {escape(report.plant)})" if report.plant else ""
    planned = len(report.faults)
    fired = f"{report.fired}" + (f" of {planned}" if planned != report.fired else "")
    facts = {
        "Target": f"{escape(report.target)}{plant}",
        "Duration": show_duration(report.duration_s),
        "Faults injected": fired,
        "Failures found": str(len(report.findings)),
        "Severity": report.severity,
        "Blast radius": escape(report.blast_radius or "not declared"),
        "Adapted to the target": escape("; ".join(report.changes) or "nothing: it has every word"),
        "Not checked": escape(", ".join(report.not_applicable) or "nothing: every rule was asked"),
        "Seed": str(report.seed),
        "Started": started,
    }
    score = f"{_recovery(report)}{_integrity(report.score)}{_available(report)}"
    body = f"""<section class="cards">{score}</section>
<h2>Time line</h2>
<div class="sheet">{timeline(report)}</div>{_legend(report)}
{_findings(report)}{_steady(report)}{_faults(report)}{_steps(report)}"""
    return document(
        kind="Chaos report",
        title=report.name,
        verdict=report.verdict,
        word=VERDICT_WORDS[report.verdict],
        lead=report.hypothesis,
        reason=report.reason,
        facts=facts,
        links=links,
        body=body,
    )


# --- the score ------------------------------------------------------------------------------------


def _ring(share: float | None, colour: str, text: str) -> str:
    """A ring that is filled to a share."""
    length = 2 * math.pi * 26
    filled = 0.0 if share is None else max(min(share, 1.0), 0.0) * length
    return (
        '<svg width="68" height="68" viewBox="0 0 68 68" aria-hidden="true">'
        '<circle cx="34" cy="34" r="26" fill="none" stroke="var(--line)" stroke-width="8"/>'
        f'<circle cx="34" cy="34" r="26" fill="none" stroke="{colour}" stroke-width="8" '
        f'stroke-dasharray="{filled:.1f} {length:.1f}" transform="rotate(-90 34 34)" '
        f'stroke-linecap="{"butt" if filled < 4 else "round"}"/>'
        f'<text x="34" y="38" text-anchor="middle" class="ring">{text}</text></svg>'
    )


def _card(ring: str, title: str, figure: str, note: str) -> str:
    return (
        f'<div class="card">{ring}<div><h3>{title}</h3><div class="figure">{escape(figure)}</div>'
        f"<p>{escape(note)}</p></div></div>"
    )


def _recovery(report: ExperimentReport) -> str:
    score = report.score
    note = f"target: under {score.target_s:g} s"
    if score.recovery_s is not None:
        good = score.recovery_s < score.target_s
        colour = "var(--good)" if good else "var(--bad)"
        share = score.recovery_s / score.target_s
        ring = _ring(share, colour, f"{share * 100:.0f}%")
        return _card(ring, "Recovery time", f"{score.recovery_s:.1f} s", note + ", slowest fault")
    text = recovery_text(report).partition(" (")[0]
    figure = "no" if score.recovered is False else "–"
    ring = _ring(1.0 if score.recovered is False else None, "var(--bad)", "")
    return _card(ring, "Recovery time", figure, f"{text}; {note}")


def _integrity(score: Score) -> str:
    colour = {"PASS": "var(--good)", "FAIL": "var(--bad)"}.get(score.integrity, "var(--unsure)")
    mark = {"PASS": "✓", "FAIL": "✕"}.get(score.integrity, "?")
    note = {
        "PASS": "every promise about data held at every step",
        "FAIL": "a promise about data was broken",
    }.get(score.integrity, "the run did not get far enough to tell")
    ring = _ring(1.0, colour, f'<tspan style="font-size:20px" dy="3">{mark}</tspan>')
    return _card(ring, "Data integrity", score.integrity, note)


def _available(report: ExperimentReport) -> str:
    score = report.score
    if score.availability is None:
        return _card(_ring(None, "var(--line)", ""), "Availability", "–", availability_text(score))
    share = score.availability / 100
    colour = "var(--good)" if share >= 0.99 else "var(--unsure)" if share >= 0.9 else "var(--bad)"
    note = f"during chaos; {score.samples} answers to {report.probe} at {score.rate_hz:.1f} Hz"
    ring = _ring(share, colour, "")
    return _card(ring, "Availability", f"{score.availability:.1f} %", note)


# --- parts ----------------------------------------------------------------------------------------


def _legend(report: ExperimentReport) -> str:
    marks = {
        "fault": "var(--bad)",
        "command": "var(--good)",
        "check": "var(--check)",
        "wait": "var(--wait)",
        "could not be told": "var(--unsure)",
    }
    cells = "".join(f'<i style="background:{c}"></i>{escape(n)}' for n, c in marks.items())
    return f'<p class="legend">{cells} &nbsp; Hover for details.</p>'


def _findings(report: ExperimentReport) -> str:
    if not report.findings:
        return ""
    cards = "".join(
        _finding(number, item, report.replay) for number, item in enumerate(report.findings, 1)
    )
    return f"<h2>Findings</h2>{cards}"


def _finding(number: int, finding: FindingRecord, replay: str) -> str:
    rows = {
        "Severity": escape(finding.severity),
        "Symptom": _prose(finding.symptom),
        "Root cause": _prose(finding.root_cause),
        "Impact": escape(finding.impact),
        "Recommendation": escape(finding.recommendation),
        "Regression test": f"<code>{escape(finding.test_case)}</code>",
        **({"Replay": escape(replay)} if replay else {}),
        "Rule": f"<code>{escape(finding.rule)}</code>",
    }
    body = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items())
    return f'<div class="finding"><h3>{number}. {escape(finding.title)}</h3><dl>{body}</dl></div>'


def _prose(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _steady(report: ExperimentReport) -> str:
    if not report.steady_state:
        return ""
    rows = "".join(
        f"<tr><td>{escape(line.text)}</td>"
        + "".join(_truth(text) for text in (line.before, line.during, line.after))
        + "</tr>"
        for line in report.steady_state
    )
    return (
        '<h2>Steady state</h2><div class="sheet"><table><tr><th>line</th><th>before</th>'
        f"<th>during</th><th>after</th></tr>{rows}</table></div>"
    )


def _truth(text: str) -> str:
    word = text.partition(":")[0]
    kind = {"holds": "holds", "kept": "holds", "broken": "broken", "unknown": "doubt"}.get(
        word, "quiet"
    )
    rest = text.partition(":")[2].strip()
    note = f' <span class="quiet">{escape(rest)}</span>' if rest else ""
    return f'<td><span class="{kind}">{escape(word)}</span>{note}</td>'


def _faults(report: ExperimentReport) -> str:
    if not report.faults:
        return ""
    rows = ""
    for fault in report.faults:
        took = escape(recovered_text(report, fault))
        took = took if fault.fired else '<span class="doubt">did not fire</span>'
        rows += (
            f'<tr><td class="number">{fault.at_s:.2f} s</td>'
            f"<td><code>{escape(fault.text)}</code></td>"
            f"<td>{escape(fault.technique)}</td><td>{took}</td></tr>"
        )
    return (
        '<h2>Faults</h2><div class="sheet"><table><tr><th class="number">at</th><th>fault</th>'
        f"<th>technique</th><th>recovered after</th></tr>{rows}</table></div>"
    )


def _steps(report: ExperimentReport) -> str:
    rows = ""
    for step in report.steps:
        bad = step.verdict not in ("success", "expected")
        kind = ("doubt" if step.verdict == "inconclusive" else "broken") if bad else "holds"
        line = f"{step.line}" if step.line else ""
        rows += (
            f'<tr><td class="quiet">{escape(step.phase)}</td><td class="number">{step.begin_s:.2f}</td>'
            f'<td class="number">{step.end_s - step.begin_s:.2f}</td><td class="number quiet">{line}</td>'
            f"<td><code>{escape(step.text)}</code></td>"
            f'<td><span class="{kind}">{step.verdict}</span> '
            f'<span class="quiet">{escape(step.note)}</span></td></tr>'
        )
    return (
        '<h2>Steps</h2><div class="sheet"><table><tr><th>phase</th><th class="number">at (s)</th>'
        '<th class="number">took (s)</th><th class="number">line</th>'
        f"<th>operation</th><th>outcome</th></tr>{rows}</table></div>"
    )
