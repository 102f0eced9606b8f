"""`mutiny corpus`: what failed once is kept, run first, and becomes a guard when it is mended."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mutiny.cli import values
from mutiny.cli.cases import tell_cases
from mutiny.cli.options import (
    bin_option,
    default_target,
    isolation_option,
    json_option,
    junit_option,
    known_option,
    load_sequence,
    make_bench,
    runs_option,
    seeing,
    with_known,
)
from mutiny.cli.output import echo, echo_wrapped

if TYPE_CHECKING:
    from mutiny.engine.corpus import Corpus, Entry
    from mutiny.engine.replay import Replay
    from mutiny.modes.bench import Bench
    from mutiny.modes.corpus import Kept
    from mutiny.report.junit import Case

corpus_option = click.option(
    "--corpus",
    "folder",
    type=values.FOLDER,
    default=Path("corpus"),
    show_default=True,
    help="The folder of kept replays.",
)
_OTHER = (
    click.option("--target", type=values.TARGET, help="Another target than the one in the files."),
    bin_option,
    click.option("--plant", type=values.PLANT, help="Another plant than the files'; '' for none."),
    isolation_option,
    runs_option,
)


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


@click.group("corpus")
def command() -> None:
    """Replays of what failed once: run first, and guards once they are mended.

    A corpus is a folder of replay files, to be committed beside your program, with an index
    (corpus.toml). An entry is open until it has passed so often that it was not luck; from then on it is
    a guard.

    \b
    Examples:
      mutiny corpus add chaos_runs/latest
      mutiny corpus run --target my.toml --bin ./my-program --junit corpus.xml
      mutiny corpus minimise
    """


@command.command("add")
@click.argument("run", type=values.PATH)
@click.option("--name", help="Its name; default: from the rule and the sequence.")
@click.option("--reason", default="", help="What somebody found out about it.")
@corpus_option
@json_option
def add(run: Path, name: str | None, reason: str, folder: Path, as_json: bool) -> int:
    """Keep the replay of RUN, a run directory or a replay file, in the corpus."""
    import hashlib
    import json

    from mutiny.cli.envelope import tell
    from mutiny.engine.corpus import Corpus, Entry, read_corpus
    from mutiny.engine.rundir import RunDirectory
    from mutiny.errors import UsageError

    replay = load_sequence(run, None)
    if replay.expect is None:
        raise UsageError(f"{run}: no rule was broken in it; the corpus keeps what failed")
    form = replay.as_json()
    mark = hashlib.sha256(json.dumps(form["operations"]).encode()).hexdigest()[:8]
    entry = Entry(
        name=name or f"{replay.expect.replace('.', '-')}-{mark}",
        rule=replay.expect,
        since=_today(),
        reason=reason,
    )
    problem = entry.problem()
    if problem is not None:
        raise UsageError(f"--name: {problem}")
    corpus = read_corpus(folder) if folder.is_dir() else Corpus(folder)
    if any(one.name == entry.name for one in corpus.entries):
        raise UsageError(f"{corpus.path(entry)}: is in the corpus already")
    RunDirectory(folder).write_json(corpus.path(entry), form)
    corpus.having(entry).write()
    if as_json:
        tell("corpus add", 0, {"entries": [_row(entry)], "file": str(corpus.path(entry))})
    else:
        echo_wrapped(f"{corpus.path(entry)}: {entry.rule}, {len(replay.operations)} operations")
    return 0


def _row(entry: Entry) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(entry)


def _filled(folder: Path) -> Corpus:
    """A corpus with something in it."""
    from mutiny.engine.corpus import read_corpus
    from mutiny.errors import UsageError

    corpus = read_corpus(folder)
    if not corpus.entries:
        raise UsageError(f"{folder}: the corpus is empty; `mutiny corpus add RUN` fills it")
    return corpus


def _loaded(path: Path, given: dict[str, Any]) -> tuple[Bench, Replay]:
    """A kept replay, and the bench that it runs on."""
    from mutiny.targets.kit.requirements import refuse_lacking

    replay = load_sequence(path, given["target"])
    name = given["target"] or replay.target or default_target(replay)
    plant = replay.plant if given["plant"] is None else given["plant"]
    box = given["isolation"] or replay.isolation
    refuse_lacking(f"{path.stem}", replay.operations, replay.techniques, box)
    bench = make_bench(name, given["program"], plant, "double", box, given["root"], None)
    return seeing(bench, replay), replay


def _other(function: Any) -> Any:
    for option in reversed(_OTHER):
        function = option(function)
    return function


@command.command("run")
@corpus_option
@click.option("--times", type=values.COUNT, default=1, show_default=True, help="Each so often.")
@_other
@known_option
@junit_option
@json_option
def run(
    folder: Path, times: int, known: Path | None, junit: Path | None, as_json: bool, **given: Any
) -> int:
    """Run the corpus: what failed last first, the guards at the end.

    Exit code 0 only when everything passed. An open entry that has passed often enough becomes a guard.
    """
    from mutiny.cli.envelope import tell
    from mutiny.model.verdict import Verdict, worst
    from mutiny.modes.corpus import run_corpus

    corpus = _filled(folder)
    ready = {entry.name: _loaded(corpus.path(entry), given) for entry in corpus.entries}
    benches = {name: with_known(bench, known) for name, (bench, _) in ready.items()}

    def show(kept: Kept) -> None:
        if not as_json:
            told = kept.outcome.rule or ""
            took = f"{kept.outcome.duration_s:5.1f}s"
            echo_wrapped(f"{kept.before.name:<44} {took}  {kept.word} {told}".rstrip())

    found = run_corpus(
        corpus, lambda one: (benches[one.name], ready[one.name][1]), times, _today(), show
    )
    verdict = worst(
        Verdict.SUCCESS if kept.known is not None else kept.outcome.verdict for kept in found
    )
    tell_cases("mutiny corpus", [_case(kept, benches) for kept in found], junit)
    if as_json:
        rows = [
            {
                **_row(kept.after),
                "verdict": kept.outcome.verdict.value,
                "broken": kept.outcome.rule,
                "became": kept.word,
                "directory": str(kept.outcome.directory.path),
            }
            for kept in found
        ]
        tell("corpus run", verdict.exit_code, {"entries": rows}, verdict=verdict.value)
    else:
        good = sum(not kept.outcome.verdict.stops_run for kept in found)
        echo(f"{good} of {len(found)} passed")
    return verdict.exit_code


def _case(kept: Kept, benches: dict[str, Bench]) -> Case:
    from dataclasses import replace

    from mutiny.report.junit import case_of

    target = benches[kept.before.name].target.name
    case = case_of(kept.before.name, f"{target}: corpus", kept.outcome)
    if kept.known is not None:
        return replace(case, known=kept.known.reason)
    return replace(case, reason=f"{kept.word}: {case.reason}")


@command.command("minimise")
@corpus_option
@click.option(
    "--seconds",
    type=values.SECONDS,
    default=120.0,
    show_default=True,
    help="For each entry at most so many seconds.",
)
@_other
@json_option
def minimise(folder: Path, seconds: float, as_json: bool, **given: Any) -> int:
    """Shorten what can be shortened, and drop open entries that show what a shorter one shows.

    Guards stay as they are: what they show cannot be seen any more.
    """
    from mutiny.cli.envelope import tell

    corpus = _filled(folder)
    changes = _shortened(corpus, seconds, given, say=(lambda _: None) if as_json else echo)
    if as_json:
        tell("corpus minimise", 0, {"entries": changes})
    elif not changes:
        echo("nothing can be shorter")
    return 0


def _shortened(
    corpus: Any, seconds: float, given: dict[str, Any], say: Any
) -> list[dict[str, Any]]:
    from dataclasses import replace

    from mutiny import stopping
    from mutiny.engine.causes import cause_of
    from mutiny.engine.corpus import OPEN
    from mutiny.engine.minimise import Budget
    from mutiny.engine.rundir import RunDirectory
    from mutiny.modes.bench import Assignment
    from mutiny.modes.corpus import doubles
    from mutiny.modes.shrinking import shrink

    changes: list[dict[str, Any]] = []
    seen: list[tuple[Entry, int, object]] = []
    for entry in stopping.unless_asked([one for one in corpus.entries if one.state == OPEN]):
        path = corpus.path(entry)
        bench, replay = _loaded(path, given)
        outcome = bench.run(Assignment(replay.operations, path.stem, replay.seed, repeats=True))
        if outcome.rule is not None and replay.minimised != "finished":
            scratch = RunDirectory.create(given["root"], latest=False)
            try:
                what = (bench.target, replay.operations, outcome.rule, replay.seed, scratch.path)
                found = shrink(*what, Budget(seconds=seconds), lambda _: None, shown=outcome)
            finally:
                scratch.discard()
            if found.seen is None:
                shorter = replace(replay, expect=outcome.rule, **found.told())
                RunDirectory(corpus.folder).write_json(path, shorter.as_json())
                lengths = {"from": len(replay.operations), "to": len(found.operations)}
                changes.append({"name": entry.name, **lengths})
                say(f"{entry.name}: {lengths['from']} -> {lengths['to']} operations")
                replay = shorter
        seen.append((entry, len(replay.operations), cause_of(outcome)))
    for entry, same in doubles(seen):
        corpus.path(entry).unlink()
        corpus = corpus.without(entry.name)
        changes.append({"name": entry.name, "dropped_for": same.name})
        say(f"{entry.name}: dropped, {same.name} shows the same")
    corpus.write()
    return changes
