"""A sweep as a picture: the operation's calls in order, a row a process, coloured by outcome; schedules
have a lane a command. Hovering tells the call and what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mutiny.engine.sweeping import Point, Sweep
from mutiny.model.verdict import Verdict, first_of_worst
from mutiny.report.escape import escape
from mutiny.report.lanes import lanes
from mutiny.report.page import document

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
UNTRIED = "var(--untried)"


def render(sweep: Sweep, links: Mapping[str, str] | None = None) -> str:
    """The whole page; `links`: where the run of the first bug is."""
    schedules = sweep.kind == "preempt"
    noun = "schedules" if schedules else "points"
    facts = {
        "Target": escape(sweep.target),
        noun.capitalize(): f"{len(sweep.points)}: {escape(_counts(sweep.points))}",
        "Not tried": str(sweep.left_out),
    }
    if not schedules:
        facts["State-changing calls"] = str(len(sweep.calls))
    about = (
        "A lane a command: filled while it moves, a line where another one took over."
        if schedules
        else "The operation's calls in their order, a row a process."
    )
    colours = {verdict.value: colour for verdict, colour in COLOURS.items()}
    drawn = lanes(sweep.points, colours) if schedules else picture(sweep)
    body = f"""<h2>Picture</h2><p class="legend">{escape(about)}</p>
<div class="sheet">{drawn}</div><p class="legend">{_legend()} &nbsp; Hover for details.</p>
<h2>{noun.capitalize()}</h2><div class="sheet"><table>
<tr><th>#</th><th>{"order" if schedules else "call"}</th><th>outcome</th><th>what</th></tr>
{_rows(sweep.points)}</table></div>"""
    return document(
        kind=f"{sweep.kind} sweep",
        title=f"{sweep.at.short()} on {sweep.target}",
        verdict=sweep.verdict.value,
        word=WORDS[sweep.verdict],
        facts=facts,
        links=links,
        body=body,
    )


def picture(sweep: Sweep) -> str:
    """The SVG: columns are calls in their total order, rows are processes."""
    processes = list(dict.fromkeys(str(call["process"]) for call in sweep.calls))
    worst = _worst_by_call(sweep.points)
    width = LABEL + (len(sweep.calls) + 1) * (CELL + GAP)
    height = TOP + len(processes) * (CELL + 8) + 10
    parts = [
        f'<svg class="calls" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'role="img">'
    ]
    for row, process in enumerate(processes):
        y = TOP + row * (CELL + 8)
        parts.append(f'<text x="0" y="{y + 11}">{escape(process[:26])}</text>')
        parts.append(f'<line x1="{LABEL}" x2="{width}" y1="{y + CELL / 2}" y2="{y + CELL / 2}"/>')
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
        f'<i style="background:{COLOURS[verdict]}"></i>{escape(word)}'
        for word, verdict in kinds.items()
    )
    return f'{cells}<i style="background:{UNTRIED}"></i>not tried'


def _rows(points: Sequence[Point]) -> str:
    rows = []
    for point in points:
        mark = ' class="bad"' if point.verdict.is_bug else ""
        what = f"{point.rule or ''} {point.message}".strip()
        rows.append(
            f"<tr><td>{point.index}</td><td class='call'>{escape(point.label)}</td>"
            f"<td{mark}>{point.verdict.value}</td><td>{escape(what)}</td></tr>"
        )
    return "".join(rows)
