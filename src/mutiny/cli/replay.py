"""`mutiny replay`: repeat a journal or a minimal replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from mutiny import stopping
from mutiny.cli import words
from mutiny.cli.options import DEFAULT_ROOT, make_bench, seeing

if TYPE_CHECKING:
    from mutiny.engine.replay import Replay
    from mutiny.model.verdict import Verdict


@words.command("replay")
@words.argument("file", type=words.Path(path_type=Path))
@words.option(
    "--times",
    type=words.COUNT,
    default=1,
    show_default=True,
    help="Repeat so often and count how often it fails the same way.",
)
@words.option(
    "--expect",
    complete="rules",
    metavar="RULE",
    help="Exit 0 when this rule is broken again: a reducer's predicate.",
)
@words.option("--target", complete="targets", help="Another target than the one in the file.")
@words.option("--bin", "program", metavar="PATH", help="The target's program.")
@words.option(
    "--plant", complete="plants", help="Another plant than the one in the file; '' for none."
)
@words.option("--isolation", type=words.Choice(["bwrap", "unshare", "cgroup", "subreaper"]))
@words.option(
    "--runs", "root", type=words.Path(path_type=Path, file_okay=False), default=DEFAULT_ROOT
)
@words.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(
    file: Path,
    times: int,
    expect: str | None,
    target: str | None,
    program: str | None,
    plant: str | None,
    isolation: str | None,
    root: Path,
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
    from mutiny.model.verdict import worst
    from mutiny.modes.bench import Assignment
    from mutiny.modes.scenarios import run_one

    replay = load_sequence(file, target)
    name = target or replay.target or "longboat"
    chosen = replay.plant if plant is None else plant
    box = _isolation(isolation, replay)
    bench = seeing(make_bench(name, program, chosen, "double", box, root, None), replay)
    if expect is not None:
        _check_rule(expect, bench.target.contract().rules)
    wanted = expect or replay.expect
    show = Show(quiet=as_json or times > 1)
    assignment = Assignment(
        replay.operations, file.name, replay.seed, "replay", repeats=wanted is not None
    )
    rules: Counter[str] = Counter()
    verdicts: list[Verdict] = []
    same = 0
    results = []
    for _ in stopping.unless_asked(range(times)):
        outcome = run_one(bench, assignment, show, "Replay")
        # The same failure may break several rules; which of them tells most is another question.
        again = wanted is not None and wanted in outcome.rules
        same += again
        shown = wanted if again else outcome.rule
        rules[shown or outcome.verdict.value] += 1
        verdicts.append(outcome.verdict)
        place, verdict = str(outcome.directory.path), outcome.verdict.value
        results.append({"verdict": verdict, "rule": shown, "directory": place})
        if not as_json and times > 1:
            words.echo(f"{len(results):3d}/{times}  {verdict:<14} {shown or ''}".rstrip())
    if as_json:
        told = {"file": str(file), "times": times, "expect": wanted, "same": same, "runs": results}
        words.echo_json(told)
    elif times > 1:
        words.echo(_count_line(same, len(results), wanted, rules))
    worst_code = worst(verdicts).exit_code
    if expect is not None:
        return 0 if same == times else (1 if worst_code == 0 else worst_code)
    return worst_code


def _isolation(given: str | None, replay: Replay) -> str | None:
    """The user's choice, else what the file asks for; refused when this machine cannot do it, or
    lacks a technique of one of the faults.
    """
    from mutiny.box.isolation import why_not
    from mutiny.errors import NotReproducible
    from mutiny.targets.requirements import refuse_lacking

    wanted = given or replay.isolation
    reason = why_not(wanted) if wanted else None
    if reason is not None:
        raise NotReproducible(f"this replay needs the box technique {wanted!r}: {reason}")
    refuse_lacking("this replay", replay.operations, replay.techniques, wanted)
    return wanted


def _count_line(same: int, times: int, wanted: str | None, rules: Counter[str]) -> str:
    if wanted is None:
        return ", ".join(f"{count} of {times}: {name}" for name, count in rules.most_common())
    line = f"{same} of {times} failed in the same way ({wanted})"
    others = {name: count for name, count in rules.items() if name != wanted}
    return line + (
        "; otherwise " + ", ".join(f"{c} x {n}" for n, c in others.items()) if others else ""
    )


def _check_rule(name: str, rules: object) -> None:
    from collections.abc import Mapping

    from mutiny.errors import UsageError, nearest

    assert isinstance(rules, Mapping)
    if name not in rules:
        raise UsageError(f"unknown rule {name!r}{nearest(name, list(rules))}; see `mutiny rules`")
