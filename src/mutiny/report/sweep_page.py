"""A sweep as a picture: the operation's calls in order, one row a process, coloured by outcome.

One self-contained HTML file: inline SVG, no script, nothing loaded from anywhere. Hovering a cell
tells the call and what came of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.engine.sweeping import Point, Sweep
from mutiny.model.verdict import Verdict, first_of_worst
from mutiny.report.escape import escape

CELL, GAP, LABEL, TOP = 14, 2, 190, 40
COLOURS = {
    Verdict.SUCCESS: "#3a9d5d",
    Verdict.EXPECTED: "#3a9d5d",
    Verdict.BUG: "#c8322b",
    Verdict.RECOVERY_BUG: "#c8322b",
    Verdict.TIMEOUT: "#d9902f",
    Verdict.INCONCLUSIVE: "#d9c22f",
}
UNTRIED = "#d8dde3"

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2733 }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
h1 { font-size: 1.4rem } table { border-collapse: collapse; width: 100%; font-size: 13px }
td, th { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #e6eaee; vertical-align: top }
td.call { font-family: ui-monospace, monospace; word-break: break-all }
.bug { color: #c8322b; font-weight: 600 }
.legend span { display: inline-block; width: 12px; height: 12px; border-radius: 2px }
.legend span { margin: 0 .3rem 0 1rem }
svg text { font: 12px ui-monospace, monospace; fill: #1d2733 } .picture { overflow-x: auto }
"""


def render(sweep: Sweep) -> str:
    """The whole page."""
    title = f"{sweep.kind} sweep of {sweep.at.short()} on {sweep.target}"
    counts = _counts(sweep.points)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>
<body><h1>{escape(title)}</h1>
<p>{len(sweep.calls)} state-changing calls, {len(sweep.points)} points: {escape(counts)}.</p>
<p class="legend">{_legend()}</p>
<div class="picture">{picture(sweep)}</div>
<h2>Points</h2>
<table><tr><th>#</th><th>call</th><th>outcome</th><th>what</th></tr>{_rows(sweep.points)}</table>
</body></html>
"""


def picture(sweep: Sweep) -> str:
    """The SVG: columns are calls in their total order, rows are processes."""
    processes = list(dict.fromkeys(str(call["process"]) for call in sweep.calls))
    worst = _worst_by_call(sweep.points)
    width = LABEL + (len(sweep.calls) + 1) * (CELL + GAP)
    height = TOP + len(processes) * (CELL + 8) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img">'
    ]
    for row, process in enumerate(processes):
        y = TOP + row * (CELL + 8)
        parts.append(f'<text x="0" y="{y + 11}">{escape(process[:26])}</text>')
        parts.append(
            f'<line x1="{LABEL}" x2="{width}" y1="{y + CELL / 2}" y2="{y + CELL / 2}" stroke="#eef1f4"/>'
        )
    for column, call in enumerate(sweep.calls):
        x = LABEL + column * (CELL + GAP)
        y = TOP + processes.index(str(call["process"])) * (CELL + 8)
        point = worst.get(int(call["index"]))
        colour = COLOURS[point.verdict] if point else UNTRIED
        said = f"{point.verdict.value} {point.rule or ''} {point.message}" if point else "not tried"
        parts.append(
            f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="2" fill="{colour}">'
            f"<title>{escape(str(call['text']))}\n{escape(said)}</title></rect>"
        )
        if column % 10 == 0:
            parts.append(f'<text x="{x}" y="{TOP - 12}">{column}</text>')
    parts.append("</svg>")
    return "".join(parts)


def _worst_by_call(points: Sequence[Point]) -> dict[int, Point]:
    found: dict[int, Point] = {}
    for point in points:
        same = [found[point.index], point] if point.index in found else [point]
        found[point.index] = first_of_worst(same, lambda one: one.verdict) or point
    return found


def _counts(points: Sequence[Point]) -> str:
    counts: dict[str, int] = {}
    for point in points:
        counts[point.verdict.value] = counts.get(point.verdict.value, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _legend() -> str:
    kinds = {
        "kept its promises": Verdict.SUCCESS,
        "bug": Verdict.BUG,
        "inconclusive": Verdict.INCONCLUSIVE,
    }
    cells = "".join(
        f'<span style="background:{COLOURS[verdict]}"></span>{escape(word)}'
        for word, verdict in kinds.items()
    )
    return f'{cells}<span style="background:{UNTRIED}"></span>not tried'


def _rows(points: Sequence[Point]) -> str:
    rows = []
    for point in points:
        mark = ' class="bug"' if point.verdict.is_bug else ""
        what = f"{point.rule or ''} {point.message}".strip()
        rows.append(
            f"<tr><td>{point.index}</td><td class='call'>{escape(point.label)}</td>"
            f"<td{mark}>{point.verdict.value}</td><td>{escape(what)}</td></tr>"
        )
    return "".join(rows)
