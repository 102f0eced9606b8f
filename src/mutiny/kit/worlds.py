"""One sequence in every unusual world: what works on one machine has to work on all of them."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.kit.operations import Reset
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.operation import Operation


def everywhere(sequence: Sequence[Operation]) -> tuple[Operation, ...]:
    """The sequence again and again, each time on another machine, from its beginning."""
    steps = [one for one in sequence if not isinstance(one, Reset)]
    return tuple(step for name in SURROUNDINGS for step in (Reset(surroundings=name), *steps))
