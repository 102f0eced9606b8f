"""For every plant and every way to find it: the minimal replay fails with it and passes without it.

A proof takes a minute or two and there are hundreds, so each is kept below `build/quality`, with a
digest of the sources that it is about: a suite that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from longboat.plants import PLANTS, SPAWN_PLANTS
from mutiny.engine.loop import Outcome
from mutiny.engine.minimise import Budget
from mutiny.engine.replay import Tries
from mutiny.modes import experiment
from mutiny.modes.bench import Assignment, Bench
from mutiny.modes.experiment_files import library, load
from mutiny.modes.shrinking import TRIES, Trials
from mutiny.modes.subject import Subject
from mutiny.modes.sweep import Sweeper, split
from mutiny.targets.registry import find_target
from plants import known

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "build" / "quality"
BUDGET = Budget(150, 500.0)
CHOICES = {"torn": ("short",), "errno": ("ENOSPC",)}
BOARDS: list[dict[str, Any]] = json.loads((HERE / "board_known.json").read_text(encoding="utf-8"))
PARTS = {
    "longboat-board": "A",
    "longboat-broker": "B",
    "longboat-crew": "C",
    "longboat-fleet": "C",
}
SPAWNS = "longboat-spawns"


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
        length = len(entry.operations)
        yield Case("longboat", name, f"scenario {entry.scenario}", entry.rule, length)
    for plant in PLANTS.values():
        if plant.sweep and not plant.boards and not plant.part:
            yield Case("longboat", plant.name, f"sweep {plant.sweep}")
    for one in BOARDS:
        finder = f"scenario {one['scenario']}"
        if "sweep" in one:
            finder = f"sweep {one['sweep']} {one['scenario']} {one['at']}"
        yield Case(one["target"], one["plant"], finder, one["rule"], one.get("length"))
    for name, plant in SPAWN_PLANTS.items():
        finder = f"sweep {plant.sweep}" if plant.sweep else f"scenario {plant.scenario}"
        yield Case(SPAWNS, name, finder, plant.rule)
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
    """Find the plant, minimise, and try the result with the plant and without it."""
    done = kept(case)
    if done is not None and not done.problem:
        return done
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutiny-quality-") as scratch:
        row = _prove(case, Path(scratch))
    row = replace(row, seconds=time.monotonic() - started)
    keep(row)
    return row


def _prove(case: Case, scratch: Path) -> Row:
    kind, *words = case.finder.split()
    target = find_target(case.target, plant=case.plant)
    bench = Bench(target, scratch / "runs", BUDGET)
    outcome, subject = FINDERS[kind](bench, words)
    replay = outcome.replay
    if replay is None or replay.reproduced is None:
        return Row(case, None, 0, (0, 0), (0, 0), "no", 0.0, [], outcome.reason)
    trials = Trials(subject, 1, scratch / "trials")
    rates: list[Tries | None] = [replay.without_plant] if replay.without_plant else []
    rates += [trials.without_plant(replay.operations) for _ in range(TRIES - len(rates))]
    healthy = [rate for rate in rates if isinstance(rate, Tries)]
    return Row(
        case,
        outcome.rule,
        len(replay.operations),
        (replay.reproduced.failed, replay.reproduced.tries),
        (sum(rate.failed for rate in healthy), sum(rate.tries for rate in healthy)),
        replay.minimised or "no",
        0.0,
        [str(operation) for operation in replay.operations],
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
