"""`mutiny sweep`: one operation broken at every point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    Chosen,
    json_option,
    junit_option,
    known_option,
    target_options,
    with_known,
)
from mutiny.cli.output import echo, echo_wrapped
from mutiny.system.machine import runs_at_once

if TYPE_CHECKING:
    from mutiny.engine.progress import Progress
    from mutiny.engine.sweeping import Point, Sweep
    from mutiny.modes.sweep import Sweeper
    from mutiny.report.junit import Case


@click.command("sweep")
@click.argument(
    "kind", type=values.Choice(["crash", "errno", "torn", "fsync", "daemon", "preempt"])
)
@target_options
@click.option(
    "--scenario", type=values.SCENARIO, required=True, help="A scenario's name or a JSON file."
)
@click.option(
    "--at",
    required=True,
    metavar="OPERATION",
    help="Which operation: Accept, Accept:alpha, or Doctor#2.",
)
@click.option(
    "--against", metavar="OPERATION", help="preempt: the other command; default: the same again."
)
@click.option(
    "--only", multiple=True, help="errno: which errors; torn: which modes. May be repeated."
)
@click.option(
    "--points", type=values.COUNT, help="At most so many points, evenly spread. Default: all."
)
@click.option(
    "--until-bug", is_flag=True, help="Stop at the first bug instead of judging all points."
)
@click.option("--jobs", type=values.JOBS, help="Points side by side; default: two a core.")
@known_option
@junit_option
@json_option
def command(
    kind: str,
    chosen: Chosen,
    scenario: str,
    at: str,
    against: str | None,
    only: tuple[str, ...],
    points: int | None,
    until_bug: bool,
    jobs: int | None,
    known: Path | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Break one operation of a scenario at every state-changing system call, and judge what is
    left.

    \b
      crash   everything dies before the call; one pass gives every state
      fsync   the same, and only what was synced is still there
      errno   the call fails: ENOSPC EIO EACCES EROFS EMFILE EINTR; or the disk
              is full from there on: full; files that are only read cannot be
              opened: EIO EACCES EMFILE
      torn    half of a write, then death, a short count, or a lie (where the
              target promises to notice damage, or with --only lie)
      daemon  the daemon dies in the middle of what it does about the command,
              after every change of the state's files; then it is started
              again, or stopped and started
      preempt two commands at once, every order of their file operations (at
              most 2 preemptions)

    The scenario runs up to the operation; after the point the target recovers by its own means and
    is judged with all rules and the ledger. The first point of each distinct cause gets a report and a
    replay that names the exact point. Behind a known finding the sweep goes on.

    \b
    Examples:
      mutiny sweep crash --scenario basic_lifecycle --at Accept
      mutiny sweep errno --scenario basic_lifecycle --at Start --only ENOSPC
    """
    from mutiny.modes.scenarios import chosen_scenarios
    from mutiny.modes.series import series
    from mutiny.modes.sweep import Sweeper, check_choices, rival, split

    check_choices(kind, only)
    bench = with_known(chosen.bench(), known)
    operations = next(iter(chosen_scenarios(bench, [scenario], everything=False).values()))
    prefix, operation = split(operations, at)
    words = bench.target.contract().operations
    other = rival(operations, against, words) if against else None
    count = jobs or runs_at_once()
    sweeper = Sweeper(bench, prefix, operation, jobs=count, against=other, until_bug=until_bug)
    title = f"{operation.short()} in {scenario}"
    with series(bench, "sweeps", f"{kind} sweep", title, "points") as progress:
        sweep = _swept(sweeper, kind, only, points, progress, quiet=as_json)
        page = _write(sweep, progress)
    tell_cases("mutiny sweep", _cases(sweep), junit)
    if as_json:
        from mutiny.cli.envelope import tell_tried

        told = {**sweep.as_json(), "page": str(page)}
        tell_tried("sweep", bench, sweep.verdict, told)
    else:
        _print(sweep)
        echo(f"Picture: {page}")
    return sweep.verdict.exit_code


