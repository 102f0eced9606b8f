"""`mutiny experiment`: chaos experiments in YAML, native and Chaos Toolkit's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mutiny import stopping
from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    Chosen,
    Shrinking,
    bench_options,
    choose_seed,
    json_option,
    junit_option,
    minimise_options,
)
from mutiny.cli.output import echo, echo_rows, echo_wrapped

if TYPE_CHECKING:
    from mutiny.experiments.experiment import Experiment
    from mutiny.model.verdict import Verdict
    from mutiny.modes.bench import Bench
    from mutiny.modes.experiment import Ran
    from mutiny.report.experiment import ExperimentReport
    from mutiny.report.junit import Case


@click.group("experiment")
def command() -> None:
    """Steady state, method, rollback: experiments that tell the truth about what they showed.

    \b
    Examples:
      mutiny experiment list
      mutiny experiment check my_experiment.yaml
      mutiny experiment run killed-agent
      mutiny experiment report chaos_runs/latest --format html
    """


@command.command("run")
@click.argument(
    "experiments", type=values.EXPERIMENT, nargs=-1, required=True, metavar="EXPERIMENT..."
)
@click.option(
    "--target",
    type=values.TARGET,
    help="Another target than the file's; by default all that it names.",
)
@bench_options
@click.option("--seed", type=values.SEED, help="Seed of all choices; the file's, else printed.")
@junit_option
@json_option
@minimise_options
def run_command(
    experiments: tuple[str, ...],
    chosen: Chosen,
    seed: int | None,
    junit: Path | None,
    as_json: bool,
    shrinking: Shrinking,
) -> int:
    """Run experiments: files, or names of the library (`mutiny experiment list`).

    All files are checked before the first one touches anything. Exit code 0 only when every steady
    state held before, during and after, every fault fired and every verification could be made.
    """
    from mutiny.modes.experiment import bare_contract, load_ahead, nothing_to_show, plain_bench

    alone = len(experiments) == 1 and chosen.target is None
    ahead = load_ahead(Path(experiments[0]), chosen.root, chosen.isolation) if alone else None
    loaded = _load_all(experiments, chosen.target) if ahead is None else [ahead[0]]
    ran: list[Ran] = []
    left_out: dict[str, str] = {}
    for experiment in loaded:
        for name in experiment.targets:
            if ahead is not None:
                bench = ahead[1]
            elif experiment.contract == bare_contract().name:
                bench = plain_bench(chosen.root, chosen.isolation, Path(experiment.path))
            else:
                bench = chosen.bench(name, shrinking.budget())
            if stopping.asked():
                break
            why = nothing_to_show(bench, experiment) if ahead is None else ""
            if why:
                left_out[f"{Path(experiment.path).stem} on {name}"] = why
                continue
            one_seed = choose_seed(experiment.seed if seed is None else seed)
            ran.append(_one(bench, experiment, one_seed, quiet=as_json))
    reports = [item.report for item in ran]
    code = _verdict(ran).exit_code
    tell_cases("mutiny experiments", _cases(reports, left_out), junit)
    if as_json:
        _tell_run(ran, code, chosen.plant, left_out)
    else:
        if len(ran) > 1:
            _table(reports)
        for which, why in left_out.items():
            echo_wrapped(f"Left out, nothing to show: {which}: {why}")
    return code


def _tell_run(ran: list[Ran], code: int, plant: str, left_out: dict[str, str]) -> None:
    from mutiny.cli.envelope import tell

    reports = [item.report for item in ran]
    first = reports[0] if len(reports) == 1 else None
    tell(
        "experiment run",
        code,
        {"experiments": [report.as_json() for report in reports], "left_out": left_out},
        verdict=_verdict(ran).value,
        target=first.target if first else None,
        plant=plant,
        seed=first.seed if first else None,
    )


def _load_all(names: tuple[str, ...], target: str | None) -> list[Experiment]:
    from mutiny.modes.experiment_files import find, load

    paths = [find(name) for name in names]
    return [load(path, target) for path in paths]


def _one(bench: Bench, experiment: Experiment, seed: int, *, quiet: bool) -> Ran:
    from mutiny.cli.show import Show
    from mutiny.modes.experiment import run

    show = Show(quiet=quiet)
    show.header(bench, experiment.name, seed, "Experiment")
    with show.minimising(bench) as line:
        ran = run(bench, experiment, seed, show.listeners, watch=line.minimise)
    if not quiet:
        _print(ran.report)
        excused = bench.target.contract().not_applicable
        if excused:
            echo(f"Not promised by the target, not checked: {', '.join(excused)}")
    return ran


def _print(report: ExperimentReport) -> None:
    """The summary, below the steps."""
    from mutiny.model.duration import show_duration
    from mutiny.report.experiment_markdown import (
        VERDICT_WORDS,
        availability_text,
        recovery_text,
    )

    echo("")
    echo(f"{VERDICT_WORDS[report.verdict]}: {report.name}")
    if report.reason:
        echo_wrapped(f"  {report.reason}")
    if report.changes:
        echo_wrapped(f"  Adapted to the target: {'; '.join(report.changes)}")
    for number, finding in enumerate(report.findings, 1):
        echo_wrapped(f"  Finding {number} ({finding.severity}, {finding.rule}): {finding.title}")
        echo_wrapped(f"    Symptom:        {finding.symptom}", 20)
        echo_wrapped(f"    Root cause:     {finding.root_cause}", 20)
        echo_wrapped(f"    Impact:         {finding.impact}", 20)
        echo_wrapped(f"    Recommendation: {finding.recommendation}", 20)
        echo_wrapped(f"    Test case:      {finding.test_case}", 20)
    if report.replay:
        echo(f"  Replay: {report.replay}")
    echo("")
    echo(
        f"Duration: {show_duration(report.duration_s)}   Faults injected: {report.fired}   "
        f"Failures found: {len(report.findings)}   Severity: {report.severity}"
    )
    echo(f"Recovery Time: {recovery_text(report)}")
    echo(f"Data Integrity: {report.score.integrity}")
    echo(f"Availability: {availability_text(report.score)}")
    echo(f"Report: {report.directory}/chaos_report.html")
    echo("")


def _verdict(ran: list[Ran]) -> Verdict:
    from mutiny.model.verdict import Verdict, worst

    return worst(item.outcome.verdict for item in ran) if ran else Verdict.INCONCLUSIVE


def _table(reports: list[ExperimentReport]) -> None:
    for report in reports:
        rule = report.findings[0].rule if report.findings else ""
        took = f"{report.duration_s:6.1f}s"
        echo(f"{report.name:<44.44} {report.target:<16} {report.verdict:<13} {took} {rule}")
    passed = sum(1 for report in reports if report.verdict == "success")
    total = sum(report.duration_s for report in reports)
    echo(f"{passed} of {len(reports)} passed in {total:.1f}s")


def _cases(reports: list[ExperimentReport], left_out: dict[str, str]) -> list[Case]:
    from mutiny.report.experiment_markdown import case_of
    from mutiny.report.junit import skipped

    return [*map(case_of, reports), *skipped(left_out, "experiments")]


@command.command("check")
@click.argument(
    "experiments", type=values.EXPERIMENT, nargs=-1, required=True, metavar="EXPERIMENT..."
)
@click.option("--target", type=values.TARGET, help="Check it for another target than the file's.")
@json_option
def check_command(experiments: tuple[str, ...], target: str | None, as_json: bool) -> int:
    """Read experiments and tell every mistake with its line; nothing is run or touched."""
    from mutiny.errors import UsageError

    rows: list[dict[str, Any]] = []
    for name in experiments:
        try:
            rows.append(_checked(name, target))
        except UsageError as error:
            rows.append({"file": name, "mistakes": str(error).splitlines()})
            echo(f"mutiny: {error}", err=True)
            continue
        if not as_json:
            row = rows[-1]
            echo(
                f"{row['file']}: {row['title']!r} is well-formed: {row['operations']} operations, "
                f"{row['faults']} faults, blast radius {row['blast_radius'] or 'not declared'!r}, "
                f"for {', '.join(row['targets'])}"
            )
    code = 2 if any(row["mistakes"] for row in rows) else 0
    if as_json:
        from mutiny.cli.envelope import tell

        tell("experiment check", code, {"files": rows}, target=target)
    return code


def _checked(name: str, target: str | None) -> dict[str, Any]:
    """What a well-formed experiment says."""
    from mutiny.experiments.compile import compile_experiment
    from mutiny.modes.experiment_files import find, load

    experiment = load(find(name), target)
    return {
        "file": experiment.path,
        "title": experiment.name,
        "operations": len(compile_experiment(experiment).steps),
        "faults": experiment.faults,
        "blast_radius": experiment.radius,
        "targets": list(experiment.targets),
        "mistakes": [],
    }


@command.command("list")
@click.option("--sentences", is_flag=True, help="The sentences of steady states and `verify`.")
@click.option("--steps", is_flag=True, help="The words that a step may begin with.")
@click.option("--contract", type=values.CONTRACT, help="Only this contract.")
@json_option
def list_command(sentences: bool, steps: bool, contract: str | None, as_json: bool) -> int:
    """List the experiments that ship with Mutiny, or what an experiment can say."""
    if sentences or steps:
        return _list_language(contract, sentences=sentences, as_json=as_json)
    from mutiny.modes.experiment_files import library, load

    rows: list[dict[str, object]] = []
    for name, path in library().items():
        experiment = load(path)
        if contract is None or experiment.contract == contract:
            rows.append(
                {
                    "name": name,
                    "title": experiment.name,
                    "targets": list(experiment.targets),
                    "blast_radius": experiment.radius,
                    "covers": list(experiment.covers),
                    "file": str(path),
                }
            )
    if as_json:
        from mutiny.cli.envelope import tell

        tell("experiment list", 0, {"experiments": rows})
        return 0
    echo_rows(
        (str(row["name"]), f"{row['title']} ({row['blast_radius']}; {', '.join(row['targets'])})")  # type: ignore[arg-type]
        for row in rows
    )
    return 0


def _list_language(contract: str | None, *, sentences: bool, as_json: bool) -> int:
    from mutiny.contracts.catalogue import language_of, with_targets
    from mutiny.experiments.native import registry_of
    from mutiny.experiments.steps import StepReader

    found: dict[str, Any] = {}
    for name in [contract] if contract else list(with_targets()):
        _require_contract(name)
        language = language_of(name)
        if sentences:
            found[name] = {
                "sentences": {one.text: one.meaning for one in language.vocabulary.sentences},
                "rollback": {one.text: one.meaning for one in language.rollbacks},
            }
        else:
            found[name] = {"steps": StepReader(registry_of(name), language).known}
    if as_json:
        from mutiny.cli.envelope import tell

        tell("experiment list", 0, {"language": found})
        return 0
    for name, parts in found.items():
        for title, entries in parts.items():
            echo(f"{name}: {title}")
            if isinstance(entries, dict):
                for text, meaning in entries.items():
                    echo(f"  {text}")
                    echo_wrapped(f"      {meaning}", 6)
            else:
                echo_wrapped("  " + " ".join(entries), 2)
    return 0


def _require_contract(name: str) -> None:
    from mutiny.contracts.catalogue import with_targets
    from mutiny.errors import UsageError, nearest

    if name not in with_targets():
        raise UsageError(f"unknown contract {name!r}{nearest(name, list(with_targets()))}")


@command.command("report")
@click.argument("run", type=values.PATH, default=Path("chaos_runs/latest"))
@click.option(
    "--format",
    "form",
    type=values.Choice(["markdown", "json", "junit", "html"]),
    default="markdown",
    show_default=True,
)
@click.option("--output", type=values.FILE, help="To a file instead of stdout.")
@json_option
def report_command(run: Path, form: str, output: Path | None, as_json: bool) -> int:
    """Show the report of an experiment again, from its run directory alone."""
    import json

    from mutiny import documents
    from mutiny.report.experiment import from_json
    from mutiny.report.experiment_markdown import junit, markdown
    from mutiny.report.experiment_page import page
    from mutiny.report.measured import of_run
    from mutiny.report.page import links_to

    path = run / "experiment.json" if run.is_dir() else run
    place = path.parent / "chaos_report.html"
    data = documents.read_json(path, "experiment's result")
    report = from_json(data, str(path))
    if as_json:
        from mutiny.cli.envelope import tell

        about = {"target": report.target, "plant": report.plant or None, "seed": report.seed}
        own = {**about, "verdict": report.verdict, "experiments": [report.as_json()]}
        tell("experiment report", report.exit_code, own)
        return report.exit_code
    text = {
        "markdown": lambda: markdown(report),
        "json": lambda: json.dumps(report.as_json(), indent=2) + "\n",
        "junit": lambda: junit([report]),
        "html": lambda: page(report, links_to(path.parent, output or place), of_run(path.parent)),
    }[form]()
    if output is None:
        echo(text, nl=False)
    else:
        from mutiny.engine.rundir import storing

        with storing(output):
            output.write_text(text, encoding="utf-8")
    return report.exit_code


@command.command("log")
@click.argument("runs", type=values.PATH, default=Path("chaos_runs"))
@click.option("--title", default="Stress testing log", show_default=True, help="What it is called.")
@click.option("--output", type=values.PATH, help="Without an ending; default: RUNS/experiment_log.")
@json_option
def log_command(runs: Path, title: str, output: Path | None, as_json: bool) -> int:
    """Write the experiment log: an entry for each experiment that was run, from the runs' journals."""
    from dataclasses import asdict

    from mutiny.engine.rundir import storing
    from mutiny.report.experiment_log import entries, markdown, page

    found = entries(runs)
    place = output or runs / "experiment_log"
    files = {".md": markdown(found, title), ".html": page(found, title)}
    written = [place.with_name(place.name + ending) for ending in files]
    for path, text in zip(written, files.values(), strict=True):
        with storing(path):
            path.write_text(text, encoding="utf-8")
    if as_json:
        from mutiny.cli.envelope import tell

        rows = [asdict(entry) for entry in found]
        tell("experiment log", 0, {"entries": rows, "files": [str(path) for path in written]})
    else:
        for entry in found:
            echo(
                f"{entry.number:>3}  {entry.date}  {entry.result:<12} {entry.title} on {entry.target}"
            )
        echo(f"Log: {written[0]} and {written[1].name}")
    return 0
