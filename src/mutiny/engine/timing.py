"""What each operation takes, against a baseline: ratios with an interval, so that noise is no finding.

Two sources of noise, two answers. Times scatter: a ratio is the median of all pairs (Hodges and Lehmann),
and its interval follows from ranks, whatever the distribution is. Machines are busy: Mutiny's own work in
the same steps is the yardstick. By how much that got slower is taken out, and its interval widens the
other. An operation is slower only when the whole interval lies above the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mutiny import documents
from mutiny.codec import decode
from mutiny.engine.journal import Step
from mutiny.engine.rundir import FORMAT, RunDirectory
from mutiny.errors import FormatError, UsageError
from mutiny.model.operation import Kind
from mutiny.model.verdict import Verdict

LEAST = 6
"""Fewer samples on either side tell nothing."""
MOST = 100
"""So many of one operation are kept, evenly spread."""
Z = 3.29
"""Quantile of the normal distribution: one false alarm in a thousand, because there are many operations."""
SHORTEST_MS = 0.01


@dataclass(frozen=True)
class Samples:
    """One operation's times in milliseconds: the target's, and Mutiny's own in the same steps."""

    target: tuple[float, ...] = ()
    own: tuple[float, ...] = ()


@dataclass(frozen=True)
class Ratio:
    """How many times as long, and from where to where that may be."""

    middle: float
    low: float
    high: float

    def without(self, other: Ratio) -> Ratio:
        """This one with another taken out; what is not known of that is not known of this."""
        return Ratio(self.middle / other.middle, self.low / other.high, self.high / other.low)


@dataclass
class Timings:
    """Times by operation, from steps that nothing disturbed."""

    found: dict[str, Samples] = field(default_factory=dict)

    def add(self, steps: Iterable[Step]) -> None:
        """Take the commands that succeeded, with no fault before or around them."""
        for step in steps:
            good = step.verdict in (Verdict.SUCCESS, Verdict.EXPECTED) and step.result.succeeded
            calm = step.coverage.get("fault") in (None, "none")
            if step.operation.kind is not Kind.COMMAND or not good or not calm:
                continue
            before = self.found.get(step.operation.type, Samples())
            took = round(max(step.result.target_ms or step.result.duration_ms, SHORTEST_MS), 3)
            own = round(max(step.own_ms, SHORTEST_MS), 3)
            self.found[step.operation.type] = Samples((*before.target, took), (*before.own, own))

    def kept(self) -> dict[str, Samples]:
        """As many as are worth keeping."""
        return {
            name: Samples(_thinned(one.target), _thinned(one.own))
            for name, one in sorted(self.found.items())
        }


@dataclass(frozen=True)
class Compared:
    """One operation against the baseline."""

    operation: str
    ratio: Ratio | None
    """None: too few samples."""
    samples: int
    before: int
    slower_than: float

    @property
    def word(self) -> str:
        """`slower`, `faster`, `same` as far as can be told, or `unknown`."""
        if self.ratio is None:
            return "unknown"
        if self.ratio.low > self.slower_than:
            return "slower"
        return "faster" if self.ratio.high < 1 / self.slower_than else "same"

    def as_json(self) -> dict[str, object]:
        """For programs."""
        ratio = self.ratio
        return {
            "operation": self.operation,
            "became": self.word,
            "ratio": None if ratio is None else round(ratio.middle, 3),
            "low": None if ratio is None else round(ratio.low, 3),
            "high": None if ratio is None else round(ratio.high, 3),
            "samples": self.samples,
            "baseline_samples": self.before,
        }


@dataclass(frozen=True)
class Comparison:
    """All operations against the baseline."""

    machine: Ratio | None
    """By how much Mutiny's own work got slower: the machine's share; None: too few samples."""
    rows: tuple[Compared, ...]

    @property
    def slower(self) -> tuple[Compared, ...]:
        """Those that are slower beyond doubt."""
        return tuple(row for row in self.rows if row.word == "slower")

    def as_json(self) -> dict[str, object]:
        """For programs."""
        machine = None if self.machine is None else round(self.machine.middle, 3)
        return {"machine": machine, "operations": [row.as_json() for row in self.rows]}


def compare(
    now: Mapping[str, Samples], before: Mapping[str, Samples], slower_than: float
) -> Comparison:
    """What is measured now against what was."""
    shared = sorted(set(now) & set(before))
    machine = _pooled([(now[name].own, before[name].own) for name in shared])
    rows = []
    for name in shared:
        new, old = now[name].target, before[name].target
        raw = ratio_of(new, old)
        ratio = None if raw is None or machine is None else raw.without(machine)
        rows.append(Compared(name, ratio, len(new), len(old), slower_than))
    return Comparison(machine, tuple(rows))


def ratio_of(new: Sequence[float], old: Sequence[float]) -> Ratio | None:
    """How many times as long the new ones are; None: too few to tell."""
    return _pooled([(new, old)])


def _pooled(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> Ratio | None:
    """One ratio for several kinds of things, each compared with its own kind only."""
    enough = [(new, old) for new, old in pairs if min(len(new), len(old)) >= LEAST]
    shifts = sorted(math.log(x / y) for new, old in enough for x in new for y in old)
    if not shifts:
        return None
    spread = math.sqrt(sum(len(n) * len(o) * (len(n) + len(o) + 1) / 12 for n, o in enough))
    out = max(round(len(shifts) / 2 - Z * spread), 0)
    middle = shifts[len(shifts) // 2]
    return Ratio(math.exp(middle), math.exp(shifts[out]), math.exp(shifts[-1 - out]))


def _thinned(values: Sequence[float]) -> tuple[float, ...]:
    every = -(-len(values) // MOST) or 1
    return tuple(values[::every])


@dataclass(frozen=True)
class _Document:
    """A baseline as it is written."""

    format: int
    target: str
    operations: Mapping[str, Samples]


def write_baseline(path: Path, target: str, timings: Timings) -> None:
    """Keep what was measured, for later comparisons."""
    kept = timings.kept()
    if not any(len(one.target) >= LEAST for one in kept.values()):
        raise UsageError(f"{path}: no operation was measured {LEAST} times; run more scenarios")
    rows = {name: {"target": list(one.target), "own": list(one.own)} for name, one in kept.items()}
    told = {"format": FORMAT, "target": target, "operations": rows}
    RunDirectory(path.parent).write_json(path, told)


def read_baseline(path: Path, target: str) -> Mapping[str, Samples]:
    """What was measured before; a baseline of another target is refused."""
    document = decode(
        _Document, documents.read_json(path, "baseline"), where=str(path), bounded=False
    )
    if document.format != FORMAT:
        raise FormatError(str(path), [f"format {document.format}: this Mutiny reads {FORMAT}"])
    if document.target != target:
        raise UsageError(f"{path}: it was measured on {document.target!r}, not on {target!r}")
    bad = [
        f"operations.{name}: times are numbers above 0"
        for name, one in document.operations.items()
        if not all(0 < value < math.inf for value in (*one.target, *one.own))
    ]
    if bad:
        raise FormatError(str(path), bad)
    return document.operations
