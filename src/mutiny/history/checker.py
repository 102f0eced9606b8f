"""Is a history linearizable: did every operation take effect at one moment between call and return?

Three answers: yes, with an order; no, with the operations that cannot be ordered; and unknown,
when the bound was reached, because a checker that gives up must not look like one that agrees.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mutiny.history.events import Entry
from mutiny.history.explain import Bounds, Contradiction, contradiction
from mutiny.history.models import Model
from mutiny.history.search import (
    Budget,
    Machine,
    Search,
    Timeline,
    Verdict,
    start_of,
)

__all__ = ["Limits", "PartReport", "Report", "Verdict", "check"]

QUICK_STEPS = 20_000
"""Steps in each part before any part gets more; twice its operations, if that is more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a check may cost at most."""

    steps: int = 1_000_000
    """Steps of the search in each part."""
    seconds: float = 30.0
    """For all parts together."""
    explain_steps: int = 2_000
    """Steps for each attempt to make a contradiction smaller."""
    explain_seconds: float = 2.0
    """For making one contradiction smaller."""
    explained: int = 3
    """How many contradictions are made smaller; the others are only counted."""


@dataclass(frozen=True, slots=True)
class PartReport:
    """What is known about one part."""

    key: str
    verdict: Verdict
    operations: int
    order: tuple[Entry, ...]
    """All of it in a possible order; if there is none, the longest beginning of one that was found."""
    contradiction: Contradiction | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What is known about a history."""

    verdict: Verdict
    model: str
    operations: int
    parts: tuple[PartReport, ...]
    left_out: Mapping[str, int]
    """Operations that were not checked, by the reason."""
    seconds: float

    def __bool__(self) -> bool:
        raise TypeError("a report is not yes or no: compare its verdict")

    @property
    def wrong(self) -> tuple[PartReport, ...]:
        """The parts that cannot be ordered."""
        return tuple(part for part in self.parts if part.verdict is Verdict.NOT_LINEARIZABLE)

    def render(self) -> str:
        """The report for people: one line, and a few more for each contradiction."""
        count = dict.fromkeys(Verdict, 0)
        for part in self.parts:
            count[part.verdict] += 1
        lines = [
            f"{self.model}: {self.verdict.value}: {self.operations} operations in "
            f"{len(self.parts)} parts ({count[Verdict.NOT_LINEARIZABLE]} wrong, "
            f"{count[Verdict.UNKNOWN]} unknown) in {self.seconds:.2f} s"
        ]
        lines += [f"  not checked: {count} x {why}" for why, count in self.left_out.items()]
        for part in self.wrong:
            lines.append(f"{part.key or 'the history'}: {len(part.order)} of {part.operations} fit")
            if part.contradiction is not None:
                lines += [f"  {line}" for line in part.contradiction.lines()]
        return "\n".join(lines)


def check(entries: Sequence[Entry], model: Model, limits: Limits | None = None) -> Report:
    """Check a history against a model.

    All parts get a quick look first, so that one which is hard to decide does not keep us from one
    that is plainly wrong. Only if none is wrong, those that are still unknown get all the steps.
    """
    limits = limits or Limits()
    began = time.monotonic()
    parts = model.partition(entries)
    machine = Machine(model)
    reports: dict[str, PartReport] = {}
    explained = 0
    for steps in (QUICK_STEPS, limits.steps):
        if _worst(reports.values()) is Verdict.NOT_LINEARIZABLE:
            break
        for key, part in parts.by_key.items():
            if key not in reports or reports[key].verdict is Verdict.UNKNOWN:
                budget = Budget(
                    min(max(steps, 2 * len(part)), limits.steps), began + limits.seconds
                )
                explain = limits if explained < limits.explained else None
                reports[key] = _check_part(key, part, machine, budget, explain)
                explained += reports[key].contradiction is not None
    return Report(
        verdict=_worst(reports.values()),
        model=model.name,
        operations=len(entries),
        parts=tuple(reports.values()),
        left_out=parts.left_out,
        seconds=time.monotonic() - began,
    )


def _check_part(
    key: str, part: Sequence[Entry], machine: Machine, budget: Budget, limits: Limits | None
) -> PartReport:
    timeline = Timeline.of(part, machine)
    start = start_of(machine, key)
    found = Search(timeline, machine).run([start], budget)
    proof = None
    if found.verdict is Verdict.NOT_LINEARIZABLE and limits is not None:
        bounds = Bounds(limits.explain_steps, limits.explain_seconds)
        proof = contradiction(timeline, machine, start, found, bounds)
    order = tuple(timeline.entries[number] for number in found.order)
    return PartReport(key, found.verdict, len(part), order, proof)


def _worst(reports: Iterable[PartReport]) -> Verdict:
    """One wrong part makes the history wrong, whatever is unknown about the others."""
    verdicts = {report.verdict for report in reports}
    for verdict in (Verdict.NOT_LINEARIZABLE, Verdict.UNKNOWN):
        if verdict in verdicts:
            return verdict
    return Verdict.LINEARIZABLE
