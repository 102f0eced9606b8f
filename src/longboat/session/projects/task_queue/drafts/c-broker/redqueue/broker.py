"""The broker: queues by priority, jobs that are due later, and the queue of dead letters."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from redqueue.jobs import Job

__all__ = ["Broker", "UnknownJob"]


class UnknownJob(KeyError):
    """Nobody holds such a job."""


class Broker:
    """Keeps jobs until somebody has done them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ids = itertools.count(1)
        self._ready: list[tuple[int, int, Job]] = []
        self._later: list[tuple[float, int, Job]] = []
        self._taken: dict[int, tuple[Job, str]] = {}
        self.dead: list[Job] = []
        self.done = 0

    def put(self, payload: str, priority: int = 100, delay_s: float = 0.0) -> int:
        """A new job; its number."""
        job = Job(next(self._ids), payload, priority, self._clock() + delay_s)
        self._keep(job)
        return job.id

    def _keep(self, job: Job) -> None:
        if job.not_before_s > self._clock():
            heapq.heappush(self._later, (job.not_before_s, job.id, job))
        else:
            heapq.heappush(self._ready, (job.priority, job.id, job))

    def tick(self) -> int:
        """Jobs that have become due may be taken; how many those were."""
        moved = 0
        while self._later and self._later[0][0] <= self._clock():
            _, _, job = heapq.heappop(self._later)
            heapq.heappush(self._ready, (job.priority, job.id, job))
            moved += 1
        return moved

    def take(self, worker: str) -> Job | None:
        """The most urgent job, the oldest first; None when none is due."""
        self.tick()
        if not self._ready:
            return None
        _, _, job = heapq.heappop(self._ready)
        self._taken[job.id] = (job, worker)
        return job

    def finish(self, number: int) -> None:
        """A job is done."""
        self._give_back(number)
        self.done += 1

    def fail(self, number: int) -> bool:
        """A job has failed: later again, or dead; True when it will be tried again."""
        job = self._give_back(number).failed(self._clock())
        if job.exhausted:
            self.dead.append(job)
            return False
        self._keep(job)
        return True

    def _give_back(self, number: int) -> Job:
        if number not in self._taken:
            raise UnknownJob(number)
        return self._taken.pop(number)[0]

    def stats(self) -> dict[str, int]:
        """How many jobs are where."""
        return {
            "ready": len(self._ready),
            "later": len(self._later),
            "taken": len(self._taken),
            "dead": len(self.dead),
            "done": self.done,
        }
