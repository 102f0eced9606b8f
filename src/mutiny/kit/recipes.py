"""Parts of scenarios that every contract can take: other machines, commands said wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.kit.operations import MISUSES, Misuse, Reset
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.operation import Operation


def everywhere(sequence: Sequence[Operation]) -> tuple[Operation, ...]:
    """The sequence again and again, each time on another machine, from its beginning."""
    steps = [one for one in sequence if not isinstance(one, Reset)]
    return tuple(step for name in SURROUNDINGS for step in (Reset(surroundings=name), *steps))


def said_wrongly(*commands: Operation) -> tuple[Operation, ...]:
    """Each command in every wrong way."""
    return tuple(Misuse(command, how) for command in commands for how in MISUSES)
