"""What can be said to a target at all: a board without epochs has no old ones to show."""

from __future__ import annotations

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.common import ExpectError
from mutiny.model.operation import Operation, walk


def sayable(profile: BoardProfile, operation: Operation) -> bool:
    """Has the target words for an operation and for all of its parts?"""
    return all(_has_words(profile, part) for part in walk(operation))


def _has_words(profile: BoardProfile, part: Operation) -> bool:
    if part.type in profile.lacks:
        return False
    if isinstance(part, op.WaitForStatus) and part.status == "in_progress":
        return "Start" not in profile.lacks
    if isinstance(part, op.Claim) and part.task is not None:
        return profile.names_tasks
    if isinstance(part, op.OwnerCommand) and part.stale:
        return profile.fences
    if isinstance(part, ExpectError) and isinstance(part.inner, op.AddBatch):
        return profile.batches
    return True
