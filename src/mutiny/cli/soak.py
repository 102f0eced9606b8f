"""`mutiny soak`: hours of a session in minutes, under faults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    DEFAULT_ROOT,
    Chosen,
    bench_options,
    choose_seed,
    json_option,
    junit_option,
    target_for,
)
from mutiny.cli.output import echo, echo_wrapped
from mutiny.errors import UsageError
from mutiny.kit.soaking import FASTEST, LEAST_H, MOST_AGENTS, MOST_H, SCHEDULES, SLOWEST

if TYPE_CHECKING:
    from mutiny.engine.rundir import RunDirectory
    from mutiny.engine.soaking import Soaked
    from mutiny.modes.bench import Bench
    from mutiny.report.junit import Case

HOUR_S = 3600.0


@click.command("soak")
@bench_options
@target_for("soak")
@click.option("--project", default="task_queue", show_default=True, help="What is to be built.")
@click.option(
    "--hours",
    type=values.NumberRange(LEAST_H, MOST_H),
    help="Session time. Default: that of the schedule.",
)
@click.option("--agents", "crew", type=click.IntRange(1, MOST_AGENTS), default=6, show_default=True)
@click.option(
    "--rate",
    type=values.NumberRange(SLOWEST, FASTEST),
    default=60.0,
    show_default=True,
    help="How many seconds of the session pass in a real one.",
)
@click.option(
    "--schedule",
    type=values.Choice(list(SCHEDULES)),
    default="standard",
    show_default=True,
    help="How long, and how many faults.",
)
@click.option("--seed", type=values.SEED, help="Of the faults and their moments.")
@click.option(
    "--resume",
    "run",
    metavar="[RUN]",
    is_flag=False,
    flag_value=str(DEFAULT_ROOT / "latest"),
    help="Go on with a soak whose Mutiny was killed: its directory; without a word the latest run.",
)
@junit_option
@json_option
def command(
    chosen: Chosen,
    project: str,
    hours: float | None,
    crew: int,
    rate: float,
    schedule: str,
    seed: int | None,
    run: str | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Let a session run for hours of its own time, with faults by turns, and judge it by criteria.

    Every 30 s of session time a line goes to metrics.jsonl, every hour metrics and status to files of their
    own; at the end there is final_report.html. The exit code says whether everything holds that must.

    \b
    Examples:
      mutiny soak --project task_queue --hours 6 --rate 60
      mutiny soak --schedule mini --seed 7
      mutiny soak --resume
    """
    from mutiny.cli.options import make_bench
    from mutiny.cli.progress import ProgressLine
    from mutiny.kit.soaking import SoakAsk
    from mutiny.modes import soak as mode

    if run is not None:
        directory = _directory(run)
        plan = mode.begun(directory)
        ask, name = plan.ask, plan.target_file
        program, plant, root = plan.program, plan.plant, directory.path.parent
        bench = make_bench(name, program, plant, "double", chosen.isolation, root, None)
    else:
        bench = chosen.bench()
        length = SCHEDULES[schedule].hours if hours is None else hours
        ask = SoakAsk(project, length, crew, rate, schedule, choose_seed(seed))
    _require_speed(bench, ask.rate)
    say = (lambda _text: None) if as_json else echo
    say(f"Soak: {ask.project}, {ask.hours:g} h at rate {ask.rate:g}, seed {ask.seed}")
    with ProgressLine("Soak", round(ask.hours * HOUR_S), quiet=as_json) as line:

        def watch(done: float, note: str) -> None:
            line.update(round(done), note)

        if run is None:
            done = mode.begin(bench, ask, watch)
        else:
            done = mode.resume(bench, directory, watch, say)
    tell_cases("mutiny soak", _cases(done, bench.target.name), junit)
    if as_json:
        from mutiny.cli.envelope import tell

        own = {
            "directory": str(done.outcome.directory.path),
            "facts": dict(done.account.facts),
            "criteria": [{"text": one.criterion.text, "holds": one.holds} for one in done.criteria],
            "resumed": len(done.legs),
        }
        code = done.verdict.exit_code
        tell("soak", code, own, verdict=done.verdict.value, target=bench.target.name, seed=ask.seed)
    else:
        _print(done)
    return done.verdict.exit_code


def _directory(run: str) -> RunDirectory:
    from mutiny.engine.rundir import RunDirectory as Directory

    for path in (Path(run), DEFAULT_ROOT / run):
        if path.is_dir():
            return Directory(path.resolve())
    raise UsageError(f"there is no soak {run}")


def _require_speed(bench: Bench, rate: float) -> None:
    """A clock that cannot be sped up is said, before anything is begun."""
    from mutiny.faults.clock import why_no_shim, why_not_affected

    reason = None if rate == 1 else why_no_shim() or why_not_affected(bench.target.program)
    if reason is not None:
        raise UsageError(f"the clock of this target cannot be sped up: {reason}; --rate 1 works")


def _cases(done: Soaked, target: str) -> list[Case]:
    """A case a criterion; one that is not met and need not be is skipped, and so is an unknown one."""
    from mutiny.model.verdict import Verdict
    from mutiny.report.junit import Case, read_on

    took = done.outcome.duration_s
    cases = []
    for one in done.criteria:
        must = one.criterion.rank == "must"
        bad = Verdict.BUG if must and one.holds is False else Verdict.INCONCLUSIVE
        verdict = Verdict.SUCCESS if one.holds else bad
        told = f"{one.criterion.rank}: {one.word}"
        cases.append(Case(one.criterion.text, f"{target}: soak", verdict, 0.0, told))
    for step in done.broken:
        texts = [found.message for found in step.violations] or list(step.inconclusive)
        rule = step.violations[0].rule if step.violations else ""
        where = read_on(done.outcome.directory)
        name, text = step.operation.short(), "; ".join(texts)
        cases.append(Case(name, f"{target}: soak", step.verdict, took, text, rule, where))
    return cases


def _print(done: Soaked) -> None:
    for one in done.criteria:
        echo_wrapped(f"{one.criterion.rank:<7}{one.word:<9}{one.criterion.text}", 16)
    for step in done.broken:
        for text in [found.message for found in step.violations] or list(step.inconclusive):
            echo_wrapped(f"Broken: {step.operation.short()}: {text}")
    for text in done.account.recommendations:
        echo_wrapped(f"Advice: {text}")
    word = "PASSED" if done.verdict.exit_code == 0 else done.verdict.value.upper()
    echo(f"{word} in {done.outcome.duration_s:.0f} s; {len(done.lines)} lines of metrics")
    echo(f"Report: {done.outcome.directory.path}/final_report.html")
