"""A soak as values: what was asked, its plan step by step, its criteria, and the account at its end.

A contract that can be soaked brings `Soaks`; the mode knows nothing else of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mutiny.model.operation import Operation

LEAST_H, MOST_H = 0.01, 24.0
SLOWEST, FASTEST = 0.1, 1000.0
"""How many seconds of a session may pass in a real one."""
MOST_AGENTS = 64
RANKS = ("must", "should", "nice")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
}
Facts = Mapping[str, float | None]
"""Figures of a finished soak by name; None: it could not be measured."""


@dataclass(frozen=True)
class SoakAsk:
    """One criterion of a soak."""

    project: str
    hours: float
    agents: int
    rate: float
    schedule: str
    seed: int

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("hours", self.hours, LEAST_H, MOST_H),
            ("agents", self.agents, 1, MOST_AGENTS),
            ("rate", self.rate, SLOWEST, FASTEST),
        ):
            if not least <= value <= most:
                raise ValueError(f"{name} must be between {least:g} and {most:g}, got {value:g}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule is one of {', '.join(SCHEDULES)}, got {self.schedule!r}")


@dataclass(frozen=True)
class Schedule:
    """How long, and how hard."""

    hours: float
    faults_an_hour: float
    about: str


SCHEDULES: dict[str, Schedule] = {
    "mini": Schedule(1.0, 4.0, "weekly: regression"),
    "standard": Schedule(4.0, 3.0, "monthly: features"),
    "mega": Schedule(8.0, 3.0, "quarterly: everything"),
    "release": Schedule(12.0, 6.0, "before a release: everything, under stress"),
}


@dataclass(frozen=True)
class Criterion:
    """One line of the criteria: a fact held against a number."""

    rank: str
    text: str
    fact: str
    compare: str
    value: float

    def holds(self, facts: Facts) -> bool | None:
        """Does it hold? None: it could not be measured."""
        found = facts.get(self.fact)
        return None if found is None else _COMPARE[self.compare](found, self.value)


@dataclass(frozen=True)
class Table:
    """A part of the account: rows with headings."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Account:
    """What became of a soaked target."""

    facts: Facts
    report: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the plan's report, for programs."""
    tables: tuple[Table, ...] = ()
    """The same for people."""
    recommendations: tuple[str, ...] = ()
    """Each follows from something that was seen, and says from what."""


@dataclass(frozen=True)
class Soaks:
    """How targets of a contract are soaked."""

    projects: tuple[str, ...]
    begin: Callable[[SoakAsk], tuple[Operation, ...]]
    """From an empty box to a session that runs."""
    middle: Callable[[SoakAsk], tuple[Operation, ...]]
    """Chaos and quiet by turns, with looks at every hour."""
    end: Callable[[SoakAsk], tuple[Operation, ...]]
    """Until it is complete, and what shows that all is well."""
    again: Callable[[SoakAsk], tuple[Operation, ...]]
    """After everything died: back to where it was."""
    died: Operation
    """What happened to it when Mutiny itself was killed."""
    criteria: tuple[Criterion, ...]
    account: Callable[[Any, Sequence[Operation]], Account]
    """From the last observation and the faults that fired to the account."""
    hourly: Mapping[str, str] = field(default_factory=dict)
    """Operation -> file for its answer at each hour, with `{hour}`."""


@dataclass(frozen=True)
class Judged:
    """A criterion, and whether it holds."""

    criterion: Criterion
    holds: bool | None

    @property
    def word(self) -> str:
        """In a word."""
        return {True: "met", False: "not met", None: "unknown"}[self.holds]


def judged(criteria: Sequence[Criterion], facts: Facts) -> tuple[Judged, ...]:
    """All criteria against the facts."""
    return tuple(Judged(one, one.holds(facts)) for one in criteria)


def passed(found: Sequence[Judged]) -> bool:
    """Do all must criteria hold? One that could not be measured does not."""
    return all(one.holds is True for one in found if one.criterion.rank == "must")
