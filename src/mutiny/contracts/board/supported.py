"""What can be said to a board at all: one without epochs has no old ones to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.profile import LONGEST_WAIT_S, BoardProfile
from mutiny.contracts.board.symbolic import Walk
from mutiny.kit.experiment import VerifySentence
from mutiny.kit.faults import DamageFile
from mutiny.kit.operations import (
    ExpectError,
    Interleave,
    KillDuring,
    Misuse,
    SweepPoint,
    Trace,
    WrongSetting,
    disturbs,
)
from mutiny.kit.supported import Fitted, TargetWords, can_be_misset, can_be_misused, fitted, unasked
from mutiny.model.operation import Kind, Operation, walk

TELLING = ("Recover", "Start", "Heartbeat", "Cancel", "Release")
"""Without them most scenarios still show what they are about; but some are about just these."""
HARMLESS = (
    *("Configure", "Status", "List", *TELLING),
    *("Init", "Up", "Down", "Verify", "VerifySentence", "WaitForStatus"),
)
UNDER_ENGINE = (SweepPoint, Trace, Interleave, KillDuring)
"""What goes through the system-call engine; a command of a server's board brings its own server."""
_UNSPOKEN = (op.Up, op.Down, op.RestartServer, op.StartSecondServer)
"""Done by signals, or by a start that stays: there are no words of a command that could be said wrongly."""
_NEEDS_OWNERS = (" belongs to ", " is owned by ", " holds ", " two owners")
_NEEDS_LEASE = ("stale task", "reassigned", "was returned")
"""In sentences: somebody's claim has to run out for them."""
_OFF_BY_DEFAULT = ("rate_limit", "breaker_failures", "agent_timeout_s")
"""Figures of what a board may not have at all; of the others every board has one of its own."""


def supported(profile: BoardProfile, operation: Operation) -> bool:
    """Has the target words for an operation and for all of its parts?"""
    return all(_has_words(profile, part) for part in walk(operation))


def _has_words(profile: BoardProfile, part: Operation) -> bool:
    if _lacked(profile, part) or not can_be_misused(profile, part):
        return False
    if isinstance(part, Misuse) and isinstance(part.operation, _UNSPOKEN):
        return False
    if isinstance(part, DamageFile):
        return _has_file(profile, part.file)
    if isinstance(part, WrongSetting):  # only a server's start, or a command that is no server's
        starts = isinstance(part.operation, op.Up)
        return can_be_misset(profile, part) and profile.server is starts
    if not (_can_be_added(profile, part) and _can_show(profile, part)):
        return False
    if isinstance(part, op.Configure):
        return profile.settable is None or part.name in profile.settable
    if isinstance(part, op.AddMany | op.Drive):
        return profile.batches  # a load without them is many processes, and measures those
    if isinstance(part, op.WaitForStatus) and part.status == "in_progress":
        return "Start" not in profile.lacks
    if isinstance(part, op.Claim) and part.task is not None:
        return profile.names_tasks
    if isinstance(part, UNDER_ENGINE) and not profile.adds_dependencies:
        added = (one for one in part.children() if isinstance(one, op.AddTask))
        return not any(one.depends for one in added)
    if isinstance(part, op.Verify | VerifySentence):
        return _shows(profile, part.sentence.lower())
    if isinstance(part, ExpectError) and isinstance(part.inner, op.AddBatch):
        return profile.batches
    return not (isinstance(part, ExpectError) and _serves_anyway(profile, part.inner))


def _can_show(profile: BoardProfile, part: Operation) -> bool:
    """May somebody show a number that is not the present one of its own?"""
    if isinstance(part, op.LeaderCommand) and part.borrowed:
        return profile.names_leader
    return profile.fences or not (isinstance(part, op.OwnerCommand) and part.stale)


def _can_be_added(profile: BoardProfile, part: Operation) -> bool:
    """Has its file words for this priority, this number of attempts, and for what a new task waits for?"""
    known = not profile.urgencies or getattr(part, "priority", None) in profile.urgencies
    if isinstance(part, op.AddTask) and not profile.says_priorities:
        known = part.priority == op.AddTask("a").priority
    if isinstance(part, op.AddTask) and not profile.says_attempts:
        own = int(profile.figures.max_attempts)  # what it has anyway need not be said
        known = known and part.max_attempts in (None, own)
    urgent = known or not isinstance(part, op.AddTask)
    return urgent and (profile.says_dependencies or not _waits(part))


def _waits(part: Operation) -> bool:
    """Is a task added that waits for another one?"""
    if isinstance(part, op.AddBatch):
        return any(op.split_new_task(text)[1] for text in part.tasks)
    return isinstance(part, op.AddTask) and bool(part.depends)


def _lacked(profile: BoardProfile, part: Operation) -> bool:
    """Does its file say so? Where no clock can be bent, no worker has a bent one."""
    bent = isinstance(part, op.SpawnWorker) and part.behaviour.startswith("skewed")
    unseen = isinstance(part, op.AssertOwner) and not profile.shows_owners
    return unseen or part.type in profile.lacks or (bent and "SkewClock" in profile.lacks)


