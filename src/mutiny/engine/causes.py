"""Failing runs by what they have in common: one cause is one line, however many seeds have met it.

Two failures have one cause when the same rule was broken at the same kind of operation, and the same was
said about it, with names, numbers and texts taken out. It is what can be seen from outside: two places in a
program that fail alike are one cause here, and whoever mends one of them will see the other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mutiny.engine.loop import Outcome
from mutiny.engine.signature import Failure, failure_of
from mutiny.model.operation import Operation


@dataclass(frozen=True)
class Cause:
    """What failing runs have in common."""

    failure: Failure
    operation: str
    """The kind of step that showed it, with what was done around it: `CrashAt(Accept)`."""

    @property
    def text(self) -> str:
        """In one line: what all have in common leaves names and numbers out."""
        return self.saying("; ".join(sorted(self.failure.said)))

    def saying(self, message: str) -> str:
        """The same in the words of one run."""
        return f"{self.failure.rule} at {self.operation}: {message}".removesuffix(": ")


@dataclass
class Group:
    """One cause, and the runs that have shown it."""

    cause: Cause
    first: str
    """The run that showed it first: a scenario, a seed, a point."""
    count: int = 0
    shortest: Outcome | None = None

    def add(self, outcome: Outcome) -> None:
        """Another run with the same cause."""
        self.count += 1
        if self.shortest is None or _length(outcome) < _length(self.shortest):
            self.shortest = outcome

    @property
    def text(self) -> str:
        """In one line, in the words of the shortest run."""
        step = self.shortest.failed_step if self.shortest is not None else None
        violations = step.violations if step is not None else ()
        rule = self.cause.failure.rule
        return self.cause.saying(next((one.message for one in violations if one.rule == rule), ""))

    def as_json(self) -> dict[str, object]:
        """For programs."""
        assert self.shortest is not None
        return {
            "rule": self.cause.failure.rule,
            "operation": self.cause.operation,
            "said": sorted(self.cause.failure.said),
            "count": self.count,
            "first": self.first,
            "operations": _length(self.shortest),
            "replay": str(self.shortest.directory.replay_path),
        }


def cause_of(outcome: Outcome, names: Iterable[str] = ()) -> Cause | None:
    """Why a run failed; None when no rule was broken. `names`: those of the steps before its first one."""
    failure = failure_of(outcome, names)
    step = outcome.failed_step
    return None if failure is None or step is None else Cause(failure, kind_of(step.operation))


def kind_of(operation: Operation) -> str:
    """The kind of a step, with what was done around it: `CrashAt(Accept)`."""
    inside = ", ".join(kind_of(part) for part in operation.children())
    return f"{operation.type}({inside})" if inside else operation.type


def _length(outcome: Outcome) -> int:
    return len(outcome.steps if outcome.replay is None else outcome.replay.operations)


@dataclass
class Causes:
    """The causes that were met so far; runs side by side may tell of theirs at the same moment."""

    groups: list[Group] = field(default_factory=list)
    _met: set[Cause] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def is_new(self, outcome: Outcome) -> bool:
        """Is this cause new? True for the first caller that asks about it, and false from then on."""
        cause = cause_of(outcome)
        with self._lock:
            if cause is None or cause in self._met:
                return False
            self._met.add(cause)
            return True

    def add(self, name: str, outcome: Outcome) -> None:
        """Take a failing run into account; one that broke no rule has no cause."""
        cause = cause_of(outcome)
        if cause is None:
            return
        with self._lock:
            group = next((one for one in self.groups if one.cause == cause), None)
            if group is None:
                group = Group(cause, name)
                self.groups.append(group)
            group.add(outcome)

    def ordered(self) -> Sequence[Group]:
        """The commonest first."""
        return sorted(self.groups, key=lambda one: -one.count)

    def as_json(self) -> list[dict[str, object]]:
        """For programs."""
        return [one.as_json() for one in self.ordered()]

    def told(self) -> list[str]:
        """For people: two lines a cause."""
        lines: list[str] = []
        for group in self.ordered():
            shown = group.as_json()
            times = "once" if group.count == 1 else f"{group.count} times"
            lines.append(f"{times}, first {group.first}: {group.text}")
            lines.append(f"    {shown['operations']} operations: {shown['replay']}")
        return lines
