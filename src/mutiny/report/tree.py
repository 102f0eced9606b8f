"""Where the parts of a picture of bars lie: who started whom, how long each lasted, and how it ended.

A row a bar, children below the one that started them and joined to it by a line, on one axis of time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mutiny.kit.measuring import Bar

WIDTH, LEFT, RIGHT = 1120, 190, 20
ROW, TOP, INDENT = 22, 10, 14
THICK = 14
MOST = 300
"""So many bars are drawn."""
_ROOM = 6.3
"""The width of a letter."""
COLOURS = {
    "completed": "var(--good)",
    "failed": "var(--bad)",
    "stopped": "var(--unsure)",
    "refused": "var(--c5)",
    "running": "var(--check)",
    "waited": "var(--wait)",
}
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 1e9)


def tree(bars: Sequence[Bar]) -> dict[str, Any]:
    """The whole picture, for `tree.svg`."""
    ordered = list(_ordered(bars))[:MOST]
    end_s = max([bar.end_s for bar, _ in ordered] + [0.1])
    scale = (WIDTH - LEFT - RIGHT) / end_s
    rows = {bar.id: number for number, (bar, _) in enumerate(ordered)}
    height = TOP + ROW * len(ordered) + 26
    return {
        "width": WIDTH,
        "height": height,
        "bottom": height - 22,
        "top": TOP,
        "thick": THICK,
        "ticks": list(_ticks(end_s, scale)),
        "bars": [_bar(bar, depth, rows, scale) for bar, depth in ordered],
        "left_out": len(bars) - len(ordered),
    }


def _ordered(bars: Sequence[Bar]) -> Iterator[tuple[Bar, int]]:
    """Everybody below whoever started it, in the order in which they were asked for."""
    known = {bar.id for bar in bars}
    below: dict[str, list[Bar]] = {}
    for bar in bars:
        below.setdefault(bar.parent if bar.parent in known else "", []).append(bar)
    waiting = [(bar, 0) for bar in reversed(below.get("", []))]
    while waiting:
        bar, depth = waiting.pop()
        yield bar, depth
        waiting += [(child, depth + 1) for child in reversed(below.get(bar.id, []))]


def _bar(bar: Bar, depth: int, rows: dict[str, int], scale: float) -> dict[str, Any]:
    y = TOP + ROW * rows[bar.id]
    x, end = LEFT + bar.begin_s * scale, LEFT + bar.end_s * scale
    width = max(end - x, 3.0)
    shown = f"{bar.status}: {bar.note}" if bar.note else bar.status
    inside = width > len(shown) * _ROOM + 8
    room = WIDTH - RIGHT - (x + width) > len(shown) * _ROOM + 6
    parent = rows.get(bar.parent)
    text_x = x + 5 if inside else x + width + 5 if room else x - bar.waited_s * scale - 5
    return {
        "x": round(x, 1),
        "y": y,
        "middle": y + THICK / 2,
        "width": round(width, 1),
        "waited": round(bar.waited_s * scale, 1),
        "colour": COLOURS.get("running" if bar.open else bar.status, "var(--c5)"),
        "open": bar.open,
        "refused": bar.status == "refused",
        "name": f"{bar.name} {bar.id}",
        "name_x": 8 + depth * INDENT,
        "text": shown,
        "text_x": round(text_x, 1),
        "where": "inside" if inside else "beside",
        "anchor": "start" if inside or room else "end",
        "link": None
        if parent is None
        else {
            "x": 8 + (depth - 1) * INDENT + 3,
            "y": TOP + ROW * parent + THICK + 2,
            "to": 8 + depth * INDENT - 3,
        },
        "said": f"{bar.name} ({bar.id}) {shown}\nfrom {bar.begin_s:.1f} s to {bar.end_s:.1f} s"
        + (f", waited {bar.waited_s:.1f} s" if bar.waited_s >= 0.05 else "")
        + (f"\nstarted by {bar.parent}" if bar.parent else ""),
    }


def _ticks(end_s: float, scale: float) -> Iterator[dict[str, Any]]:
    step = next(size for size in _STEPS if end_s / size <= 12)
    for number in range(int(end_s / step) + 1):
        at = number * step
        text = (
            f"{at / 3600:g} h"
            if step >= 1800
            else f"{at / 60:g} min"
            if step >= 60
            else f"{at:g} s"
        )
        yield {"x": round(LEFT + at * scale, 1), "text": text}
