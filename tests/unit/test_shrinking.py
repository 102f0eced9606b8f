"""Trials decide what is handed back: the same failure, with the plant only, and as often as is said.

The target is a few lines here: it fails when it is told to, and remembers every run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from mutiny.contracts.plain.contract import Nothing, PlainContract
from mutiny.engine.minimise import Budget
from mutiny.engine.replay import Tries
from mutiny.experiments.instrumented import InstrumentedTarget
from mutiny.kit.contract import Answered, Evidence, StepContext
from mutiny.kit.operations import USUAL_WORLD, Reset, Sleep
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.shrinking import TRIES, Shrunk, Trials, shrink
from mutiny.modes.subject import Subject
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.plain.target import PlainSpec

RULE = "plain.kept"
UNTESTED = "it could not be tested"
SPEC = PlainSpec()
PLENTY = Budget(500, 1000.0, 2, 2)
Run = tuple[Operation, ...]
Fails = Callable[[list[float], bool], str | None]
"""What the seconds of the sleeps so far and the plant make of a run: what is said, or nothing."""


def run_of(*seconds: float) -> Run:
    return (Reset(), *(Sleep(one) for one in seconds))


@dataclass
class Live:
    target: Target
    done: list[float] = field(default_factory=list)

    def prepare(self, operations: Iterable[Operation]) -> None:
        self.target.runs.append((tuple(operations), bool(self.target.options.plant)))

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        assert isinstance(operation, Sleep)
        self.done.append(operation.seconds)
        said = self.target.fails(self.done, bool(self.target.options.plant))
        return OperationResult(1, stderr=said) if said else OperationResult()

    def observe(self) -> Nothing:
        return Nothing()

    def wait_change(self, timeout_s: float) -> None: ...

    def evidence(self) -> Evidence:
        return Evidence()

    def facts(self) -> dict[str, object]:
        return {}

    def close(self) -> None: ...


class Contract(PlainContract):
    """Whatever a live target says of itself is a broken rule."""

    def judge(
        self, model: Any, operation: Operation, result: OperationResult, *_: Any
    ) -> Answered[Any]:
        if result.succeeded:
            return Answered(Verdict.SUCCESS, model)
        if result.stderr == UNTESTED:
            return Answered(Verdict.INCONCLUSIVE, model)
        return Answered(Verdict.BUG, model, Violation(RULE, result.stderr))


BUGGY = LiveOptions(Path(), "bug")


@dataclass(frozen=True)
class Target:
    fails: Fails
    options: LiveOptions = BUGGY
    runs: list[tuple[Run, bool]] = field(default_factory=list)
    name: str = "fake"
    spec: PlainSpec = SPEC
    program: Path = Path()
    origin: str = ""

    def contract(self) -> Any:
        return Contract()

    def make_live(self, directory: Path, reset: Reset = USUAL_WORLD) -> Any:
        return Live(self)

    def apart(self) -> Subject:
        return self

    def healthy(self) -> Subject | None:
        return replace(self, options=LiveOptions(Path())) if self.options.plant else None


REAL = LiveOptions(Path())


def shrunk(target: Target, operations: Run, scratch: Path, budget: Budget = PLENTY) -> Shrunk:
    return shrink(target, operations, RULE, 1, scratch, budget)


def needs(*wanted: float, said: str = "it is gone") -> Fails:
    return lambda done, _: said if set(wanted) <= set(done) else None


@pytest.mark.parametrize(("healthy", "failed"), [(UNTESTED, 0), ("it is gone", 1), (None, 0)])
def test_what_could_not_be_tested_without_the_plant_has_not_failed(
    tmp_path: Path, healthy: str | None, failed: int
) -> None:
    target = Target(lambda _, planted: "it is gone" if planted else healthy)
    assert Trials(target, 1, tmp_path).without_plant(run_of(0.1)) == Tries(failed, 1)


def test_every_minimal_replay_passes_where_the_plant_is_absent(tmp_path: Path) -> None:
    """The last sleep asks for something: without the second nobody, healthy or not, can have it."""

    def fails(done: list[float], planted: bool) -> str | None:
        asked = 0.4 in done
        return "it is not there" if asked and (planted or 0.2 not in done) else None

    target = Target(fails)
    found = shrunk(target, run_of(0.1, 0.2, 0.3, 0.4), tmp_path)
    assert found.operations == run_of(0.2, 0.4)
    assert (found.reproduced, found.without_plant) == (Tries(3, 3), Tries(0, 1))
    assert found.minimised == "finished"
    vacuous = run_of(0.4)
    assert (vacuous, False) in target.runs, "it was held against the healthy one"


def test_the_same_rule_with_other_words_is_another_failure(tmp_path: Path) -> None:
    def fails(done: list[float], _: bool) -> str | None:
        if 0.3 not in done:
            return None
        return "task a is claimed by w1 for 12.5 s" if 0.2 in done else "task a is not there"

    found = shrunk(Target(fails, REAL), run_of(0.1, 0.2, 0.3), tmp_path)
    assert found.operations == run_of(0.2, 0.3)


@pytest.mark.parametrize("shows", [(), (True,), (False, False)])
def test_what_does_not_fail_again_is_no_reproduction(
    tmp_path: Path, shows: tuple[bool, ...]
) -> None:
    """It may have failed before, even in the first trials: fresh tries have the last word."""
    answers = itertools.chain(shows, itertools.repeat(False))

    def fails(done: list[float], _: bool) -> str | None:
        return "now and then" if done[-1] == 0.3 and next(answers) else None

    whole = run_of(0.1, 0.2, 0.3)
    found = shrunk(Target(fails, REAL), whole, tmp_path)
    assert found.operations == whole
    assert found.reproduced == Tries(0, TRIES)
    assert found.minimised == "no"


def test_what_shows_now_and_then_is_shrunk_and_its_rate_is_told(tmp_path: Path) -> None:
    turns = itertools.cycle((False, True))

    def fails(done: list[float], _: bool) -> str | None:
        return "a race" if done[-1] == 0.3 and 0.1 in done and next(turns) else None

    found = shrunk(Target(fails, REAL), run_of(0.1, 0.2, 0.3), tmp_path)
    assert found.operations == run_of(0.1, 0.3)
    assert 0 < found.reproduced.failed < found.reproduced.tries


def test_a_budget_that_ended_is_told(tmp_path: Path) -> None:
    found = shrunk(
        Target(needs(0.9), REAL), run_of(*(n / 10 for n in range(1, 10))), tmp_path, Budget(6, 99)
    )
    assert found.minimised == "budget"
    assert found.reproduced == Tries(3, 3)
    assert found.runs <= 6 + TRIES


def test_trials_are_not_written_into_the_book_of_the_run(tmp_path: Path) -> None:
    """Whatever trials do, what the run itself has seen is the same with and without them."""
    target = InstrumentedTarget(Target(needs(0.2, said="lost"), REAL))  # type: ignore[arg-type]
    book = target.recorder
    before: list[Any] = []

    def remember(outcome: object) -> None:
        before.append((list(book.deeds), list(book.looks), list(book.shocks), book.watched))

    bench = Bench(target, tmp_path, PLENTY)
    whole = run_of(0.1, 0.2, 0.3)
    outcome = bench.run(Assignment(whole, "x", 1), on_minimise=remember)
    assert outcome.replay is not None
    assert outcome.replay.operations == run_of(0.2)
    assert [deed.operation for deed in book.deeds] == [Sleep(0.1), Sleep(0.2)]
    after = (list(book.deeds), list(book.looks), list(book.shocks), book.watched)
    assert before == [after]


def test_a_replay_that_was_not_minimised_says_so(tmp_path: Path) -> None:
    bench = Bench(Target(needs(0.2)), tmp_path)
    outcome = bench.run(Assignment(run_of(0.1, 0.2), "x", 1))
    assert outcome.replay is not None
    assert outcome.replay.standing == "it was not minimised"
