"""Experiment mode: read, refuse, compile, run through the bench, assess, write the reports."""

from __future__ import annotations

from pathlib import Path

from mutiny.errors import UsageError, nearest
from mutiny.experiments import document as documents
from mutiny.values import dataclass, replace

TYPE_CHECKING = False  # the real one would import typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mutiny.box.box import Box
    from mutiny.engine.loop import Outcome
    from mutiny.engine.rundir import RunDirectory
    from mutiny.experiments.experiment import Experiment
    from mutiny.modes.bench import Bench
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


def plain_bench(
    root: Path,
    isolation: str | None,
    path: Path,
    directory: RunDirectory | None = None,
    box: Box | None = None,
) -> Bench:
    """A bench whose target is nothing but a box that can read the experiment's directory."""
    from mutiny.experiments.plain import PlainLive, PlainOptions, PlainTarget
    from mutiny.modes.bench import Bench

    target: Any = PlainTarget(
        PlainOptions(technique=isolation),
        visible=path.resolve().parent,
        standing=[] if box is None else [PlainLive(box)],
    )
    return Bench(target, root, directory=directory)


def load_ahead(path: Path, root: Path, isolation: str | None) -> tuple[Experiment, Bench] | None:
    """A foreign experiment together with its box, whose walls go up while the file is checked.

    Half of a short run is waiting for the box; nothing of the experiment is in it before the file is
    understood. None, with nothing left behind: it is of another form, or it has mistakes.
    """
    document = documents.read(path, precise=False)
    if not documents.is_foreign(document.root):
        return None
    from mutiny.box.plain import plain_box
    from mutiny.engine.rundir import RunDirectory, storing

    checked: list[Experiment] = []

    def check() -> None:
        checked.append(_understand(document, None))
        _load_the_rest()

    is_new = not root.exists()
    directory = RunDirectory.create(root, latest=False)
    try:
        with storing(directory.box_path):
            box = plain_box(directory.box_path, isolation, path.resolve().parent, check)
        if not checked:  # the first technique failed before there was anything to wait for
            check()
    except BaseException as error:
        directory.discard()
        if is_new:
            root.rmdir()
        if isinstance(error, documents.Mistakes):
            return None
        raise
    directory.make_latest()
    return checked[0], plain_bench(root, isolation, path, directory, box)


def _load_the_rest() -> None:
    """What a run needs once its box stands."""
    from mutiny.contracts.plain import language  # noqa: F401
    from mutiny.experiments import activities, assess, ct_journal, plain, witness  # noqa: F401
    from mutiny.experiments.compile import compile_experiment  # noqa: F401
    from mutiny.modes import bench  # noqa: F401
    from mutiny.report import experiment_page, summary, terminal  # noqa: F401


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
    if documents.is_foreign(document.root):
        from mutiny.experiments import chaostoolkit

        return chaostoolkit.understand(document, contract_of, target)
    from mutiny.experiments import native

    return native.understand(document, contract_of, target)


def witnessed(bench: Bench, deadline_s: float | None = None) -> Bench:
    """The same bench, whose runs can be experiments."""
    from mutiny.experiments.witness import WitnessedTarget

    target: Any = bench.target
    return replace(bench, target=WitnessedTarget(target, deadline_s))


def run(
    bench: Bench, experiment: Experiment, seed: int, listeners: Sequence[Any] = (), **more: Any
) -> Ran:
    """Run one experiment and write everything that is told about it."""
    from mutiny.experiments.compile import compile_experiment
    from mutiny.experiments.witness import WitnessedTarget
    from mutiny.modes.bench import Assignment

    seeing = witnessed(bench, experiment.timeout_s)
    target = seeing.target
    assert isinstance(target, WitnessedTarget)
    plan = compile_experiment(experiment)
    assignment = Assignment(
        plan.operations, experiment.name, seed, "experiment", rollback=plan.undoing
    )
    outcome = seeing.run(assignment, listeners, **more)
    from mutiny.experiments.assess import assess
    from mutiny.report.experiment_markdown import junit, markdown
    from mutiny.report.experiment_page import page

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
    from mutiny.experiments.experiment import CHAOS_TOOLKIT

    if experiment.form == CHAOS_TOOLKIT:
        from mutiny.experiments.ct_journal import journal

        directory.write_json(directory.path / "journal.json", journal(experiment, plan, outcome))
    return Ran(experiment, outcome, report)
