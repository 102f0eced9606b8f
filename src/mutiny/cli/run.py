"""`mutiny run`: scenarios against a target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.measuring import Measuring, measuring_options
from mutiny.cli.options import (
    Chosen,
    Shrinking,
    choose_seed,
    json_option,
    junit_option,
    known_option,
    minimise_options,
    target_options,
    with_known,
)
from mutiny.cli.output import echo
from mutiny.errors import UsageError
from mutiny.system.machine import runs_at_once

if TYPE_CHECKING:
    from mutiny.model.operation import Operation
    from mutiny.modes.bench import Bench


@click.command("run")
@target_options
@click.option(
    "--scenario",
    "scenarios",
    type=values.SCENARIO,
    multiple=True,
    help="A scenario's name or a JSON file; may be repeated.",
)
@click.option("--all-scenarios", is_flag=True, help="All scenarios of the target's contract.")
@click.option("--until-error", is_flag=True, help="Repeat with new seeds until something breaks.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first scenario that does not pass.")
@click.option("--seed", type=values.SEED, help="Seed of all choices; printed when not given.")
@click.option(
    "--rounds",
    type=values.COUNT,
    default=100,
    show_default=True,
    help="With --until-error: at most so many rounds.",
)
@click.option(
    "--verbose/--brief",
    default=None,
    help="Every step, or one line a scenario. Default: steps when there is one scenario.",
)
@click.option(
    "--jobs",
    type=values.JOBS,
    help="Scenarios side by side; default: two a core, and one where steps are shown or times compared.",
)
@measuring_options
@known_option
@junit_option
@json_option
@minimise_options
def command(
    chosen: Chosen,
    scenarios: tuple[str, ...],
    all_scenarios: bool,
    until_error: bool,
    fail_fast: bool,
    seed: int | None,
    rounds: int,
    verbose: bool | None,
    jobs: int | None,
    measuring: Measuring,
    known: Path | None,
    junit: Path | None,
    as_json: bool,
    shrinking: Shrinking,
) -> int:
    """Run scenarios against a target and stop at the first broken promise.

    Without --scenario all scenarios run. One scenario is shown step by step, several in one line each
    (--verbose shows the steps). A run that finds a bug is shrunk, and its report, its
    minimal replay and the files of its box stay below chaos_runs/latest.

    \b
    Examples:
      mutiny run --scenario merge_conflict
      mutiny run --all-scenarios --fail-fast --json
      mutiny run --target llmc --bin ./llmc --all-scenarios
      mutiny run --scenario my_scenario.json --seed 12345 --until-error
      mutiny run --repeat 3 --save-baseline times.json
      mutiny run --repeat 3 --baseline times.json
      mutiny run --target my.toml --all-scenarios --code-coverage
    """
    from mutiny.cli.envelope import tell_tried
    from mutiny.cli.show import Brief, Show
    from mutiny.engine.known import known_as_json
    from mutiny.modes.scenarios import run_scenarios
    from mutiny.report.junit import skipped

    bench = measuring.begin(with_known(chosen.bench(budget=shrinking.budget()), known))
    wanted, lacking = _wanted(bench, scenarios, all_scenarios, chosen.isolation)
    first_seed = choose_seed(seed)
    times = rounds if until_error else measuring.repeat
    count = len(wanted) * times
    steps = not as_json and (count == 1 if verbose is None else verbose)
    if steps and (jobs or 1) > 1:
        raise UsageError("--jobs and --verbose: steps of runs side by side cannot be read")
    total = run_scenarios(
        bench,
        wanted,
        first_seed,
        Show(quiet=as_json) if steps or as_json else Brief(bench, count, first_seed),
        fail_fast=fail_fast or until_error,
        rounds=times,
        jobs=jobs or (1 if steps or measuring.compares_times else runs_at_once()),
        code=measuring.code,
    )
    tell_cases("mutiny run", [*total.cases, *skipped(lacking, bench.target.name)], junit)
    late = measuring.finish(bench.target.name, total.timings, quiet=as_json)
    code = total.verdict.exit_code or late
    if as_json:
        told = {
            "runs": total.records,
            "left_out": lacking,
            "causes": total.causes.as_json(),
            "known": known_as_json(total.known),
            **measuring.as_json(),
        }
        tell_tried("run", bench, total.verdict, told, first_seed, exit_code=code)
    return code


def _wanted(
    bench: Bench, scenarios: tuple[str, ...], everything: bool, isolation: str | None
) -> tuple[dict[str, tuple[Operation, ...]], dict[str, str]]:
    """The scenarios to run; and those that this machine cannot, with what it lacks."""
    from mutiny.modes.scenarios import chosen_scenarios
    from mutiny.targets.kit.requirements import left_out, refuse_lacking

    wanted = chosen_scenarios(bench, scenarios, everything=everything)
    for name, operations in wanted.items() if scenarios else ():  # what was named is not left out
        refuse_lacking(f"scenario {name}", operations, isolation=isolation)
    lacking = {} if scenarios else left_out(wanted, isolation)
    for name, missing in lacking.items():
        del wanted[name]
        echo(f"left out: {name} needs what this machine lacks: {missing}", err=True)
    return wanted, lacking
