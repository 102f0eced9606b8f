"""Workers: take a job, do it, tell the broker; and who has not been heard of lately."""

from __future__ import annotations

from collections.abc import Callable

from redqueue.broker import Broker

__all__ = ["Heartbeats", "Worker"]


class Heartbeats:
    """Who lives: whoever was heard of within the limit."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._heard: dict[str, float] = {}

    def beat(self, worker: str, now_s: float) -> None:
        """A worker lives."""
        self._heard[worker] = now_s

    def silent(self, now_s: float) -> list[str]:
        """Who is gone; each is told once."""
        gone = sorted(name for name, at in self._heard.items() if now_s - at > self._limit_s)
        for name in gone:
            del self._heard[name]
        return gone


class Worker:
    """Does jobs, one after the other."""

    def __init__(self, name: str, broker: Broker, do: Callable[[str], None]) -> None:
        self.name = name
        self._broker = broker
        self._do = do

    def step(self) -> bool:
        """One job; False when there is none to do."""
        job = self._broker.take(self.name)
        if job is None:
            return False
        try:
            self._do(job.payload)
        except Exception:
            self._broker.fail(job.id)
        else:
            self._broker.finish(job.id)
        return True

    def drain(self, limit: int = 10_000) -> int:
        """Jobs until none is due; how many were done."""
        count = 0
        while count < limit and self.step():
            count += 1
        return count
