"""Where the parts of a chart lie: linear or logarithmic axes, one line a series, its name at its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

PALETTE = tuple(f"var(--c{place})" for place in range(6))
LEFT, TOP, BOTTOM = 64, 14, 40
BESIDE, LETTER = 14, 7
"""Room for the names of the lines: beside them, and for each letter."""
SMALL_RIGHT = 16
"""Where no line has a name."""
NEAR = 13
"""Names at the ends of lines keep this distance from each other."""


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: str


@dataclass(frozen=True)
class Axis:
    """One direction: what it means, from where to where, and on which scale."""

    title: str
    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.log and len(decades := _decades(self.low, self.high)) > 1:
            return decades
        raw = (self.high - self.low) / 4
        unit = 10.0 ** math.floor(math.log10(raw))
        step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw)
        first = math.ceil(self.low / step - 1e-9)
        return [place * step for place in range(first, int(self.high / step + 1e-9) + 1)]


def _decades(low: float, high: float) -> list[float]:
    found: list[float] = []
    many = high / low > 100
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        found += [factor * 10.0**power for factor in ((1,) if many else (1, 2, 5))]
    return [value for value in found if low * 0.999 <= value <= high * 1.001]


def axis(
    title: str,
    values: Sequence[float],
    *,
    log: bool = False,
    zero: bool = False,
    least: float = 0.0,
) -> Axis:
    """An axis that shows all values, with some air; `least`: so much of it, or noise looks like growth."""
    low, high = min(values), max(values)
    if high - low < least:
        low, high = max(0.0, (low + high - least) / 2), (low + high + least) / 2
    if log:
        return Axis(title, low / 1.25, high * 1.25, True)
    low = min(0.0, low) if zero else low
    air = (high - low) * 0.08 or max(abs(high) * 0.1, 1.0)
    return Axis(title, low if zero else low - air, high + air)


def number(value: float) -> str:
    """A number as short as people write it."""
    if value and abs(value) < 1:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 10 or value == int(value) else f"{value:.1f}"


def chart(
    series: Sequence[Series], across: Axis, up: Axis, *, width: int = 640, height: int = 320
) -> dict[str, Any]:
    """Where everything lies, for `chart.svg`; each point has its figures."""
    longest = max((len(line.name) for line in series), default=0)
    right = width - (min(BESIDE + LETTER * longest, width // 3) if longest else SMALL_RIGHT)
    bottom = height - BOTTOM

    def x(value: float) -> float:
        return round(LEFT + across.at(value) * (right - LEFT), 1)

    def y(value: float) -> float:
        return round(bottom - up.at(value) * (bottom - TOP), 1)

    lines = [
        {
            "colour": line.colour,
            "points": [
                {"x": x(a), "y": y(b), "said": f"{line.name}: {number(a)}, {number(b)}"}
                for a, b in line.points
            ],
        }
        for line in series
    ]
    return {
        "left": LEFT,
        "right": right,
        "top": TOP,
        "bottom": bottom,
        "width": width,
        "height": height,
        "up": [{"at": y(value), "text": number(value)} for value in up.ticks()],
        "across": [{"at": x(value), "text": number(value)} for value in across.ticks()],
        "up_title": up.title,
        "across_title": across.title,
        "lines": lines,
        "names": _names([(line, y(line.points[-1][1])) for line in series if line.points]),
    }


def _names(ends: Sequence[tuple[Series, float]]) -> list[dict[str, Any]]:
    """The names of the lines at their ends, moved apart where they would lie on each other."""
    names = []
    lowest = -math.inf
    for line, y in sorted(ends, key=lambda end: end[1]):
        lowest = max(y, lowest + NEAR)
        names.append({"text": line.name, "y": round(lowest + 4, 1), "colour": line.colour})
    return names
