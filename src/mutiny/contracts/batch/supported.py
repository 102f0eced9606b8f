"""What can be said to a batch orchestrator at all: not every one has all settings and all moments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.kit.operations import Settle, WrongSetting
from mutiny.kit.supported import Fitted, TargetWords, can_be_misset, can_be_misused, fitted
from mutiny.model.operation import Operation, walk

HARMLESS = ("Init", "Status", "LogsQuery", "LogsTimeline", "Clean", "VerifySentence")


def has_words(profile: BatchProfile, part: Operation) -> bool:
    """Has the target a word for this operation?"""
    if part.type in profile.lacks or not can_be_misused(profile, part):
        return False
    if isinstance(part, WrongSetting):
        return can_be_misset(profile, part)
    if isinstance(part, op.Configure):
        return profile.settable is None or part.name in profile.settable
    if isinstance(part, op.Plan):
        can = {
            "nears": profile.folders,
            "deepens": profile.folders,
            "commits": profile.own_commits,
            "counts": profile.adds_up,
            "pushes": profile.walled,
            "removes": profile.deletions,
            "renames": profile.renames,
        }
        return all(can.get(word, True) for task in part.parsed() for word in task.does)
    if isinstance(part, op.RunElsewhere):
        return profile.neighbours
    if isinstance(part, op.OF_CONTAINERS):
        return profile.settable is None or "workers" in profile.settable
    return not isinstance(part, op.At) or not profile.moments or part.moment in profile.moments


def supported(profile: BatchProfile, operation: Operation) -> bool:
    """Has it words for an operation and all of its parts?"""
    return all(has_words(profile, part) for part in walk(operation))


def fit(profile: BatchProfile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    return fitted(
        TargetWords(partial(has_words, profile), harmless=HARMLESS, settle=Settle()), sequence
    )
