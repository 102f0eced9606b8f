"""Experiment mode: read, refuse, compile, run through the bench, assess, write the reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mutiny.codec import nearest
from mutiny.engine.loop import Outcome
from mutiny.errors import UsageError
from mutiny.experiments import document as documents
from mutiny.experiments.assess import assess
from mutiny.experiments.compile import compile_experiment
from mutiny.experiments.experiment import CHAOS_TOOLKIT, Experiment
from mutiny.experiments.witness import WitnessedTarget
from mutiny.modes.bench import Assignment, Bench
from mutiny.report.experiment import ExperimentReport

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Ran:
    """A finished experiment."""

    experiment: Experiment
    outcome: Outcome
    report: ExperimentReport


def library() -> dict[str, Path]:
    """The experiments that ship with Mutiny, by name."""
    own = Path(documents.__file__).parent / "library"
    return {path.stem: path for path in sorted(own.rglob("*.yaml"))}


def find(name: str) -> Path:
    """An experiment's file: a path, or the name of one that ships with Mutiny."""
    path = Path(name)
    if path.suffix in SUFFIXES or path.exists():
        return path
    known = library()
    if name not in known:
        raise UsageError(
            f"unknown experiment {name!r}{nearest(name, list(known))}; "
            "give a file, or see `mutiny experiment list`"
        )
    return known[name]


def plain_bench(root: Path, isolation: str | None, experiment: Experiment) -> Bench:
    """A bench whose target is nothing but a box that can read the experiment's directory."""
    from mutiny.experiments.plain import PlainOptions, PlainTarget

    target: Any = PlainTarget(
        PlainOptions(technique=isolation), visible=Path(experiment.path).resolve().parent
    )
    return Bench(target, root)


def contract_of(target: str) -> str:
    """The contract of a target."""
    from mutiny.targets.registry import find_spec

    return str(find_spec(target)[0].contract)


def load(path: Path, target: str | None = None) -> Experiment:
    """Read and check an experiment of either form; a mistake is told with its line."""
    document = documents.read(path, precise=False)
    try:
        return _understand(document, target)
    except documents.Mistakes:
        if document.precise:
            raise
        return _understand(documents.read(path, precise=True), target)


def _understand(document: documents.Document, target: str | None) -> Experiment:
    from mutiny.experiments import chaostoolkit

    if chaostoolkit.is_foreign(document.root):
        return chaostoolkit.understand(document, contract_of, target)
    from mutiny.experiments import native

    return native.understand(document, contract_of, target)


def witnessed(bench: Bench, deadline_s: float | None = None) -> Bench:
    """The same bench, whose runs can be experiments."""
    target: Any = bench.target
    return replace(bench, target=WitnessedTarget(target, deadline_s))


def run(
    bench: Bench, experiment: Experiment, seed: int, listeners: Sequence[Any] = (), **more: Any
) -> Ran:
    """Run one experiment and write everything that is told about it."""
    from mutiny.report.experiment_markdown import junit, markdown
    from mutiny.report.experiment_page import page

    seeing = witnessed(bench, experiment.timeout_s)
    target = seeing.target
    assert isinstance(target, WitnessedTarget)
    plan = compile_experiment(experiment)
    assignment = Assignment(
        plan.operations, experiment.name, seed, "experiment", rollback=plan.undoing
    )
    outcome = seeing.run(assignment, listeners, **more)
    report = assess(
        experiment,
        plan,
        outcome,
        target.recorder,
        target.contract().rules,
        target=target.name,
        plant=target.options.plant,
        seed=seed,
    )
    directory = outcome.directory
    directory.write_json(directory.path / "experiment.json", report.as_json())
    directory.write_text(directory.path / "chaos_report.md", markdown(report))
    directory.write_text(directory.path / "chaos_report.html", page(report))
    directory.write_text(directory.path / "junit.xml", junit([report]))
    if experiment.form == CHAOS_TOOLKIT:
        from mutiny.experiments.ct_journal import journal

        directory.write_json(directory.path / "journal.json", journal(experiment, plan, outcome))
    return Ran(experiment, outcome, report)
