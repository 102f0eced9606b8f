"""What may be the case: one or several models at once, each sure of everything but moments.

A command whose outcome nobody learned, or a lease that is too close to tell, leaves several alternatives.
The next look at the target refutes all but one of them, or all, and then a promise is broken. There is a
bound to their number; but a contradiction among alternatives of which some were given up proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Self, TypeVar

from mutiny.kit.operations import LibraryFault

MOST_WORLDS = 64
"""So many are followed at once."""
GIVEN_UP = "there were too many possibilities to follow, and some were given up"


class Span(NamedTuple):
    """A moment that lies somewhere between two others."""

    earliest: float
    latest: float


ANYTIME = Span(-math.inf, math.inf)


def older(now: Span, then: Span, limit_s: float, tolerance_s: float) -> bool | None:
    """Is `then` longer ago than the limit? None when that is too close to tell."""
    if now.earliest - then.latest > limit_s + tolerance_s:
        return True
    return False if now.latest - then.earliest < limit_s - tolerance_s else None


@dataclass(frozen=True, kw_only=True)
class ModelBase:
    """What the model of every contract has; a contract adds what its own targets hold."""

    faults: tuple[str, ...] = ()
    """Faults since the system was last seen settled."""
    lasting: tuple[LibraryFault, ...] = ()
    """Faults that are on now: commands may fail, and nothing has to happen by itself."""
    guessed: bool = False
    """Some possibilities were given up: that nothing fits proves nothing any more."""
    doubted: bool = False
    """What stands in the target's state may be what a fault wrote there: it is nobody's promise."""
    misled: bool = False
    """A command that was said wrongly was served: a refusal that a sequence expects is no promise now."""

    def fault(self, text: str) -> Self:
        """A fault has happened."""
        return replace(self, faults=(*self.faults, text))

    def see(self, seen: Any) -> Self:
        """Narrowed by what is seen."""
        return self

    def agrees(self, seen: Any) -> bool:
        """Is what is seen about the same things that this model knows?"""
        return True

    def pending(self, seen: Any) -> tuple[str, ...]:
        """What has still to happen by itself before the system is settled, in plain words."""
        return ()

    def excludes(self, subject: str, status: str) -> bool:
        """Can nothing explain that the subject has this status?"""
        return False

    def outline(self) -> Hashable:
        """What tells most worlds apart, and can be looked up."""
        return None

    def join(self, other: Any) -> Self | None:
        """One model that is less sure of moments, when the two differ in nothing else."""
        return None


Model = TypeVar("Model", bound=ModelBase)


@dataclass(frozen=True)
class Beliefs(Generic[Model]):
    """What may be the case. More than one after a command whose outcome nobody learned."""

    alternatives: tuple[Model, ...]
    fitting: int = 0
    """So many of the first fit best to what was seen last; 0: all of them alike."""
    undecided_until: float = 0.0
    """Until then what is seen decides nothing: the target may still finish it or take it back."""

    @property
    def guessed(self) -> bool:
        """Some possibilities were given up."""
        return any(one.guessed for one in self.alternatives)

    @property
    def likely(self) -> tuple[Model, ...]:
        """Those that fit best to what was seen last."""
        return self.alternatives[: self.fitting or None]

    def that_agree(self, seen: Any) -> tuple[Model, ...]:
        """Those that know the same things as what is seen, the likely ones first."""
        same = tuple(one for one in self.likely if one.agrees(seen))
        return same or tuple(one for one in self.alternatives if one.agrees(seen)) or self.likely


def distinct(models: Iterable[Model], most: int = MOST_WORLDS) -> tuple[Model, ...]:
    """Each model once. Too many are joined as far as they differ in moments only; what is still too
    much is given up, and the others know it.
    """
    found = _unequal(models)
    if len(found) > most:
        found = _joined(found)
    if len(found) > most:
        found = [replace(model, guessed=True) for model in found[:most]]
    return tuple(found)


def _unequal(models: Iterable[Model]) -> list[Model]:
    shelves: dict[Hashable, list[Model]] = {}
    found: list[Model] = []
    for model in models:
        shelf = shelves.setdefault(model.outline(), [])
        if model not in shelf:
            shelf.append(model)
            found.append(model)
    return found


def _joined(models: Iterable[Model]) -> list[Model]:
    shelves: dict[Hashable, list[Model]] = {}
    for model in models:
        shelf = shelves.setdefault(model.outline(), [])
        for place, other in enumerate(shelf):
            both = other.join(model)
            if both is not None:
                shelf[place] = both
                break
        else:
            shelf.append(model)
    return [model for shelf in shelves.values() for model in shelf]
