"""Behind known findings: a run that one of them stopped is run again without the step that showed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mutiny import stopping
from mutiny.engine.known import Known, without_trigger
from mutiny.engine.loop import Outcome
from mutiny.model.operation import Kind, Operation
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Assignment, Bench

BEHIND = "Behind a known finding"
MOST = 8
"""So many known findings in one sequence are passed; behind more of them nobody looks."""


@dataclass(frozen=True)
class Tried:
    """A sequence, run to its end or to something new."""

    outcome: Outcome
    met: tuple[tuple[Known, Outcome], ...] = ()
    """The known findings on the way, each with its run."""
    only_known: bool = False
    """It ended with one of them, too."""
    operations: tuple[Operation, ...] = ()
    """What was run in the end: without the steps that had shown what is known."""

    @property
    def excuse(self) -> str:
        """Which known findings kept it from being whole; empty when none did, or when there is news."""
        if self.outcome.verdict.stops_run and not self.only_known:
            return ""
        return "; ".join(dict.fromkeys(entry.reason for entry, _ in self.met))


def run_behind(
    bench: Bench,
    assignment: Assignment,
    run: Callable[[Assignment, str], Outcome] | None = None,
    *,
    first: int = 1,
    entry_for: Callable[[Outcome], Known | None] | None = None,
) -> Tried:
    """Run; behind each known finding run once more without the step that showed it, and without faults
    that have no victim there any more.

    `run` is also told what kind of run it is: nothing special, or `BEHIND`. Steps before `first` have to
    stay. `entry_for` knows the findings, unless told the bench's.
    """
    entry_for = bench.known.entry_for if entry_for is None else entry_for
    met: list[tuple[Known, Outcome]] = []
    missed = 0
    while True:
        kind = BEHIND if met else ""
        outcome = bench.run(assignment) if run is None else run(assignment, kind)
        entry = entry_for(outcome)
        missed += entry is None
        if entry is None and not (met and missed <= MOST and _without_victim(outcome)):
            return Tried(outcome, tuple(met), operations=assignment.operations)
        rest = without_trigger(outcome, assignment.operations, first)
        if entry is None and rest is None:
            return Tried(outcome, tuple(met), operations=assignment.operations)
        if entry is not None:
            met.append((entry, outcome))
        if rest is None or len(met) >= MOST or stopping.asked():
            return Tried(outcome, tuple(met), True, assignment.operations)
        assignment = replace(assignment, operations=rest)


def _without_victim(outcome: Outcome) -> bool:
    """Did it end at a fault that could not be done: whom it would have hit is not there?"""
    last = outcome.steps[-1] if outcome.steps else None
    if last is None or outcome.verdict is not Verdict.INCONCLUSIVE:
        return False
    alone = last.operation.kind is Kind.FAULT and not last.operation.children()
    return alone and not last.result.fired and not last.result.succeeded
