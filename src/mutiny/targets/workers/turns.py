"""How the agents of each worker are to behave, by the names that the agents know of themselves.

A double calls itself as its directory is called. Where a program names its workers itself, nobody knows
that name before the agent is there: it is then told as whoever is not known yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mutiny.targets.kit.naming import Names

ANYBODY = "*"
"""Who is not named in a script."""
ORDINARY = ("obey",)


@dataclass(frozen=True)
class Planned:
    """What one worker's agents do from now on."""

    turns: tuple[str, ...]
    done: Mapping[str, int]
    """Directory -> turns that its agents had had when this was said: these are over."""


class Turns:
    """The turns of all workers that were told how to behave."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._planned: dict[str, Planned] = {}
        self._written: Mapping[str, Sequence[str]] = {}

    def set(self, worker: str, turns: Sequence[str], done: Mapping[str, int]) -> None:
        """The next turns of a worker's agents, behind those that are `done` by directory."""
        self._planned[worker] = Planned(tuple(turns), done)

    def can_be_told(self, worker: str) -> bool:
        """Is there nobody else unknown who is to behave otherwise?"""
        others = (one for one in self._names.untold if one != worker)
        return all(self._of(one) == self._of(worker) for one in others)

    def _of(self, worker: str) -> tuple[str, ...]:
        planned = self._planned.get(worker)
        return ORDINARY if planned is None else planned.turns

    def script(self, places: Mapping[str, str]) -> dict[str, list[str]] | None:
        """The script for agents in these directories; None when it is written already."""
        if not self._planned:
            return None
        by_place = {self._names.own(worker): worker for worker in self._planned} | dict(places)
        made = {place: self._at(place, worker) for place, worker in by_place.items()}
        if self._names.untold:
            made[ANYBODY] = list(self._of(self._names.untold[-1]))
        if made == self._written:
            return None
        self._written = made
        return made

    def _at(self, place: str, worker: str) -> list[str]:
        planned = self._planned.get(worker)
        if planned is None:
            return list(ORDINARY)
        return ["obey"] * planned.done.get(place, 0) + list(planned.turns)
