"""Print how long a trivial experiment takes from command to verdict, beside Chaos Toolkit's `chaos run`.

    python -m venv /tmp/ct && /tmp/ct/bin/pip install chaostoolkit
    MUTINY_CHAOS_TOOLKIT=/tmp/ct/bin/chaos python benchmarks/experiment_start.py

Insight: both run the same file, by turns, so that whatever else the machine does hits both alike; the
figure is the median of the rounds' ratios. Both run from compiled byte code, as an installation leaves
it. Mutiny's time includes the walls of a box, which the other tool does not build. The line between is
an experiment of Mutiny's own form, whose target it installs, starts and judges; it has no counterpart.
"""

from __future__ import annotations

import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mutiny as mutiny_package

ROUNDS = 30
LIMIT = 0.6
VARIABLE = "MUTINY_CHAOS_TOOLKIT"
PROBE = {
    "type": "probe",
    "name": "true-is-true",
    "tolerance": 0,
    "provider": {"type": "process", "path": "true"},
}
ACTION = {"type": "action", "name": "nothing", "provider": {"type": "process", "path": "true"}}
EXPERIMENT = {
    "version": "1.0.0",
    "title": "Trivial",
    "description": "One probe before and after, one action.",
    "steady-state-hypothesis": {"title": "The shell works", "probes": [PROBE]},
    "method": [ACTION],
    "rollbacks": [],
}

NATIVE = """\
experiment:
  name: Trivial
  steady_state: ["Everything settles"]
  setup: [init, up, {spawn_worker: {id: idle, behavior: healthy}}]
  method: [{kill_worker: idle}]
  blast_radius: one worker
  target: longboat-board
  probe: none
"""


def environment() -> dict[str, str]:
    """Ours, in which Python may keep its byte code."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def measure(argv: list[str], directory: str) -> tuple[float, float]:
    """Seconds on the wall and on the processor of one command that must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(argv, cwd=directory, env=environment(), check=True, capture_output=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def by_turns(
    commands: dict[str, list[str]], directory: str
) -> dict[str, list[tuple[float, float]]]:
    """Figures of some commands, one of each a round."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(ROUNDS + 1):
        for name, argv in commands.items():
            if argv[0]:
                value = measure(argv, directory)
                if number > 0:  # the first round fills caches
                    figures[name].append(value)
    return figures


def shown(name: str, values: list[tuple[float, float]]) -> None:
    wall = statistics.median(value[0] for value in values)
    used = statistics.median(value[1] for value in values)
    best = min(value[0] for value in values)
    print(
        f"{name:<14} median {wall * 1000:7.0f} ms   best {best * 1000:7.0f} ms   cpu {used * 1000:6.0f} ms"
    )


def main() -> None:
    for module in mutiny_package.__path__:
        compileall.compile_dir(module, quiet=2)
    mutiny = str(Path(sys.executable).parent / "mutiny")
    foreign = os.environ.get(VARIABLE)
    with tempfile.TemporaryDirectory(prefix="mutiny-benchmark-") as directory:
        Path(directory, "trivial.json").write_text(json.dumps(EXPERIMENT))
        Path(directory, "native.yaml").write_text(NATIVE)
        ours = [mutiny, "experiment", "run", "trivial.json"]
        theirs = [foreign or "", "run", "trivial.json"]
        native = [mutiny, "experiment", "run", "native.yaml"]
        figures = by_turns({"mutiny": ours, "chaos toolkit": theirs}, directory)
        figures |= by_turns({"with a target": native}, directory)
    shown("mutiny", figures["mutiny"])
    shown("with a target", figures["with a target"])
    if not foreign:
        print(f"set {VARIABLE} to the path of `chaos` for the comparison")
        return
    shown("chaos toolkit", figures["chaos toolkit"])
    pairs = list(zip(figures["mutiny"], figures["chaos toolkit"], strict=True))
    for number, what in enumerate(("time", "cpu")):
        low, ratio, high = statistics.quantiles(
            mine[number] / theirs[number] for mine, theirs in pairs
        )
        word = "met" if ratio <= LIMIT else "not met"
        print(
            f"ratio of {what} {ratio:.2f}, half of the {ROUNDS} rounds between {low:.2f} and {high:.2f} "
            f"(limit {LIMIT:.2f}: {word})"
        )


if __name__ == "__main__":
    main()
