"""One mutant, tried as a user would try a program: scenarios, exploration, the sweep that fits.

Everything goes through the command line with default settings, except that nothing is minimised. A mutant
is found when Mutiny says so by its exit code: a bug, or no convergence. Inconclusive is not found. The
cheapest trial comes first, and the first finding ends it.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutation.reach import Reach
from mutiny.targets.registry import find_target

BUG, STUCK = 1, 4
FIRST_SCENARIOS = 8
"""So many of those that reach the line come before the sweep and exploration, the others after them."""
NEAR = 40
"""How many lines belong together, when scenarios are chosen."""
EXPLORED = 2
SWEPT_POINTS = 12
_FITTING = (
    ("preempt", re.compile(r"(?<!b)(?<!B)(lock|Lock|LOCK_)(?!ing)|O_EXCL")),
    ("fsync", re.compile(r"sync|durable", re.IGNORECASE)),
    ("torn", re.compile(r"write|truncate|tmp|temporary|rename|replace_file|unlink|os\.replace")),
    ("errno", re.compile(r"except|Error|errno|raise")),
)
_OPERATIONS = {
    "accept": "Accept",
    "add": "Add",
    "start": "Start",
    "review": "Review",
    "reject": "Reject",
    "rebase": "Rebase",
    "reset": "ResetWorker",
    "nuke": "Nuke",
    "message": "Message",
    "board": "Claim",
    "board-init": "Init",
    "board-add": "AddTask",
    "board-claim": "Claim",
    "board-start": "Start",
    "board-complete": "Complete",
    "board-fail": "Fail",
    "board-release": "Release",
    "board-recover": "Recover",
    "board-checkpoint": "Checkpoint",
    "board-restore": "Restore",
    "board-elect": "Elect",
    "board-repair": "Repair",
    "batch-init": "Init",
    "batch-plan": "Plan",
    "batch-run": "Run",
    "batch-resume": "Resume",
    "batch-clean": "Clean",
    "batch-set": "SetTaskStatus",
    "bridge-init": "Init",
    "bridge-create": "CreateChannel",
    "bridge-send": "Send",
    "spawn-register": "Register",
    "spawn-run": "Spawn",
    "spawn-stop": "Stop",
    "spawn-cleanup": "Cleanup",
    "session-start": "StartSession",
    "session-checkpoint": "Checkpoint",
    "session-restore": "Restore",
    "session-recover": "Recover",
    "session-stop": "Stop",
    "broker": "Claim",
    "crew": "AddTask",
}
"""At which operation a sweep breaks a command of longboat."""
_BEHIND = {"longboat-spawns": "Send", "longboat-session": "Checkpoint"}
"""What sets to work a program that stays behind its command: a supervisor, an agent."""


@dataclass(frozen=True)
class Finding:
    """What found a mutant, and how long that took; `by` is empty for a survivor."""

    by: str
    rule: str
    seconds: float
    tried: str = ""


@dataclass(frozen=True)
class Trial:
    """One command of a user."""

    title: str
    words: tuple[str, ...]


def try_mutant(
    mutiny: Path,
    program: Path,
    runs: Path,
    lines: Sequence[str],
    reached: Mapping[str, Sequence[Reach]],
    changed: str,
    seconds: float,
    seed: int,
    healthy: Path,
) -> Finding:
    """Run what reaches the changed line (or those that use what it names) until something is found or the
    time is over.

    What is found in the healthy program, too, by the same trial and rule, is no finding.
    """
    started = time.monotonic()
    tried: list[str] = []
    for trial in trials_of(lines, reached, changed, seed):
        left = seconds - (time.monotonic() - started)
        if left <= 0:
            tried.append(f"{trial.title}: no time left")
            continue
        more = ("--bin", str(program), "--runs", str(runs), "--json")
        code, told = _run((str(mutiny), *trial.words, *more), left)
        tried.append(f"{trial.title}: {'out of time' if code is None else code}")
        if code in (BUG, STUCK):
            by, rule = _finder(trial, told, stuck=code == STUCK)
            again = _again(trial, by, told)
            more = ("--bin", str(healthy), "--runs", str(runs), "--json")
            same, told = _run((str(mutiny), *again.words, *more), seconds)
            if same in (BUG, STUCK) and _finder(again, told, stuck=same == STUCK)[1] == rule:
                tried.append(f"{rule} is found in the healthy program, too")
                continue
            return Finding(by, rule, round(time.monotonic() - started, 1), "; ".join(tried))
    return Finding("", "", round(time.monotonic() - started, 1), "; ".join(tried))


def trials_of(
    lines: Sequence[str], reached: Mapping[str, Sequence[Reach]], changed: str, seed: int
) -> Iterator[Trial]:
    """The most telling scenarios that reach the lines, the sweep that fits, exploration, the others."""
    places = [one for line in lines for one in reached[line]]
    scenarios = in_order(lines, reached, changed)
    yield from _runs(scenarios[:FIRST_SCENARIOS], seed)
    sweep = _sweep(places, changed)
    if sweep is not None:
        yield Trial(f"sweep {sweep[1]}", sweep)
    targets = list(dict.fromkeys(target for target, _ in scenarios))
    words = ("explore", "--target", targets[seed % len(targets)], "--jobs", "1", "--no-minimise")
    yield Trial("explore", (*words, "--seeds", str(EXPLORED), "--seed", str(seed)))
    for start in range(FIRST_SCENARIOS, len(scenarios), FIRST_SCENARIOS):
        yield from _runs(scenarios[start : start + FIRST_SCENARIOS], seed)


def _runs(scenarios: Sequence[tuple[str, str]], seed: int) -> Iterator[Trial]:
    """These scenarios, those of one target in one command."""
    for target in dict.fromkeys(target for target, _ in scenarios):
        named = [("--scenario", name) for where, name in scenarios if where == target]
        words = ("run", "--target", target, *(word for pair in named for word in pair))
        yield Trial("scenario", (*words, "--fail-fast", "--no-minimise", "--seed", str(seed)))


def in_order(
    lines: Sequence[str], reached: Mapping[str, Sequence[Reach]], changed: str
) -> list[tuple[str, str]]:
    """Targets and scenarios that reach one of the lines: first who adds most to what ran around, for its
    time.

    What is run: the lines near these, each by each command. A scenario whose name the change
    mentions counts three times.
    """
    costs = {
        (one.target, one.scenario): max(one.seconds, 0.5) for line in lines for one in reached[line]
    }
    around: dict[tuple[str, str], set[tuple[str, str]]] = {one: set() for one in costs}
    for near in {near for line in lines for near in _near(line, reached)}:
        for one in reached[near]:
            if (one.target, one.scenario) in around:
                around[one.target, one.scenario].add((near, one.command))
    known: set[tuple[str, str]] = set()
    ordered: list[tuple[str, str]] = []
    while around:
        worth = {
            one: (len(ran - known) + 1) * (3 if _fits(one[1], changed) else 1) / costs[one]
            for one, ran in around.items()
        }
        best = max(sorted(worth), key=lambda one: worth[one])
        known |= around.pop(best)
        ordered.append(best)
    return ordered


def _near(line: str, reached: Iterable[str]) -> list[str]:
    file, _, number = line.rpartition(":")
    return [
        one
        for one in reached
        if one.startswith(f"{file}:") and abs(int(one.rpartition(":")[2]) - int(number)) <= NEAR
    ]


def _fits(scenario: str, changed: str) -> bool:
    return any(word in changed.lower() for word in scenario.split("_") if len(word) > 3)


def _sweep(places: Sequence[Reach], changed: str) -> tuple[str, ...] | None:
    """The kind that fits the changed line, at an operation that reaches it."""
    kind = next((kind for kind, pattern in _FITTING if pattern.search(changed)), "crash")
    for place in sorted(places, key=lambda one: one.seconds):
        operation = _operation(place.command) or _BEHIND.get(place.target, "")
        if operation and operation in _types(place.target)[place.scenario]:
            where = ("--target", place.target, "--scenario", place.scenario, "--at", operation)
            more = ("--points", str(SWEPT_POINTS), "--until-bug", "--jobs", "1")
            return ("sweep", kind, *where, *more)
    return None


@functools.cache
def _types(target: str) -> dict[str, frozenset[str]]:
    """The types of the operations of each scenario of a target."""
    scenarios = find_target(target).contract().scenarios
    return {name: frozenset(one.type for one in steps) for name, steps in scenarios.items()}


def _operation(command: str) -> str:
    return _OPERATIONS.get(command) or _OPERATIONS.get(command.partition("-")[0], "")


def _run(words: Sequence[str], seconds: float) -> tuple[int | None, Any]:
    """The exit code and what was told; no code when it had to be stopped."""
    running = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    try:
        output, _ = running.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        running.terminate()
        try:
            output, _ = running.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            return None, {}
        if running.returncode not in (BUG, STUCK):
            return None, {}
    try:
        return running.returncode, json.loads(output)
    except ValueError:
        return running.returncode, {}


def _finder(trial: Trial, told: Any, *, stuck: bool) -> tuple[str, str]:
    """What found it, with the scenario's name, and the rule that it breaks."""
    runs = told.get("runs")
    for run in runs if isinstance(runs, list) else ():
        if run.get("error"):
            return f"{trial.title} {run['title']}", run["error"]["rule"] or "no convergence"
    rules = (record["rule"] for record in _records(told) if record.get("rule"))
    return trial.title, str(next(rules, "no convergence" if stuck else "bug"))


def _again(trial: Trial, by: str, told: Any) -> Trial:
    """The part of a trial that found something."""
    words = list(trial.words)
    if trial.title == "scenario":
        name = by.rpartition(" ")[2]
        start, end = words.index("--scenario"), words.index("--fail-fast")
        words[start:end] = ["--scenario", name]
    failures = told.get("failures")
    if trial.title == "explore" and isinstance(failures, list) and failures:
        words[words.index("--seeds") + 1] = "1"
        words[words.index("--seed") + 1] = str(failures[0]["seed"])
    return Trial(trial.title, tuple(words))


def _records(told: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(told, dict):
        yield told
    for value in told.values() if isinstance(told, dict) else told:
        if isinstance(value, dict | list):
            yield from _records(value)
