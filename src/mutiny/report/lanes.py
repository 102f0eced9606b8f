"""Where the parts of a picture of schedules lie: a lane a command, filled while it moves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mutiny.kit.operations import Interleave

if TYPE_CHECKING:
    from mutiny.engine.sweeping import Point

LEFT, WIDTH, LANE, SPACE = 250, 1120, 15, 12
MOST = 200
"""So many schedules are drawn, bugs before all others."""


def lanes(points: Sequence[Point], colours: dict[str, str]) -> dict[str, Any]:
    """All schedules below each other, on one scale, for `lanes.svg`."""
    drawn = [point for point in points if isinstance(point.operation, Interleave)]
    chosen = sorted(drawn, key=lambda point: not point.verdict.stops_run)[:MOST]
    chosen.sort(key=lambda point: point.index)
    longest = max((len(_choices(point)) for point in chosen), default=1) or 1
    top = 4
    schedules = []
    for point in chosen:
        names = [part.short() for part in point.operation.children()]
        bottom = top + LANE * len(names)
        schedules.append(
            {
                "number": point.index,
                "top": top,
                "bottom": bottom,
                "colour": colours[point.verdict.value],
                "lanes": [{"y": top + row * LANE, "name": name} for row, name in enumerate(names)],
                "runs": list(_runs(point, names, top, (WIDTH - LEFT) / longest)),
            }
        )
        top = bottom + SPACE
    size = {"left": LEFT, "width": WIDTH, "height": top, "thick": LANE - 4}
    return {**size, "schedules": schedules}


def _choices(point: Point) -> tuple[int, ...]:
    assert isinstance(point.operation, Interleave)
    return point.operation.choices()


def _runs(point: Point, names: Sequence[str], top: int, scale: float) -> Iterator[dict[str, Any]]:
    """Each stretch in which one command moves."""
    said = f"{point.label}\n{point.verdict.value} {point.rule or ''} {point.message}".strip()
    at = 0
    for who, group in itertools.groupby(_choices(point)):
        length = len(list(group))
        yield {
            "x": round(LEFT + at * scale, 1),
            "y": top + who * LANE,
            "width": round(max(length * scale - 0.6, 1), 1),
            "said": f"{names[who]}: {length} calls\n{said}",
        }
        at += length
