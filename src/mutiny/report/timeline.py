"""The time line of an experiment as inline SVG: phases, faults, operations, answers of the probe.

All lanes share one axis, so that the eye can do what a table cannot: see what followed what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.report.escape import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutiny.report.experiment import ExperimentReport, FaultRecord, SampleRecord, StepRecord

WIDTH, LEFT, RIGHT = 1120, 96, 16
PHASE_TOP, PHASE_HEIGHT = 8, 22
FAULT_TOP = 44
ROW = 17
LATENCY_HEIGHT = 64
_PHASES = {
    "setup": "var(--phase-a)",
    "before": "var(--phase-b)",
    "method": "var(--phase-c)",
    "recovery": "var(--phase-d)",
    "after": "var(--phase-b)",
    "rollback": "var(--phase-a)",
}
_COLOURS = {
    "success": "var(--good)",
    "expected": "var(--good)",
    "bug": "var(--bad)",
    "recovery_bug": "var(--bad)",
    "timeout": "var(--bad)",
    "inconclusive": "var(--unsure)",
}
_KINDS = {"fault": "var(--bad-soft)", "wait": "var(--wait)", "assertion": "var(--check)"}


class _Axis:
    def __init__(self, end_s: float) -> None:
        self.end_s = max(end_s, 0.1)

    def x(self, at_s: float) -> float:
        share = min(max(at_s / self.end_s, 0.0), 1.0)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def width(self, begin_s: float, end_s: float, least: float = 2.0) -> float:
        return round(max(self.x(end_s) - self.x(begin_s), least), 2)


def timeline(report: ExperimentReport) -> str:
    """The whole picture."""
    axis = _Axis(
        max([step.end_s for step in report.steps] + [s.at_s for s in report.samples] + [0.1])
    )
    fault_rows = _rows([(f.at_s, f.at_s + 0.17 * axis.end_s) for f in report.faults])
    faults_height = (ROW + 4) * (max(fault_rows, default=0) + 1) if report.faults else ROW
    operations_top = FAULT_TOP + faults_height + 14
    shown = [step for step in report.steps if step.text != "Reset"]
    gap = 0.02 * axis.end_s
    rows = _rows(
        [(s.begin_s, max(s.end_s, s.begin_s + _room(s, axis)) + gap) for s in shown], most=9
    )
    operations_height = ROW * (max(rows, default=0) + 1)
    samples_top = operations_top + operations_height + 16
    height = samples_top + (LATENCY_HEIGHT + 30 if report.samples else 0) + 26
    parts = [
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="time line" xmlns="http://www.w3.org/2000/svg">',
        *_grid(axis, height),
        *_phases(report.steps, axis, height),
        _label(FAULT_TOP + 12, "faults"),
        *_faults(report.faults, fault_rows, axis, height),
        _label(operations_top + 12, "operations"),
        *_operations(shown, rows, operations_top, axis),
    ]
    if report.samples:
        parts += [_label(samples_top + 12, "probe"), *_samples(report.samples, samples_top, axis)]
    parts.append("</svg>")
    return "".join(parts)


def _label(y: float, text: str) -> str:
    return f'<text x="8" y="{y}" class="lane">{text}</text>'


def _room(step: StepRecord, axis: _Axis) -> float:
    """Seconds that the text of a step needs beside its bar."""
    return min(len(_short(step.text)), 26) * 6.2 / (WIDTH - LEFT - RIGHT) * axis.end_s


def _short(text: str) -> str:
    name, _, rest = text.partition("(")
    inner = rest.rstrip(")").replace('"', "")
    first = inner.split(",")[0].partition("=")
    value = (first[2] or first[0]).partition("(")[0].lstrip("[")
    return f"{name} {value}"[:26].rstrip() if value and value != "..." else name[:26]


def _rows(spans: Sequence[tuple[float, float]], most: int = 6) -> list[int]:
    """The first row in which each span is free; the last row takes what is left over."""
    ends: list[float] = []
    found = []
    for begin, end in spans:
        row = next((i for i, used in enumerate(ends) if used <= begin), len(ends))
        row = min(row, most - 1)
        if row == len(ends):
            ends.append(end)
        else:
            ends[row] = max(ends[row], end)
        found.append(row)
    return found


def _grid(axis: _Axis, height: float) -> Iterator[str]:
    step = next(
        size
        for size in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 7200, 1e9)
        if axis.end_s / size <= 14
    )
    count = int(axis.end_s / step)
    for number in range(count + 1):
        x = axis.x(number * step)
        yield f'<line x1="{x}" x2="{x}" y1="{PHASE_TOP + PHASE_HEIGHT}" y2="{height - 20}" class="grid"/>'
        yield f'<text x="{x}" y="{height - 6}" class="tick">{number * step:g} s</text>'


def _phases(steps: Sequence[StepRecord], axis: _Axis, height: float) -> Iterator[str]:
    begin: dict[str, float] = {}
    end: dict[str, float] = {}
    for step in steps:
        begin.setdefault(step.phase, step.begin_s)
        end[step.phase] = max(end.get(step.phase, 0.0), step.end_s)
    order = list(begin)
    for index, phase in enumerate(order):
        until = begin[order[index + 1]] if index + 1 < len(order) else end[phase]
        x, width = axis.x(begin[phase]), axis.width(begin[phase], until)
        yield (
            f'<rect x="{x}" y="{PHASE_TOP}" width="{width}" height="{PHASE_HEIGHT}" rx="3" '
            f'fill="{_PHASES.get(phase, "var(--phase-a)")}"><title>{escape(phase)}: '
            f"{begin[phase]:.2f} s to {until:.2f} s</title></rect>"
        )
        if phase in ("method", "recovery"):
            yield (
                f'<rect x="{x}" y="{PHASE_TOP + PHASE_HEIGHT}" width="{width}" '
                f'height="{height - 22 - PHASE_TOP - PHASE_HEIGHT}" class="chaos"/>'
            )
        if width > 7 * len(phase) + 8:
            yield f'<text x="{x + 6}" y="{PHASE_TOP + 15}" class="phase">{escape(phase)}</text>'


def _faults(
    faults: Sequence[FaultRecord], rows: Sequence[int], axis: _Axis, height: float
) -> Iterator[str]:
    for fault, row in zip(faults, rows, strict=True):
        y = FAULT_TOP + row * (ROW + 4)
        x = axis.x(fault.at_s)
        colour = "var(--bad)" if fault.fired else "var(--unsure)"
        until = fault.until_s if fault.until_s is not None else axis.end_s
        said = f"{fault.text} at {fault.at_s:.2f} s, {fault.technique or 'no technique'}"
        said += "" if fault.fired else ", did not fire"
        if fault.recovered_s is not None:
            said += f", recovered after {fault.recovered_s:.2f} s"
        yield f"<g><title>{escape(said)}</title>"
        yield f'<line x1="{x}" x2="{x}" y1="{y}" y2="{height - 22}" stroke="{colour}" class="shock"/>'
        if fault.fired and until - fault.at_s > 0.01 * axis.end_s:
            width = axis.width(fault.at_s, until)
            yield f'<rect x="{x}" y="{y + 3}" width="{width}" height="10" rx="2" class="lasting"/>'
        if fault.recovered_s is not None and fault.until_s is not None:
            x2 = axis.x(fault.until_s + fault.recovered_s)
            x1 = axis.x(fault.until_s)
            yield f'<line x1="{x1}" x2="{x2}" y1="{y + 15}" y2="{y + 15}" class="recovery"/>'
            yield f'<circle cx="{x2}" cy="{y + 15}" r="3" fill="var(--good)"/>'
        yield f'<path d="M{x - 5} {y + 2} h10 l-5 9 z" fill="{colour}"/>'
        anchor = "end" if x > WIDTH * 0.78 else "start"
        place = x - 8 if anchor == "end" else x + 9
        yield (
            f'<text x="{place}" y="{y + 12}" text-anchor="{anchor}" class="fault">'
            f"{escape(_short(fault.text))}</text></g>"
        )


def _operations(
    steps: Sequence[StepRecord], rows: Sequence[int], top: float, axis: _Axis
) -> Iterator[str]:
    for step, row in zip(steps, rows, strict=True):
        y = top + row * ROW
        x, width = axis.x(step.begin_s), axis.width(step.begin_s, step.end_s, 3)
        good = step.verdict in ("success", "expected")
        kind = "wait" if step.text.startswith("Sleep") else step.kind
        colour = _KINDS.get(kind, "var(--good)") if good else _COLOURS[step.verdict]
        said = f"{step.text}\n{step.begin_s:.2f} s to {step.end_s:.2f} s: {step.verdict}"
        said += f"\n{step.note}" if step.note else ""
        inside = width > len(_short(step.text)) * 6.2 + 8
        yield f"<g><title>{escape(said)}</title>"
        yield f'<rect x="{x}" y="{y}" width="{width}" height="{ROW - 4}" rx="2" fill="{colour}"/>'
        place = x + 4 if inside else x + width + 3
        where = "inside" if inside else "beside"
        if inside or place + 60 < WIDTH:
            yield f'<text x="{place}" y="{y + 10}" class="{where}">{escape(_short(step.text))}</text>'
        yield "</g>"


def _samples(samples: Sequence[SampleRecord], top: float, axis: _Axis) -> Iterator[str]:
    """A strip of answers, and below it how long each of them took."""
    slowest = max(sample.latency_ms for sample in samples) or 1.0
    bottom = top + 22 + LATENCY_HEIGHT
    points = []
    for index, sample in enumerate(samples):
        later = samples[index + 1].at_s if index + 1 < len(samples) else sample.at_s + 0.1
        x = axis.x(sample.at_s)
        width = axis.width(sample.at_s, min(later, sample.at_s + 2.0), 1.5)
        colour = {True: "var(--good)", False: "var(--bad)", None: "var(--unsure)"}[sample.ok]
        word = {True: "answered", False: "did not answer", None: "could not be asked"}[sample.ok]
        yield (
            f'<rect x="{x}" y="{top}" width="{width}" height="14" fill="{colour}">'
            f"<title>{sample.at_s:.2f} s: {word} ({sample.latency_ms:.0f} ms)</title></rect>"
        )
        points.append(f"{x},{bottom - sample.latency_ms / slowest * LATENCY_HEIGHT:.1f}")
    first, last = axis.x(samples[0].at_s), axis.x(samples[-1].at_s)
    yield f'<polygon points="{first},{bottom} {" ".join(points)} {last},{bottom}" class="area"/>'
    yield f'<polyline points="{" ".join(points)}" class="latency"/>'
    yield f'<text x="{LEFT - 6}" y="{top + 32}" class="scale">{slowest:.0f} ms</text>'
    yield f'<text x="{LEFT - 6}" y="{bottom}" class="scale">0</text>'
