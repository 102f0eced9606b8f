"""Parts of scenarios that every contract can take: other machines, commands said wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.kit.operations import MISUSES, Misuse, Reset
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.operation import Operation


def everywhere(sequence: Sequence[Operation]) -> dict[str, tuple[Operation, ...]]:
    """The sequence on every unusual machine: a scenario each, so that one bug does not hide the next."""
    steps = [one for one in sequence if not isinstance(one, Reset)]
    return {f"on_{name}": (Reset(surroundings=name), *steps) for name in SURROUNDINGS}


def said_wrongly(*commands: Operation) -> tuple[Operation, ...]:
    """Each command in every wrong way."""
    return tuple(Misuse(command, how) for command in commands for how in MISUSES)
