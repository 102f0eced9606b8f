"""`mutiny campaign`: a matrix of runs, on many slots or on many machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    Shrinking,
    json_option,
    junit_option,
    known_option,
    minimise_options,
    runs_option,
)
from mutiny.cli.output import echo, echo_wrapped
from mutiny.errors import MutinyError

if TYPE_CHECKING:
    from mutiny.cli.progress import ProgressLine
    from mutiny.engine.campaigns import CampaignPlan, Finished, Job, Standing
    from mutiny.engine.minimise import Budget
    from mutiny.engine.progress import Progress
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.campaign_plan import Matrix
    from mutiny.modes.crew import Crew
    from mutiny.report.junit import Case

FOLDER = "campaigns"


@click.command("campaign")
@click.argument("file", type=values.FILE, required=False)
@click.option(
    "--target",
    "targets",
    type=values.TARGET,
    multiple=True,
    help="A target's name or its TOML file; may be repeated.",
)
@click.option("--seeds", type=click.IntRange(0, 100_000), help="Explore so many seeds a target.")
@click.option("--seed", "first_seed", type=values.SEED, help="The first of them. Default: 1.")
@click.option("--ops", type=click.IntRange(1, 10_000), help="Operations a sequence. Default: 30.")
@click.option(
    "--scenario",
    "scenarios",
    type=values.SCENARIO,
    multiple=True,
    help="A scenario's name, or `all`; may be repeated.",
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="KIND:SCENARIO:OPERATION",
    help="Such as crash:basic_lifecycle:Accept; may be repeated.",
)
@click.option("--points", type=values.COUNT, help="At most so many points of a sweep.")
@click.option(
    "--plant", "plants", type=values.PLANT, multiple=True, help="For longboat; may be repeated."
)
@known_option
@click.option(
    "--slots",
    type=values.JOBS,
    help="Runs side by side; default: four a core, as they mostly wait.",
)
@click.option("--dask", is_flag=True, help="On a dask cluster that is started here.")
@click.option("--scheduler", metavar="ADDRESS", help="On the dask cluster of this scheduler.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="With --dask: so many worker processes.",
)
@click.option(
    "--resume",
    metavar="DIR",
    type=values.FOLDER,
    help="Go on with a campaign that was broken off; what has finished stays.",
)
@runs_option
@junit_option
@json_option
@minimise_options
def command(
    file: Path | None,
    slots: int | None,
    dask: bool,
    scheduler: str | None,
    workers: int,
    resume: Path | None,
    root: Path,
    junit: Path | None,
    as_json: bool,
    shrinking: Shrinking,
    **said: Any,
) -> int:
    """Carry out a matrix of runs: targets times seeds, scenarios and sweeps.

    A TOML FILE says what the options say: title, targets, programs, plants, seeds, first_seed, ops,
    scenarios, sweeps, points, known. Every run is a process of its own. Its journal only grows: whoever
    is killed, --resume goes on; no run is lost in silence or counted twice. Failures are grouped by
    cause, told as they appear, and campaign.html shows what was found and covered when.

    \b
    Examples:
      mutiny campaign --target longboat-board --seeds 40
      mutiny campaign nightly.toml --slots 8 --junit campaign.xml
      mutiny campaign --scenario all --sweep crash:basic_lifecycle:Accept
      mutiny campaign --seeds 200 --scheduler tcp://10.0.0.5:8786
      mutiny campaign --resume chaos_runs/campaigns/latest
    """
    from mutiny.cli.envelope import tell
    from mutiny.engine.campaigns import read_plan
    from mutiny.engine.progress import Progress

    directory = _made(_matrix(file, said), root) if resume is None else _found(resume, file, said)
    plan = read_plan(directory.path)
    targets = ", ".join(dict.fromkeys(job.target for job in plan.jobs))
    progress = Progress(directory.path, "campaign", plan.title, targets, unit="runs")

    def crew() -> Crew:
        try:
            return _crew(plan, directory, slots, dask, scheduler, workers)
        except MutinyError:
            if resume is None:  # nothing was begun
                directory.discard()
            raise

    standing, gone = _carried_out(
        directory, plan, crew, progress, shrinking.budget(), quiet=as_json
    )
    page = _write(directory, plan, standing, progress, junit)
    code = standing.verdict.exit_code
    if as_json:
        own = {**standing.as_json(), "directory": str(directory.path), "page": str(page)}
        alone = targets if "," not in targets else None
        tell("campaign", code, own, verdict=standing.verdict.value, target=alone, error=gone)
    else:
        _print(standing, directory, page, gone)
    return code


def _carried_out(
    directory: RunDirectory,
    plan: CampaignPlan,
    crew: Callable[[], Crew],
    progress: Progress,
    budget: Budget | None,
    *,
    quiet: bool,
) -> tuple[Standing, str | None]:
    """One leg of it, told on the terminal and in its directory; also why its crew was gone too early."""
    from mutiny.cli.progress import ProgressLine
    from mutiny.modes.campaign import Campaign
    from mutiny.modes.crew import CrewGone

    with ProgressLine("Campaign", len(plan.jobs), quiet=quiet) as line:

        def watch(so_far: Standing, done: Finished | None) -> None:
            progress.tell(len(so_far.finished), len(plan.jobs), so_far.note, so_far.counts)
            if not quiet:
                _say_news(line, so_far, done)
            line.update(len(so_far.finished), so_far.note)

        with Campaign(directory.path, plan.jobs, watch) as campaign:
            line.begin_at(len(campaign.standing.finished))
            gone = None
            try:
                campaign.run(crew())
                campaign.standing.elapsed_s = campaign.elapsed_s
                if budget is not None:
                    line.update(len(plan.jobs), "minimising each cause once")
                    campaign.shorten(Path(plan.folder), budget)
            except CrewGone as error:
                gone = str(error)
                campaign.standing.elapsed_s = campaign.elapsed_s
            return campaign.standing, gone


def _matrix(file: Path | None, said: dict[str, Any]) -> Matrix:
    """What the file says, and what options say beside it."""
    from dataclasses import replace

    from mutiny.modes.campaign_plan import Matrix, read_matrix

    if said["known"] is not None:
        said = {**said, "known": str(said["known"])}
    matrix = Matrix() if file is None else read_matrix(file)
    return replace(
        matrix, **{name: value for name, value in said.items() if value not in (None, ())}
    )


def _made(matrix: Matrix, root: Path) -> RunDirectory:
    from mutiny.engine.campaigns import write_plan
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.campaign_plan import jobs_of

    jobs = jobs_of(matrix)
    directory = RunDirectory.create((root / FOLDER).absolute())
    title = matrix.title or ", ".join(dict.fromkeys(job.target for job in jobs))
    write_plan(directory, title, Path.cwd(), jobs)
    return directory


def _found(resume: Path, file: Path | None, said: dict[str, Any]) -> RunDirectory:
    from mutiny.engine.campaigns import read_plan
    from mutiny.engine.rundir import RunDirectory
    from mutiny.errors import UsageError

    if file is not None or any(value not in (None, ()) for value in said.values()):
        raise UsageError(
            "--resume goes on with what the campaign consists of; nothing can be added"
        )
    read_plan(resume)
    return RunDirectory(resume.resolve())


def _crew(
    plan: CampaignPlan,
    directory: RunDirectory,
    slots: int | None,
    dask: bool,
    scheduler: str | None,
    workers: int,
) -> Crew:
    from mutiny.modes.campaign import RUNS
    from mutiny.modes.crew import LocalCrew

    local = LocalCrew(Path(plan.folder), directory.path / RUNS, slots)
    if not dask and scheduler is None:
        return local
    from mutiny.modes.dask_crew import connect

    return connect(scheduler, workers, local.slots, Path(plan.folder), directory.path / RUNS)


def _say_news(line: ProgressLine, standing: Standing, done: Finished | None) -> None:
    """A cause that nobody has met before, or an attempt that was lost."""
    if done is None:
        lost = standing.lost[-1]
        line.done()
        echo(f"lost {lost.id} ({lost.key}): {lost.why}; it is run again under a new id")
        return
    for cause in done.causes:
        group = standing.causes[cause.same]
        if group.first == done.key and group.count == 1:
            line.done()
            echo_wrapped(f"new cause after {group.at_s:.0f} s, {done.key}: {cause.text}")


def _write(
    directory: RunDirectory,
    plan: CampaignPlan,
    standing: Standing,
    progress: Any,
    junit: Path | None,
) -> Path:
    """The page, the figures, and JUnit where it is wanted."""
    from mutiny.modes.series import word_of
    from mutiny.report.campaign_page import render

    page = directory.path / "campaign.html"
    directory.write_text(page, render(standing, plan.title, page))
    directory.write_json(directory.path / "result.json", standing.as_json())
    done, verdict = len(standing.finished), word_of(standing.verdict)
    progress.tell(done, len(plan.jobs), standing.note, standing.counts, verdict=verdict)
    cases = [_case(job, standing.finished.get(job.key)) for job in plan.jobs]
    tell_cases("mutiny campaign", cases, junit)
    return page


def _case(job: Job, done: Finished | None) -> Case:
    """A run of the matrix as a test case; one that has not finished has shown nothing."""
    from mutiny.model.verdict import Verdict
    from mutiny.report.junit import Case

    if done is None:
        return Case(job.key, job.target, Verdict.INCONCLUSIVE, 0.0, "it has not been run")
    verdict = Verdict(done.verdict)
    rule = done.causes[0].rule if done.causes else ""
    where = f"runs: {done.directory}\n" if verdict.stops_run else ""
    known = "" if verdict.stops_run else "; ".join(one.reason for one in done.known)
    return Case(job.key, job.target, verdict, done.seconds, done.reason, rule, where, known)


def _print(standing: Standing, directory: RunDirectory, page: Path, gone: str | None) -> None:
    """What is known, causes, losses, what did not pass without one, and the sum."""
    from mutiny.engine.known import known_told

    for line in known_told(standing.known):
        echo(line)
    for group in standing.ordered_causes():
        times = "once" if group.count == 1 else f"{group.count} times"
        echo_wrapped(
            f"{times}, first {group.first} after {group.at_s:.0f} s: {group.shortest.text}"
        )
        if group.shortest.replay:
            length = (
                f"{group.shortest.operations} operations: " if group.shortest.operations else ""
            )
            echo(f"    {length}{group.shortest.replay}")
    for one in standing.finished.values():
        if not one.causes and one.verdict != "success":
            echo_wrapped(f"{one.key}: {one.verdict}: {one.reason}")
    shown = ", ".join(f"{n} {name}" for name, n in sorted(standing.counts.items())) or "none"
    done, total = len(standing.finished), len(standing.jobs)
    rate = done / standing.elapsed_s * 60 if standing.elapsed_s else 0.0
    echo(f"{done} of {total} runs in {standing.elapsed_s:.0f} s ({rate:.1f}/min): {shown}")
    if gone is not None:
        echo(f"mutiny: {gone}", err=True)
    if done < total:
        echo(f"Go on: mutiny campaign --resume {directory.path}")
    echo(f"Page: {page}")
