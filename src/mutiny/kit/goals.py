"""Acceptance goals as values: what an operator expects, how it is tried, and what became of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from mutiny.model.operation import Operation

LAYERS = ("smoke", "local", "container", "chaos", "performance")
TIERS = (0, 1, 2)
SCOPES = ("plan", "run", "resume", "status", "clean", "logs")
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Assertion:
    """One sentence that must be so in the end."""

    kind: str
    """`then`, `artefact` or `negative`."""
    sentence: str


@dataclass(frozen=True)
class Goal:
    """One goal, ready to be run."""

    id: str
    tier: int
    statement: str
    scope: tuple[str, ...]
    layers: tuple[str, ...]
    steps: tuple[Operation, ...]
    """Preconditions, given and when."""
    assertions: tuple[Assertion, ...]
    hook: str
    owner: str = ""
    job: str = ""
    file: str = ""
    line: int = 1


@dataclass(frozen=True)
class Tried:
    """One run of a goal."""

    verdict: str
    """`success`, `bug`, ... as the loop has classified it."""
    evaluated: int
    """So many of the goal's assertions were asked and hold."""
    rule: str = ""
    message: str = ""
    directory: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """A goal and all of its runs."""

    goal: Goal
    runs: tuple[Tried, ...]
    quarantined: str = ""
    """Why its failures are not counted for now."""
    skipped: str = ""
    """Why it could not be run here."""

    @property
    def status(self) -> str:
        """`green`, `red`, or `not covered` when not all assertions were asked."""
        if any(one.verdict not in ("success", "inconclusive") for one in self.runs):
            return "red"
        whole = [one for one in self.runs if one.verdict == "success"]
        asked = all(one.evaluated == len(self.goal.assertions) for one in whole)
        return "green" if whole and len(whole) == len(self.runs) and asked else "not covered"

    @property
    def failures(self) -> int:
        """Runs that did not pass."""
        return sum(one.verdict != "success" for one in self.runs)

    @property
    def flake_bound(self) -> float:
        """With 95 % confidence it fails less often than this."""
        return upper_bound(self.failures, len(self.runs))


def upper_bound(failures: int, runs: int) -> float:
    """The largest rate of failures that such a result does not refute (Clopper and Pearson)."""
    if runs == 0 or failures >= runs:
        return 1.0
    low, high = failures / runs, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        seen = sum(
            math.comb(runs, k) * middle**k * (1 - middle) ** (runs - k) for k in range(failures + 1)
        )
        low, high = (middle, high) if seen > 1 - CONFIDENCE else (low, middle)
    return high


@dataclass(frozen=True)
class Gate:
    """One threshold, and whether it was kept."""

    name: str
    passed: bool
    text: str
    goals: tuple[str, ...] = field(default=())
    """Those that stand in its way."""
