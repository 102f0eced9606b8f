"""What the agent doubles wrote down: who runs, who received what, who committed what.

Read incrementally: the file only grows, so each look costs what is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mutiny.doubles.agents.records import TEXT_LIMIT
from mutiny.doubles.install import Received, read_received
from mutiny.kit.views import AgentView, Receipt
from mutiny.system.files import BoxPath

Identity = tuple[int, int]
_CONDITIONS = {
    "start": "none",
    "exit": "none",
    "prompt": "busy",
    "ready": "idle",
    "turn_end": "idle",
}
"""What an agent does after it wrote this."""


class ReceivedLog:
    """The doubles' record, read a little further each time."""

    def __init__(self, path: BoxPath) -> None:
        self._path = path
        self._offset = 0
        self.records: list[Received] = []

    def refresh(self) -> list[Received]:
        """Read what is new and return everything."""
        new, self._offset = read_received(self._path, self._offset)
        self.records.extend(new)
        return self.records

    def turns(self, worker: str) -> int:
        """Prompts that agents of this worker have received so far."""
        return sum(
            1 for record in self.records if record.event == "prompt" and record.worker == worker
        )


def identity(record: Received) -> Identity:
    """Pid and start time of the agent that wrote a record."""
    return (record.pid, record.start)


def receipts(records: Iterable[Received]) -> tuple[Receipt, ...]:
    """Every prompt that an agent received, with what became of it."""
    found: list[Receipt] = []
    open_turn: dict[Identity, int] = {}
    for record in records:
        who = identity(record)
        if record.event == "prompt":
            open_turn[who] = len(found)
            found.append(
                Receipt(
                    token=record.token,
                    tokens=record.tokens,
                    worker=record.worker,
                    agent=who,
                    kind=record.kind or "other",
                    earlier_alive=any(earlier.alive for earlier in record.earlier),
                    same_agent=any(earlier.same_agent for earlier in record.earlier),
                    text=_whole(record.text),
                )
            )
        elif record.event == "wrote" and who in open_turn:
            index = open_turn[who]
            found[index] = replace(found[index], wrote=True)
        elif record.event == "shaped" and who in open_turn:
            index = open_turn[who]
            found[index] = replace(found[index], shape=record.shape, removed=record.removed)
        elif record.event == "commit" and who in open_turn:
            index = open_turn[who]
            found[index] = replace(found[index], committed=True)
        elif record.event == "turn_end" and who in open_turn:
            index = open_turn.pop(who)
            found[index] = replace(found[index], finished=True)
    return tuple(found)


def _whole(text: str | None) -> str | None:
    return None if text is None or len(text) >= TEXT_LIMIT else text


def agents(records: Iterable[Received], alive: frozenset[Identity]) -> tuple[AgentView, ...]:
    """Every agent that announced itself, and whether it still runs."""
    started: dict[Identity, Received] = {}
    busy: set[Identity] = set()
    left: set[Identity] = set()
    cut_off: set[Identity] = set()
    children: dict[Identity, list[Identity]] = {}
    for record in records:
        who = identity(record)
        if record.event == "start":
            started[who] = record
        elif record.event == "prompt":
            busy.add(who)
        elif record.event == "turn_end":
            busy.discard(who)
            cut_off |= {who} if record.outcome == "cut off" else set()
        elif record.event == "exit":
            left.add(who)
        elif record.event == "child" and record.child and record.child_start:
            children.setdefault(who, []).append((record.child, record.child_start))
    return tuple(
        AgentView(
            record.worker,
            who,
            who in alive,
            who in busy,
            who in left,
            who in cut_off,
            tuple(child for child in children.get(who, ()) if child in alive),
            record.argv,
        )
        for who, record in started.items()
    )


def conditions(
    records: Iterable[Received], alive: frozenset[Identity] | None = None
) -> dict[str, str]:
    """What the newest agent of each worker does: `busy`, `idle`, or `none` before it is ready and when it
    has left or is not among those that are `alive`.
    """
    newest: dict[str, Identity] = {}
    doing: dict[str, str] = {}
    for record in records:
        if record.event == "start":
            newest[record.worker] = identity(record)
        if newest.get(record.worker) == identity(record) and record.event in _CONDITIONS:
            doing[record.worker] = _CONDITIONS[record.event]
    dead = () if alive is None else (name for name, who in newest.items() if who not in alive)
    return {**doing, **dict.fromkeys(dead, "none")}
