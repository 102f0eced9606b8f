"""What can be said to one target at all: not every one has all commands and settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.profile import SpawnsProfile
from mutiny.kit.operations import Settle
from mutiny.kit.supported import Fitted, TargetWords, can_be_misused, fitted
from mutiny.model.operation import Operation, walk

HARMLESS = (
    *("Init", "Health", "ListSpawns", "Chain", "Logs", "Receive", "CreateChannel", "AwaitHuman"),
    *("VerifySentence", "Configure"),
)


def has_words(profile: SpawnsProfile, part: Operation) -> bool:
    """Has the target a word for this operation?"""
    if part.type in profile.lacks or not can_be_misused(profile, part):
        return False
    if isinstance(part, op.Register) and part.model:
        return profile.takes_models
    if isinstance(part, op.Receive) and (part.again or part.most):
        return profile.keeps_place
    if isinstance(part, op.Send | op.Behave) and _calls_in_capitals(part):
        return profile.any_case
    if isinstance(part, op.Behave) and _roams(part):
        return profile.roams
    if isinstance(part, op.KillSupervisor) and part.over:
        return profile.ends_first
    return not isinstance(part, op.Configure) or part.name in profile.settable


def _roams(part: op.Behave) -> bool:
    return any(step.startswith("in:") for turn in part.does for step in op.steps_of(turn))


def _calls_in_capitals(part: op.Send | op.Behave) -> bool:
    texts = (part.text,) if isinstance(part, op.Send) else part.does
    return any(re.search(r"@[A-Za-z0-9_-]*[A-Z]", text) for text in texts)


def supported(profile: SpawnsProfile, operation: Operation) -> bool:
    """Has it words for an operation and all of its parts?"""
    return all(has_words(profile, part) for part in walk(operation))


def fit(profile: SpawnsProfile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    words = TargetWords(partial(has_words, profile), harmless=HARMLESS, settle=Settle())
    return fitted(words, sequence)
