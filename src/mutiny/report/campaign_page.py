"""A campaign as a page: what was found when, how coverage grew, every cause, every run, every loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mutiny.engine.campaigns import CauseGroup, Finished, Standing
from mutiny.report.curves import PALETTE, Series, axis, chart
from mutiny.report.page import links_to
from mutiny.report.page import render as render_page
from mutiny.report.sweep_page import WORDS

MOST_POINTS = 400
"""A curve with more of them is thinned out."""
Points = tuple[tuple[float, float], ...]


def render(standing: Standing, title: str, page: Path) -> str:
    """The whole page; `page`: where it will lie, so that it can link to the runs."""
    done = sorted(standing.finished.values(), key=lambda one: one.at_s)
    verdict = standing.verdict
    missing = len(standing.jobs) - len(done)
    facts: dict[str, object] = {
        "Runs": f"{len(done)} of {len(standing.jobs)}",
        **dict(sorted(standing.counts.items())),
        "Distinct causes": len(standing.causes),
        "Known findings met": standing.known.total(),
        "Time": f"{standing.elapsed_s:.0f} s",
        "Time of the runs": f"{sum(one.seconds for one in done):.0f} s",
        "Lost and run again": len(standing.lost),
    }
    return render_page(
        "campaign.html",
        kind="Campaign",
        title=title,
        verdict=verdict.value,
        word=f"{missing} RUNS MISSING" if missing else WORDS[verdict],
        facts=facts,
        found=_curve(_found(standing), "distinct causes"),
        covered=_curve(_covered(done), "cells covered"),
        first=min((one.at_s for one in standing.causes.values()), default=None),
        causes=[_cause(one, page) for one in standing.ordered_causes()],
        known=standing.known.most_common(),
        lost=standing.lost,
        runs=[_run(one, page) for one in done],
    )


def _found(standing: Standing) -> Points:
    """How many distinct causes were known when: a staircase that begins at nothing."""
    met = sorted(group.at_s for group in standing.causes.values())
    points = [(0.0, 0.0)]
    for number, at in enumerate(met, 1):
        points += [(at, number - 1.0), (at, float(number))]
    return (*points, (max(standing.elapsed_s, points[-1][0]), float(len(met))))


def _covered(done: Sequence[Finished]) -> Points:
    """How many cells were covered when."""
    seen: set[str] = set()
    points = [(0.0, 0.0)]
    for one in done:
        seen.update(one.cells)
        points.append((one.at_s, float(len(seen))))
    if len(points) <= MOST_POINTS:
        return tuple(points)
    every = -(-len(points) // MOST_POINTS)
    return (*points[::every], points[-1])


def _curve(points: Points, what: str) -> dict[str, Any] | None:
    """A curve over the campaign's time; None where there is nothing to be seen."""
    if not any(y for _, y in points):
        return None
    across = axis("seconds", [x for x, _ in points], zero=True)
    up = axis(what, [y for _, y in points], zero=True)
    return chart((Series("", points, PALETTE[0]),), across, up, width=560, height=260)


def _cause(group: CauseGroup, page: Path) -> Mapping[str, Any]:
    place = Path(group.shortest.replay).parent if group.shortest.replay else None
    return {
        "count": group.count,
        "text": group.shortest.text,
        "first": group.first,
        "at_s": f"{group.at_s:.1f}",
        "operations": group.shortest.operations,
        "links": links_to(place, page) if place is not None and place.is_dir() else {},
    }


def _run(one: Finished, page: Path) -> Mapping[str, Any]:
    place = Path(one.directory) if one.directory else None
    return {
        "id": one.id,
        "key": one.key,
        "bad": one.verdict not in ("success", "expected"),
        "verdict": one.verdict,
        "seconds": f"{one.seconds:.1f}",
        "reason": one.reason,
        "where": one.where,
        "links": links_to(place, page) if place is not None and place.is_dir() else {},
    }
