"""`mutiny load`: many commands, and what they cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny import stopping
from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import Chosen, bench_options, json_option, junit_option
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from mutiny.engine.loading import Loaded, LoadReport
    from mutiny.engine.progress import Progress
    from mutiny.engine.rundir import RunDirectory
    from mutiny.kit.abilities import Sizes
    from mutiny.modes.bench import Bench
    from mutiny.report.junit import Case

SHAPES = ("cost", "cycles", "dag", "payloads", "long", "burst")


@click.command("load")
@click.option(
    "--target",
    "targets",
    type=values.TARGET,
    multiple=True,
    help="A board; may be repeated. Default: longboat's three.",
)
@bench_options
@click.option(
    "--shape", "shapes", multiple=True, type=values.Choice(SHAPES), help="Default: all of them."
)
@click.option(
    "--tasks",
    type=values.Numbers(1, 100_000),
    default="100,1000",
    show_default=True,
    help="cost: how many tasks are on the board.",
)
@click.option(
    "--claims",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    help="cost: claims measured at each size.",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), default=4, show_default=True, help="Side by side."
)
@click.option(
    "--cycles",
    type=click.IntRange(1, 100_000),
    help="cycles: claim and complete so often. Default: 300; 30 with a process a command.",
)
@click.option(
    "--graph",
    type=click.IntRange(1, 10_000),
    default=120,
    show_default=True,
    help="dag: how many tasks.",
)
@click.option("--html", "page", is_flag=True, help="Also write load.html: curves and tables.")
@junit_option
@json_option
def command(
    targets: tuple[str, ...],
    chosen: Chosen,
    shapes: tuple[str, ...],
    tasks: tuple[int, ...],
    claims: int,
    workers: int,
    cycles: int | None,
    graph: int,
    page: bool,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Put boards under load and judge what they do: every load is one step of an ordinary run.

    \b
      cost      what a claim costs with 100, 1,000, ... tasks on the board
      cycles    claim and complete; memory, descriptors and files must not grow
      dag       a graph of dependencies: in order, and everything ends
      payloads  outputs of 1 KB to 1 MB come back unchanged
      long      work longer than a lease with heartbeats: nobody is robbed
      burst     a rate limit holds in every window of time

    \b
    Examples:
      mutiny load --html
      mutiny load --shape cost --tasks 100,1000,10000 --html
      mutiny load --target longboat-broker --shape cycles --cycles 10000
    """
    from mutiny.contracts.catalogue import default_for
    from mutiny.engine.loading import LoadReport
    from mutiny.engine.progress import Progress
    from mutiny.engine.rundir import RunDirectory
    from mutiny.kit.abilities import Sizes
    from mutiny.modes.series import told_in, word_of

    sizes = Sizes(tasks, claims, workers, cycles, graph)
    report = LoadReport()
    names = targets or default_for("load").targets
    title = ", ".join(shapes or SHAPES)

    def made(directory: Path) -> Progress:
        return Progress(directory, "load", title, ", ".join(names), plant=chosen.plant)

    with told_in(chosen.root / "loads", made) as progress:
        for target in stopping.unless_asked(names):
            _load(chosen.bench(target), shapes or SHAPES, sizes, report, progress, quiet=as_json)
        place = _write(report, RunDirectory(progress.directory), page=page)
        failed = sum(one.verdict.stops_run for one in report.loads)
        note = f"{len(report.loads)} loads, {failed} not passed"
        progress.tell(len(report.loads), len(report.loads), note, verdict=word_of(report.verdict))
    tell_cases("mutiny load", [_case(one) for one in report.loads], junit)
    if as_json:
        from mutiny.cli.envelope import tell

        told = {**report.as_json(), "written": str(place)}
        alone = targets[0] if len(targets) == 1 else None
        tell("load", report.verdict.exit_code, told, target=alone, plant=chosen.plant)
    else:
        _print(report)
        echo(f"Figures: {place}")
    return report.verdict.exit_code


def _load(
    bench: Bench,
    shapes: tuple[str, ...],
    sizes: Sizes,
    report: LoadReport,
    progress: Progress,
    *,
    quiet: bool,
) -> None:
    """All shapes on one target, told while they run and when they are over."""
    from mutiny.cli.progress import ProgressLine
    from mutiny.modes.load import load

    known = len(report.loads)
    with ProgressLine("", 0, quiet=quiet) as line:

        def watch(title: str, done: int, total: int) -> None:
            line.anew(title, total)
            line.update(done)
            progress.tell(done, total, title)

        load(bench, shapes, sizes, report, watch)
    for one in report.loads[known:] if not quiet else ():
        echo(_row(one))


def _write(report: LoadReport, directory: RunDirectory, *, page: bool) -> Path:
    written = directory.path / "load.json"
    directory.write_json(written, report.as_json())
    if page:
        from mutiny.report.load_page import render

        written = directory.path / "load.html"
        directory.write_text(written, render(report, written))
    return written


def _case(one: Loaded) -> Case:
    from mutiny.engine.rundir import RunDirectory
    from mutiny.report.junit import Case, read_on

    bad = one.verdict.is_bug and one.directory
    return Case(
        f"{one.shape}, {one.tasks} tasks, {one.workers} workers",
        one.target,
        one.verdict,
        float(one.measured.get("seconds") or 0.0),
        one.message or one.verdict.value,
        one.rule or "",
        read_on(RunDirectory(Path(one.directory))) if bad else "",
    )


def _row(one: Loaded) -> str:
    p50, p99 = one.latency("claim", "p50_ms"), one.latency("claim", "p99_ms")
    figures = "" if p50 is None or p99 is None else f"claim p50 {p50:8.1f} ms  p99 {p99:8.1f} ms"
    rate = one.measured.get("throughput")
    speed = f"{rate:8.1f}/s" if isinstance(rate, float) else f"{'':>10}"
    return (
        f"{one.target:<16} {one.shape:<9} {one.tasks:>6} tasks {one.workers:>3} workers {speed}  "
        f"{figures}  {one.verdict.value} {one.rule or ''} {one.message}".rstrip()
    )


def _print(report: LoadReport) -> None:
    """Cost and growth, then what broke."""
    costs = report.costs()
    if costs:
        sizes = sorted({tasks for rows in costs.values() for tasks, _, _ in rows})
        echo("")
        echo("Cost per claim (p50, ms)" + "".join(f"{size:>12,}" for size in sizes) + " tasks")
        for target, rows in costs.items():
            known = {tasks: p50 for tasks, p50, _ in rows}
            cells = "".join(f"{known[s]:>12.1f}" if s in known else f"{'-':>12}" for s in sizes)
            echo(f"{target:<24}{cells}")
    for one in report.loads:
        for grown in one.growth:
            unit = f" {grown['unit']}" if grown["unit"] else ""
            echo(
                f"{one.target:<16} {grown['name']}: {grown['per_cycle']:+.3g}{unit} a cycle "
                f"(limit {grown['limit']:g}{unit}, {grown['samples']} samples)"
                + ("  TOO MUCH" if grown["too_much"] else "")
            )
    for one in report.loads:
        if one.verdict.is_bug:
            echo(f"Bug: {one.rule} {one.message}\n  {one.directory}/error_report.md")
