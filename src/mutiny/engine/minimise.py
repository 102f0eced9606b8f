"""Minimisation: the shortest sequence that breaks the same rule.

Works on any predicate "does this sequence still break the rule?". Passes, each repeated to a fixed
point: delete operations (from the end, doubling the block while it still fails, then bisecting: the
fewest executions of all that were measured), then the passes that the contract offers; a form is only
tried when it is smaller in the one order of `kit/simplifying.py`. Every pass is named, and its trials and
what it won are counted. Sequences
that the model calls nonsense are never run; those of which it cannot tell what they would do come
last, and the trial decides. Results are cached, a candidate counts only when it fails k times of n,
and everything is bounded in runs and seconds.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mutiny import stopping
from mutiny.kit.simplifying import smaller
from mutiny.model.operation import Operation

WINDOWS = (2, 3)
DELETE, NEIGHBOURS = "delete", "delete neighbours"
"""The passes that every sequence goes through; all others are offered by its contract."""
Sequence_ = tuple[Operation, ...]
Fails = Callable[[Sequence_], bool]


@dataclass(frozen=True)
class Budget:
    """When to stop."""

    runs: int = 120
    seconds: float = 180.0
    confirm: int = 2
    """A candidate must fail this many times ..."""
    of: int = 2
    """... out of this many runs."""
    jobs: int = 1
    """So many trials run side by side."""


@dataclass(frozen=True)
class Pass:
    """What one pass of a minimisation took, and what it won."""

    trials: int = 0
    """Runs of the target."""
    won: int = 0
    """Sequences that were smaller and failed in the same way."""


@dataclass
class Progress:
    """What has been done so far; a progress bar may look at it."""

    runs: int = 0
    cached: int = 0
    skipped: int = 0
    started: float = field(default_factory=time.monotonic)
    best: int = 0
    stage: str = DELETE
    """The pass that is at work."""
    passes: dict[str, Pass] = field(default_factory=dict)
    """Every pass that has tried anything, in the order of the first trial."""

    def count(self, *, trials: int = 0, won: int = 0) -> None:
        """The pass that is at work has done so much more."""
        known = self.passes.get(self.stage, Pass())
        self.passes[self.stage] = Pass(known.trials + trials, known.won + won)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


@dataclass(frozen=True)
class Minimised:
    """The shortest sequence found."""

    operations: Sequence_
    runs: int
    seconds: float
    complete: bool
    """False when the budget ended first: a shorter one may exist."""
    certain: Sequence_ = ()
    """The shortest one without anything doubtful."""
    passes: Mapping[str, Pass] = field(default_factory=dict)
    """What each pass took and won, by name."""


class _OutOfBudget(Exception):
    """The budget is used up; the best so far is the answer."""


class _Asks(Exception):
    """A search that runs on what is known asks for something else."""

    def __init__(self, candidate: Sequence_) -> None:
        self.candidate = candidate


def minimise(
    operations: Sequence[Operation],
    fails: Fails,
    *,
    plausible: Callable[[Sequence_], bool] = lambda _: True,
    doubtful: Callable[[Sequence_], bool] = lambda _: False,
    simpler: Callable[[Sequence_], Iterator[tuple[str, Sequence_]]] = lambda _: iter(()),
    budget: Budget | None = None,
    watch: Callable[[Progress], None] = lambda _: None,
) -> Minimised:
    """Shrink a failing sequence; `fails` must hold for `operations`.

    `doubtful`: nobody can tell what the sequence does, so its trials decide: twice as many of them.
    """
    search = _Search(tuple(operations), fails, plausible, doubtful, budget or Budget(), watch)
    complete = True
    try:
        search.to_its_end(simpler)
        search.certain = search.best
        search.daring = True
        search.to_its_end(simpler)
    except (_OutOfBudget, stopping.Stopped):
        complete = False
        if not search.daring:
            search.certain = search.best
    progress = search.progress
    return Minimised(
        search.best, progress.runs, progress.seconds, complete, search.certain, progress.passes
    )


def next_trial(
    operations: Sequence[Operation],
    outcomes: Mapping[Sequence_, Sequence[bool]],
    *,
    plausible: Callable[[Sequence_], bool],
    doubtful: Callable[[Sequence_], bool],
    simpler: Callable[[Sequence_], Iterator[tuple[str, Sequence_]]],
    budget: Budget,
) -> Sequence_ | None:
    """What a search tries next after these outcomes of each sequence's trials; None: it is at its end."""
    left = {sequence: iter(known) for sequence, known in outcomes.items()}

    def told(candidate: Sequence_) -> bool:
        outcome = next(left.get(candidate, iter(())), None)
        if outcome is None:
            raise _Asks(candidate)
        return outcome

    endless = replace(budget, runs=sys.maxsize, seconds=math.inf)
    try:
        minimise(
            operations,
            told,
            plausible=plausible,
            doubtful=doubtful,
            simpler=simpler,
            budget=endless,
        )
    except _Asks as asks:
        return asks.candidate
    return None


