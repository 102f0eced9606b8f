"""`mutiny accept`: the acceptance programme, its matrix and its gates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    Chosen,
    bench_options,
    choose_seed,
    json_option,
    junit_option,
    target_for,
)
from mutiny.cli.output import echo, echo_wrapped
from mutiny.system.machine import runs_at_once

if TYPE_CHECKING:
    from mutiny.kit.abilities import Drilled
    from mutiny.kit.goals import Goal, Tried
    from mutiny.modes.accept import Done
    from mutiny.report.junit import Case


@click.group("accept", invoke_without_command=True)
@target_for("accept")
@bench_options
@click.option("--goals", type=values.PATH, help="A folder of goals; default: those that ship.")
@click.option("--goal", "ids", multiple=True, help="Only this goal; may be repeated.")
@click.option("--layer", "layers", multiple=True, help="Only goals of this layer.")
@click.option(
    "--flake-runs",
    type=values.COUNT,
    default=1,
    show_default=True,
    help="How often each goal of tier 0 runs.",
)
@click.option("--quarantine", type=values.FILE, help="A TOML file of excused goals.")
@click.option(
    "--baseline",
    type=values.PATH,
    help="A gates.json to compare times with; default: the one that ships.",
)
@click.option(
    "--slower",
    type=values.NumberRange(1, 1000),
    default=200.0,
    show_default=True,
    help="So many percent slower than the baseline is a regression.",
)
@click.option("--jobs", type=values.JOBS, help="Goals side by side; default: two a core.")
@click.option("--seed", type=values.SEED, help="Seed of all choices; printed when not given.")
@junit_option
@json_option
def command(chosen: Chosen, junit: Path | None, as_json: bool, **wished: Any) -> int:
    """Run acceptance goals, write the traceability matrix, and fail at a gate (exit code 5).

    Every goal is a YAML file: what an operator expects, how it is tried, what must be so and what
    must not have happened. The run directory gets matrix.md, matrix.html and gates.json.

    \b
    Examples:
      mutiny accept
      mutiny accept --layer smoke
      mutiny accept --goal G0.1 --flake-runs 50
      mutiny accept --goals ./goals --quarantine quarantine.toml
      mutiny accept init my_goal.yaml
    """
    if click.get_current_context().invoked_subcommand is not None:
        return 0
    from mutiny.cli.envelope import tell
    from mutiny.modes.accept import EXIT_CODE, Wish, programme

    def show(goal: Goal, tried: Tried) -> None:
        told = f"{tried.rule} {tried.message}".strip()
        echo_wrapped(f"{goal.id:<8} {tried.verdict:<13} {tried.seconds:6.1f}s  {told}".rstrip(), 32)

    bench = chosen.bench()
    wish = Wish(**{**wished, "seed": choose_seed(wished["seed"])})
    done = programme(bench, wish, (lambda _goal, _tried: None) if as_json else show)
    code = 0 if done.passed else EXIT_CODE
    tell_cases("mutiny accept", _cases(done, bench.target.name), junit)
    if as_json:
        own = {**done.found, "directory": str(done.directory)}
        tell("accept", code, own, target=bench.target.name, plant=chosen.plant, seed=wish.seed)
        return code
    for row in done.rows:
        if row.skipped:
            echo_wrapped(f"{row.goal.id:<8} {row.status}: {row.skipped}", 9)
    for gate in done.gates:
        echo_wrapped(f"{'passed' if gate.passed else 'FAILED'}  {gate.name}: {gate.text}", 8)
    echo(f"matrix: {done.directory}/matrix.md, matrix.html, gates.json")
    return code


def _cases(done: Done, target: str) -> list[Case]:
    """A case a goal and a gate; a goal that is excused or could not be run is skipped."""
    from mutiny.model.verdict import Verdict
    from mutiny.modes.accept import case_of
    from mutiny.report.junit import Case

    cases = [case_of(row, target) for row in done.rows]
    for gate in done.gates:
        verdict = Verdict.SUCCESS if gate.passed else Verdict.BUG
        cases.append(Case(gate.name, f"{target}: gates", verdict, 0.0, gate.text))
    return cases


@command.command("init")
@click.argument("file", type=values.FILE, default=Path("goal.yaml"))
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@json_option
def init_command(file: Path, force: bool, as_json: bool) -> int:
    """Write a commented goal to begin with."""
    from mutiny.cli.templates import write_template
    from mutiny.experiments.goals import TEMPLATE

    then = f"mutiny accept --goals {file.parent}"
    return write_template("accept init", file, TEMPLATE, then, force=force, as_json=as_json)


@command.command("drill")
@target_for("accept")
@bench_options
@click.option("--jobs", type=values.JOBS, help="Drills side by side; default: two a core.")
@click.option("--seed", type=values.SEED, help="Seed of all choices; printed when not given.")
@junit_option
@json_option
def drill_command(
    chosen: Chosen, jobs: int | None, seed: int | None, junit: Path | None, as_json: bool
) -> int:
    """Kill a run at every named moment, resume it in every way, and show moment against outcome."""

    from mutiny.cli.envelope import tell
    from mutiny.model.verdict import Verdict, worst
    from mutiny.modes.drill import run_drills

    def show(one: Drilled) -> None:
        echo(f"{one.drill.moment:<20} {one.drill.way:<22} {one.verdict} {one.rule}".rstrip())

    bench, seed = chosen.bench(), choose_seed(seed)
    slots = jobs or runs_at_once()
    found, directory = run_drills(bench, seed, slots, (lambda _: None) if as_json else show)
    code = worst(Verdict(one.verdict) for one in found).exit_code
    tell_cases("mutiny accept drill", [_drill_case(one, bench.target.name) for one in found], junit)
    if as_json:
        rows = [
            {
                "moment": one.drill.moment,
                "way": one.drill.way,
                "verdict": one.verdict,
                "rule": one.rule,
            }
            for one in found
        ]
        own = {"drills": rows, "directory": str(directory)}
        tell("accept drill", code, own, target=bench.target.name, plant=chosen.plant, seed=seed)
    else:
        echo(f"{len(found)} drills: {directory}/drill.md, drill.html")
    return code


def _drill_case(one: Drilled, target: str) -> Case:
    from mutiny.model.verdict import Verdict
    from mutiny.report.junit import Case

    name = f"{one.drill.moment}: {one.drill.way}"
    return Case(name, f"{target}: drills", Verdict(one.verdict), 0.0, one.reason, one.rule)
