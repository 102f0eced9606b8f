"""For every plant and every way to find it: the minimal replay fails with it and passes without it.

To find a plant and to minimise takes a minute or two, and there are hundreds. So a replay that was proved
once is kept, in `minimal.json` if minimising came to its end and else in `shorter.json`, and later only
tried again: the plant is found, the replay fails with it and passes without it. What does not hold any more
is minimised anew, for at most `QUALITY_SECONDS`. Proofs are kept below `build/quality`, with a digest of
the sources that they are about: a suite that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from longboat.plants import BATCH_PLANTS, PLANTS, SESSION_PLANTS, SPAWN_PLANTS
from mutiny.codec import decode_operation
from mutiny.contracts.batch.scenarios import CONTAINERS
from mutiny.engine.loop import Outcome
from mutiny.engine.minimise import Budget
from mutiny.engine.replay import Tries
from mutiny.model.operation import Operation
from mutiny.modes import experiment
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.experiment_files import library, load
from mutiny.modes.shrinking import TRIES, Trials
from mutiny.modes.subject import Subject
from mutiny.modes.sweep import Sweeper, split
from mutiny.targets.registry import find_target
from plants import MINIMAL, SHORTER, known, proved_once

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "quality"
BUDGET = Budget(150, float(os.environ.get("QUALITY_SECONDS", "500")))
CHOICES = {"torn": ("short",), "errno": ("ENOSPC",)}
BOARDS: list[dict[str, Any]] = json.loads((HERE / "board_known.json").read_text(encoding="utf-8"))
PARTS = {
    "longboat-board": "A",
    "longboat-broker": "B",
    "longboat-crew": "C",
    "longboat-fleet": "C",
}
SPAWNS = "longboat-spawns"
BY_THEIR_TABLE = {
    SPAWNS: SPAWN_PLANTS,
    "longboat-batch": {
        name: plant for name, plant in BATCH_PLANTS.items() if plant.scenario not in CONTAINERS
    },
    "longboat-session": SESSION_PLANTS,
}
"""Plants whose table says what finds them; those that need a container engine have tests of their own."""


@dataclass(frozen=True)
class Case:
    """One plant and one way to find it."""

    target: str
    plant: str
    finder: str
    """`scenario NAME`, `sweep KIND SCENARIO AT` or `experiment NAME`."""
    rule: str = ""
    known: int | None = None
    """The known shortest length."""

    @property
    def id(self) -> str:
        return "-".join((self.target, self.plant, *self.finder.split()))


@dataclass(frozen=True)
class Row:
    """What came of a case."""

    case: Case
    rule: str | None
    length: int
    planted: tuple[int, int]
    """With the plant it failed so often, out of so many tries."""
    healthy: tuple[int, int]
    minimised: str
    seconds: float
    operations: list[str]
    replay: list[dict[str, Any]]
    """The same, as a replay file says it."""
    instead: str = ""
    """What was found where nothing was."""

    @property
    def problem(self) -> str:
        """Why this is no proof; nothing when it is one."""
        if self.rule is None:
            return f"not found: {self.instead}"
        if self.case.rule and self.rule != self.case.rule:
            return f"found {self.rule} instead of {self.case.rule}"
        if self.planted[0] == 0:
            return "never failed again"
        if self.healthy[0] > 0:
            return "fails without the plant, too"
        if self.case.known is not None and self.minimised == "finished":
            return "longer than known" if self.length > self.case.known else ""
        return ""

    @property
    def text(self) -> str:
        """One line of the table."""
        length = f"{self.length}" + ("" if self.case.known is None else f"/{self.case.known}")
        more = "" if self.minimised == "finished" else f" ({self.minimised})"
        return (
            f"{self.case.plant:<28} {self.case.target:<15} {self.case.finder:<38.38} "
            f"{self.rule or '-':<31} {length + more:<14} "
            f"{self.planted[0]} of {self.planted[1]}  {self.healthy[0]} of {self.healthy[1]}  "
            f"{self.seconds:4.0f}s  {self.problem}"
        ).rstrip()


HEAD = (
    f"{'plant':<28} {'target':<15} {'found by':<38} {'rule':<31} {'length/known':<14} "
    "with    without   time"
)


def cases() -> Iterator[Case]:
    """Every plant with everything that is said to find it."""
    for name, entry in known().items():
        length = len(entry.operations) or None
        yield Case("longboat", name, f"scenario {entry.scenario}", entry.in_scenario, length)
    for plant in PLANTS.values():
        if plant.sweep and not plant.boards and not plant.part:
            yield Case("longboat", plant.name, f"sweep {plant.sweep}")
    for one in BOARDS:
        finder = f"scenario {one['scenario']}"
        if "sweep" in one:
            finder = f"sweep {one['sweep']} {one['scenario']} {one['at']}"
        yield Case(one["target"], one["plant"], finder, one["rule"], one.get("length"))
    for target, plants in BY_THEIR_TABLE.items():
        for name, plant in plants.items():
            finder = f"sweep {plant.sweep}" if plant.sweep else f"scenario {plant.scenario}"
            yield Case(target, name, finder, plant.rule)
    for name, path in library().items():
        loaded = load(path)
        for target in loaded.targets:
            for plant_name in loaded.finds:
                if _fits(plant_name, target):
                    yield Case(target, plant_name, f"experiment {name}")


def _fits(plant: str, target: str) -> bool:
    boards = PLANTS[plant].boards
    if target == SPAWNS:
        return plant in SPAWN_PLANTS
    return PARTS[target] in boards if target in PARTS else not (boards or PLANTS[plant].part)


@cache
def digest() -> str:
    """What the proofs are about: the sources, and what is known."""
    found = hashlib.sha256()
    for path in sorted((*ROOT.glob("src/**/*"), HERE / "known.json", HERE / "board_known.json")):
        if path.suffix in (".py", ".toml", ".yaml", ".json", ".c"):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def kept(case: Case) -> Row | None:
    """The proof of an earlier run, if it was about the same sources."""
    path = KEPT / f"{case.id}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.pop("digest") != digest():
        return None
    data["case"] = case
    return Row(**{**data, "planted": tuple(data["planted"]), "healthy": tuple(data["healthy"])})


def keep(row: Row) -> None:
    """Write a proof down, whole or not at all."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"{row.case.id}.json"
    temporary = path.with_suffix(".tmp")
    document = {"digest": digest(), **asdict(row)}
    temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def prove(case: Case) -> Row:
    """From the plant to a minimal replay that shows it, and it alone."""
    done = kept(case)
    if done is not None and not done.problem:
        return done
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutiny-quality-") as scratch:
        again = _tried_again(case, Path(scratch))
        row = _minimised(case, Path(scratch)) if again is None or again.problem else again
    row = replace(row, seconds=time.monotonic() - started)
    keep(row)
    return row


