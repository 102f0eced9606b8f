"""What can be said to a workers target at all: not every orchestrator has a doctor."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.kit.faults import DamageFile, HoldLock
from mutiny.kit.supported import Fitted, TargetWords, fitted
from mutiny.model.operation import Operation, walk

HARMLESS = (
    *("Doctor", "Status", "Attach", "Message", "Init", "Up", "Down"),
    *("Review", "Nuke", "VerifySentence"),
)


def supported(profile: Profile, operation: Operation) -> bool:
    """Has the target words for an operation and for all of its parts?"""
    return all(_has_words(profile, part) for part in walk(operation))


def _has_words(profile: Profile, part: Operation) -> bool:
    if isinstance(part, op.Doctor) and part.repair:
        return profile.repairs and "Doctor" not in profile.lacks
    if isinstance(part, HoldLock):
        return profile.has_lock
    if isinstance(part, common.Misuse) and isinstance(part.operation, op.Up | op.Down):
        return False  # a daemon in the foreground would stay there
    if isinstance(part, DamageFile) and part.how == "stale" and part.file == "state":
        return profile.notices_damage  # nobody can say what an old state means that nobody notices
    if isinstance(part, DamageFile) and part.file == "backup":
        return profile.has_backup and part.how != "stale"  # of it nobody keeps old copies
    return part.type not in profile.lacks


def fit(profile: Profile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    words = TargetWords(partial(_has_words, profile), harmless=HARMLESS, settle=common.Settle())
    return fitted(words, sequence)
