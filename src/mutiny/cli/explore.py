"""`mutiny explore`: sequences that the model allows, with faults mixed in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
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
from mutiny.cli.output import echo, echo_wrapped
from mutiny.system.machine import runs_at_once

if TYPE_CHECKING:
    from mutiny.engine.progress import Progress
    from mutiny.modes.bench import Bench
    from mutiny.modes.explore import Exploration


@click.command("explore")
@target_options
@click.option(
    "--contract",
    type=values.CONTRACT,
    help="Which contract to explore, on its own default target; default: the target's.",
)
@click.option("--seed", type=values.SEED, help="The first seed; printed when not given.")
@click.option(
    "--seeds",
    type=values.COUNT,
    default=1,
    show_default=True,
    help="How many seeds, one sequence each.",
)
@click.option(
    "--ops",
    type=click.IntRange(1, 10_000),
    default=30,
    show_default=True,
    help="Operations a sequence, before the recovery phase.",
)
@click.option(
    "--minutes", type=values.MINUTES, help="Stop starting new sequences after so many minutes."
)
@click.option("--jobs", type=values.JOBS, help="Sequences side by side; default: two a core.")
@click.option("--keep-going", is_flag=True, help="Do not stop at the first failure.")
@click.option(
    "--print", "only_print", is_flag=True, help="Show the sequence of the first seed; run nothing."
)
@click.option("--coverage/--no-coverage", default=True, help="Print what was covered.")
@known_option
@junit_option
@json_option
@minimise_options
def command(
    chosen: Chosen,
    contract: str | None,
    seed: int | None,
    seeds: int,
    ops: int,
    minutes: float | None,
    jobs: int | None,
    keep_going: bool,
    only_print: bool,
    coverage: bool,
    known: Path | None,
    junit: Path | None,
    as_json: bool,
    shrinking: Shrinking,
) -> int:
    """Run sequences that the model allows now, weighted, with faults mixed in.

    A sequence is a function of its seed alone: the same seed gives the same operations everywhere.
    Chaos comes first, then recovery: no fault is left, and everything that is due must happen by
    its deadline.

    \b
    Examples:
      mutiny explore --contract session --seed 7
      mutiny explore --seeds 200 --ops 30 --keep-going
      mutiny explore --seed 7 --print
    """
    from mutiny.cli.envelope import tell_tried
    from mutiny.contracts.catalogue import contract_named
    from mutiny.errors import UsageError

    source = click.get_current_context().get_parameter_source("target")
    if contract is not None and source is ParameterSource.DEFAULT:
        chosen = replace(chosen, target=contract_named(contract).default_target)
    bench = with_known(chosen.bench(budget=shrinking.budget()), known)
    own = bench.target.spec.contract
    if contract is not None and own != contract:
        raise UsageError(
            f"target {chosen.target!r} implements {own!r}, not {contract!r}; "
            "`mutiny target list` tells the contract of each target"
        )
    first = choose_seed(seed)
    if only_print:
        return _print(bench, first, ops, as_json=as_json)
    if seeds == 1 and not as_json and junit is None:
        return _single(bench, first, ops, coverage)
    limit_s = minutes * 60 if minutes else None
    count = jobs or runs_at_once()
    result = _explored(bench, range(first, first + seeds), ops, count, limit_s, keep_going, as_json)
    tell_cases("mutiny explore", result.cases, junit)
    if as_json:
        tell_tried("explore", bench, result.verdict, result.as_json(), first)
    else:
        _tell(result, first, coverage)
    return result.verdict.exit_code


def _explored(
    bench: Bench,
    seeds: range,
    ops: int,
    jobs: int,
    limit_s: float | None,
    keep_going: bool,
    quiet: bool,
) -> Exploration:
    """Explore, and tell how far it is: on the terminal, and in a directory of its own."""
    from mutiny.cli.progress import ProgressLine
    from mutiny.modes.explore import explore
    from mutiny.modes.series import series

    title = f"{len(seeds)} seeds from {seeds.start}"
    with (
        ProgressLine("Exploring", len(seeds), quiet=quiet, limit_s=limit_s) as line,
        series(bench, "explorations", "exploration", title, "sequences", seeds.start) as progress,
    ):

        def watch(so_far: Exploration) -> None:
            note = f"{so_far.operations} operations, {len(so_far.failures)} not passed"
            line.update(so_far.sequences, note)
            progress.tell(so_far.sequences, len(seeds), note, so_far.verdicts)

        result = explore(
            bench,
            seeds,
            ops,
            jobs=jobs,
            deadline_s=limit_s,
            keep_going=keep_going,
            watch=watch,
        )
        _keep(result, len(seeds), progress)
    return result


def _keep(result: Exploration, seeds: int, progress: Progress) -> None:
    """What was covered and found, as JSON in the directory of the exploration."""
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.series import word_of

    directory = RunDirectory(progress.directory)
    directory.write_json(directory.path / "exploration.json", result.as_json())
    note = f"{result.operations} operations, {len(result.failures)} not passed"
    progress.tell(result.sequences, seeds, note, result.verdicts, verdict=word_of(result.verdict))


def _tell(result: Exploration, first: int, coverage: bool) -> None:
    """What many seeds gave together."""
    from mutiny.cli.show import told
    from mutiny.modes.explore import FAULTS_COLUMN, coverage_table

    for number, outcome in result.failures:
        if outcome.rule is None:  # the others are named by their causes
            echo_wrapped(f"seed {number}: {outcome.verdict.value}: {outcome.reason}")
    for text in told(result.causes, result.known):
        echo_wrapped(text)
    if coverage:
        for line in coverage_table(result.coverage):
            echo_wrapped(line, FAULTS_COLUMN)
    counts = ", ".join(f"{count} {name}" for name, count in sorted(result.verdicts.items()))
    echo_wrapped(
        f"{result.sequences} runs from seed {first}, {result.operations} operations: {counts}"
    )


def _print(bench: Bench, seed: int, ops: int, *, as_json: bool) -> int:
    """The sequence of a seed, without running it."""
    sequence = bench.target.contract().generate(seed, ops)
    if as_json:
        from mutiny.cli.envelope import tell

        own = {"operations": [operation.as_json() for operation in sequence]}
        tell("explore", 0, own, target=bench.target.name, seed=seed)
    else:
        for operation in sequence:
            echo(str(operation))
    return 0


def _single(bench: Bench, seed: int, ops: int, coverage: bool) -> int:
    """One seed is shown step by step, like a scenario."""
    from mutiny.cli.show import Show
    from mutiny.modes.bench import Assignment
    from mutiny.modes.explore import FAULTS_COLUMN, cells, coverage_table
    from mutiny.modes.scenarios import run_one

    sequence = bench.target.contract().generate(seed, ops)
    show = Show(quiet=False)
    outcome = run_one(
        bench, Assignment(sequence, f"explore seed {seed}", seed, "explore"), show, "Exploration"
    )
    from mutiny.report.junit import case_of

    tell_cases("mutiny explore", [case_of(f"seed {seed}", bench.target.name, outcome)], None)
    if coverage:
        from collections import Counter

        for line in coverage_table(Counter(cells(outcome.steps))):
            show.prose(line, FAULTS_COLUMN)
    return outcome.verdict.exit_code
