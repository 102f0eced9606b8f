"""What can be said to a session at all: not every program has all settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.profile import SessionProfile
from mutiny.kit.operations import Settle
from mutiny.kit.supported import Fitted, TargetWords, fitted
from mutiny.model.operation import Operation, walk

HARMLESS = ("Status", "Metrics", "Health", "Report", "VerifyCheckpoint", "Configure", "LetRun")


def has_words(profile: SessionProfile, part: Operation) -> bool:
    """Has the target a word for this operation?"""
    if part.type in profile.lacks:
        return False
    if isinstance(part, op.Configure):
        return profile.settable is None or part.name in profile.settable
    return True


def supported(profile: SessionProfile, operation: Operation) -> bool:
    """Has it words for an operation and all of its parts?"""
    return all(has_words(profile, part) for part in walk(operation))


def fit(profile: SessionProfile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    return fitted(
        TargetWords(partial(has_words, profile), harmless=HARMLESS, settle=Settle()), sequence
    )
