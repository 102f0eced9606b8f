"""One right course of a command: its answer, and the board afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from mutiny.contracts.board.model import BoardModel


@dataclass(frozen=True)
class Course:
    """One way in which a command may go."""

    after: BoardModel
    refusals: frozenset[str] = frozenset()
    """Classes of refusals that would be true; none: it succeeds."""
    task: str | None = None
    """The task that a success must name."""
    reason: str = ""

    @property
    def success(self) -> bool:
        return not self.refusals


def ok(after: BoardModel, reason: str, task: str | None = None) -> Course:
    """It is served."""
    return Course(after, frozenset(), task, reason)


def no(after: BoardModel, reason: str, *classes: str) -> Course:
    """It is refused, with one of these words."""
    return Course(after, frozenset(classes), None, reason)
