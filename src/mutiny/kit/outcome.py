"""One right outcome of a command: its answer, and what is the case afterwards.

A contract has one function that gives all right outcomes of a command. It says what is expected and what
follows, so the two cannot disagree; an answer that is on none of them breaks a promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from mutiny.kit.answer import Answer
from mutiny.kit.domains import BAD_INPUT
from mutiny.model.expectation import Expectation

Model = TypeVar("Model")


@dataclass(frozen=True)
class Outcome(Generic[Model]):
    """One way in which a command may go."""

    after: Model
    refusals: frozenset[str] = frozenset()
    """Classes of refusals that would be true; none: it succeeds."""
    task: str | None = None
    """What a success must name, if it names anything."""
    reason: str = ""

    @property
    def success(self) -> bool:
        """Is it served?"""
        return not self.refusals

    def fits(self, answer: Answer) -> bool:
        """Is this the answer that the outcome gives?"""
        if answer.ok:
            return self.success and (self.task is None or answer.task in (None, self.task))
        # A value that a program does not take may be refused in any words.
        strange = BAD_INPUT in self.refusals and answer.clear and not answer.classes
        return strange or bool(answer.classes & self.refusals)


def ok(after: Model, reason: str, task: str | None = None) -> Outcome[Model]:
    """It is served."""
    return Outcome(after, frozenset(), task, reason)


def no(after: Model, reason: str, *classes: str) -> Outcome[Model]:
    """It is refused, with one of these words."""
    return Outcome(after, frozenset(classes), None, reason)


def reasons(outcomes: Iterable[Outcome[Model]]) -> str:
    """Why these are right, each reason once."""
    return "; or ".join(dict.fromkeys(one.reason for one in outcomes if one.reason))


def expected(outcomes: Sequence[Outcome[Model]]) -> Expectation:
    """What is expected, without what follows."""
    refusals = frozenset[str]().union(*(one.refusals for one in outcomes))
    return Expectation(any(one.success for one in outcomes), refusals, reasons(outcomes))
