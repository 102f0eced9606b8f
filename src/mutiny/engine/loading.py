"""What loads gave: their figures and verdicts, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mutiny.model.verdict import Verdict, worst


@dataclass(frozen=True)
class Loaded:
    """One load on one board."""

    target: str
    shape: str
    tasks: int
    """How many tasks the board held."""
    workers: int
    verdict: Verdict
    transport: str = ""
    """How its commands were spoken: this is part of what they cost."""
    rule: str | None = None
    message: str = ""
    directory: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)
    growth: tuple[Mapping[str, Any], ...] = ()
    """What was watched over the cycles: name, unit, per_cycle, limit, samples, too_much."""

    def latency(self, command: str, figure: str) -> float | None:
        """One figure of one command's latencies, in milliseconds."""
        found = self.measured.get("commands", {}).get(command, {}).get(figure)
        return float(found) if found is not None else None

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "target": self.target,
            "shape": self.shape,
            "tasks": self.tasks,
            "workers": self.workers,
            "transport": self.transport,
            "verdict": self.verdict.value,
            "rule": self.rule,
            "message": self.message,
            "directory": self.directory,
            "measured": dict(self.measured),
            "growth": [dict(one) for one in self.growth],
        }


@dataclass
class LoadReport:
    """All loads of one command."""

    loads: list[Loaded] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """The worst of all; nothing done is nothing tested."""
        return worst(one.verdict for one in self.loads)

    def costs(self) -> dict[str, list[tuple[int, float, float]]]:
        """For each board: tasks on it, and what a claim costs then (p50 and p99, milliseconds)."""
        found: dict[str, list[tuple[int, float, float]]] = {}
        for one in self.loads:
            p50, p99 = one.latency("claim", "p50_ms"), one.latency("claim", "p99_ms")
            if one.shape == "cost" and p50 is not None and p99 is not None:
                found.setdefault(one.target, []).append((one.tasks, p50, p99))
        return {target: sorted(rows) for target, rows in found.items()}

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "verdict": self.verdict.value,
            "cost_per_claim": {
                target: [{"tasks": n, "p50_ms": p50, "p99_ms": p99} for n, p50, p99 in rows]
                for target, rows in self.costs().items()
            },
            "loads": [one.as_json() for one in self.loads],
        }
