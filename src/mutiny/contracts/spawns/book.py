"""What the rules about state share: the book that they stand in, and what they look at."""

from __future__ import annotations

from collections.abc import Iterator

from mutiny.contracts.spawns.model import SpawnsModel
from mutiny.contracts.spawns.observation import Message, Run, SpawnsSeen
from mutiny.kit.checking import Check, RuleBook
from mutiny.kit.faults import SkewClock
from mutiny.model.operation import walk

SpawnsCheck = Check[SpawnsModel, SpawnsSeen]
Accused = Iterator[tuple[str, str]]
BOOK: RuleBook[SpawnsCheck] = RuleBook("spawns")
SLACK_S = 0.05
"""Between two readings of one clock."""


def new_messages(check: SpawnsCheck) -> list[Message]:
    """Messages that were not there before."""
    return [one for one in check.seen.messages.values() if one.id not in check.before.messages]


def runs_of(seen: SpawnsSeen, message: Message, agent: str) -> list[Run]:
    """The runs of an agent for a message."""
    return [run for run in seen.runs.values() if (run.message, run.agent) == (message.id, agent)]


def clock_bent(check: SpawnsCheck) -> bool:
    """Was somebody's clock bent, so that times of day tell nothing?"""
    return check.model.bent or any(isinstance(one, SkewClock) for one in walk(check.operation))
