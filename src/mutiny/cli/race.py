"""`mutiny race`: commands that compete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    Chosen,
    bench_options,
    json_option,
    junit_option,
    known_option,
    target_for,
    with_known,
)
from mutiny.cli.output import echo, echo_wrapped

if TYPE_CHECKING:
    from mutiny.modes.race import Race, Tried
    from mutiny.report.junit import Case

KINDS = ("claims", "update", "lock", "toctou")


@click.command("race")
@target_for("race", "A board's name")
@bench_options
@click.option(
    "--kind", "kinds", multiple=True, type=values.Choice(KINDS), help="Default: all of them."
)
@click.option(
    "--rounds",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="Rounds of each kind after the exhaustive part; 0: none.",
)
@click.option(
    "--workers",
    type=click.IntRange(2, 4),
    default=2,
    show_default=True,
    help="How many claim one task at once.",
)
@click.option(
    "--schedules", type=values.COUNT, help="At most so many orders of each. Default: all."
)
@known_option
@junit_option
@json_option
def command(
    chosen: Chosen,
    kinds: tuple[str, ...],
    rounds: int,
    workers: int,
    schedules: int | None,
    known: Path | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Let commands compete on one board.

    \b
      claims   several claims of one task from a barrier
      update   two changes at once: none of them may be lost
      lock     a change while somebody holds the lock waits or says busy
      toctou   cancel against claim, restore against complete

    First every order of the commands' file operations with at most two preemptions, orders that are
    the same left out; then rounds, with the rate of a bug that they leave possible. The first bug that
    is not known ends the race; it has a report and a replay.

    \b
    Examples:
      mutiny race
      mutiny race --plant board-without-lock --kind claims
      mutiny race --target longboat-broker --rounds 100
    """
    from mutiny.cli.progress import ProgressLine
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.race import Racer
    from mutiny.modes.series import series, word_of
    from mutiny.modes.subject import ability

    bench = with_known(chosen.bench(), known)
    ability(bench.target, "race")  # else it is refused here, before anything is written
    if not as_json:
        echo(_title(chosen))
    with (
        ProgressLine("", 1, quiet=as_json) as line,
        series(bench, "races", "race", f"race on {chosen.target}", "orders") as progress,
    ):

        def watch(title: str, done: int, total: int, note: str) -> None:
            progress.tell(done, total, f"{title} {note}".strip())
            line.anew(title, total)
            line.is_open = note == "schedules"  # an order that is tried shows more of them
            line.update(done, note)

        def told(part: Tried) -> None:
            if not as_json:
                line.done()
                _show(part)

        racer = Racer(bench, rounds, workers, schedules, watch, told)
        race = racer.run(kinds or KINDS)
        RunDirectory(progress.directory).write_json(
            progress.directory / "race.json", race.as_json()
        )
        failed = sum(one.verdict.stops_run and not one.known for one in race.parts)
        note = f"{len(race.parts)} parts, {failed} not passed"
        progress.tell(len(race.parts), len(race.parts), note, verdict=word_of(race.verdict))
    tell_cases("mutiny race", _cases(race), junit)
    if as_json:
        from mutiny.cli.envelope import tell_tried

        tell_tried("race", bench, race.verdict, race.as_json())
    else:
        _print(race)
    return race.verdict.exit_code


def _cases(race: Race) -> list[Case]:
    """A case a part; what could not be tried is skipped."""
    from mutiny.engine.rundir import RunDirectory
    from mutiny.report.junit import Case, read_on, skipped

    done = [
        Case(
            f"{part.kind} {part.what} ({part.how})",
            race.target,
            part.verdict,
            part.seconds,
            part.message or part.verdict.value,
            part.rule or "",
            read_on(RunDirectory(Path(part.directory))) if part.directory else "",
            part.known,
        )
        for part in race.parts
    ]
    return [*done, *skipped(race.not_applicable, race.target)]


def _title(chosen: Chosen) -> str:
    planted = f" (planted: {chosen.plant})" if chosen.plant else ""
    return f"Race on {chosen.target}{planted}"


def _show(part: Tried) -> None:
    echo(f"  {part.kind:<7} {part.what:<42} {_outcome(part)}")
    if part.verdict.stops_run:
        echo_wrapped(f"          {part.rule or ''} {part.message}".rstrip(), 10)


def _print(race: Race) -> None:
    """What could not be tried, what is known, and where the first trouble is written down."""
    from mutiny.engine.known import known_told

    for part, why in race.not_applicable.items():
        echo_wrapped(f"  Not tried ({part}): {why}.")
    from mutiny.model.verdict import first_of_worst

    for line in known_told(race.known):
        echo_wrapped(line)
    new = [part for part in race.parts if not part.known]
    bad = first_of_worst(new, lambda part: part.verdict)
    if bad is not None and bad.directory:
        echo(f"Report: {bad.directory}/error_report.md")
        if bad.verdict.is_bug:
            echo(f"Replay: {bad.directory}/minimal_replay.json")


def _outcome(part: Tried) -> str:
    word = part.verdict.value if part.verdict.stops_run else "clean"
    if part.known:
        word = f"known ({part.known})"
    elif part.met and word == "clean":
        word = f"{len(part.met)} known, otherwise clean"
    if part.how == "exhaustive":
        if part.verdict.is_bug:
            return f"{word} at schedule {part.count}"
        whole = "are all of them" if part.complete else "tried, not all"
        return f"{part.count} schedules {whole}: {word}"
    if part.how == "held lock":
        return f"{part.count} commands: {word}"
    if part.rate_at_most is None:
        return f"{part.count} rounds: {word}"
    return f"0 of {part.count} rounds: {word}, at most {part.rate_at_most:.2%} at 95 %"
