"""A sweep as a picture: the operation's calls in order, a row a process, coloured by outcome; schedules
have a lane a command. Hovering tells the call and what came of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mutiny.engine.loop import Outcome
from mutiny.engine.sweeping import Point, Sweep
from mutiny.model.verdict import Verdict, first_of_worst
from mutiny.report import page
from mutiny.report.lanes import lanes

WORDS = {
    Verdict.SUCCESS: "KEPT ITS PROMISES",
    Verdict.EXPECTED: "KEPT ITS PROMISES",
    Verdict.BUG: "BUG FOUND",
    Verdict.RECOVERY_BUG: "BUG FOUND",
    Verdict.TIMEOUT: "TIMEOUT",
    Verdict.INCONCLUSIVE: "INCONCLUSIVE",
}
CELL, GAP, LABEL, TOP = 14, 2, 190, 40
COLOURS = {
    Verdict.SUCCESS: "var(--good)",
    Verdict.EXPECTED: "var(--good)",
    Verdict.BUG: "var(--bad)",
    Verdict.RECOVERY_BUG: "var(--bad)",
    Verdict.TIMEOUT: "var(--bad-soft)",
    Verdict.INCONCLUSIVE: "var(--unsure)",
}
UNTRIED, KNOWN = "var(--untried)", "var(--bad-soft)"
LEGEND = {
    "kept its promises": COLOURS[Verdict.SUCCESS],
    "bug": COLOURS[Verdict.BUG],
    "known": KNOWN,
    "inconclusive": COLOURS[Verdict.INCONCLUSIVE],
    "not tried": UNTRIED,
}


def render(sweep: Sweep, place: Path | None = None) -> str:
    """The whole page; with its place it leads to the runs that showed each cause."""
    schedules = sweep.kind == "preempt"
    noun = "schedules" if schedules else "points"
    counts = Counter("known" if point.known else point.verdict.value for point in sweep.points)
    told = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    facts: dict[str, object] = {
        "Target": sweep.target,
        noun.capitalize(): f"{len(sweep.points)}: {told}",
        "Not tried": sweep.left_out,
    }
    if not schedules:
        facts["State-changing calls"] = sum(not call["reads"] for call in sweep.calls)
        facts["Files only read"] = sum(bool(call["reads"]) for call in sweep.calls)
    colours = {verdict.value: colour for verdict, colour in COLOURS.items()}
    return page.render(
        "sweep.html",
        kind=f"{sweep.kind} sweep",
        title=f"{sweep.at.short()} on {sweep.target}",
        verdict=sweep.verdict.value,
        word=WORDS[sweep.verdict],
        facts=facts,
        links=_links(sweep.first_bug, place),
        about="A lane a command: filled while it moves, a line where another one took over."
        if schedules
        else "The operation's calls in their order, a row a process.",
        picture=lanes(sweep.points, colours) if schedules else calls(sweep),
        picture_template="lanes.svg" if schedules else "calls.svg",
        colours=LEGEND,
        schedules=schedules,
        noun=noun,
        points=sweep.points,
        causes=[
            {
                "count": len(points),
                "text": cause.saying(points[0].message),
                "first": points[0].index,
                "links": _links(sweep.shown.get(cause), place),
            }
            for cause, points in sweep.by_cause().items()
        ],
    )


def _links(run: Outcome | None, place: Path | None) -> dict[str, str]:
    """The files of a run, as the page reaches them."""
    return {} if run is None or place is None else page.links_to(run.directory.path, place)


def calls(sweep: Sweep) -> dict[str, Any]:
    """Columns are calls in their total order, rows are processes, for `calls.svg`."""
    processes = list(dict.fromkeys(str(call["process"]) for call in sweep.calls))
    tops = {process: TOP + row * (CELL + 8) for row, process in enumerate(processes)}
    worst = _worst_by_call(sweep.points)
    columns = [LABEL + column * (CELL + GAP) for column in range(len(sweep.calls))]
    return {
        "left": LABEL,
        "top": TOP,
        "cell": CELL,
        "width": LABEL + (len(sweep.calls) + 1) * (CELL + GAP),
        "height": TOP + len(processes) * (CELL + 8) + 10,
        "rows": [
            {"name": process[:26], "y": y, "middle": y + CELL / 2} for process, y in tops.items()
        ],
        "cells": [
            {"x": x, "y": tops[str(call["process"])], **_outcome(call, worst.get(place))}
            for place, (x, call) in enumerate(zip(columns, sweep.calls, strict=True))
        ],
        "ticks": [{"x": columns[at], "number": at} for at in range(0, len(columns), 10)],
    }


def _outcome(call: Mapping[str, Any], point: Point | None) -> dict[str, str]:
    if point is None:
        return {"colour": UNTRIED, "said": f"{call['text']}\nnot tried"}
    word = f"known ({point.known})" if point.known else point.verdict.value
    said = f"{word} {point.rule or ''} {point.message}"
    colour = KNOWN if point.known else COLOURS[point.verdict]
    return {"colour": colour, "said": f"{call['text']}\n{said}"}


def _worst_by_call(points: Sequence[Point]) -> dict[int, Point]:
    found: dict[int, Point] = {}
    for point in points:
        same = [found[point.index], point] if point.index in found else [point]
        news = [one for one in same if not one.known] or same
        found[point.index] = first_of_worst(news, lambda one: one.verdict) or point
    return found