def keep_replays(rows: Iterable[Row]) -> None:
    """What was proved is only tried again from now on."""
    fresh = [row for row in rows if not row.problem and row.minimised != "kept"]
    done = {row.case.id: row.replay for row in fresh if row.minimised == "finished"}
    begun = {row.case.id: row.replay for row in fresh if row.minimised != "finished"}
    minimal = {**proved_once(MINIMAL), **done}
    shorter = {**proved_once(SHORTER), **begun}
    _write(MINIMAL, minimal)
    _write(SHORTER, {name: one for name, one in shorter.items() if name not in minimal})


def _write(path: Path, replays: Mapping[str, list[dict[str, Any]]]) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(replays.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _found(case: Case, scratch: Path, budget: Budget | None) -> tuple[Outcome, Subject]:
    """Run what is said to find the plant."""
    kind, *words = case.finder.split()
    bench = Bench(find_target(case.target, plant=case.plant), scratch / "runs", budget)
    return FINDERS[kind](bench, words)


def _tried_again(case: Case, scratch: Path) -> Row | None:
    """Is it found, and does the replay that is kept still show it, and nothing else?"""
    replay = proved_once(MINIMAL).get(case.id) or proved_once(SHORTER).get(case.id)
    if replay is None:
        return None
    outcome, subject = _found(case, scratch, None)
    trials = Trials(subject, 1, scratch / "trials")
    known = subject.contract().operations
    operations = tuple(decode_operation(one, known, where=case.id) for one in replay)
    planted = trials.rate(operations, lambda tried: tried.rule == outcome.rule, TRIES)
    healthy = [trials.without_plant(operations) for _ in range(TRIES)]
    return _row(case, outcome, operations, planted, healthy, "kept")


def _minimised(case: Case, scratch: Path) -> Row:
    """Find it, minimise, and try the result with the plant and without it."""
    outcome, subject = _found(case, scratch, BUDGET)
    replay = outcome.replay
    if replay is None or replay.reproduced is None:
        return Row(case, None, 0, (0, 0), (0, 0), "no", 0.0, [], [], outcome.reason)
    trials = Trials(subject, 1, scratch / "trials")
    rates: list[Tries | None] = [replay.without_plant] if replay.without_plant else []
    rates += [trials.without_plant(replay.operations) for _ in range(TRIES - len(rates))]
    done = replay.minimised or "no"
    return _row(case, outcome, replay.operations, replay.reproduced, rates, done)


def _row(
    case: Case,
    outcome: Outcome,
    operations: tuple[Operation, ...],
    planted: Tries,
    rates: Iterable[Tries | None],
    minimised: str,
) -> Row:
    healthy = [rate for rate in rates if rate is not None]
    return Row(
        case,
        outcome.rule,
        len(operations),
        (planted.failed, planted.tries),
        (sum(rate.failed for rate in healthy), sum(rate.tries for rate in healthy)),
        minimised,
        0.0,
        [str(operation) for operation in operations],
        [{**operation.as_json()} for operation in operations],
    )


def _by_scenario(bench: Bench, words: list[str]) -> tuple[Outcome, Subject]:
    (name,) = words
    operations = bench.target.contract().scenarios[name]
    return bench.run(Assignment(operations, name, 1)), bench.target


def _by_sweep(bench: Bench, words: list[str]) -> tuple[Outcome, Subject]:
    kind, scenario, at = words
    prefix, operation = split(bench.target.contract().scenarios[scenario], at)
    sweeper = Sweeper(bench, prefix, operation, jobs=2, until_bug=True)
    sweep = sweeper.run(kind, CHOICES.get(kind, ()), None, lambda *_: None)
    assert sweep.first_bug is not None, [(str(p.operation), p.message) for p in sweep.points]
    return sweep.first_bug, bench.target


def _by_experiment(bench: Bench, words: list[str]) -> tuple[Outcome, Subject]:
    (name,) = words
    loaded = load(library()[name], bench.target.name)
    ran = experiment.run(bench, loaded, 1)
    return ran.outcome, experiment.instrumented(bench).target


FINDERS: dict[str, Callable[[Bench, list[str]], tuple[Outcome, Subject]]] = {
    "scenario": _by_scenario,
    "sweep": _by_sweep,
    "experiment": _by_experiment,
}
