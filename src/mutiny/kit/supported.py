"""A sequence as one target can be told it: only what the target has is asked for.

A word that the target lacks is replaced by one that means nearly the same, or its step is left out. The
model judges every answer by what was really done, so the rest of the sequence stays a fair question. What
the sequence itself had expected (a refusal, a status to wait for, an assertion) is not asked any more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mutiny.kit.experiment import EXPERIMENT_OPERATIONS, SteadyState, VerifySentence, Watch
from mutiny.kit.operations import (
    UNCONFIRMED,
    Choice,
    ExpectError,
    Interleave,
    Misuse,
    Parallel,
    Wrongly,
    WrongSetting,
    disturbs,
)
from mutiny.kit.profile import TargetProfile
from mutiny.model.felt import comes_alone, unfelt
from mutiny.model.operation import Kind, Operation, walk


@dataclass(frozen=True)
class TargetWords:
    """What can be said to a target."""

    has: Callable[[Operation], bool]
    """Has it a word for this operation? Asked for each part of a combination."""
    instead: Callable[[Operation], Operation | None] = lambda _operation: None
    """Another operation for one that it has no word for; None: nothing comes close."""
    harmless: Collection[str] = ()
    """Operations without which a sequence still shows what it is about: looks, settings, preparations."""
    settle: Operation | None = None
    """Waits for whatever is due; takes the place of a wait for what the whole sequence had made due."""
    needless: Callable[[Operation], bool] = lambda _operation: False
    """Does it mean nothing to this target? Without it everything is expected as before."""

    def say(self, operation: Operation) -> bool:
        """Can an operation be said with all of its parts?"""
        return all(self.has(part) for part in walk(operation))


@dataclass(frozen=True)
class Fitted:
    """What became of a sequence."""

    operations: tuple[Operation | None, ...]
    """For each operation itself, another one, or None: it is left out."""
    changes: tuple[str, ...] = ()
    """What is done otherwise, in words."""
    nothing_left: str = ""
    """Why there is nothing left to show; empty when there is."""
    said: tuple[Operation, ...] = ()
    """What can be run, with all that was expected of it before anything was left out."""

    @property
    def sequence(self) -> tuple[Operation, ...]:
        """What can be run."""
        return tuple(one for one in self.operations if one is not None)


def can_be_misset(profile: TargetProfile, operation: WrongSetting) -> bool:
    """Has the target such a setting, and does it promise to refuse it?"""
    return (
        operation.place < len(profile.number_settings) and operation.how in profile.refused_settings
    )


def can_be_misused(profile: TargetProfile, part: Operation) -> bool:
    """Whatever is no misuse, and a command that has something to be said wrongly in this way."""
    if not isinstance(part, Misuse):
        return True
    some = {"wrong_type": profile.typed, UNCONFIRMED: profile.asks_first}
    return part.how not in some or part.operation.type in some[part.how]


def fitted(words: TargetWords, sequence: Sequence[Operation]) -> Fitted:
    """The sequence in the words of a target."""
    made: list[Operation | None] = []
    said: list[Operation] = []
    changes: list[str] = []
    lost: list[str] = []
    doubtful = False
    for operation in sequence:
        one = _said(words, operation)
        if one != operation:
            told = "left out" if one is None else f"said as {one.short()}"
            changes.append(f"{operation.short()}: {told}")
            refused = isinstance(operation, Wrongly)  # it would have changed nothing
            if one is None and not refused and _subject(operation).type not in words.harmless:
                lost.append(operation.short())
            quiet = refused or _only_looks(operation) or words.needless(operation)
            doubtful = doubtful or not quiet
        made.append(undemanding(words.settle, one) if doubtful and one is not None else one)
        said += () if one is None else (one,)
    nothing_left = _nothing_left(sequence, made, lost)
    return Fitted(tuple(made), tuple(changes), nothing_left, tuple(said))


def worth_running(
    given: Mapping[str, Sequence[Operation]],
    fit: Callable[[Sequence[Operation]], Fitted],
    telling: Collection[str] = (),
) -> dict[str, tuple[Operation, ...]]:
    """The sequences that have something left to show on a target, in its words.

    One that lost a telling command, and of which another one asks all that is left, is not among them: to
    pass it would say nothing of what its name promises.
    """
    found = {name: fit(sequence) for name, sequence in given.items()}
    left = {name: one.sequence for name, one in found.items() if not one.nothing_left}
    for name in list(left):
        said = zip(given[name], found[name].operations, strict=True)
        poorer = any(one is None and _subject(asked).type in telling for asked, one in said)
        if poorer and any(_asks_all(found[name], found[other]) for other in left if other != name):
            del left[name]
    return left


def _asks_all(poorer: Fitted, other: Fitted) -> bool:
    """Does another sequence ask all that is left of one? What is only waited for otherwise is the same."""
    return _is_part(poorer.sequence, other.sequence) or _is_part(poorer.said, other.said)


def _is_part(sequence: Sequence[Operation], whole: Sequence[Operation]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in sequence)


def _subject(operation: Operation) -> Operation:
    return operation.inner if isinstance(operation, ExpectError) else operation


def _only_looks(operation: Operation) -> bool:
    if isinstance(operation, VerifySentence):
        return False  # what it would have shown the next steps may rely on
    return operation.looks or operation.kind is Kind.ASSERTION or isinstance(operation, Watch)


def _said(words: TargetWords, operation: Operation) -> Operation | None:
    """One operation with all of its parts, as far as they can be said."""
    if not words.has(operation):
        other = words.instead(operation)
        return other if other is not None and words.say(other) else None
    if isinstance(operation, SteadyState | Watch):
        return _asked(words, operation)
    if isinstance(operation, Parallel | Interleave | Choice):
        return _of_several(words, operation)
    changes: dict[str, Any] = {}
    for item in fields(operation):
        value = getattr(operation, item.name)
        if isinstance(value, Operation):
            part = _said(words, value)
            if part is None:
                return None
            changes[item.name] = part
    if isinstance(operation, ExpectError) and changes["inner"] != operation.inner:
        return operation.inner if words.say(operation.inner) else None
    return replace(operation, **changes) if changes else operation


def _asked(words: TargetWords, operation: SteadyState | Watch) -> Operation:
    """Without sentences about what the target does not show, and without a probe that it lacks."""
    lines = tuple(line for line in operation.sentences if words.has(VerifySentence(line)))
    if isinstance(operation, SteadyState):
        return replace(operation, sentences=lines)
    probe = operation.probe
    kept = probe if probe is None or words.say(probe) else None
    return replace(operation, sentences=lines, probe=kept)


def _of_several(words: TargetWords, operation: Parallel | Interleave | Choice) -> Operation | None:
    """Those of several operations that can be said; an exact order of calls fits only all of them."""
    whole = operation.children()
    parts = tuple(one for one in (_said(words, part) for part in whole) if one is not None)
    if parts == whole:
        return operation
    if len(parts) < 2:
        return parts[0] if parts else None
    return Choice(parts) if isinstance(operation, Choice) else Parallel(parts)


def undemanding(settle: Operation | None, operation: Operation) -> Operation | None:
    """The same without what only the whole sequence could expect."""
    if isinstance(operation, ExpectError):
        return operation.inner  # whether it is to be refused the model knows
    if operation.type in EXPERIMENT_OPERATIONS:
        return operation  # sentences know what is only not so yet
    if operation.kind is Kind.ASSERTION:
        return None
    return settle if operation.kind is Kind.WAIT and settle is not None else operation


def unasked(sequence: Sequence[Operation], made: Sequence[Operation | None]) -> str:
    """Why nothing would show a fault, after the last one or while one lasts; empty when all are shown."""
    left = [one for one in made if one is not None]
    if left and comes_alone(left[-1]) and not comes_alone(sequence[-1]):
        return f"nothing can be asked of the target after {left[-1].short()}"
    before = list(unfelt(sequence))
    lost = next((one for one in unfelt(left) if one not in before), None)
    return "" if lost is None else f"nothing can be asked of it while {lost.short()} is on"


def _nothing_left(
    sequence: Sequence[Operation], made: Sequence[Operation | None], lost: Sequence[str]
) -> str:
    """Why what is left says nothing of what the sequence is about."""
    left = [part for one in made if one is not None for part in walk(one)]
    if not any(part.asks for part in left) and any(one.asks for one in sequence):
        return "the target has none of its commands"
    before = [part for one in sequence for part in walk(one) if disturbs(part)]
    if before and not any(disturbs(part) for part in left):
        return f"the target cannot have its faults: {before[0].short()}"
    if reason := unasked(sequence, made):
        return reason
    verified = [one for one in sequence if isinstance(one, VerifySentence)]
    if verified and not any(isinstance(part, VerifySentence) for part in left):
        return f"nothing that it verifies can be seen of the target: {verified[0].sentence}"
    wrong = [one for one in sequence if isinstance(one, Wrongly)]
    if wrong and not any(isinstance(part, Wrongly) for part in left):
        return f"the target cannot be told what it is about: {wrong[0].short()}"
    if lost and not before:
        return f"the target cannot be told what it is about: {lost[0]}"
    return ""
