"""Schedules as a picture: a lane a command, filled while it moves; a line where it was stopped."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from mutiny.kit.operations import Interleave
from mutiny.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutiny.engine.sweeping import Point

LEFT, WIDTH, LANE, SPACE = 250, 1120, 15, 12
MOST = 200
"""So many schedules are drawn, bugs before all others."""


def lanes(points: Sequence[Point], colours: dict[str, str]) -> str:
    """All schedules below each other, on one scale."""
    drawn = [point for point in points if isinstance(point.operation, Interleave)]
    chosen = [point for point in drawn if point.verdict.stops_run] + [
        point for point in drawn if not point.verdict.stops_run
    ]
    chosen = sorted(chosen[:MOST], key=lambda point: point.index)
    longest = max((len(_choices(point)) for point in chosen), default=1) or 1
    top = 4
    parts: list[str] = []
    for point in chosen:
        parts += _schedule(point, top, (WIDTH - LEFT) / longest, colours[point.verdict.value])
        top += LANE * len(_commands(point)) + SPACE
    return (
        f'<svg class="calls" xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 8}" height="{top}" '
        f'role="img">{"".join(parts)}</svg>'
    )


def _commands(point: Point) -> list[str]:
    return [part.short() for part in point.operation.children()]


def _choices(point: Point) -> tuple[int, ...]:
    assert isinstance(point.operation, Interleave)
    return point.operation.choices()


def _schedule(point: Point, top: int, scale: float, colour: str) -> Iterator[str]:
    names = _commands(point)
    yield f'<text x="0" y="{top + 10}">{point.index}</text>'
    for lane, name in enumerate(names):
        y = top + lane * LANE
        shown = name if len(name) <= 28 else name[:27] + "…"
        yield f'<text x="34" y="{y + 10}">{escape(shown)}</text>'
        yield f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y + 6}" y2="{y + 6}"/>'
    at = 0
    said = f"{point.label}\n{point.verdict.value} {point.rule or ''} {point.message}".strip()
    for who, group in itertools.groupby(_choices(point)):
        length = len(list(group))
        x, y = LEFT + at * scale, top + who * LANE
        if at:
            yield (
                f'<line class="stop" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 2}" '
                f'y2="{top + LANE * len(names)}"/>'
            )
        yield (
            f'<rect x="{x:.1f}" y="{y}" width="{max(length * scale - 0.6, 1):.1f}" height="{LANE - 4}" '
            f'rx="2" fill="{colour}"><title>{escape(names[who])}: {length} calls\n{escape(said)}'
            "</title></rect>"
        )
        at += length
