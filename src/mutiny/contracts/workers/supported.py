"""What can be said to a workers target at all: not every orchestrator has a doctor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.kit.faults import DamageFile, HoldLock, SilentClient
from mutiny.kit.supported import Fitted, TargetWords, fitted
from mutiny.model.operation import Kind, Operation, walk

HARMLESS = (
    *("Doctor", "Status", "Attach", "Message", "Init", "Up", "Down"),
    *("Review", "Nuke", "VerifySentence", "AssertState"),
)

_OF_REVIEW = ("Accept", "Reject", "Rebase")
"""What else a sequence can do without where nothing is reviewed: prompts arrive all the same."""


def supported(profile: Profile, operation: Operation) -> bool:
    """Has the target words for an operation and for all of its parts?"""
    return all(_has_words(profile, part) for part in walk(operation))


def _has_words(profile: Profile, part: Operation) -> bool:
    if isinstance(part, op.Doctor) and part.repair:
        return profile.repairs and "Doctor" not in profile.lacks
    if profile.daemonless and _means_daemon(part):
        return False
    if isinstance(part, op.AssertState) and profile.accept_removes:
        return False  # who was accepted has no status any more
    if isinstance(part, HoldLock):
        return profile.has_lock
    if isinstance(part, SilentClient):
        return profile.listens
    if isinstance(part, common.Misuse) and isinstance(part.operation, op.Up | op.Down):
        return False  # a daemon in the foreground would stay there
    if isinstance(part, DamageFile) and part.how == "stale" and part.file == "state":
        return profile.notices_damage  # nobody can say what an old state means that nobody notices
    if isinstance(part, DamageFile) and part.file == "backup":
        return profile.has_backup and part.how != "stale"  # of it nobody keeps old copies
    return part.type not in profile.lacks


def _means_daemon(part: Operation) -> bool:
    return isinstance(part, op.KillDaemon) or getattr(part, "role", "") == "daemon"


def fit(profile: Profile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    words = TargetWords(
        partial(_has_words, profile),
        instead=_instead,
        harmless=HARMLESS if profile.shows_ends else (*HARMLESS, *_OF_REVIEW),
        needless=lambda operation: profile.daemonless and operation.type in ("Up", "Down"),
        settle=common.Settle(),
    )
    found = fitted(words, sequence)
    parts = [part for one in found.sequence for part in walk(one)]
    asked = any(part.asks and not isinstance(part, op.Init) for part in parts)
    if profile.daemonless and not found.nothing_left and not asked:
        return replace(found, nothing_left="the target has no daemon")
    return found


def _instead(operation: Operation) -> Operation | None:
    """Who shows no statuses is waited for until nothing is due any more."""
    return common.Settle() if operation.kind is Kind.WAIT else None
