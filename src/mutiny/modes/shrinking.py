"""From a failed run to the shortest sequence that fails in the same way, and how often it does so.

Trials decide: they run apart from the run that they shorten, count only when they show the same
failure, and where the target has a plant the same target without it must pass, or the sequence shows
something else than the plant. What is handed back was tried afresh, after the search: the tries that
chose it would flatter it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypedDict

from mutiny import stopping
from mutiny.engine.loop import Engine, Outcome
from mutiny.engine.minimise import Budget, Minimised, Pass, Progress, minimise, next_trial
from mutiny.engine.replay import Tries
from mutiny.engine.rundir import RunDirectory
from mutiny.engine.signature import Failure, failure_of, names_in
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict
from mutiny.modes.ahead import Ahead

if TYPE_CHECKING:
    from mutiny.kit.contract import AnyContract
    from mutiny.modes.subject import Subject

TRIES = 3
"""So often is a sequence tried before it is believed that it does not fail again, and afterwards."""
RARE = (1, 4)
"""What shows only now and then counts when it shows once in four trials."""
Steps = tuple[Operation, ...]


@dataclass(frozen=True)
class Shrunk:
    """The shortest sequence, and what is known about it."""

    operations: Steps
    reproduced: Tries
    complete: bool
    runs: int
    seconds: float
    without_plant: Tries | None = None
    passes: Mapping[str, Pass] = field(default_factory=dict)
    """What each pass of minimising took and won, by name."""
    seen: str | None = None
    """What the whole sequence showed instead, when it did not fail again."""

    @property
    def minimised(self) -> str:
        """How far minimising came, as a replay file says it."""
        if self.reproduced.failed == 0:
            return "no"
        return "finished" if self.complete else "budget"

    def told(self) -> dict[str, Any]:
        """What a replay says of it."""
        return {
            "operations": self.operations,
            "reproduced": self.reproduced,
            "without_plant": self.without_plant,
            "minimised": self.minimised,
            "passes": self.passes,
        }


class Trials:
    """Runs of candidates, each in a directory that is thrown away, compared with one failure."""

    def __init__(self, target: Subject, seed: int, scratch: Path, jobs: int = 1) -> None:
        self._target = target.apart()
        self._healthy = target.healthy()
        self._seed = seed
        self._scratch = scratch
        self._jobs = jobs
        self._passes: dict[Steps, bool] = {}
        self._asking: dict[Steps, Lock] = {}
        self._counting = Lock()
        self.runs = 0

    @property
    def compares(self) -> bool:
        """Is there a healthy twin to compare with?"""
        return self._healthy is not None

    def run(self, operations: Steps, *, healthy: bool = False) -> Outcome:
        """One run; nothing of it is kept but its outcome."""
        chosen = self._healthy if healthy else self._target
        assert chosen is not None
        target = chosen.apart()  # others may run beside it
        directory = RunDirectory.create(self._scratch, latest=False)
        with self._counting:
            self.runs += 1
        try:
            engine = Engine(target.contract(), target.make_live, directory, seed=self._seed)
            outcome = engine.run(operations)
        finally:
            directory.discard()
        stopping.obey()  # what was broken off has shown nothing
        return outcome

    def passes_healthy(self, operations: Steps) -> bool:
        """Does it pass where the plant is absent? True where nothing is planted."""
        if self._healthy is None:
            return True
        with self._counting:
            asking = self._asking.setdefault(operations, Lock())
        with asking:
            if operations not in self._passes:
                self._passes[operations] = self.run(operations, healthy=True).failed_step is None
            return self._passes[operations]

    def rate(self, operations: Steps, same: Callable[[Outcome], bool], tries: int) -> Tries:
        """How often it fails in the same way."""
        with ThreadPoolExecutor(max_workers=self._jobs) as pool:
            outcomes = list(pool.map(self.run, [operations] * tries))
        return Tries(sum(map(same, outcomes)), tries)

    def without_plant(self, operations: Steps) -> Tries | None:
        """How often it fails where the plant is absent.

        What could not be tested there has not failed: a lock that works forbids the very order that
        shows a missing one.
        """
        if self._healthy is None:
            return None
        verdict = self.run(operations, healthy=True).verdict
        return Tries(int(verdict.stops_run and verdict is not Verdict.INCONCLUSIVE), 1)


def shrink(
    target: Subject,
    operations: Sequence[Operation],
    rule: str,
    seed: int,
    scratch: Path,
    budget: Budget,
    watch: Callable[[Progress], None] = lambda _: None,
    *,
    shown: Outcome | None = None,
) -> Shrunk:
    """The shortest sequence that fails as the whole does; `shown` is a run that has failed."""
    whole = tuple(operations)
    started = time.monotonic()
    trials = Trials(target, seed, scratch, budget.jobs)
    names = names_in(whole)
    failure = None if shown is None else failure_of(shown, names)
    tried: list[str] = []
    while not tried or (tried[-1] != rule and len(tried) < TRIES):
        first = trials.run(whole)
        again = failure_of(first, names)
        if again is not None and again.rule == rule:
            failure = again if failure is None else failure.joined(again)
        tried.append(first.rule or first.verdict.value)
    spent = time.monotonic() - started
    if tried[-1] != rule or failure is None:
        return Shrunk(whole, Tries(0, len(tried)), False, trials.runs, spent, seen=tried[-1])
    reserved = spent / len(tried) * TRIES  # for the tries at the end
    found = _search(
        target.contract(),
        trials,
        whole,
        failure,
        replace(
            budget,
            runs=max(budget.runs - len(tried) - TRIES, 0),
            seconds=max(budget.seconds - spent - reserved, 0.0),
            **({} if len(tried) == 1 else {"confirm": RARE[0], "of": RARE[1]}),
        ),
        watch,
    )
    if stopping.asked():  # no time for fresh tries: it failed when the search tried it
        spent = time.monotonic() - started
        return Shrunk(found.operations, Tries(1, 1), False, trials.runs, spent, passes=found.passes)
    known = failure
    kept, reproduced = _believed(
        trials, whole, found, lambda outcome: known.covers(failure_of(outcome, names))
    )
    return Shrunk(
        kept,
        reproduced,
        found.complete,
        trials.runs,
        time.monotonic() - started,
        trials.without_plant(kept),
        found.passes,
    )


def _search(
    contract: AnyContract,
    trials: Trials,
    whole: Steps,
    failure: Failure,
    budget: Budget,
    watch: Callable[[Progress], None],
) -> Minimised:
    """Minimise by trials; a healthy twin tells what is vacuous, and without one the model does.

    Where the whole depends on nobody's pace a shorter one may not either; where it does, the trials
    decide.
    """
    names = names_in(whole)
    promised = () if trials.compares else whole
    steady = contract.certain(whole, ())

    def doubtful(candidate: Steps) -> bool:
        return not contract.certain(candidate, whole)

    def plausible(candidate: Steps) -> bool:
        return contract.plausible(candidate, promised) and not (steady and doubtful(candidate))

    def fails(candidate: Steps) -> bool:
        same = failure.covers(failure_of(trials.run(candidate), names))
        return same and trials.passes_healthy(candidate)

    search: _Search = {
        "plausible": cache(plausible),
        "doubtful": cache(doubtful),
        "simpler": contract.simpler,
        "budget": budget,
    }
    with Ahead(fails, lambda known: next_trial(whole, known, **search), budget.jobs) as ahead:
        return minimise(whole, ahead, **search, watch=watch)


class _Search(TypedDict):
    """What the search itself and the look ahead go by."""

    plausible: Callable[[Steps], bool]
    doubtful: Callable[[Steps], bool]
    simpler: Callable[[Steps], Iterator[tuple[str, Steps]]]
    budget: Budget


def _believed(
    trials: Trials, whole: Steps, found: Minimised, same: Callable[[Outcome], bool]
) -> tuple[Steps, Tries]:
    """The shortest that stands fresh tries: what is doubtful must fail in all of them, and what never
    fails again is no reproduction.
    """
    kept, reproduced = whole, Tries(0, 0)
    for kept in dict.fromkeys((found.operations, found.certain, whole)):
        reproduced = trials.rate(kept, same, TRIES)
        doubtful = kept == found.operations != found.certain
        if reproduced.failed == TRIES or (reproduced.failed and not doubtful):
            break
    return kept, reproduced
