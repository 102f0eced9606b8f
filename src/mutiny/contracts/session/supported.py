"""What can be said to a session at all: not every program has all settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.profile import SessionProfile
from mutiny.kit.operations import Settle, WrongSetting
from mutiny.kit.supported import Fitted, TargetWords, can_be_misset, can_be_misused, fitted
from mutiny.model.operation import Operation, walk

HARMLESS = (
    *("Status", "Metrics", "Health", "Report", "VerifyCheckpoint", "Configure", "LetRun"),
    *("Checkpoint", "BuildProject"),
)
TELLING = ("HalfDone", "KillAgent", "Pause", "Continue", "Restore")
"""Without them a session can still be crashed and brought back; but some scenarios are about just these."""
PACE = (
    *("metrics_s", "backoff_s", "model_timeout_s", "tool_timeout_s", "idle_s", "test_time_s"),
    *("backoff_cap_s", "gate_wait_s", "vote_wait_s"),
)
"""Settings that only say how quick things are."""


def has_words(profile: SessionProfile, part: Operation) -> bool:
    """Has the target a word for this operation?"""
    if part.type in profile.lacks or not can_be_misused(profile, part):
        return False
    if isinstance(part, WrongSetting):
        return can_be_misset(profile, part)
    if isinstance(part, op.Configure):
        return profile.settable is None or part.name in profile.settable
    if isinstance(part, op.BadWork) and part.how in op.SPOILS:
        return op.SPOILS[part.how] in profile.criteria
    if isinstance(part, op.AgentDeadlock) and part.how == "mute":
        return profile.votes_without
    if isinstance(part, op.SystemCrash) and part.told:
        return profile.logs_events
    if isinstance(part, op.SystemCrash) and part.asked:
        return profile.outlives_signals
    if isinstance(part, op.LetRun) and part.misset:
        return profile.keeps_settings
    if isinstance(part, op.Metrics | op.Report) and part.written:
        return profile.writes_answers
    if isinstance(part, op.Trespass) and part.reads:
        return bool(profile.reads_with)
    return profile.walled or not isinstance(part, op.Trespass)


def supported(profile: SessionProfile, operation: Operation) -> bool:
    """Has it words for an operation and all of its parts?"""
    return all(has_words(profile, part) for part in walk(operation))


def _needless(operation: Operation) -> bool:
    """A session makes checkpoints by itself, and is as it is at any pace."""
    if isinstance(operation, op.Configure):
        return operation.name in PACE
    return isinstance(operation, op.Checkpoint | op.BuildProject)


def fit(profile: SessionProfile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    words = TargetWords(
        partial(has_words, profile), harmless=HARMLESS, needless=_needless, settle=Settle()
    )
    found = fitted(words, sequence)
    late = next(_too_late(sequence, found.operations), None)
    return found if late is None else replace(found, nothing_left=late)


def _too_late(sequence: Sequence[Operation], said: Sequence[Operation | None]) -> Iterator[str]:
    """A wait for some tasks that became a wait for everything leaves nothing that could crash."""
    waits = False
    for asked, one in zip(sequence, said, strict=True):
        if one is None:
            continue
        if waits and isinstance(one, op.SystemCrash):
            yield f"nothing is left that could be hit by {one.short()}"
        waits = isinstance(one, Settle) and not isinstance(asked, Settle)
