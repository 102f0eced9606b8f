"""Print for each plant that needs a sweep: how soon its sweep finds it, and how often random kills do.

Insight: the comparison is only fair when both get the same scenario, the same recovery and the same
judge, so that a random kill is an ordinary operation, too (`KillDuring`): everything dies at a random
moment of the command. A race gets what it would get without schedules: the commands at once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from longboat.plants import PLANTS
from mutiny.engine.rundir import RunDirectory
from mutiny.kit.operations import KillDuring, Parallel
from mutiny.modes.bench import Bench
from mutiny.modes.sweep import Sweeper, split
from mutiny.seeds import stream
from mutiny.targets.registry import find_target

CHOICES = {"torn": ("short",), "errno": ("ENOSPC",)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("plants", nargs="*")
    given = parser.parse_args()
    print(f"{'plant':26} {'sweep':8} {'points':>7} {'seconds':>8}   random kills that show it")
    for plant in PLANTS.values():
        if not plant.sweep or (given.plants and plant.name not in given.plants):
            continue
        with tempfile.TemporaryDirectory(prefix="mutiny-plants-") as place:
            measure(plant.name, plant.sweep, given.kills, given.jobs, Path(place))


def measure(name: str, sweep: str, kills: int, jobs: int, place: Path) -> None:
    kind, scenario, at = sweep.split()
    bench = Bench(find_target("longboat", plant=name), place)
    prefix, operation = split(bench.target.contract().scenarios[scenario], at)
    sweeper = Sweeper(bench, prefix, operation, jobs=jobs, until_bug=True)
    started = time.monotonic()
    found = sweeper.run(kind, CHOICES.get(kind, ()), None, lambda *_: None)
    seconds = time.monotonic() - started
    points = len(found.points) if found.verdict.is_bug else 0
    print(f"{name:26} {kind:8} {points:7d} {seconds:8.1f}", end="   ", flush=True)
    directory = RunDirectory.create(place / "whole", latest=False)
    whole = bench.try_once((*prefix, operation), 1, directory).steps[-1].result
    chance = stream(1, f"kills/{name}")
    moments = [round(chance.uniform(0, whole.duration_ms), 1) for _ in range(kills)]
    race = kind == "preempt"
    raced = operation if isinstance(operation, Parallel) else Parallel((operation, operation))
    recovery = bench.target.contract().recovery(operation, world_ended=not race)

    def try_once(number: int) -> bool:
        broken = raced if race else KillDuring(operation, moments[number])
        directory = RunDirectory.create(place / "kills", latest=False)
        outcome = bench.try_once((*prefix, broken, *recovery), number, directory)
        directory.discard()
        return outcome.verdict.is_bug

    with ThreadPoolExecutor(jobs) as pool:
        shown = sum(pool.map(try_once, range(kills)))
    print(f"{shown} of {kills}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
