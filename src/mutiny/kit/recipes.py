"""Parts of scenarios that every contract can take: other machines, commands said wrongly."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.kit.domains import ROOTS
from mutiny.kit.operations import (
    MISUSES,
    UNCONFIRMED,
    WRONG_SETTINGS,
    Misuse,
    Reset,
    WrongSetting,
)
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.model.operation import Operation


def everywhere(sequence: Sequence[Operation]) -> dict[str, tuple[Operation, ...]]:
    """The sequence on every unusual machine: a scenario each, so that one bug does not hide the next."""
    steps = [one for one in sequence if not isinstance(one, Reset)]
    machines = {f"on_{name}": (Reset(surroundings=name), *steps) for name in SURROUNDINGS}
    places = {"in_odd_directory": ROOTS[0], "in_escaped_directory": ROOTS[-1]}
    return {**machines, **{name: (Reset(root=root), *steps) for name, root in places.items()}}


def misset(command: Operation, places: int = 1) -> tuple[Operation, ...]:
    """The command with every mistake in each of so many settings."""
    return tuple(
        WrongSetting(command, how, place)
        for place in range(places)
        for how in WRONG_SETTINGS
        if how != "unknown" or place == 0  # that one is in none of them
    )


def said_wrongly(*commands: Operation) -> tuple[Operation, ...]:
    """Each command in every wrong way that does not depend on what it is about."""
    ways = [how for how in MISUSES if how != "wrong_type"]
    return tuple(Misuse(command, how) for command in commands for how in ways)


def unconfirmed(*commands: Operation) -> tuple[Operation, ...]:
    """Each of these commands, which ask first, without an answer to their question."""
    return tuple(Misuse(command, UNCONFIRMED) for command in commands)


def with_words_for_numbers(*commands: Operation) -> tuple[Operation, ...]:
    """Each of these commands, which take a number, with a word instead of it."""
    return tuple(Misuse(command, "wrong_type") for command in commands)
