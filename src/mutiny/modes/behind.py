"""Behind known findings: a run that one of them stopped is run again without the step that showed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from mutiny import stopping
from mutiny.engine.known import Known, without_trigger
from mutiny.engine.loop import Outcome
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

    @property
    def excuse(self) -> str:
        """Why its failure is no news; empty when it is, or when there is none."""
        return self.met[-1][0].reason if self.only_known else ""


def run_behind(
    bench: Bench, assignment: Assignment, run: Callable[[Assignment, str], Outcome] | None = None
) -> Tried:
    """Run; behind each known finding run once more without the step that showed it.

    `run` is also told what kind of run it is: nothing special, or `BEHIND`.
    """
    met: list[tuple[Known, Outcome]] = []
    while True:
        kind = BEHIND if met else ""
        outcome = bench.run(assignment) if run is None else run(assignment, kind)
        entry = bench.known.entry_for(outcome)
        if entry is None:
            return Tried(outcome, tuple(met))
        met.append((entry, outcome))
        rest = without_trigger(outcome, assignment.operations)
        if rest is None or len(met) >= MOST or stopping.asked():
            return Tried(outcome, tuple(met), only_known=True)
        assignment = replace(assignment, operations=rest)
