"""What of a target can be a test: scenarios, seeds, goals, experiments and kept replays, each a case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mutiny.engine.corpus import GUARD, read_corpus
from mutiny.engine.loop import Outcome
from mutiny.engine.replay import Replay, load
from mutiny.errors import UsageError
from mutiny.experiments.experiment import Experiment
from mutiny.experiments.goals import load_goals, shipped
from mutiny.kit.experiment import EXPERIMENT_OPERATIONS
from mutiny.kit.goals import Goal, Row
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict
from mutiny.modes import accept, experiment, experiment_files
from mutiny.modes.behind import run_behind
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.scenarios import chosen_scenarios
from mutiny.report.experiment import ExperimentReport
from mutiny.report.experiment_markdown import case_of as case_of_experiment
from mutiny.report.junit import Case, case_of
from mutiny.targets.kit.requirements import lacking

FIRST_SEED = 1
LENGTH = 30
"""Operations of an explored sequence."""
SHIPPED = "shipped"
"""The word for everything that Mutiny brings along for a contract."""

Test = tuple[str, Callable[[], Case]]
"""A name, and what runs it."""


@dataclass(frozen=True)
class Wanted:
    """What is to be tested."""

    scenarios: Sequence[str] = ()
    """By name, or files; none: all of the contract."""
    seeds: int = 0
    goals: Sequence[str] = ()
    """Files, folders, or `shipped`."""
    experiments: Sequence[str] = ()
    """Files, folders, names of the library, or `shipped`."""
    corpus: Sequence[Path] = ()
    """Folders of kept replays."""


class Suite:
    """Runs against one target, each in a box of its own, and each told as a test case."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def tests(self, wanted: Wanted) -> Iterator[Test]:
        """Everything that is wanted; a mistake in a name or a file is told before anything runs."""
        for name, operations in chosen_scenarios(
            self.bench, wanted.scenarios, everything=False
        ).items():
            yield name, lambda name=name, steps=operations: self.run(steps, name)  # type: ignore[misc]
        for seed in range(FIRST_SEED, FIRST_SEED + wanted.seeds):
            yield f"seed {seed}", lambda seed=seed: self.explore(seed)  # type: ignore[misc]
        for place in wanted.goals:
            for goal in self.goals(place):
                yield f"goal {goal.id}", lambda goal=goal: self.goal(goal)  # type: ignore[misc]
        for place in wanted.experiments:
            for loaded in self.experiments(place):
                name = f"experiment {Path(loaded.path).stem}"
                yield name, lambda loaded=loaded: self.experiment(loaded)  # type: ignore[misc]
        for folder in wanted.corpus:
            yield from self._kept(folder)

    # --- sequences -----------------------------------------------------------------------------

    def scenario(self, name: str) -> Case:
        """A scenario by its name, or a file of operations."""
        (title, operations), *_ = chosen_scenarios(self.bench, [name], everything=False).items()
        return self.run(operations, title)

    def explore(self, seed: int, operations: int = LENGTH) -> Case:
        """The sequence of a seed."""
        sequence = self.bench.target.contract().generate(seed, operations)
        return self.run(sequence, f"explore seed {seed}", seed, "explore")

    def replay(self, path: Path) -> Case:
        """A replay, which has to pass."""
        return self._again(self._loaded(path), path.stem)

    def _loaded(self, path: Path) -> Replay:
        contract = self.bench.target.contract()
        return load(path, contract.operations, contract=contract.name)

    def _again(self, kept: Replay, title: str, word: str = "") -> Case:
        """`word`: what it means when it does not pass."""
        case = self.run(kept.operations, title, kept.seed, "replay", kept.techniques)
        return replace(case, reason=f"{word}: {case.reason}") if word and case.failed else case

    def run(
        self,
        operations: Sequence[Operation],
        title: str,
        seed: int = FIRST_SEED,
        mode: str = "scenario",
        techniques: Sequence[str] = (),
    ) -> Case:
        """Any sequence; behind a known finding it goes on."""
        missing = lacking(operations, techniques, self.bench.target.options.technique)
        if missing:
            return self._skipped(title, f"this machine lacks: {'; '.join(missing)}")
        bench = self.bench
        if any(one.type in EXPERIMENT_OPERATIONS for one in operations):
            bench = experiment.instrumented(bench)
        assignment = Assignment(tuple(operations), title, seed, mode, repeats=mode == "replay")
        tried = run_behind(bench, assignment)
        case = case_of(title, bench.target.name, tried.outcome, tried.excuse)
        if case.failed and bench.causes is not None:
            bench.causes.add(title, tried.outcome)
        return replace(case, details=f"{_place(tried.outcome)}{case.details}")

    def _kept(self, folder: Path) -> Iterator[Test]:
        corpus = read_corpus(folder)
        if not corpus.entries:
            raise UsageError(f"{folder}: the corpus is empty; `mutiny corpus add RUN` fills it")
        for entry in corpus.ordered():
            word = "BROKEN AGAIN" if entry.state == GUARD else "still broken"
            given = (self._loaded(corpus.path(entry)), entry.name, word)
            yield f"kept {entry.name}", lambda given=given: self._again(*given)  # type: ignore[misc]

    # --- goals and experiments -----------------------------------------------------------------

    def goals(self, place: str) -> list[Goal]:
        """The goals of a folder or a file; `shipped`: those of the contract."""
        contract = self.bench.target.spec.contract
        return load_goals(shipped() / contract if place == SHIPPED else Path(place), contract)

    def goal(self, goal: Goal) -> Case:
        """A goal, asked whole."""
        missing = lacking(goal.steps, (), self.bench.target.options.technique)
        if missing:
            return self._skipped(goal.id, f"this machine lacks: {'; '.join(missing)}")
        tried = accept.try_goal(self.bench, goal, FIRST_SEED)
        case = accept.case_of(Row(goal, (tried,)), self.bench.target.name)
        return replace(case, details=f"{goal.statement}\n{case.details}")

    def experiments(self, place: str) -> list[Experiment]:
        """Those of a folder, one file, or one of the library; `shipped`: those of the contract.

        They are for this target, whichever their files name.
        """
        return [
            experiment_files.load(path, self.bench.target.origin)
            for path in self._experiment_files(place)
        ]

    def _experiment_files(self, place: str) -> list[Path]:
        if place == SHIPPED:
            contract = self.bench.target.spec.contract
            every = experiment_files.library().values()
            return [path for path in every if experiment_files.load(path).contract == contract]
        folder = Path(place)
        if not folder.is_dir():
            return [experiment_files.find(place)]
        found = [one for one in folder.iterdir() if one.suffix in experiment_files.SUFFIXES]
        if not found:
            raise UsageError(f"{folder}: there is no experiment in it")
        return sorted(found)

    def experiment(self, loaded: Experiment) -> Case:
        """An experiment on this target."""
        why = experiment.nothing_to_show(self.bench, loaded)
        if why:
            return self._skipped(Path(loaded.path).stem, f"nothing to show: {why}")
        seed = FIRST_SEED if loaded.seed is None else loaded.seed
        ran = experiment.run(self.bench, loaded, seed)
        return replace(case_of_experiment(ran.report), details=_findings(ran.report))

    def _skipped(self, name: str, why: str) -> Case:
        return Case(name, self.bench.target.name, Verdict.INCONCLUSIVE, 0.0, why)


def _place(outcome: Outcome) -> str:
    """The step that showed a failure, as a line; nothing when there was none."""
    step = outcome.failed_step
    return "" if step is None else f"at step {step.sequence_id}: {step.operation}\n"


def _findings(report: ExperimentReport) -> str:
    """What an experiment found, and where to read on."""
    lines = [f"{one.rule}: {one.symptom}" for one in report.findings]
    lines.append(f"report: {report.directory}/chaos_report.html")
    if report.replay:
        lines.append(f"replay: {report.replay}")
    return "\n".join([*lines, ""])
