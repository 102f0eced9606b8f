"""The history of a run: every command with the moments of its invocation and its return.

Mutiny's own commands are noted here; the worker doubles write their own files inside of the box. All
moments are of the machine's monotonic clock, which no fault of ours can bend.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mutiny.contracts.board.profile import BoardProfile
from mutiny.errors import MutinyError
from mutiny.history.board import BoardModel, Meaning
from mutiny.history.checker import Limits, Verdict, check
from mutiny.history.events import Entry, parse_history, write_history
from mutiny.system.files import BoxPath

LONGEST = 256 << 20
"""Of the histories of a load, in bytes."""
ENDING = ("restore", "repair")
"""Commands that rewrite every task: the history that can be checked ends before them."""
_WORDS = {Verdict.LINEARIZABLE: "yes", Verdict.NOT_LINEARIZABLE: "no", Verdict.UNKNOWN: "unknown"}


@dataclass(frozen=True)
class Begun:
    """A command that was invoked."""

    process: str
    operation: str
    arguments: Mapping[str, object]
    invoked: float


class History:
    """All commands of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[Entry] = []
        self._lock = threading.Lock()
        self._count = 0
        self.complete = True
        """False when the board had a life before this history."""
        self._cut: float | None = None
        self.names: Mapping[str, str] = {}
        """The board's own name of a task -> ours, where workers only know its own."""

    def begin(self, process: str, operation: str, arguments: Mapping[str, object]) -> Begun:
        """A command is about to be given."""
        with self._lock:
            self._count += 1
            return Begun(f"{process}/{self._count}", operation, arguments, time.monotonic())

    def end(self, begun: Begun, answer: Mapping[str, object], *, heard: str) -> float:
        """Its `answer`, or that it is `unknown` what happened, or that `nothing` did; the moment."""
        returned = time.monotonic()
        if heard == "nothing":
            return returned
        lost = heard == "unknown"
        entry = Entry(
            begun.process,
            begun.operation,
            begun.arguments,
            None if lost else answer,
            begun.invoked,
            None if lost else returned,
        )
        with self._lock:
            self._entries.append(entry)
        return returned

    def cut(self) -> None:
        """A fault writes into the board's files now: what comes after it no order has to explain."""
        if self._cut is None:
            self._cut = time.monotonic()

    def entries(self, others: Sequence[BoxPath]) -> list[Entry]:
        """Everything up to now, with what the workers wrote; a line that is half written ends a file."""
        found = list(self._entries)
        for path in others:
            lines = path.read_text(errors="replace", limit=LONGEST).splitlines()
            whole = [line for line in lines if _is_whole(line)]
            found += (self._ours(one) for one in parse_history(whole, where=str(path)))
        found.sort(key=lambda entry: entry.invoked)
        return found

    def _ours(self, entry: Entry) -> Entry:
        """What a worker wrote down, with our names of the tasks."""
        if not self.names:
            return entry
        answer = entry.answer
        told = _renamed(answer, self.names) if isinstance(answer, Mapping) else answer
        return replace(entry, arguments=_renamed(entry.arguments, self.names), answer=told)

    def write(self, others: Sequence[BoxPath]) -> None:
        """Keep it in the run directory, as far as it can be read."""
        try:
            entries = self.entries(others)
        except (MutinyError, OSError) as error:
            entries = list(self._entries)
            left_out = self.path.with_name("history.left_out.txt")
            left_out.write_text(f"{error}\n", encoding="utf-8", errors="backslashreplace")
        write_history(self.path, entries)

    def contended(self, others: Sequence[BoxPath], since: float) -> bool:
        """Were workers told since then that somebody else is at work, while others were served? Who comes
        too late every time is slow, and not stuck; a lock that nobody lets go serves nobody.
        """
        answers = [one.answer for one in self.entries(others) if one.invoked >= since]
        told = [answer for answer in answers if isinstance(answer, Mapping)]
        busy = [answer.get("error") == "busy" for answer in told]
        return any(busy) and not all(busy)

    def judge(self, profile: BoardProfile, others: Sequence[BoxPath]) -> dict[str, object]:
        """Is there an order that explains it all? `yes`, `no` or `unknown`, with a text."""
        if not self.complete:
            return {"verdict": "yes", "text": "the board is older than the history"}
        try:
            entries = _before_the_end(self.entries(others), self._cut)
        except (MutinyError, OSError) as error:
            return {"verdict": "unknown", "text": str(error), "operations": len(self._entries)}
        model = model_for(entries, profile)
        try:
            report = check(entries, model, Limits(seconds=10.0 + len(entries) / 200))
        except MutinyError as error:
            return {"verdict": "unknown", "text": str(error), "operations": len(entries)}
        told: dict[str, object] = {
            "verdict": _WORDS[report.verdict],
            "operations": len(entries),
            "seconds": round(report.seconds, 3),
        }
        if report.wrong:
            told |= {"text": report.render(), "key": report.wrong[0].key}
        return told


def _renamed(said: Mapping[str, object], names: Mapping[str, str]) -> dict[str, object]:
    own = said.get("task")
    return {**said, "task": names.get(own, own)} if isinstance(own, str) else dict(said)


def _is_whole(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def model_for(entries: Sequence[Entry], profile: BoardProfile) -> BoardModel:
    """What a history of a board with this profile has to be like."""
    figures, tolerance_s = profile.figures, profile.limits.tolerance_s
    lease_s = figures.shortest_lease_s or figures.lease_s
    made = BoardModel.of(
        entries,
        lease_s=max(0.0, lease_s - tolerance_s) if profile.leases else math.inf,
        max_attempts=None if profile.fail_is_final else int(figures.max_attempts),
    )
    return replace(
        made,
        meaning=Meaning(
            cancels_failed=profile.cancels_failed,
            cancels_held=profile.cancels_held,
            owner_reclaims=profile.owner_reclaims,
            batches=profile.batches,
            claims_exclude=profile.claims_exclude,
            owner_speaks=profile.owner_speaks,
        ),
    )


def _before_the_end(entries: Sequence[Entry], cut: float | None = None) -> list[Entry]:
    """Up to the first command that rewrites everything; what was under way then stays open."""
    ends = [entry.invoked for entry in entries if entry.operation in ENDING]
    ends += [] if cut is None else [cut]
    if not ends:
        return list(entries)
    end = min(ends)
    return [
        entry
        if entry.returned is None or entry.returned <= end
        else replace(entry, returned=None, answer=None)
        for entry in entries
        if entry.invoked < end
    ]
