"""Where agents sit: what each is doing, with which process, and what it has used."""

from __future__ import annotations

from collections.abc import Callable

from longboat.session.crew import Hand
from longboat.session.limits import Window
from longboat.session.policy import Tries
from longboat.session.values import Json


class Job:
    """What an agent is doing: a task, a vote, or the tests of a gate."""

    def __init__(self, kind: str, name: str, left_s: tuple[float, float] = (0.0, 0.0)) -> None:
        self.kind = kind
        self.name = name
        self.left_s = list(left_s)
        """How long it still thinks before it asks, and before it asks again."""
        self.half = 0
        self.thinks_since_s: float | None = None
        self.prompt = ""
        self.results: list[Json] = []
        self.rounds = 0
        """How often the model has asked for tools since it was told the task."""
        self.again = 0
        """How often the model was asked in other words."""
        self.tests: Json | None = None
        self.files: dict[str, Json] = {}


class Desk:
    """One agent's place: its process, its job, its call under way, what it has used."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hand: Hand | None = None
        self.job: Job | None = None
        self.call: Json | None = None
        self.held: Callable[[], None] | None = None
        self.tries = Tries()
        self.asks_from_s = 0.0
        """Before that the model asked not to be asked."""
        self.tokens = Window()
        self.calls = Window()
        self.free_since_s = 0.0
        self.throttled = ""
        self.generation = 0
        """Counts jobs: a timer of an earlier one means nothing."""
