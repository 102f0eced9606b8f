"""Jobs that come again and again, and jobs at a given time."""

from __future__ import annotations

from dataclasses import dataclass

from redqueue.broker import Broker

__all__ = ["Entry", "Scheduler"]


@dataclass
class Entry:
    """A job that is put into the queue every so often."""

    name: str
    payload: str
    every_s: float
    due_s: float


class Scheduler:
    """Puts jobs into the queue when their time has come."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._entries: dict[str, Entry] = {}

    def every(self, name: str, payload: str, every_s: float, now_s: float) -> None:
        """A job every so many seconds; the same name replaces the entry."""
        if every_s <= 0:
            raise ValueError("a job cannot come more often than always")
        self._entries[name] = Entry(name, payload, every_s, now_s + every_s)

    def cancel(self, name: str) -> bool:
        """No more of this; False when there is none."""
        return self._entries.pop(name, None) is not None

    def tick(self, now_s: float) -> int:
        """Everything that is due; a late tick makes one job of each entry, not many."""
        due = [entry for entry in self._entries.values() if entry.due_s <= now_s]
        for entry in due:
            self._broker.put(entry.payload)
            missed = int((now_s - entry.due_s) // entry.every_s)
            entry.due_s += entry.every_s * (missed + 1)
        return len(due)
