"""What can be said to a target at all: a board without epochs has no old ones to show."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.profile import BoardProfile
from mutiny.kit.operations import ExpectError
from mutiny.model.operation import Operation, walk


def supported(profile: BoardProfile, operation: Operation) -> bool:
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
    if isinstance(part, op.Verify) and "completed twice" in part.sentence:
        return profile.counts_completions
    if isinstance(part, ExpectError) and isinstance(part.inner, op.AddBatch):
        return profile.batches
    return True


def in_words_of(
    profile: BoardProfile, sequence: Sequence[Operation]
) -> tuple[Operation, ...] | None:
    """A sequence as the target can be told it: without sentences about what it does not show. None when
    a command cannot be said.
    """
    said = tuple(
        item for item in sequence if not isinstance(item, op.Verify) or supported(profile, item)
    )
    if not all(supported(profile, item) for item in said):
        return None
    return None if _adds_twice(said) and not profile.names_new_tasks else said


def _adds_twice(sequence: Sequence[Operation]) -> bool:
    """Is a task added that is there already? A board that gives ids cannot be told that."""
    names: list[str] = []
    for item in sequence:
        for part in walk(item):
            if isinstance(part, op.AddTask):
                names.append(part.task)
            elif isinstance(part, op.AddBatch):
                names += [op.split_new_task(text)[0] for text in part.tasks]
    return len(set(names)) < len(names)
