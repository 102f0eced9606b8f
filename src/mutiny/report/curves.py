"""Curves as inline SVG: linear or logarithmic axes, one line a series, its name at its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mutiny.report.escape import escape

PALETTE = tuple(f"var(--c{place})" for place in range(6))
LEFT, RIGHT, TOP, BOTTOM = 64, 118, 14, 40
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
        if self.log:
            return _decades(self.low, self.high)
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
) -> str:
    """The picture. Each point tells its figures when hovered."""
    right = RIGHT if any(line.name for line in series) else SMALL_RIGHT
    wide, high = width - LEFT - right, height - TOP - BOTTOM

    def x(value: float) -> float:
        return round(LEFT + across.at(value) * wide, 1)

    def y(value: float) -> float:
        return round(TOP + (1 - up.at(value)) * high, 1)

    parts = [
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'style="max-width:{width}px" role="img">'
    ]
    for value in up.ticks():
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + wide}" y1="{y(value)}" y2="{y(value)}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4}" class="end">{number(value)}</text>')
    for value in across.ticks():
        parts.append(f'<line x1="{x(value)}" x2="{x(value)}" y1="{TOP}" y2="{TOP + high}"/>')
        place = f'x="{x(value)}" y="{TOP + high + 16}"'
        parts.append(f'<text {place} class="mid">{number(value)}</text>')
    parts.append(
        f'<text x="{LEFT + wide / 2}" y="{height - 4}" class="mid title">{escape(across.title)}</text>'
    )
    middle = TOP + high / 2
    parts.append(
        f'<text x="13" y="{middle}" class="mid title" transform="rotate(-90 13 {middle})">'
        f"{escape(up.title)}</text>"
    )
    for line in series:
        parts += _line(line, x, y)
    ends = [(line, y(line.points[-1][1])) for line in series if line.points]
    parts += _names(ends, LEFT + wide + 10)
    return "".join((*parts, "</svg>"))


Place = Callable[[float], float]


def _line(line: Series, x: Place, y: Place) -> list[str]:
    path = " ".join(f"{x(a)},{y(b)}" for a, b in line.points)
    parts = [f'<polyline points="{path}" stroke="{line.colour}"/>']
    large = len(line.points) <= 24
    for a, b in line.points:
        said = f"{line.name}: {number(a)}, {number(b)}"
        size = 4 if large else 2
        parts.append(
            f'<circle cx="{x(a)}" cy="{y(b)}" r="{size}" fill="{line.colour}">'
            f"<title>{escape(said)}</title></circle>"
        )
    return parts


def _names(ends: Sequence[tuple[Series, float]], x: float) -> list[str]:
    """The names of the lines at their ends, moved apart where they would lie on each other."""
    parts = []
    lowest = -math.inf
    for line, y in sorted(ends, key=lambda end: end[1]):
        lowest = max(y, lowest + NEAR)
        parts.append(
            f'<text x="{x}" y="{lowest + 4:.1f}" style="fill:{line.colour}" class="name">'
            f"{escape(line.name)}</text>"
        )
    return parts
