"""`mutiny replay`: repeat a journal or a minimal replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mutiny import stopping
from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    bin_option,
    default_target,
    isolation_option,
    json_option,
    junit_option,
    make_bench,
    runs_option,
    seeing,
)
from mutiny.cli.output import echo

if TYPE_CHECKING:
    from mutiny.engine.loop import Outcome
    from mutiny.engine.replay import Replay
    from mutiny.model.verdict import Verdict
    from mutiny.report.junit import Case


@click.command("replay")
@click.argument("file", type=values.PATH)
@click.option(
    "--times",
    type=values.COUNT,
    default=1,
    show_default=True,
    help="Repeat so often and count how often it fails the same way.",
)
@click.option(
    "--expect",
    type=values.RULE,
    metavar="RULE",
    help="Exit 0 when this rule is broken again: a reducer's predicate.",
)
@click.option("--target", type=values.TARGET, help="Another target than the one in the file.")
@bin_option
@click.option(
    "--plant", type=values.PLANT, help="Another plant than the one in the file; '' for none."
)
@isolation_option
@runs_option
@junit_option
@json_option
def command(
    file: Path,
    times: int,
    expect: str | None,
    target: str | None,
    program: str | None,
    plant: str | None,
    isolation: str | None,
    root: Path,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Repeat FILE step by step: operations.jsonl, minimal_replay.json, a list of operations, or a
    run directory.

    \b
    Examples:
      mutiny replay chaos_runs/latest/minimal_replay.json
      mutiny replay chaos_runs/latest --times 10
      mutiny replay bug.json --expect workers.nothing_lost && echo "still broken"
    """
    from mutiny.cli.options import load_sequence
    from mutiny.cli.show import Show
    from mutiny.kit.rules import canonical
    from mutiny.modes.bench import Assignment
    from mutiny.modes.scenarios import run_one

    replay = load_sequence(file, target)
    name = target or replay.target or default_target(replay)
    chosen = replay.plant if plant is None else plant
    box = _isolation(isolation, replay)
    bench = seeing(make_bench(name, program, chosen, "double", box, root, None), replay)
    if expect is not None:
        expect = canonical(expect)
        _check_rule(expect, bench.target.contract().rules)
    wanted = expect or replay.expect
    show = Show(quiet=as_json or times > 1)
    assignment = Assignment(
        replay.operations, file.name, replay.seed, "replay", repeats=wanted is not None
    )
    tally = Tally(wanted, times)
    for _ in stopping.unless_asked(range(times)):
        tally.add(run_one(bench, assignment, show, "Replay"))
        if not as_json and times > 1:
            echo(tally.last_line())
    code = tally.exit_code(strict=expect is not None)
    tell_cases("mutiny replay", tally.cases(file.name, bench.target.name, expect), junit)
    if as_json:
        from mutiny.cli.envelope import tell

        about = {"target": bench.target.name, "plant": chosen, "seed": replay.seed}
        tell("replay", code, {"file": str(file), **about, **tally.as_json()})
    elif times > 1:
        echo(tally.count_line())
    return code


def _isolation(given: str | None, replay: Replay) -> str | None:
    """The user's choice, else what the file asks for; refused when this machine cannot do it, or
    lacks a technique of one of the faults.
    """
    from mutiny.box.isolation import why_not
    from mutiny.errors import NotReproducible
    from mutiny.targets.kit.requirements import refuse_lacking

    wanted = given or replay.isolation
    reason = why_not(wanted) if wanted else None
    if reason is not None:
        raise NotReproducible(f"this replay needs the box technique {wanted!r}: {reason}")
    refuse_lacking("this replay", replay.operations, replay.techniques, wanted)
    return wanted


def _check_rule(name: str, rules: object) -> None:
    from collections.abc import Mapping

    from mutiny.errors import UsageError, nearest

    assert isinstance(rules, Mapping)
    if name not in rules:
        raise UsageError(f"unknown rule {name!r}{nearest(name, list(rules))}; see `mutiny rules`")


class Tally:
    """What many repetitions of one sequence gave."""

    def __init__(self, wanted: str | None, times: int) -> None:
        self._wanted, self._times = wanted, times
        self._rules: Counter[str] = Counter()
        self._verdicts: list[Verdict] = []
        self._runs: list[dict[str, str | None]] = []
        self._outcomes: list[Outcome] = []
        self.same = 0

    def add(self, outcome: Outcome) -> None:
        """The same failure may break several rules; which of them tells most is another question."""
        again = self._wanted is not None and self._wanted in outcome.rules
        self.same += again
        shown = self._wanted if again else outcome.rule
        self._rules[shown or outcome.verdict.value] += 1
        self._verdicts.append(outcome.verdict)
        self._outcomes.append(outcome)
        place = str(outcome.directory.path)
        self._runs.append({"verdict": outcome.verdict.value, "rule": shown, "directory": place})

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        from mutiny.model.verdict import worst

        return worst(self._verdicts)

    def exit_code(self, *, strict: bool) -> int:
        """`strict`: 0 means that the wanted rule was broken every time."""
        code = self.verdict.exit_code
        if not strict:
            return code
        return 0 if self.same == self._times else code or 1

    def cases(self, name: str, target: str, expect: str | None) -> list[Case]:
        """A case a repetition; where a rule is to be broken again, that is what passes."""
        from dataclasses import replace

        from mutiny.model.verdict import Verdict
        from mutiny.report.junit import case_of

        cases = []
        for number, outcome in enumerate(self._outcomes, 1):
            case = case_of(f"{name} {number}", target, outcome)
            if expect is not None and expect in outcome.rules:
                case = replace(case, verdict=Verdict.SUCCESS)
            elif expect is not None and not outcome.verdict.stops_run:
                told = f"{expect} was not broken again"
                case = replace(case, verdict=Verdict.BUG, rule=expect, reason=told)
            cases.append(case)
        return cases

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "verdict": self.verdict.value,
            "times": self._times,
            "expect": self._wanted,
            "same": self.same,
            "runs": self._runs,
        }

    def last_line(self) -> str:
        run = self._runs[-1]
        line = f"{len(self._runs):3d}/{self._times}  {run['verdict']:<14} {run['rule'] or ''}"
        return line.rstrip()

    def count_line(self) -> str:
        """How often it failed, and how."""
        wanted, times = self._wanted, len(self._runs)
        if wanted is None:
            counted = self._rules.most_common()
            return ", ".join(f"{count} of {times}: {name}" for name, count in counted)
        others = ", ".join(f"{c} x {n}" for n, c in self._rules.items() if n != wanted)
        line = f"{self.same} of {times} failed in the same way ({wanted})"
        return f"{line}; otherwise {others}" if others else line
