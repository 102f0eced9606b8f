"""One mutant, tried as a user would try a program: scenarios, exploration, the sweep that fits.

Everything goes through the command line with default settings. A mutant is found when Mutiny says so by
its exit code: a bug, or no convergence. Inconclusive is not found.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.reach import Reach

BUG, STUCK = 1, 4
MOST_SCENARIOS = 10
EXPLORED = 6
SWEPT_POINTS = 24
_FITTING = (
    ("preempt", re.compile(r"lock|flock|unlock|O_EXCL")),
    ("fsync", re.compile(r"sync|durable")),
    ("torn", re.compile(r"write|truncate|tmp|temporary|rename|replace|unlink")),
    ("errno", re.compile(r"except|Error|errno|raise")),
)


@dataclass(frozen=True)
class Finding:
    """What found a mutant, and how long that took; `by` is empty for a survivor."""

    by: str
    rule: str
    seconds: float


def try_mutant(
    mutiny: Path,
    program: Path,
    scratch: Path,
    places: Sequence[Reach],
    changed: str,
    seconds: float,
    seed: int,
) -> Finding:
    """Run what reaches the changed line until something is found or the time is over."""
    started = time.monotonic()
    for title, words in _attempts(places, changed, seed):
        left = seconds - (time.monotonic() - started)
        if left <= 0:
            break
        rule = _run([str(mutiny), *words, "--bin", str(program), "--runs", str(scratch)], left)
        if rule is not None:
            return Finding(title, rule, time.monotonic() - started)
    return Finding("", "", time.monotonic() - started)


def _attempts(places: Sequence[Reach], changed: str, seed: int) -> list[tuple[str, list[str]]]:
    plain = ["--no-minimise", "--json"]
    attempts: list[tuple[str, list[str]]] = []
    for place in dict.fromkeys((place.target, place.scenario) for place in places[:MOST_SCENARIOS]):
        target, scenario = place
        words = ["run", "--target", target, "--scenario", scenario, "--seed", str(seed), *plain]
        attempts.append((f"scenario {scenario}", words))
    for target in dict.fromkeys(place.target for place in places):
        words = [
            "explore",
            "--target",
            target,
            "--seeds",
            str(EXPLORED),
            "--seed",
            str(seed),
            *plain,
        ]
        attempts.append(("explore", [*words, "--jobs", "1"]))
    sweep = _sweep(places, changed)
    if sweep:
        attempts.append((f"sweep {sweep[1]}", sweep))
    return attempts


def _sweep(places: Sequence[Reach], changed: str) -> list[str]:
    """The kind that fits the changed line, at an operation that reaches it."""
    kind = next((kind for kind, pattern in _FITTING if pattern.search(changed)), "crash")
    for place in places:
        operation = _operation(place.command)
        if operation:
            where = ["--target", place.target, "--scenario", place.scenario, "--at", operation]
            more = ["--points", str(SWEPT_POINTS), "--until-bug", "--jobs", "1", "--json"]
            return ["sweep", kind, *where, *more]
    return []


_WORDS = {
    "accept": "Accept",
    "add": "Add",
    "start": "Start",
    "review": "Review",
    "reject": "Reject",
    "rebase": "Rebase",
    "reset": "ResetWorker",
    "nuke": "Nuke",
    "message": "Message",
    "board-add": "AddTask",
    "board-claim": "Claim",
    "board-start": "StartTask",
    "board-complete": "Complete",
    "board-fail": "Fail",
}


def _operation(command: str) -> str:
    return _WORDS.get(command) or _WORDS.get(command.partition("-")[0], "")


def _run(words: list[str], seconds: float) -> str | None:
    """The broken rule (or `no convergence`) when the command found something."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode not in (BUG, STUCK):
        return None
    rules = re.findall(r'"rule": "([a-z_.]+)"', done.stdout)
    return (
        rules[0]
        if rules
        else "no convergence"
        if done.returncode == STUCK
        else _reason(done.stdout)
    )


def _reason(text: str) -> str:
    try:
        return str(json.loads(text).get("verdict", "bug"))
    except ValueError:
        return "bug"
