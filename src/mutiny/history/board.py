"""A task board, checked task by task: owner, epoch and status explain every answer.

A refusal is as telling as a success: `not_owner` must be true at some moment of the call. What the
operations of one task cannot show (a dependency was met, a lease ran out) is a silent change, so
that a state here is the *set* of situations that the task may be in.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mutiny.errors import UsageError
from mutiny.history.events import Entry, refused
from mutiny.history.models import Action, Parts, State
from mutiny.history.tasks import (
    HELD,
    OPERATIONS,
    UNTOLD,
    Task,
    TaskAction,
    explains,
    given_back,
    moved,
    shows,
    with_silent,
)


@dataclass
class Silence:
    """When each worker may have been silent for a whole lease, as far as the history can tell."""

    lease_s: float
    signs: Mapping[str, Sequence[tuple[float, float]]]
    """For each worker, sorted: from when to when it did something that proves that it lives."""
    _known: dict[tuple[str, float], float] = field(default_factory=dict)
    _ends: dict[str, list[float]] = field(default_factory=dict)
    """For each worker and each of its signs: when the first silence that begins there or later is over."""

    @classmethod
    def of(cls, entries: Sequence[Entry], lease_s: float) -> Silence:
        """Heartbeats and claims that were answered with success are signs of life."""
        signs: dict[str, list[tuple[float, float]]] = {}
        for entry in entries:
            lives = entry.operation in ("claim", "heartbeat") and not refused(entry.answer)
            if lives and entry.returned is not None:
                worker = str(entry.arguments.get("worker", ""))
                signs.setdefault(worker, []).append((entry.invoked, entry.returned))
        return cls(lease_s, {worker: sorted(spans) for worker, spans in signs.items()})

    def first(self, worker: str, since: float) -> float:
        """The earliest moment at which a claim of `since` can have run out."""
        key = (worker, since)
        if key not in self._known:
            self._known[key] = self._first(worker, since)
        return self._known[key]

    def _first(self, worker: str, since: float) -> float:
        signs = self.signs.get(worker, ())
        if self._silent(signs, since):
            return since + self.lease_s
        if worker not in self._ends:
            self._ends[worker] = self._all_ends(signs)
        return self._ends[worker][bisect_left(signs, (since, -math.inf))]

    def _all_ends(self, signs: Sequence[tuple[float, float]]) -> list[float]:
        """From the last sign backwards, so that a long history is looked through once."""
        ends = [math.inf]
        for begun, _ in reversed(signs):
            ends.append(begun + self.lease_s if self._silent(signs, begun) else ends[-1])
        return ends[::-1]

    def _silent(self, signs: Sequence[tuple[float, float]], since: float) -> bool:
        """May nothing have been heard for a lease? Only a sign that lies wholly inside disproves it."""
        moment = since + self.lease_s
        first = bisect_right(signs, (since, math.inf))
        last = bisect_left(signs, (moment, -math.inf))
        return all(signs[place][1] >= moment for place in range(first, last))


@dataclass(frozen=True)
class Meaning:
    """Where a board may mean something else by a command."""

    cancels_failed: bool = False
    """A failed task may still be cancelled."""
    cancels_held: bool = True
    """What a worker holds may be cancelled."""
    owner_reclaims: bool = False
    """Who claims what it holds already is told so."""
    batches: bool = True
    """A batch is added as a whole, or not at all."""
    claims_exclude: bool = True
    """A task that is held or over is not claimed."""
    owner_speaks: bool = True
    """Only its owner completes or releases a task."""

    def allows(self, operation: str) -> bool:
        """Does the board mean more by this command than others do?"""
        wider = {"cancel": self.cancels_failed, "claim": self.owner_reclaims}
        wider |= dict.fromkeys(("start", "complete", "fail", "release"), not self.owner_speaks)
        return wider.get(operation, False)


@dataclass(frozen=True)
class BoardModel:
    """A task board; see `docs/history.md` for what each answer needs.

    Without leases a claim ends only by release, fail, complete, cancel or recover. For a board with
    leases use `BoardModel.of(entries, lease_s=...)`: whose claim may have run out is read from the
    whole history.
    """

    silence: Silence | None = None
    max_attempts: int | None = None
    """After so many failed attempts a task fails for good; None: it may or may not."""
    present: frozenset[str] = frozenset()
    """Tasks that were there, and available, before the history began."""
    meaning: Meaning = field(default_factory=Meaning)
    name: str = "task board"

    @classmethod
    def of(
        cls,
        entries: Sequence[Entry],
        *,
        lease_s: float,
        max_attempts: int | None = None,
        present: Iterable[str] = (),
    ) -> BoardModel:
        """The model for one history of a board with leases."""
        return cls(Silence.of(entries, lease_s), max_attempts, frozenset(present))

    def partition(self, entries: Sequence[Entry]) -> Parts:
        """By task. What names no task is either copied to all of them or left out with a reason."""
        return _Partition(self.present, self.meaning.batches).of(entries)

    def initial(self, key: str) -> State:
        """Not there; or available, if it was there before."""
        if key in self.present:
            return frozenset({Task("available", limit=self.max_attempts)})
        return frozenset({Task()})

    def action(self, entry: Entry) -> Action:
        """What counts of an entry. Times count only if leases run out."""
        if entry.operation not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise UsageError(f"operation {entry.operation!r} of {entry}: a task has {known}")
        answer = entry.answer if isinstance(entry.answer, Mapping) else {}
        shown = entry.operation == "list" and isinstance(entry.answer, Mapping)
        epoch = (answer if entry.operation == "claim" else entry.arguments).get("epoch")
        limit = entry.arguments.get("max_attempts") or self.max_attempts
        timed = self.silence is not None
        return TaskAction(
            operation=entry.operation,
            worker=str(entry.arguments.get("worker", "")),
            epoch=epoch if isinstance(epoch, int) else None,
            error=(str(answer.get("error", "refused")) or UNTOLD) if refused(entry.answer) else "",
            answered=entry.returned is not None,
            depends=bool(entry.arguments.get("depends")),
            limit=limit if isinstance(limit, int) and entry.operation == "add" else None,
            row=(answer.get("status"), answer.get("owner"), answer.get("epoch")) if shown else None,
            invoked=entry.invoked if timed and entry.operation == "claim" else 0.0,
            latest=(math.inf if entry.returned is None else entry.returned) if timed else 0.0,
            wider=self.meaning.allows(entry.operation),
            edits=not self.meaning.claims_exclude,
            again=self.meaning.owner_reclaims,
            guarded=not self.meaning.cancels_held,
        )

    def reads_only(self, action: Action) -> bool:
        """Refusals and lists, as long as time itself changes nothing."""
        assert isinstance(action, TaskAction)
        return self.silence is None and (bool(action.error) or action.operation == "list")

    def step(self, state: State, action: Action) -> State | None:
        """Every situation that the task may be in afterwards; None when there is none."""
        assert isinstance(state, frozenset)
        assert isinstance(action, TaskAction)
        after: set[Task] = set()
        for task in self._possible(state, action.latest):
            if action.operation == "list":
                after |= {task} if shows(task, action.row) else set()
            elif action.error:
                after |= {task} if explains(task, action) else set()
            elif action.operation != "recover" or self._ran_out(task, action.latest):
                after.update(moved(task, action))
            if not action.answered:
                after.add(task)  # refused, perhaps: nobody heard the answer
        return with_silent(after) if after else None

    def describe(self, state: State) -> str:
        """The possible situations."""
        assert isinstance(state, frozenset)
        return " or ".join(sorted({str(task) for task in state}))

    def _possible(self, state: frozenset[Task], latest: float) -> Iterable[Task]:
        yield from state
        if self.silence is not None:
            for task in state:
                if task.status in HELD and self._ran_out(task, latest):
                    yield from given_back(task)

    def _ran_out(self, task: Task, latest: float) -> bool:
        """Can the claim have run out by then? Without leases somebody decides that by hand."""
        if self.silence is None or task.owner is None:
            return True
        return self.silence.first(task.owner, task.since) <= latest


_LEFT_OUT = {
    "claim": "a claim that got nothing says nothing about one task",
    "add": "a refused add without an id names no task",
    "add-batch": "a refused batch adds nothing",
    "recover": "a refused recover changes nothing",
    "list": "a list without rows shows nothing",
}
_ABOUT_NO_TASK = (
    *("init", "heartbeat", "checkpoint", "elect", "renew", "step-down", "write-as-leader"),
    *("status", "repair"),
)


@dataclass
class _Partition:
    """Cuts a history of a board into one for each task."""

    present: frozenset[str]
    batches: bool = True
    parts: dict[str, list[Entry]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    anywhere: list[Entry] = field(default_factory=list)
    """Entries without an answer that may have touched any task."""
    lists: list[tuple[Entry, Mapping[str, object]]] = field(default_factory=list)
    """Lists with their rows by task."""

    def of(self, entries: Sequence[Entry]) -> Parts:
        for entry in entries:
            self._place(_as_open(entry))
        for key, part in self.parts.items():
            shown = [entry for entry, _ in self.lists]  # a list shows what a lost claim has done
            last = max((one.returned or one.invoked for one in (*part, *shown)), default=0.0)
            added = key in self.present or any(
                entry.operation == "add"
                and not refused(entry.answer)
                and entry.returned is not None
                for entry in part
            )
            # A crashed claim may have taken any task: each part allows for it.
            part += [
                replace(entry, key=key)
                for entry in self.anywhere
                if entry.invoked <= last and not (added and entry.operation == "add")
            ]
            part += [replace(entry, key=key, answer=rows.get(key)) for entry, rows in self.lists]
        return Parts(self.parts, self.left_out)

    def _place(self, entry: Entry) -> None:
        operation = entry.operation
        if operation == "restore":
            raise UsageError(f"{entry}: a restore rewrites every task; end the history before it")
        if operation in _ABOUT_NO_TASK:
            self._leave_out(f"{operation} is not about a task")
        elif operation == "add-batch" and not refused(entry.answer):
            self._batch(entry)
        elif operation == "add-batch" and not self.batches:  # it may have come half-way
            self._batch(replace(entry, answer=None, returned=None))
        elif operation == "list" and (rows := _rows(entry)) is not None:
            self.lists.append((entry, rows))
        elif operation == "recover" and not refused(entry.answer) and entry.returned is not None:
            for key in _recovered(entry.answer):
                self._add(key, entry)
        else:
            named = _key(entry)
            if named is not None:
                self._add(named, entry)
            elif entry.returned is None and operation in ("claim", "add", "recover"):
                self.anywhere.append(entry)
            else:
                reason = _LEFT_OUT.get(operation)
                if reason is None:
                    raise UsageError(f"{entry}: which task? Neither arguments nor answer say it")
                self._leave_out(reason)

    def _add(self, key: str, entry: Entry) -> None:
        self.parts.setdefault(key, []).append(replace(entry, key=key))

    def _leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def _batch(self, entry: Entry) -> None:
        """Each task of a batch is one `add`; that all came at once is not checked here."""
        asked = entry.arguments.get("tasks")
        answer = entry.answer if isinstance(entry.answer, Mapping) else {}
        said = answer.get("tasks")
        asked = asked if isinstance(asked, Sequence) else ()
        names = said if isinstance(said, Sequence) else [None] * len(asked)
        for wanted, name in zip(asked, names, strict=False):
            task = wanted if isinstance(wanted, Mapping) else {}
            one = replace(entry, operation="add", arguments=task)
            key = task.get("id") or name
            if key is not None:
                self._add(str(key), one)
            elif entry.returned is None:
                self.anywhere.append(one)


def _as_open(entry: Entry) -> Entry:
    """An answer that itself does not know whether it happened is no answer."""
    answer = entry.answer
    if isinstance(answer, Mapping) and answer.get("happened") == "unknown":
        return replace(entry, answer=None, returned=None)
    return entry


def _key(entry: Entry) -> str | None:
    """The task: the answer of a success names it, otherwise the arguments do."""
    if isinstance(entry.answer, Mapping) and isinstance(entry.answer.get("task"), str):
        return str(entry.answer["task"])
    named = entry.arguments.get("id" if entry.operation == "add" else "task")
    return str(named) if named is not None else entry.key


def _recovered(answer: object) -> list[str]:
    """The tasks that a recover took from their owners."""
    found: list[str] = []
    for name in ("returned", "failed"):
        listed = answer.get(name) if isinstance(answer, Mapping) else None
        for one in listed if isinstance(listed, list | tuple) else ():
            found.append(
                str(one.get("task", one.get("id"))) if isinstance(one, Mapping) else str(one)
            )
    return found


def _rows(entry: Entry) -> Mapping[str, object] | None:
    """The rows of a list by task; None: it was refused, or answered in words."""
    answer = entry.answer
    rows = answer.get("tasks") if isinstance(answer, Mapping) else None
    if refused(answer) or entry.returned is None or not isinstance(rows, list | tuple):
        return None
    return {str(row.get("id")): row for row in rows if isinstance(row, Mapping)}
