"""What a sweep gave: its points and their outcomes, as values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from mutiny.engine.causes import Cause
from mutiny.engine.known import Known, known_as_json
from mutiny.engine.loop import Outcome
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
    cause: Cause | None = None
    """Why it failed, when a rule was broken."""
    met: tuple[Known, ...] = ()
    """The known findings on its way."""
    known: str = ""
    """It ended with one of them: why that is no news."""
    sequence: tuple[Operation, ...] = ()
    """The whole run through it, without the steps that had shown what is known."""

    @property
    def is_news(self) -> bool:
        """Was a promise broken that is no known finding?"""
        return self.verdict.is_bug and not self.known


@dataclass
class Sweep:
    """A finished sweep."""

    kind: str
    target: str
    at: Operation
    calls: list[dict[str, Any]] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    first_bug: Outcome | None = None
    shown: dict[Cause, Outcome] = field(default_factory=dict)
    """For each cause the first point that has it, run as an ordinary sequence."""
    passed_by: Counter[Known] = field(default_factory=Counter)
    """Known findings before the operation, which is reached without the steps that showed them."""
    left_out: int = 0
    """Points that are known but were not tried, because of a limit or a bug."""
    trace_s: float = 0.0
    judge_s: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The worst of all points but the known ones; a sweep without points has tested nothing."""
        news = [point.verdict for point in self.points if not point.known]
        return Verdict.SUCCESS if self.points and not news else worst(news)

    @property
    def known(self) -> Counter[Known]:
        """How often each known finding was met."""
        return self.passed_by + Counter(entry for point in self.points for entry in point.met)

    def by_cause(self) -> dict[Cause, list[Point]]:
        """Points that broke a promise, by what they have in common, the commonest first."""
        groups: dict[Cause, list[Point]] = {}
        for point in self.points:
            if point.cause is not None and not point.known:
                groups.setdefault(point.cause, []).append(point)
        return dict(sorted(groups.items(), key=lambda one: -len(one[1])))

    def causes(self) -> list[dict[str, Any]]:
        """The same for programs, each with the replay of its first point."""
        return [
            {
                "rule": cause.failure.rule,
                "operation": cause.operation,
                "said": sorted(cause.failure.said),
                "count": len(points),
                "first": f"point {points[0].index}",
                **self.replay_of(cause),
            }
            for cause, points in self.by_cause().items()
        ]

    def replay_of(self, cause: Cause) -> dict[str, Any]:
        """The sequence that shows a cause, where it has shown the same rule again."""
        found = self.shown.get(cause)
        if found is None or found.rule != cause.failure.rule:
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
                    "known": point.known or None,
                }
                for point in self.points
            ],
            "causes": self.causes(),
            "known": known_as_json(self.known),
            "left_out": self.left_out,
            "trace_s": round(self.trace_s, 3),
            "judge_s": round(self.judge_s, 3),
            "first_bug": None if self.first_bug is None else str(self.first_bug.directory.path),
        }
