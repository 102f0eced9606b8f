"""What a sweep gave: its points and their outcomes, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mutiny.engine.loop import Outcome
from mutiny.engine.signature import clauses_of, names_in
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict, worst


@dataclass(frozen=True)
class Point:
    """One point of a sweep and what came of it."""

    operation: Operation
    index: int
    label: str
    process: str
    verdict: Verdict
    rule: str | None = None
    message: str = ""
    seconds: float = 0.0


@dataclass
class Sweep:
    """A finished sweep."""

    kind: str
    target: str
    at: Operation
    calls: list[dict[str, Any]] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    first_bug: Outcome | None = None
    left_out: int = 0
    """Points that are known but were not tried, because of a limit or a bug."""
    trace_s: float = 0.0
    judge_s: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst of all points; a sweep without points has tested nothing."""
        return worst(point.verdict for point in self.points)

    def causes(self) -> list[dict[str, Any]]:
        """Bugs by what they have in common, the commonest first: the rule, and what was said about it."""
        groups: dict[tuple[str, frozenset[str]], list[Point]] = {}
        for point in self.points:
            if point.verdict.is_bug and point.rule:
                said = clauses_of(point.message, names_in((point.operation, self.at)))
                groups.setdefault((point.rule, said), []).append(point)
        return [
            {
                "rule": rule,
                "operation": f"{points[0].operation.type}({self.at.type})",
                "said": sorted(said),
                "count": len(points),
                "first": f"point {points[0].index}",
                **self._replay_of(rule),
            }
            for (rule, said), points in sorted(groups.items(), key=lambda one: -len(one[1]))
        ]

    def _replay_of(self, rule: str) -> dict[str, Any]:
        """The sequence that shows a rule broken; only the first bug was run as one."""
        found = self.first_bug
        if found is None or found.rule != rule:
            return {"operations": 0, "replay": ""}
        return {"operations": len(found.steps), "replay": str(found.directory.replay_path)}

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "kind": self.kind,
            "target": self.target,
            "at": self.at.as_json(),
            "verdict": self.verdict.value,
            "points": [
                {
                    "operation": point.operation.as_json(),
                    "index": point.index,
                    "process": point.process,
                    "call": point.label,
                    "verdict": point.verdict.value,
                    "rule": point.rule,
                    "message": point.message,
                }
                for point in self.points
            ],
            "causes": self.causes(),
            "left_out": self.left_out,
            "trace_s": round(self.trace_s, 3),
            "judge_s": round(self.judge_s, 3),
            "first_bug": None if self.first_bug is None else str(self.first_bug.directory.path),
        }