def _swept(
    sweeper: Sweeper,
    kind: str,
    only: tuple[str, ...],
    points: int | None,
    progress: Progress,
    *,
    quiet: bool,
) -> Sweep:
    """Do it, and show how far it is."""
    from mutiny.cli.progress import ProgressLine

    with ProgressLine(f"Sweeping {sweeper.at.type}", 1, quiet=quiet) as line:
        line.is_open = kind == "preempt"  # an order that is tried shows more

        def watch(done: int, total: int, found: Sequence[Point]) -> None:
            line.total = total
            bugs = sum(point.is_news for point in found)
            line.update(done, f"{bugs} bugs")
            counts = Counter(map(_word, found))
            progress.tell(done, None if line.is_open else total, f"{bugs} bugs", counts)

        return sweeper.run(kind, only, points, watch)


def _write(sweep: Sweep, progress: Progress) -> Path:
    """Keep the sweep as JSON and as a picture."""
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.series import word_of
    from mutiny.report.sweep_page import render

    directory = RunDirectory(progress.directory)
    directory.write_json(directory.path / "sweep.json", sweep.as_json())
    page = directory.path / "sweep.html"
    directory.write_text(page, render(sweep, page))
    counts = Counter(map(_word, sweep.points))
    tried = len(sweep.points)
    progress.tell(tried, tried + sweep.left_out, "", counts, verdict=word_of(sweep.verdict))
    return page


def _cases(sweep: Sweep) -> list[Case]:
    """A case a point; a bug's names the report of its cause."""
    from mutiny.report.junit import Case, read_on

    places = {cause: read_on(found.directory) for cause, found in sweep.shown.items()}
    group = f"{sweep.target}: {sweep.kind} sweep of {sweep.at.short()}"
    return [
        Case(
            f"{point.index} {point.label}",
            group,
            point.verdict,
            point.seconds,
            point.message or point.verdict.value,
            point.rule or "",
            "" if point.cause is None else places.get(point.cause, ""),
            point.known,
        )
        for point in sweep.points
    ]


def _word(point: Point) -> str:
    """What came of a point, in a word."""
    return "known" if point.known else point.verdict.value


def _print(sweep: Sweep) -> None:
    """The points and their outcomes, then what it comes to."""
    from mutiny.engine.known import known_told

    width = max([len(point.label) for point in sweep.points] + [20])
    for point in sweep.points:
        said = f"{point.known}: {point.message}" if point.known else point.message
        what = f"{_word(point):<13} {point.rule or ''} {said}".rstrip()
        echo_wrapped(f"{point.index:4d}  {point.label:<{min(width, 80)}.80} {what}", 6)
    counts = Counter(map(_word, sweep.points))
    shown = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    rate = len(sweep.points) / sweep.judge_s if sweep.judge_s else 0.0
    noun = "schedules" if sweep.kind == "preempt" else "points"
    calls = "" if sweep.kind == "preempt" else f"{len(sweep.calls)} calls, "
    echo_wrapped(
        f"{sweep.kind} sweep of {sweep.at} on {sweep.target}: {calls}"
        f"{len(sweep.points)} {noun}: {shown} ({rate:.1f} {noun}/s)"
        + (f"; {sweep.left_out} more were not tried" if sweep.left_out else "")
    )
    for line in known_told(sweep.known):
        echo_wrapped(line)
    for cause, points in sweep.by_cause().items():
        many = "1 point" if len(points) == 1 else f"{len(points)} points"
        echo_wrapped(f"{many}, first {points[0].index}: {cause.saying(points[0].message)}")
        replay = sweep.replay_of(cause)
        if replay["replay"]:
            echo(f"    {replay['operations']} operations: {replay['replay']}")
    if sweep.first_bug is None:
        return
    place = sweep.first_bug.directory.path
    if sweep.first_bug.rule is not None:
        echo(f"First bug: {place}/error_report.md")
    else:
        echo(f"The first bug did not show again as an ordinary sequence: {place}")
