"""Where the parts of an experiment's time line lie: phases, faults, operations, answers of the probe.

All lanes share one axis, so that the eye can do what a table cannot: see what followed what.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mutiny.report.experiment import FaultRecord, SampleRecord, StepRecord

WIDTH, LEFT, RIGHT = 1120, 96, 16
PHASE_TOP, PHASE_HEIGHT = 8, 22
LANE_GAP = 14
ROW = 17
TEXT = 6.2
"""The width of a letter."""
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
_ANSWERS: dict[bool | None, tuple[str, str]] = {
    True: ("var(--good)", "answered"),
    False: ("var(--bad)", "did not answer"),
    None: ("var(--unsure)", "could not be asked"),
}


class _Axis:
    """Where a moment lies."""

    def __init__(self, end_s: float) -> None:
        self.end_s = max(end_s, 0.1)

    def x(self, at_s: float) -> float:
        share = min(max(at_s / self.end_s, 0.0), 1.0)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 2)

    def width(self, begin_s: float, end_s: float, least: float = 2.0) -> float:
        return round(max(self.x(end_s) - self.x(begin_s), least), 2)


class Timed(Protocol):
    """Whatever has a time line."""

    @property
    def steps(self) -> Sequence[StepRecord]: ...

    @property
    def faults(self) -> Sequence[FaultRecord]: ...

    @property
    def samples(self) -> Sequence[SampleRecord]: ...


def timeline(report: Timed) -> dict[str, Any]:
    """The whole picture, for `timeline.svg`; steps without a phase have no lane of phases."""
    axis = _Axis(
        max([step.end_s for step in report.steps] + [s.at_s for s in report.samples] + [0.1])
    )
    phases = list(_phases(report.steps, axis))
    phase_bottom = PHASE_TOP + PHASE_HEIGHT if phases else PHASE_TOP
    fault_top = phase_bottom + LANE_GAP
    fault_rows = _rows([(f.at_s, f.at_s + 0.17 * axis.end_s) for f in report.faults])
    faults_height = (ROW + 4) * (max(fault_rows, default=0) + 1) + LANE_GAP if report.faults else 0
    operations_top = fault_top + faults_height
    shown = [step for step in report.steps if step.text != "Reset"]
    gap = 0.02 * axis.end_s
    rows = _rows([(s.begin_s, _until(s, axis) + gap) for s in shown], most=9)
    samples_top = operations_top + ROW * (max(rows, default=0) + 1) + 16
    height = samples_top + (LATENCY_HEIGHT + 30 if report.samples else 0) + 26
    return {
        "width": WIDTH,
        "height": height,
        "left": LEFT,
        "row": ROW,
        "phase": {"top": PHASE_TOP, "height": PHASE_HEIGHT, "bottom": phase_bottom},
        "fault_top": fault_top,
        "operations_top": operations_top,
        "ticks": list(_ticks(axis)),
        "phases": phases,
        "faults": [
            _fault(fault, fault_top + row * (ROW + 4), axis)
            for fault, row in zip(report.faults, fault_rows, strict=True)
        ],
        "operations": [
            _operation(step, operations_top + row * ROW, axis)
            for step, row in zip(shown, rows, strict=True)
        ],
        "samples": _samples(report.samples, samples_top, axis) if report.samples else None,
    }


def _until(step: StepRecord, axis: _Axis) -> float:
    """Where the bar of a step ends, and its text, when that stands beside it."""
    text = len(_short(step.text)) * TEXT
    if axis.width(step.begin_s, step.end_s, 3) > text + 8:
        return step.end_s
    return step.end_s + text / (WIDTH - LEFT - RIGHT) * axis.end_s


def _short(text: str) -> str:
    """An operation and the first word of what it is about: a value, the operation inside, a switch."""
    name, _, rest = text.partition("(")
    first = rest.split(",")[0].lstrip("[").partition("(")[0].rstrip(")]").replace('"', "")
    word, _, value = first.partition("=")
    said = word if value == "True" else value or word
    return f"{name} {said}"[:26].rstrip() if said not in ("...", "False") else name[:26]


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


def _ticks(axis: _Axis) -> Iterator[dict[str, Any]]:
    step = next(
        size
        for size in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 7200, 1e9)
        if axis.end_s / size <= 14
    )
    for number in range(int(axis.end_s / step) + 1):
        yield {"x": axis.x(number * step), "text": f"{number * step:g} s"}


def _phases(steps: Sequence[StepRecord], axis: _Axis) -> Iterator[dict[str, Any]]:
    begin: dict[str, float] = {}
    end: dict[str, float] = {}
    for step in (one for one in steps if one.phase):
        begin.setdefault(step.phase, step.begin_s)
        end[step.phase] = max(end.get(step.phase, 0.0), step.end_s)
    order = list(begin)
    for index, phase in enumerate(order):
        until = begin[order[index + 1]] if index + 1 < len(order) else end[phase]
        width = axis.width(begin[phase], until)
        yield {
            "x": axis.x(begin[phase]),
            "width": width,
            "colour": _PHASES.get(phase, "var(--phase-a)"),
            "said": f"{phase}: {begin[phase]:.2f} s to {until:.2f} s",
            "chaos": phase in ("method", "recovery"),
            "text": phase if width > 7 * len(phase) + 8 else "",
        }


def _fault(fault: FaultRecord, y: float, axis: _Axis) -> dict[str, Any]:
    x = axis.x(fault.at_s)
    until = fault.until_s if fault.until_s is not None else axis.end_s
    lasts = fault.fired and until - fault.at_s > 0.01 * axis.end_s
    said = f"{fault.text} at {fault.at_s:.2f} s, {fault.technique or 'no technique'}"
    said += "" if fault.fired else ", did not fire"
    recovery = None
    if fault.recovered_s is not None:
        said += f", recovered after {fault.recovered_s:.2f} s"
        if fault.until_s is not None:
            recovery = (axis.x(fault.until_s), axis.x(fault.until_s + fault.recovered_s))
    return {
        "x": x,
        "y": y,
        "said": said,
        "colour": "var(--bad)" if fault.fired else "var(--unsure)",
        "lasting": axis.width(fault.at_s, until) if lasts else None,
        "recovery": recovery,
        "text": _short(fault.text),
        "before": x > WIDTH * 0.78,
    }


def _operation(step: StepRecord, y: float, axis: _Axis) -> dict[str, Any]:
    x, width = axis.x(step.begin_s), axis.width(step.begin_s, step.end_s, 3)
    good = step.verdict in ("success", "expected")
    kind = "wait" if step.text.startswith("Sleep") else step.kind
    said = f"{step.text}\n{step.begin_s:.2f} s to {step.end_s:.2f} s: {step.verdict}"
    text = _short(step.text)
    inside = width > len(text) * TEXT + 8
    text_x = x + 4 if inside else x + width + 3
    return {
        "x": x,
        "y": y,
        "width": width,
        "colour": _KINDS.get(kind, "var(--good)") if good else _COLOURS[step.verdict],
        "said": said + (f"\n{step.note}" if step.note else ""),
        "text": text if inside or text_x + 60 < WIDTH else "",
        "text_x": round(text_x, 2),
        "where": "inside" if inside else "beside",
    }


def _samples(samples: Sequence[SampleRecord], top: float, axis: _Axis) -> dict[str, Any]:
    """A strip of answers, and below it how long each of them took."""
    slowest = max(sample.latency_ms for sample in samples) or 1.0
    bottom = top + 22 + LATENCY_HEIGHT
    answers = []
    for index, sample in enumerate(samples):
        later = samples[index + 1].at_s if index + 1 < len(samples) else sample.at_s + 0.1
        colour, word = _ANSWERS[sample.ok]
        answers.append(
            {
                "x": axis.x(sample.at_s),
                "width": axis.width(sample.at_s, min(later, sample.at_s + 2.0), 1.5),
                "latency_y": round(bottom - sample.latency_ms / slowest * LATENCY_HEIGHT, 1),
                "colour": colour,
                "said": f"{sample.at_s:.2f} s: {word} ({sample.latency_ms:.0f} ms)",
            }
        )
    return {"top": top, "bottom": bottom, "slowest": f"{slowest:.0f} ms", "answers": answers}
