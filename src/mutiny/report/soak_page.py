"""A soak as a page: its criteria, its figures over time, what it came to, and earlier soaks beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mutiny.engine.soaking import Soaked
from mutiny.kit.soaking import RANKS
from mutiny.model.verdict import Verdict
from mutiny.report.curves import PALETTE, Series, axis, chart, number
from mutiny.report.page import links_to
from mutiny.report.page import render as render_page
from mutiny.report.sweep_page import WORDS

MINUTE_S = 60.0
MOST_POINTS = 240
CURVES = (
    ("tasks done", ("tasks_completed",)),
    ("tokens a minute", ("tokens_per_minute",)),
    ("memory, MB", ("memory_usage_mb",)),
    ("checkpoints and errors", ("checkpoint_count", "errors_encountered")),
    ("test coverage, %", ("test_coverage",)),
    ("open descriptors", ("descriptors",)),
)
TRENDS = (
    "coverage",
    "tokens",
    "recoveries",
    "recovery_kinds",
    "checkpoints",
    "errors",
    "elapsed_s",
)


def render(soak: Soaked) -> str:
    """The whole page."""
    good = soak.verdict is Verdict.SUCCESS
    ask = soak.ask
    page = soak.outcome.directory.path / "final_report.html"
    return render_page(
        "soak.html",
        kind="Soak",
        title=f"{ask.project}, {ask.hours:g} hours",
        verdict=soak.verdict.value,
        word="ALL MUSTS MET" if good else WORDS[soak.verdict],
        facts={
            "Project": ask.project,
            "Session time": f"{ask.hours:g} h at rate {ask.rate:g}",
            "Agents": ask.agents,
            "Schedule": ask.schedule,
            "Seed": ask.seed,
            "Real time": f"{soak.outcome.duration_s:.0f} s",
            "Metrics lines": len(soak.lines),
            "Resumed": f"{len(soak.legs)} times",
        },
        links=links_to(soak.outcome.directory.path, page),
        broken=[
            {"operation": step.operation.short(), "text": text}
            for step in soak.broken
            for text in ([one.message for one in step.violations] or list(step.inconclusive))
        ],
        groups=[
            (rank, [one for one in soak.criteria if one.criterion.rank == rank]) for rank in RANKS
        ],
        pictures=list(_pictures(soak.lines)),
        tables=[
            {"title": t.title, "columns": t.columns, "rows": [list(map(said, r)) for r in t.rows]}
            for t in soak.account.tables
        ],
        trends=_trends(soak),
        recommendations=soak.account.recommendations,
        legs=soak.legs,
    )


def said(value: object) -> str:
    """A figure or a word as people read it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(float(value)) if isinstance(value, int | float) else str(value)


def _pictures(lines: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Figures over session time, in minutes; of many lines as many as a picture can show."""
    step = max(1, len(lines) // MOST_POINTS)
    shown = lines[::step]
    for title, names in CURVES:
        series = []
        for place, name in enumerate(names):
            points = tuple(
                (line["session_seconds"] / MINUTE_S, float(line[name]))
                for line in shown
                if isinstance(line.get(name), int | float)
            )
            if len(points) > 1:
                label = name.replace("_", " ") if len(names) > 1 else ""
                series.append(Series(label, points, PALETTE[place]))
        if series:
            across = axis("minutes", [x for one in series for x, _ in one.points], zero=True)
            up = axis(title, [y for one in series for _, y in one.points], zero=True)
            yield title, chart(series, across, up, width=430, height=210)


def _trends(soak: Soaked) -> dict[str, Any] | None:
    """This soak behind the earlier ones of the same project."""
    if not soak.earlier:
        return None
    rows = [
        (
            str(one.get("run")),
            str(one.get("verdict")),
            *(said(one.get("facts", {}).get(name)) for name in TRENDS),
        )
        for one in soak.earlier
    ]
    own = tuple(said(soak.account.facts.get(name)) for name in TRENDS)
    rows.append(("this one", soak.verdict.value, *own))
    return {
        "columns": ("run", "verdict", *(name.replace("_", " ") for name in TRENDS)),
        "rows": rows,
    }
