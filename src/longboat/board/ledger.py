"""Where transitions read and write tasks while one verb is decided.

A ledger is scratch paper: the memory one starts from a board and ends as another board, so that a
verb is a pure function from outside; the SQLite one is an open transaction. Both mean the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from longboat.board.config import Config
from longboat.board.scheduling import Breaker, is_due
from longboat.board.values import (
    AVAILABLE,
    BLOCKED,
    HELD,
    STATUSES,
    Board,
    Bucket,
    Leader,
    Task,
)
from longboat.planting import planted


class Moment(NamedTuple):
    """One reading of the board's clock, and when everybody was last heard of on that clock."""

    now: float
    beats: Mapping[str, float]
    leader_beat: float = float("-inf")
    since: float = float("-inf")

    def age_s(self, worker: str) -> float:
        """How long nothing was heard of a worker; one never heard of counts from ``since``."""
        return self.now - self.beats.get(worker, self.since)

    def leader_age_s(self) -> float:
        """How long the leader has not renewed."""
        return self.now - max(self.leader_beat, self.since)


class Guards:
    """What protects the board from its users; kept by whoever keeps the board running."""

    def __init__(self, *, with_breaker: bool, buckets: Mapping[str, Bucket] | None = None) -> None:
        self.breaker: Breaker | None = Breaker() if with_breaker else None
        self.buckets: dict[str, Bucket] = dict(buckets or {})


class Counters(NamedTuple):
    """What never goes down."""

    sequence: int
    epoch_floor: int


class Ledger(Protocol):
    """What a transition needs to know and may change."""

    config: Config
    guards: Guards

    def get(self, task: str) -> Task | None:
        """One task."""

    def put(self, task: Task) -> None:
        """Add or replace one task."""

    def best(self, now: float) -> Task | None:
        """The task that is to be claimed next."""

    def held(self) -> list[Task]:
        """Claimed and in progress."""

    def waiting_on(self, task: str) -> list[Task]:
        """Blocked tasks that depend on this one."""

    def resting(self) -> list[Task]:
        """Available tasks that wait for the end of a backoff."""

    def blocked(self) -> list[Task]:
        """Tasks with open dependencies."""

    def tasks(self) -> list[Task]:
        """All, in the order in which they were added."""

    def counts(self) -> dict[str, int]:
        """How many are in each status."""

    def replace_all(self, tasks: Iterable[Task]) -> None:
        """Forget all tasks and keep these."""

    @property
    def counters(self) -> Counters:
        """What never goes down."""

    def set_counters(self, counters: Counters) -> None:
        """Let them grow."""

    @property
    def leader(self) -> Leader:
        """The leader, past or present."""

    def set_leader(self, leader: Leader) -> None:
        """Another leader, or another write of it."""


def claim_order(task: Task) -> tuple[int, int]:
    """The smallest is claimed first: most urgent, then oldest."""
    if planted("newest-first"):
        return (0, -task.order)
    return (task.priority, task.order)


class MemoryLedger:
    """A ledger on a board in memory; the board that it was given never changes."""

    def __init__(self, board: Board, config: Config, guards: Guards) -> None:
        self.config = config
        self.guards = guards
        self._before = board
        self._tasks = dict(board.tasks)
        self._leader = board.leader
        self._counters = Counters(board.sequence, board.epoch_floor)
        self.touched: dict[str, Task] = {}
        self.replaced = False

    def board(self) -> Board:
        """The board afterwards; the very same object when nothing changed."""
        after = self._before._replace(
            tasks=self._tasks,
            leader=self._leader,
            sequence=self._counters.sequence,
            epoch_floor=self._counters.epoch_floor,
        )
        return self._before if after == self._before else after

    def get(self, task: str) -> Task | None:
        """One task."""
        return self._tasks.get(task)

    def put(self, task: Task) -> None:
        """Add or replace one task."""
        self._tasks[task.id] = task
        self.touched[task.id] = task

    def best(self, now: float) -> Task | None:
        """The task that is to be claimed next."""
        ready = [
            task
            for task in self._tasks.values()
            if task.status == AVAILABLE and is_due(self.config, task.not_before, now)
        ]
        return min(ready, key=claim_order, default=None)

    def held(self) -> list[Task]:
        """Claimed and in progress."""
        return [task for task in self._tasks.values() if task.status in HELD]

    def waiting_on(self, task: str) -> list[Task]:
        """Blocked tasks that depend on this one."""
        return [one for one in self.blocked() if task in one.depends]

    def resting(self) -> list[Task]:
        """Available tasks that wait for the end of a backoff."""
        return [
            task for task in self._tasks.values() if task.status == AVAILABLE and task.not_before
        ]

    def blocked(self) -> list[Task]:
        """Tasks with open dependencies."""
        return [task for task in self._tasks.values() if task.status == BLOCKED]

    def tasks(self) -> list[Task]:
        """All, in the order in which they were added."""
        return list(self._tasks.values())

    def counts(self) -> dict[str, int]:
        """How many are in each status."""
        counts = dict.fromkeys(STATUSES, 0)
        for task in self._tasks.values():
            counts[task.status] += 1
        return counts

    def replace_all(self, tasks: Iterable[Task]) -> None:
        """Forget all tasks and keep these."""
        self._tasks = {task.id: task for task in tasks}
        self.touched = dict(self._tasks)
        self.replaced = True

    @property
    def counters(self) -> Counters:
        """What never goes down."""
        return self._counters

    def set_counters(self, counters: Counters) -> None:
        """Let them grow."""
        self._counters = counters

    @property
    def leader(self) -> Leader:
        """The leader, past or present."""
        return self._leader

    def set_leader(self, leader: Leader) -> None:
        """Another leader, or another write of it."""
        self._leader = leader
