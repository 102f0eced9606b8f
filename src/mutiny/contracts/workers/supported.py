"""What can be said to a workers target at all: not every orchestrator has a doctor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import PROJECT_SETTINGS
from mutiny.contracts.workers.profile import Profile
from mutiny.kit import operations as common
from mutiny.kit.domains import CONTROL, names_fit
from mutiny.kit.faults import DamageFile, HoldLock, SilentClient
from mutiny.kit.supported import (
    Fitted,
    TargetWords,
    can_be_misset,
    can_be_misused,
    fitted,
    undemanding,
)
from mutiny.model.operation import Kind, Operation, walk

_OF_REVIEW = ("Accept", "Reject", "Rebase")
"""What else a sequence can do without where nothing is reviewed: prompts arrive all the same."""
_OFTEN_SPARED = ("Doctor", "Message", "Review", "Nuke")
TELLING = (*_OFTEN_SPARED, *_OF_REVIEW)
"""Without them most scenarios still show what they are about; but some are about just these."""
HARMLESS = (
    *("Status", "Attach", "Init", "Up", "Down", "VerifySentence", "AssertState"),
    *_OFTEN_SPARED,
)

SOME_PROMPT = "Create note.txt"
"""What a worker is told that has to be told something."""


def supported(profile: Profile, operation: Operation) -> bool:
    """Has the target words for an operation and for all of its parts? What came of a name that is none of
    its own is not to be seen under that name; one that is to be refused is said.
    """
    refused = isinstance(operation, common.ExpectError)
    return all(
        _has_words(profile, part)
        and (refused or not isinstance(part, op.Add) or names_fit(profile.names, part.worker))
        for part in walk(operation)
    )


def _has_words(profile: Profile, part: Operation) -> bool:
    if isinstance(part, op.Doctor) and part.repair:
        return profile.repairs and "Doctor" not in profile.lacks
    if profile.daemonless and _means_daemon(part):
        return False
    if isinstance(part, op.AssertState) and profile.accept_removes:
        return False  # who was accepted has no status any more
    if isinstance(part, op.Add | op.Start | op.Message) and CONTROL in _text(part):
        return profile.tames_texts
    if isinstance(part, op.Add):
        return bool(part.prompt) == profile.prompt_with_add
    if _names_wrongly(profile, part):
        return profile.takes_names  # no name can be wrong that nobody says
    if isinstance(part, HoldLock):
        return profile.has_lock
    if isinstance(part, SilentClient):
        return profile.listens
    if isinstance(part, op.MoveSource) and part.path == PROJECT_SETTINGS:
        return profile.spares_settings
    if not _promised(profile, part):
        return False
    if isinstance(part, common.WrongSetting):
        return can_be_misset(profile, part)
    if isinstance(part, common.Misuse):
        stays = isinstance(part.operation, op.Up | op.Down)  # a daemon in the foreground
        return not stays and can_be_misused(profile, part) and "Misuse" not in profile.lacks
    if isinstance(part, DamageFile):
        return _has_file(profile, part)
    return part.type not in profile.lacks


def _promised(profile: Profile, part: Operation) -> bool:
    """Does the target promise what this is about?"""
    if isinstance(part, op.AssertAuthor):
        return profile.keeps_author
    return profile.notices_typing or not isinstance(part, op.TypeIn)


def _has_file(profile: Profile, part: DamageFile) -> bool:
    """Can this file be damaged so, and does the target promise something about it?"""
    if part.file == "inbox":
        return profile.passes_bad_hooks
    if part.file == "backup":
        return profile.has_backup and part.how != "stale"  # of it nobody keeps old copies
    if "CorruptState" in profile.lacks:
        return False  # it keeps no single file
    # Nobody can say what an old state means that nobody notices.
    return part.how != "stale" or profile.notices_damage


def _names_wrongly(profile: Profile, part: Operation) -> bool:
    """Is it somebody new who is asked for wrongly? Who would come of it could not be told."""
    asked = part.inner if isinstance(part, common.ExpectError) else None
    asked = part.operation if isinstance(part, common.Misuse) else asked
    makes = isinstance(asked, op.Start) and profile.prompt_with_add  # it is said as `add`
    return makes or isinstance(asked, op.Add)


def _text(part: op.Add | op.Start | op.Message) -> str:
    return part.message if isinstance(part, op.Message) else part.prompt


def _means_daemon(part: Operation) -> bool:
    return isinstance(part, op.KillDaemon) or getattr(part, "role", "") == "daemon"


def fit(profile: Profile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this target can be told it."""
    words = TargetWords(
        partial(_has_words, profile),
        instead=partial(_instead, profile),
        harmless=HARMLESS if profile.shows_ends else (*HARMLESS, *_OF_REVIEW),
        needless=lambda operation: profile.daemonless and operation.type in ("Up", "Down"),
        settle=common.Settle(),
    )
    found = (_fitted_with_prompts if profile.prompt_with_add else fitted)(words, sequence)
    parts = [part for one in found.sequence for part in walk(one)]
    asked = any(part.asks and not isinstance(part, op.Init) for part in parts)
    if profile.daemonless and not found.nothing_left and not asked:
        return replace(found, nothing_left="the target has no daemon")
    return found


def _fitted_with_prompts(words: TargetWords, sequence: Sequence[Operation]) -> Fitted:
    """The same where a worker is made with its prompt: it works earlier than the sequence had thought."""
    planned = _with_prompts(sequence)
    found = fitted(words, [one for one in planned if one is not None])
    other = [old != new for old, new in zip(sequence, planned, strict=True)]
    first = other.index(True) if True in other else len(other)
    said = iter(found.operations)
    made = [None if one is None else next(said) for one in planned]
    behind = [
        undemanding(words.settle, one) if one is not None and place > first else one
        for place, one in enumerate(made)
    ]
    changes = [
        f"{old.short()}: {'left out' if new is None else 'said with its prompt'}"
        for old, new in zip(sequence, planned, strict=True)
        if old != new
    ]
    return replace(found, operations=tuple(behind), changes=(*changes, *found.changes))


def _with_prompts(sequence: Sequence[Operation]) -> list[Operation | None]:
    """A worker is made with the prompt that it is given next; one that is given none has one all the same.

    A start that is broken, or that others compete with, is what makes the worker.
    """
    made: list[Operation | None] = list(sequence)
    for place, operation in enumerate(sequence):
        if not isinstance(operation, op.Add):
            continue
        later = (
            (index, one)
            for index, one in enumerate(sequence[place + 1 :], place + 1)
            if any(_starts(part, operation.worker) for part in walk(one))
        )
        index, start = next(later, (place, None))
        if start is None:
            made[place] = replace(operation, prompt=SOME_PROMPT)
        elif isinstance(start, op.Start):
            made[place], made[index] = replace(operation, prompt=start.prompt), None
        else:
            made[place] = None
    return made


def _starts(part: Operation, worker: str) -> bool:
    return isinstance(part, op.Start) and part.worker == worker


def _instead(profile: Profile, operation: Operation) -> Operation | None:
    """Who shows no statuses is waited for until nothing is due any more; who takes the prompt when a
    worker is made is told it then.
    """
    if profile.prompt_with_add and isinstance(operation, op.Start):
        return op.Add(operation.worker, prompt=operation.prompt)
    if profile.prompt_with_add and isinstance(operation, op.Add):
        return replace(operation, prompt=SOME_PROMPT)
    return common.Settle() if operation.kind is Kind.WAIT else None
