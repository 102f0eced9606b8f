"""One right outcome of a command: its answer, and the board afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from mutiny.contracts.board.model import BoardModel


@dataclass(frozen=True)
class Outcome:
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


def ok(after: BoardModel, reason: str, task: str | None = None) -> Outcome:
    """It is served."""
    return Outcome(after, frozenset(), task, reason)


def no(after: BoardModel, reason: str, *classes: str) -> Outcome:
    """It is refused, with one of these words."""
    return Outcome(after, frozenset(classes), None, reason)
