"""What a board that stays running has in common: its clock, who was heard of, its guards.

The clock is the server's own monotonic one. Who was heard of is not kept: after a restart everybody
has one full new lease, because nobody could be heard while nobody listened.
"""

from __future__ import annotations

import os
import time

from longboat.board import codec, engine
from longboat.board.config import Config
from longboat.board.ledger import Guards, Moment
from longboat.board.values import Answer, Command
from longboat.planting import planted


class Service:
    """The living part of boards B and C."""

    def __init__(self, directory: str, config: Config) -> None:
        self.directory = directory
        self.config = config
        self.guards = Guards(with_breaker=True)
        self._since = time.monotonic()
        self._beats: dict[str, float] = {}
        self._leader_beat = float("-inf")
        self._kept: list[str] = []
        self._opened: list[int] = []

    def file(self, *names: str) -> str:
        """A path below the directory."""
        return os.path.join(self.directory, *names)

    def moment(self) -> Moment:
        """Now."""
        return Moment(time.monotonic(), self._beats, self._leader_beat, self._since)

    def hear(self, worker: str) -> None:
        """A worker lives."""
        self._beats[worker] = time.monotonic()

    def before(self, command: Command) -> None:
        """Note who speaks."""
        engine.check(command)
        if engine.beats(command):
            self.hear(command.worker)

    def after(self, command: Command, answer: Answer) -> None:
        """Note what was answered."""
        if answer["ok"] and engine.renews(command):
            self._leader_beat = time.monotonic()
        if command.verb == "complete" and planted("memory-leak"):
            self._kept.append(codec.to_json(answer) * 1000)
        if command.verb == "complete" and planted("descriptor-leak"):
            self._opened.append(os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY))
