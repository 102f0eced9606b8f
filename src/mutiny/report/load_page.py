"""Loads as a page: what a claim costs as the board fills, what grows over the cycles, and all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mutiny.engine.loading import Loaded, LoadReport
from mutiny.report.curves import PALETTE, Series, axis, chart, number
from mutiny.report.page import links_to
from mutiny.report.page import render as render_page
from mutiny.report.sweep_page import WORDS

ABOUT = {
    "cost": "what a claim costs with so many tasks on the board",
    "cycles": "claim and complete; memory, descriptors and files must not grow",
    "dag": "a graph of dependencies: order respected, everything comes to its end",
    "payloads": "outputs of growing size come back unchanged",
    "long": "work longer than a lease with heartbeats: nobody is robbed",
    "burst": "a rate limit holds in every window of time",
}
WATCHED = (
    ("rss_kb", "memory, MB", 1 / 1024),
    ("descriptors", "open descriptors", 1.0),
    ("files", "files", 1.0),
)


def render(report: LoadReport, page: Path | None = None) -> str:
    """The whole page; `page`: where it will lie, so that it can link to the runs."""
    targets = list(dict.fromkeys(one.target for one in report.loads))
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(targets)}
    good = not any(one.verdict.stops_run for one in report.loads) and bool(report.loads)
    grown = [_growth(one, colours[one.target]) for one in report.loads if one.shape == "cycles"]
    return render_page(
        "load.html",
        kind="Load",
        title=", ".join(targets) or "nothing was loaded",
        verdict="success" if good else report.verdict.value,
        word="ALL PROMISES KEPT" if good else WORDS[report.verdict],
        facts={"Loads": len(report.loads), "Boards": len(targets)},
        broken=[
            {**_named(one, colours), "message": one.message, "links": _run_links(one, page)}
            for one in report.loads
            if one.verdict.stops_run
        ],
        cost=_cost(report, colours),
        growths=[one for one in grown if one["pictures"]],
        payloads=_payloads(report.loads, colours),
        loads=[{**_named(one, colours), "figures": _figures(one)} for one in report.loads],
    )


def _named(one: Loaded, colours: Mapping[str, str]) -> dict[str, Any]:
    """Which load it was, and what came of it."""
    bad = one.verdict.stops_run
    return {
        "target": one.target,
        "colour": colours[one.target],
        "shape": one.shape,
        "about": ABOUT.get(one.shape, ""),
        "bad": bad,
        "what": (one.rule or one.verdict.value) if bad else "kept its promises",
    }


def _cost(report: LoadReport, colours: Mapping[str, str]) -> dict[str, Any] | None:
    """A claim's cost as the board fills: a curve with two logarithmic axes, and the figures."""
    costs = report.costs()
    if not costs:
        return None
    how = {one.target: one.transport for one in report.loads}
    lines = [
        Series(name, tuple((float(tasks), p50) for tasks, p50, _ in rows), colours[name])
        for name, rows in costs.items()
    ]
    sizes = sorted({tasks for rows in costs.values() for tasks, _, _ in rows})
    table = []
    for name, rows in costs.items():
        known = {tasks: (f"{p50:,.1f}", f"{p99:,.1f}") for tasks, p50, p99 in rows}
        first, last = rows[0][1], rows[-1][1]
        table.append(
            {
                "target": name,
                "colour": colours[name],
                "transport": how[name],
                "figures": [known.get(size) for size in sizes],
                "growth": f"{last / first:.1f}x" if first and len(rows) > 1 else "-",
            }
        )
    picture = _both_logarithmic(lines, "tasks on the board", "p50 of a claim, ms")
    return {"picture": picture, "sizes": sizes, "rows": table}


def _both_logarithmic(
    lines: Sequence[Series], across: str, up: str, height: int = 320
) -> dict[str, Any]:
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    return chart(lines, axis(across, xs, log=True), axis(up, ys, log=True), height=height)


def _growth(one: Loaded, colour: str) -> dict[str, Any]:
    """What was sampled over the cycles of one load."""
    samples: Sequence[Mapping[str, Any]] = one.measured.get("samples") or ()
    verdicts = {str(grown["what"]): grown for grown in one.growth}
    pictures = []
    for what, title, scale in WATCHED:
        points = tuple((float(s["cycle"]), float(s[what]) * scale) for s in samples if what in s)
        if len(points) < 2:
            continue
        across = axis("cycles", [x for x, _ in points], zero=True)
        memory = what == "rss_kb"
        up = axis(title, [y for _, y in points], zero=not memory, least=16.0 if memory else 0.0)
        picture = chart((Series("", points, colour),), across, up, width=430, height=210)
        pictures.append((picture, _slope(verdicts.get(what))))
    return {
        "target": one.target,
        "colour": colour,
        "workers": one.workers,
        "done": f"{one.measured.get('done', 0):,}",
        "rate": f"{float(one.measured.get('throughput') or 0.0):,.1f}",
        "pictures": pictures,
    }


def _slope(grown: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if grown is None:
        return None
    unit = f" {grown['unit']}" if grown["unit"] else ""
    return {
        "per_cycle": f"{grown['per_cycle']:+.3g}{unit}",
        "limit": f"{grown['limit']:g}{unit}",
        "samples": grown["samples"],
        "too_much": grown["too_much"],
    }


def _payloads(loads: Sequence[Loaded], colours: Mapping[str, str]) -> dict[str, Any] | None:
    lines = []
    for one in loads:
        sizes: Mapping[str, Mapping[str, float]] = one.measured.get("by_size") or {}
        points = tuple((float(size), float(row["p50_ms"])) for size, row in sizes.items())
        if len(points) > 1:
            lines.append(Series(one.target, tuple(sorted(points)), colours[one.target]))
    if not lines:
        return None
    return _both_logarithmic(lines, "bytes of output", "p50 of a completion, ms", height=280)


def _figures(one: Loaded) -> list[str]:
    """A row of the table of all loads."""
    rate = one.measured.get("throughput")
    history = one.measured.get("history")
    counted = isinstance(history, Mapping) and "operations" in history
    latencies = [
        one.latency(command, figure)
        for command in ("claim", "complete")
        for figure in ("p50_ms", "p99_ms")
    ]
    return [
        f"{one.tasks:,}",
        f"{one.workers}",
        number(float(rate)) if rate is not None else "-",
        *("-" if found is None else f"{found:,.1f}" for found in latencies),
        f"{history['operations']:,}" if counted and history else "-",
    ]


def _run_links(one: Loaded, page: Path | None) -> dict[str, str]:
    return links_to(Path(one.directory), page) if one.directory and page is not None else {}