class _Search:
    """The best sequence so far and everything that was tried."""

    def __init__(
        self,
        start: Sequence_,
        fails: Fails,
        plausible: Callable[[Sequence_], bool],
        doubtful: Callable[[Sequence_], bool],
        budget: Budget,
        watch: Callable[[Progress], None],
    ) -> None:
        self.best = start
        self._fails = fails
        self.certain = start
        self.daring = False
        """Is what is doubtful tried, too?"""
        self._plausible = plausible
        self._doubtful = doubtful
        self._budget = budget
        self._watch = watch
        self._cache: dict[Sequence_, bool] = {start: True}
        self.progress = Progress(best=len(start))

    def attempt(self, candidate: Sequence_) -> bool:
        """Does this sequence still fail? If so it becomes the best."""
        known = self._cache.get(candidate)
        if known is not None:
            self.progress.cached += 1
            return False if not known else self._take(candidate)
        if not self._plausible(candidate):
            self.progress.skipped += 1
            self._cache[candidate] = False
            return False
        doubtful = self._doubtful(candidate)
        if doubtful and not self.daring:
            return False
        failed = self._confirmed(candidate, 2 if doubtful else 1)
        self._cache[candidate] = failed
        return self._take(candidate) if failed else False

    def _take(self, candidate: Sequence_) -> bool:
        self.best = candidate
        self.progress.best = len(candidate)
        self.progress.count(won=1)
        return True

    def _confirmed(self, candidate: Sequence_, fold: int) -> bool:
        """Fails k times of n; gives up as soon as that cannot be reached any more."""
        failures = 0
        wanted, most = self._budget.confirm * fold, self._budget.of * fold
        for run in range(most):
            if failures + (most - run) < wanted:
                return False
            if (
                stopping.asked()
                or self.progress.runs >= self._budget.runs
                or self.progress.seconds > self._budget.seconds
            ):
                raise _OutOfBudget
            self.progress.runs += 1
            self.progress.count(trials=1)
            self._watch(self.progress)
            failures += self._fails(candidate)
            if stopping.asked():  # what was broken off has shown nothing
                raise _OutOfBudget
            if failures >= wanted:
                return True
        return False

    def to_its_end(self, simpler: Callable[[Sequence_], Iterator[tuple[str, Sequence_]]]) -> None:
        """All passes, until none of them finds anything shorter."""
        while self.delete_pass() | self.simplify_pass(simpler) | self.window_pass():
            pass

    def delete_pass(self) -> bool:
        """Delete blocks from the end; double the block while it works, bisect when it does not."""
        self.progress.stage = DELETE
        changed = False
        end = len(self.best)
        while end > 0:
            size = 1
            removed = False
            while size <= end and self.attempt(self.best[: end - size] + self.best[end:]):
                end -= size
                removed = changed = True
                size *= 2
            if removed:
                end = self._bisect(end, size // 2)
            end -= 1
        return changed

    def _bisect(self, end: int, size: int) -> int:
        """After a doubled block failed to go, try smaller blocks in front of the same place."""
        while size >= 1 and end > 0:
            if size <= end and self.attempt(self.best[: end - size] + self.best[end:]):
                end -= size
            else:
                size //= 2
        return end

    def window_pass(self) -> bool:
        """Neighbours that only make sense together: an Add and its wait, a fault and its repair."""
        self.progress.stage = NEIGHBOURS
        changed = False
        for size in WINDOWS:
            end = len(self.best)
            while end >= size:
                if self.attempt(self.best[: end - size] + self.best[end:]):
                    changed = True
                    end = min(end, len(self.best))
                else:
                    end -= 1
        return changed

    def simplify_pass(
        self, simpler: Callable[[Sequence_], Iterator[tuple[str, Sequence_]]]
    ) -> bool:
        """Take the first smaller form that still fails, and begin again with it."""
        changed = False
        while self._simplified(simpler):  # each time to something smaller, so that it ends
            changed = True
        return changed

    def _simplified(self, simpler: Callable[[Sequence_], Iterator[tuple[str, Sequence_]]]) -> bool:
        for stage, candidate in simpler(self.best):
            self.progress.stage = stage
            if smaller(candidate, self.best) and self.attempt(candidate):
                return True
        return False
