"""Experiment mode: compile, run through the bench, assess, write the reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny import stopping

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutiny.box.startup import Startup
    from mutiny.engine.loop import Outcome
    from mutiny.engine.rundir import RunDirectory
    from mutiny.experiments.compile import Plan
    from mutiny.experiments.experiment import Experiment
    from mutiny.experiments.instrumented import InstrumentedTarget
    from mutiny.kit.descriptor import Descriptor
    from mutiny.modes.bench import Bench
    from mutiny.report.experiment import ExperimentReport

SNIFFED_BYTES = 64 * 1024


@dataclass(frozen=True)
class Ran:
    """A finished experiment."""

    experiment: Experiment
    outcome: Outcome
    report: ExperimentReport


def plain_bench(
    root: Path,
    isolation: str | None,
    path: Path,
    directory: RunDirectory | None = None,
    box: Startup | None = None,
) -> Bench:
    """A bench whose target is nothing but a box that can read the experiment's directory."""
    from mutiny.modes.bench import Bench

    make = bare_contract().bare_target
    assert make is not None
    target = make.load()(isolation, path.resolve().parent, [] if box is None else [box])
    return Bench(target, root, directory=directory)


def bare_contract() -> Descriptor:
    """The contract of a box without a target, in which foreign experiments run."""
    from mutiny.contracts.catalogue import default_for

    return default_for("foreign experiment")


def load_ahead(path: Path, root: Path, isolation: str | None) -> tuple[Experiment, Bench] | None:
    """A foreign experiment together with its box, whose walls go up while the file is read.

    Half of a short run is waiting for the box; nothing of the experiment is in it before the file is
    understood. None, with nothing left behind: it is of another form, or it has mistakes.
    """
    if not _looks_foreign(path):
        return None
    from mutiny.box.plain import plain_box
    from mutiny.engine.rundir import RunDirectory, storing

    is_new = not root.exists()
    directory = RunDirectory.create(root, latest=False)
    box = experiment = None
    try:
        with storing(directory.box_path):
            box = plain_box(directory.box_path, isolation, path.resolve().parent)
        from mutiny.modes.experiment_files import load_foreign

        experiment = load_foreign(path)
    finally:
        if experiment is None:
            if box is not None:
                box.abandon()
            directory.discard()
            if is_new:
                root.rmdir()
    if experiment is None:
        return None
    _load_the_rest()
    directory.make_latest()
    return experiment, plain_bench(root, isolation, path, directory, box)


def _looks_foreign(path: Path) -> bool:
    """A guess, before a parser is loaded; a wrong one costs a box that nobody uses, or a little time."""
    if not path.is_file():  # what is no file could be read only once
        return False
    try:
        with path.open("rb") as file:
            text = file.read(SNIFFED_BYTES)
    except OSError:
        return False  # told by who really reads it
    return b"title" in text and b"method" in text and b"experiment:" not in text


def _load_the_rest() -> None:
    """What a run needs once its box stands."""
    from mutiny.experiments import activities, assess, ct_journal, instrumented  # noqa: F401
    from mutiny.experiments.compile import compile_experiment  # noqa: F401
    from mutiny.modes import bench  # noqa: F401
    from mutiny.report import experiment_page, summary, terminal  # noqa: F401

    bare = bare_contract()
    bare.language.load()
    if bare.bare_target is not None:
        bare.bare_target.load()


def nothing_to_show(bench: Bench, experiment: Experiment) -> str:
    """Why a target lacks all that an experiment is about; empty when it does not."""
    from mutiny.experiments.compile import compile_experiment, fit_plan

    profile = getattr(bench.target.spec, "profile", None)
    skips: dict[str, str] = {} if profile is None else dict(profile.skips)
    known = skips.get(Path(experiment.path).stem.replace("-", "_"), "")
    return known or fit_plan(compile_experiment(experiment), bench.target.contract())[1]


def instrumented(bench: Bench, deadline_s: float | None = None, *, adapted: bool = False) -> Bench:
    """The same bench, whose runs can be experiments; `adapted`: steps were left out for the target."""
    from mutiny.experiments.instrumented import InstrumentedTarget

    target: Any = bench.target
    return replace(bench, target=InstrumentedTarget(target, deadline_s, adapted=adapted))


def run(
    bench: Bench, experiment: Experiment, seed: int, listeners: Sequence[Any] = (), **more: Any
) -> Ran:
    """Run one experiment and write everything that is told about it."""
    from mutiny.experiments.compile import compile_experiment, fit_plan
    from mutiny.experiments.instrumented import InstrumentedTarget
    from mutiny.modes.bench import Assignment

    plan, _ = fit_plan(compile_experiment(experiment), bench.target.contract())
    seeing = instrumented(bench, experiment.timeout_s, adapted=bool(plan.changes))
    target = seeing.target
    assert isinstance(target, InstrumentedTarget)
    assignment = Assignment(
        plan.operations,
        experiment.name,
        seed,
        "experiment",
        experiment.hypothesis,
        rollback=plan.undoing,
    )
    outcome = seeing.run(assignment, listeners, **more)
    with stopping.held_off():
        return _told(experiment, plan, outcome, target, seed)


def _again(experiment: Experiment, outcome: Outcome, target: InstrumentedTarget) -> str:
    """The command that repeats it, from any directory."""
    import shlex

    if not target.origin:  # the file itself is all that there is to repeat
        return shlex.join(["mutiny", "experiment", "run", str(Path(experiment.path).absolute())])
    from mutiny.report.origin import replay_command
    from mutiny.targets.registry import spoken_again

    options = spoken_again(target.origin, target.spec, target.program)
    return replay_command(outcome.directory.replay_path, options)


def _told(
    experiment: Experiment, plan: Plan, outcome: Outcome, target: InstrumentedTarget, seed: int
) -> Ran:
    """Assess a run and write its reports."""
    from mutiny.experiments.assess import assess
    from mutiny.report.experiment_markdown import junit, markdown
    from mutiny.report.experiment_page import page
    from mutiny.report.measured import of_outcome
    from mutiny.report.page import links_to

    report = assess(
        experiment,
        plan,
        outcome,
        target.recorder,
        target.contract(),
        target=target.name,
        plant=target.options.plant,
        seed=seed,
        again=_again(experiment, outcome, target),
    )
    directory = outcome.directory
    directory.write_json(directory.path / "experiment.json", report.as_json())
    directory.write_text(directory.path / "chaos_report.md", markdown(report))
    place = directory.path / "chaos_report.html"
    measured = of_outcome(target.spec.contract, outcome) if target.origin else None
    directory.write_text(place, page(report, links_to(directory.path, place), measured))
    directory.write_text(directory.path / "junit.xml", junit([report]))
    from mutiny.experiments.experiment import CHAOS_TOOLKIT

    if experiment.form == CHAOS_TOOLKIT:
        from mutiny.experiments.ct_journal import journal

        directory.write_json(directory.path / "journal.json", journal(experiment, plan, outcome))
    return Ran(experiment, outcome, report)
