"""Exploration: many seeds, one sequence each, and what they covered together.

Runs are independent boxes, so they may go side by side; each keeps its own run directory only when
it did not pass.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mutiny.engine.causes import Causes
from mutiny.engine.journal import Step
from mutiny.engine.known import Known, known_as_json
from mutiny.engine.loop import Outcome
from mutiny.model.verdict import Verdict, worst
from mutiny.modes.behind import Tried, run_behind
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.side_by_side import side_by_side
from mutiny.report.junit import Case, case_of

Cell = tuple[str, str, str, str]


@dataclass
class Exploration:
    """What a series of explored runs gave."""

    verdicts: Counter[str] = field(default_factory=Counter)
    coverage: Counter[Cell] = field(default_factory=Counter)
    failures: list[tuple[int, Outcome]] = field(default_factory=list)
    target: str = ""
    cases: list[Case] = field(default_factory=list)
    """Every sequence by its seed; those that ended with a known finding say so."""
    causes: Causes = field(default_factory=Causes)
    known: Counter[Known] = field(default_factory=Counter)
    """How often each known finding was met."""
    sequences: int = 0
    operations: int = 0
    own_ms: float = 0.0
    started: float = field(default_factory=time.monotonic)

    def add(self, seed: int, tried: Tried) -> None:
        """Take one finished sequence into account; one that ended with a known finding has no verdict."""
        outcome = tried.outcome
        self.known.update(entry for entry, _ in tried.met)
        self.sequences += 1
        self.cases.append(case_of(f"seed {seed}", self.target, outcome, tried.excuse))
        if tried.only_known:
            self.coverage.update(cells(outcome.steps))
            return
        self.verdicts[outcome.verdict.value] += 1
        self.operations += len(outcome.steps)
        self.own_ms += sum(step.own_ms for step in outcome.steps[1:])
        self.coverage.update(cells(outcome.steps))
        if outcome.verdict is not Verdict.SUCCESS:
            self.failures.append((seed, outcome))
            self.causes.add(f"seed {seed}", outcome)

    @property
    def verdict(self) -> Verdict:
        """Of everything but the known findings: where nothing else was met, nothing new was."""
        if self.known and not self.verdicts:
            return Verdict.SUCCESS
        return worst(Verdict(name) for name in self.verdicts)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "runs": self.sequences,
            "operations": self.operations,
            "seconds": round(time.monotonic() - self.started, 1),
            "verdicts": dict(self.verdicts),
            "cells": len(self.coverage),
            "coverage": [
                {"status": s, "operation": o, "fault": f, "outcome": r, "count": count}
                for (s, o, f, r), count in sorted(self.coverage.items())
            ],
            "failures": [
                {
                    "seed": seed,
                    "verdict": outcome.verdict.value,
                    "rule": outcome.rule,
                    "directory": str(outcome.directory.path),
                }
                for seed, outcome in self.failures
            ],
            "causes": self.causes.as_json(),
            "known": known_as_json(self.known),
        }


def cells(steps: Iterable[Step]) -> Iterator[Cell]:
    """The coverage cells (status, operation, fault, outcome) that steps filled."""
    for step in steps:
        cell = step.coverage
        if cell:
            yield (
                str(cell["status"]),
                str(cell["operation"]),
                str(cell["fault"]),
                str(cell["outcome"]),
            )


def explore(
    bench: Bench,
    seeds: Sequence[int],
    length: int,
    *,
    jobs: int = 1,
    deadline_s: float | None = None,
    keep_going: bool = False,
    watch: Callable[[Exploration], None] = lambda _: None,
) -> Exploration:
    """Run one sequence a seed, `jobs` at a time; stop at the first failure unless told to go on.

    A sequence that shows nothing is no failure: the next seed may show something.
    """
    contract = bench.target.contract()
    result = Exploration(target=bench.target.name)
    bench = replace(bench, causes=result.causes)
    over = False

    def pieces() -> Iterator[tuple[int, Callable[[], Tried]]]:
        for seed in seeds:
            sequence = contract.generate(seed, length)
            one = Assignment(sequence, f"explore seed {seed}", seed, "explore")
            yield seed, partial(run_behind, bench, one)

    def is_over() -> bool:
        late = deadline_s is not None and time.monotonic() - result.started > deadline_s
        return over or late

    for seed, tried in side_by_side(pieces(), jobs, is_over):
        outcome = tried.outcome
        result.add(seed, tried)
        if outcome.verdict is Verdict.SUCCESS:
            outcome.directory.discard()
        news = outcome.verdict not in (Verdict.SUCCESS, Verdict.INCONCLUSIVE)
        over = over or (news and not tried.only_known and not keep_going)
        watch(result)
    return result


FAULTS_COLUMN = 56
"""Where the last column of the table of coverage begins."""


def coverage_table(coverage: Counter[Cell]) -> Iterator[str]:
    """Operations by status: how often each was tried, and under how many faults."""
    by_pair: dict[tuple[str, str], Counter[str]] = {}
    faults: dict[tuple[str, str], set[str]] = {}
    for (status, operation, fault, outcome), count in coverage.items():
        by_pair.setdefault((operation, status), Counter())[outcome] += count
        faults.setdefault((operation, status), set()).add(fault)
    yield f"{'operation':<18} {'status':<14} {'ok':>4} {'refused':>8} {'other':>6}  faults before it"
    for (operation, status), outcomes in sorted(by_pair.items()):
        good, refused = outcomes["success"], outcomes["expected"]
        other = sum(outcomes.values()) - good - refused
        before = ", ".join(sorted(faults[(operation, status)] - {"none", operation})) or "-"
        yield f"{operation:<18} {status:<14} {good:>4} {refused:>8} {other:>6}  {before}"