def _has_file(profile: BoardProfile, word: str) -> bool:
    """Can this file be damaged, and does the target promise something about it?"""
    files = {
        "backup": profile.has_backups,
        "heartbeat": profile.heartbeat_files,
        "checkpoint": profile.sums_checkpoints,
    }
    return files.get(word, "CorruptBoard" not in profile.lacks)  # it keeps no single file


def _serves_anyway(profile: BoardProfile, command: Operation) -> bool:
    """Is that right to be served by this board which others refuse?"""
    if isinstance(command, op.Claim):
        return command.task is not None and not profile.claims_exclude
    return isinstance(command, op.OwnerCommand) and not profile.owner_speaks


def _shows(profile: BoardProfile, sentence: str) -> bool:
    """Can what a sentence says be seen of this board within a run?"""
    if "completed twice" in sentence:
        return profile.counts_completions
    if any(words in sentence for words in _NEEDS_OWNERS) and not profile.shows_owners:
        return False
    if any(words in sentence for words in _NEEDS_LEASE):
        return profile.leases and profile.figures.lease_s <= LONGEST_WAIT_S
    return True


def _instead(operation: Operation) -> Operation | None:
    """An unnamed claim for a named one: whatever it gets, the model knows. Of what does not come to its end
    within a run, only what is due is waited for.
    """
    if isinstance(operation, ExpectError):
        return operation.inner  # whether it is to be refused the model knows
    if isinstance(operation, op.WaitForSettled):
        return op.Settle(operation.timeout_seconds)
    if isinstance(operation, op.Claim) and operation.task is not None:
        return op.Claim(operation.worker)
    return None


def _alike(operation: Operation) -> Operation | None:
    """The same task for a board that cannot be told what is urgent; None: it is not."""
    usual = op.AddTask("a").priority
    if isinstance(operation, op.AddTask) and operation.priority != usual:
        return replace(operation, priority=usual)
    return None


def _named(profile: BoardProfile, sequence: Sequence[Operation]) -> list[Operation]:
    """Where claims may get any of several tasks, a sequence names the one that it is about."""
    if profile.picks == "oldest" or not profile.names_tasks:
        return list(sequence)
    walk = Walk(BoardModel(replace(profile, picks="oldest")))
    made: list[Operation] = []
    for operation in sequence:
        if isinstance(operation, op.Claim) and operation.task is None:
            found = walk.first_choice(operation)
            operation = operation if found is None else replace(operation, task=found)
        walk.apply(operation)
        made.append(operation)
    return made


def fit(profile: BoardProfile, sequence: Sequence[Operation]) -> Fitted:
    """A sequence as this board can be told it."""
    sequence = _named(profile, sequence)
    again = set() if profile.names_new_tasks else added_again(sequence)
    returned = profile.leases and profile.all_settles
    lost = any(disturbs(part) for item in sequence for part in walk(item)) and not returned

    def has(profile: BoardProfile, part: Operation) -> bool:
        if lost and isinstance(part, op.WaitForSettled):
            return False  # what a worker died with does not come back within a run
        return id(part) not in again and _has_words(profile, part)

    def instead(operation: Operation) -> Operation | None:
        alike = None if profile.says_priorities or id(operation) in again else _alike(operation)
        return alike or _instead(operation)

    words = TargetWords(partial(has, profile), instead, HARMLESS, op.Settle())
    made = fitted(words, sequence)
    if "Repair" in profile.lacks:
        left = _without_waits(made.operations)
        reason = made.nothing_left or unasked(sequence, left)
        made = replace(made, operations=left, nothing_left=reason)
    off = [
        part.name
        for part in sequence
        if isinstance(part, op.Configure)
        and part.name in _OFF_BY_DEFAULT
        and not (_has_words(profile, part) or _is_on(profile, part.name))
    ]
    if off and not made.nothing_left:
        return replace(made, nothing_left=f"the target has no {off[0]}")
    return made


def _without_waits(sequence: Sequence[Operation | None]) -> tuple[Operation | None, ...]:
    """A damaged board that nobody can repair never settles: what it answers is all there is."""
    hurt = False
    kept: list[Operation | None] = []
    for item in sequence:
        hurt = hurt or isinstance(item, op.CorruptBoard | DamageFile)
        waits = item is not None and item.kind is Kind.WAIT
        kept.append(None if hurt and waits else item)
    return tuple(kept)


def _is_on(profile: BoardProfile, figure: str) -> bool:
    on = {"breaker_failures": profile.breaker, "rate_limit": profile.figures.rate_limit > 0}
    return on.get(figure, False)


def added_again(sequence: Sequence[Operation]) -> set[int]:
    """Tasks that are there already are added: a board that gives ids cannot be told that."""
    names: set[str] = set()
    found: set[int] = set()
    for item in sequence:
        for part in walk(item):
            new: tuple[str, ...] = ()
            if isinstance(part, op.AddTask):
                new = (part.task,)
            elif isinstance(part, op.AddBatch):
                new = tuple(part.named)
            if names & set(new):
                found.add(id(part))
            names |= set(new)
    return found
