"""Loads as a page: what a claim costs as the board fills, what grows over the cycles, and all figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mutiny.engine.loading import Loaded, LoadReport
from mutiny.report.curves import PALETTE, Series, axis, chart, number
from mutiny.report.escape import escape
from mutiny.report.page import document, link, links_to
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
    parts = [
        _broken(report.loads, colours, page),
        _cost(report, colours),
        *(_growth(one, colours[one.target]) for one in report.loads if one.shape == "cycles"),
        _payloads(report.loads, colours),
        _table(report.loads, colours),
    ]
    return document(
        kind="Load",
        title=", ".join(targets) or "nothing was loaded",
        verdict="success" if good else report.verdict.value,
        word="ALL PROMISES KEPT" if good else WORDS[report.verdict],
        facts={"Loads": str(len(report.loads)), "Boards": str(len(targets))},
        body="".join(parts),
    )


def _broken(loads: Sequence[Loaded], colours: Mapping[str, str], page: Path | None) -> str:
    """First what went wrong, if anything did."""
    rows = "".join(
        f"<div>{_dot(colours[one.target])}{escape(one.target)}, {one.shape}: "
        f'<span class="bad">{escape(one.rule or one.verdict.value)}</span></div>'
        f"<p>{escape(one.message)}<br>{_run_links(one, page)}</p>"
        for one in loads
        if one.verdict.stops_run
    )
    return _section("What broke", rows) if rows else ""


def _cost(report: LoadReport, colours: Mapping[str, str]) -> str:
    """A claim's cost as the board fills: a curve with two logarithmic axes, and the figures."""
    costs = report.costs()
    if not costs:
        return ""
    how = {one.target: one.transport for one in report.loads}
    lines = [
        Series(name, tuple((float(tasks), p50) for tasks, p50, _ in rows), colours[name])
        for name, rows in costs.items()
    ]
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    across = axis("tasks on the board", xs, log=True)
    picture = chart(lines, across, axis("p50 of a claim, ms", ys, log=True))
    sizes = sorted({tasks for rows in costs.values() for tasks, _, _ in rows})
    head = "".join(f"<th>{size:,}</th>" for size in sizes)
    body = ""
    for name, rows in costs.items():
        known = {tasks: (p50, p99) for tasks, p50, p99 in rows}
        cells = "".join(
            f"<td>{known[size][0]:,.1f}<br><small>{known[size][1]:,.1f}</small></td>"
            if size in known
            else "<td>-</td>"
            for size in sizes
        )
        first, last = rows[0], rows[-1]
        times = f"{last[1] / first[1]:.1f}x" if first[1] and len(rows) > 1 else "-"
        named = f"{_dot(colours[name])}{escape(name)}<br><small>{escape(how[name])}</small>"
        body += f"<tr><td>{named}</td>{cells}<td>{times}</td></tr>"
    return f"""<h2>Cost per claim</h2><div class="sheet">
<p>What one claim costs with so many tasks on the board, as its worker sees it. A flat line: the cost does
not depend on the number of tasks.</p>
<div class="two"><div>{picture}</div><div><table class="figures">
<tr><th>p50, ms<br><small>p99</small></th>{head}<th>growth</th></tr>{body}</table>
<p>Growth: p50 with the most tasks over p50 with the fewest.</p></div></div></div>"""


def _growth(one: Loaded, colour: str) -> str:
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
        pictures.append(f"<div>{picture}{_slope(verdicts.get(what))}</div>")
    if not pictures:
        return ""
    done = one.measured.get("done", 0)
    rate = float(one.measured.get("throughput") or 0.0)
    return f"""<h2>{_dot(colour)}{escape(one.target)}: {done:,} cycles</h2><div class="sheet">
<p>Claim and complete by {one.workers} workers, {rate:,.1f} cycles a second. The slope is a least-squares
line through the samples of the server (memory, descriptors) and of the board's directory (files) after the
first quarter.</p>
<div class="three">{"".join(pictures)}</div></div>"""


def _slope(grown: Mapping[str, Any] | None) -> str:
    if grown is None:
        return "<p>too few samples for a slope</p>"
    unit = f" {grown['unit']}" if grown["unit"] else ""
    mark = "bad" if grown["too_much"] else "good"
    return (
        f'<p><b class="{mark}">{grown["per_cycle"]:+.3g}{escape(unit)} a cycle</b>, '
        f"limit {grown['limit']:g}{escape(unit)}; {grown['samples']} samples</p>"
    )


def _payloads(loads: Sequence[Loaded], colours: Mapping[str, str]) -> str:
    lines = []
    for one in loads:
        sizes: Mapping[str, Mapping[str, float]] = one.measured.get("by_size") or {}
        points = tuple((float(size), float(row["p50_ms"])) for size, row in sizes.items())
        if len(points) > 1:
            lines.append(Series(one.target, tuple(sorted(points)), colours[one.target]))
    if not lines:
        return ""
    across = axis("bytes of output", [x for line in lines for x, _ in line.points], log=True)
    up = axis("p50 of a completion, ms", [y for line in lines for _, y in line.points], log=True)
    return f"""<h2>Large outputs</h2><div class="sheet">
<p>What a completion costs with an output of so many bytes; every output came back and was compared.</p>
{chart(lines, across, up, height=280)}</div>"""


def _table(loads: Sequence[Loaded], colours: Mapping[str, str]) -> str:
    rows = []
    for one in loads:
        bad = one.verdict.stops_run
        what = (one.rule or one.verdict.value) if bad else "kept its promises"
        rate = one.measured.get("throughput")
        cells = [
            f"<td>{_dot(colours[one.target])}{escape(one.target)}</td>",
            f'<td class="left" title="{escape(ABOUT.get(one.shape, ""))}">{one.shape}</td>',
            f"<td>{one.tasks:,}</td><td>{one.workers}</td>",
            f"<td>{number(float(rate)) if rate is not None else '-'}</td>",
            *(_latency(one, word) for word in ("claim", "complete")),
            f"<td>{_history(one)}</td>",
            f'<td class="left {"bad" if bad else "good"}">{escape(what)}</td>',
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"""<h2>All loads</h2><div class="sheet"><table class="figures">
<tr><th>board</th><th class="left">load</th><th>tasks</th><th>workers</th><th>per second</th>
<th>claim p50</th><th>p99</th><th>complete p50</th><th>p99</th><th>history</th>
<th class="left">verdict</th></tr>{"".join(rows)}</table>
<p>Milliseconds. History: so many commands were put in one order that explains all answers.</p></div>"""


def _latency(one: Loaded, command: str) -> str:
    cells = ""
    for figure in ("p50_ms", "p99_ms"):
        found = one.latency(command, figure)
        cells += "<td>-</td>" if found is None else f"<td>{found:,.1f}</td>"
    return cells


def _history(one: Loaded) -> str:
    history = one.measured.get("history")
    if not isinstance(history, Mapping) or "operations" not in history:
        return "-"
    return f"{history['operations']:,}"


def _section(title: str, body: str) -> str:
    """`title` is markup."""
    return f'<h2>{title}</h2><div class="sheet">{body}</div>'


def _run_links(one: Loaded, page: Path | None) -> str:
    found = links_to(Path(one.directory), page) if one.directory and page is not None else {}
    return " · ".join(link(name, place) for name, place in found.items())


def _dot(colour: str) -> str:
    return f'<span class="dot" style="background:{colour}"></span>'
