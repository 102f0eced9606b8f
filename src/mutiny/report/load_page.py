"""Loads as a page: what a claim costs as the board fills, what grows over the cycles, and all figures.

One self-contained HTML file: inline SVG, no script, nothing loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mutiny.engine.loading import Loaded, LoadReport
from mutiny.report.curves import PALETTE, Series, axis, chart, number
from mutiny.report.escape import escape

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
_STYLE = """
:root { --ink: #18212b; --soft: #5d6b79; --line: #e3e8ed; --good: #23794a; --bad: #b3261e }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: #f6f8fa; margin: 0 }
main { max-width: 76rem; margin: 0 auto; padding: 1.6rem 1.2rem 3rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 0 0 .2rem }
h3 { font-size: .95rem; margin: .6rem 0 0 }
p { margin: .3rem 0; color: var(--soft) } p b { color: var(--ink) }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px }
section { padding: 1rem 1.2rem; margin-top: 1rem }
.two { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1.5rem }
.three { display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1rem }
@media (max-width: 60rem) { .two { grid-template-columns: 1fr } }
table { border-collapse: collapse; width: 100%; font-size: 13.5px }
td, th { text-align: right; padding: .3rem .55rem; border-bottom: 1px solid var(--line) }
td:first-child, th:first-child, td.left, th.left { text-align: left }
th { font-weight: 600; color: var(--soft) } td { font-variant-numeric: tabular-nums }
td { white-space: nowrap } td:last-child { white-space: normal } td small { color: var(--soft) }
.good { color: var(--good) } .bad { color: var(--bad); font-weight: 600 }
.badge { border-radius: 99px; padding: .15rem .8rem; font-weight: 600; font-size: .9rem }
.badge.good { background: #e2f3e9 } .badge.bad { background: #fbe6e4 }
.dot { display: inline-block; width: .7em; height: .7em; border-radius: 50%; margin-right: .4em }
svg { width: 100%; height: auto } svg line { stroke: #edf1f4 }
svg polyline { fill: none; stroke-width: 2.2; stroke-linejoin: round }
svg text { font: 11.5px system-ui, sans-serif; fill: #5d6b79 }
svg .mid { text-anchor: middle } svg .end { text-anchor: end } svg .title { fill: #18212b }
svg .name { font-weight: 600 }
"""


def render(report: LoadReport) -> str:
    """The whole page."""
    targets = list(dict.fromkeys(one.target for one in report.loads))
    colours = {name: PALETTE[place % len(PALETTE)] for place, name in enumerate(targets)}
    good = not any(one.verdict.stops_run for one in report.loads) and bool(report.loads)
    word = "all promises kept" if good else report.verdict.value
    badge = f'<span class="badge {"good" if good else "bad"}">{escape(word)}</span>'
    parts = [
        _broken(report.loads, colours),
        _cost(report, colours),
        *(_growth(one, colours[one.target]) for one in report.loads if one.shape == "cycles"),
        _payloads(report.loads, colours),
        _table(report.loads, colours),
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Load: {escape(", ".join(targets))}</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>
<body><main><h1>Load {badge}</h1>
<p>{escape(", ".join(targets))}: {len(report.loads)} {_loads(len(report.loads))}</p>
{"".join(parts)}</main></body></html>
"""


def _broken(loads: Sequence[Loaded], colours: Mapping[str, str]) -> str:
    """First what went wrong, if anything did."""
    rows = "".join(
        f"<tr><td>{_dot(colours[one.target])}{escape(one.target)}</td>"
        f'<td class="left">{one.shape}</td>'
        f'<td class="left bad">{escape(one.rule or one.verdict.value)}</td>'
        f'<td class="left">{escape(one.message)}</td></tr>'
        for one in loads
        if one.verdict.stops_run
    )
    return f"<section><h2>What broke</h2><table>{rows}</table></section>" if rows else ""


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
    return f"""<section><h2>Cost per claim</h2>
<p>What one claim costs with so many tasks on the board, as its worker sees it. A flat line: the cost does
not depend on the number of tasks.</p>
<div class="two"><div>{picture}</div><div><table>
<tr><th>p50, ms<br><small>p99</small></th>{head}<th>growth</th></tr>{body}</table>
<p>Growth: p50 with the most tasks over p50 with the fewest.</p></div></div></section>"""


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
    return f"""<section><h2>{_dot(colour)}{escape(one.target)}: {done:,} cycles</h2>
<p>Claim and complete by {one.workers} workers, {rate:,.1f} cycles a second. The slope is a least-squares
line through the samples of the server (memory, descriptors) and of the board's directory (files) after the
first quarter.</p>
<div class="three">{"".join(pictures)}</div></section>"""


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
    return f"""<section><h2>Large outputs</h2>
<p>What a completion costs with an output of so many bytes; every output came back and was compared.</p>
{chart(lines, across, up, height=280)}</section>"""


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
    return f"""<section><h2>All loads</h2><table>
<tr><th>board</th><th class="left">load</th><th>tasks</th><th>workers</th><th>per second</th>
<th>claim p50</th><th>p99</th><th>complete p50</th><th>p99</th><th>history</th>
<th class="left">verdict</th></tr>{"".join(rows)}</table>
<p>Milliseconds. History: so many commands were put in one order that explains all answers.</p></section>"""


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


def _loads(count: int) -> str:
    return "load" if count == 1 else "loads"


def _dot(colour: str) -> str:
    return f'<span class="dot" style="background:{colour}"></span>'
