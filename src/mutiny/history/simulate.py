"""Histories that are right by construction, and one way to spoil them.

Every simulated operation takes effect at one moment between its call and its return, on one plain
object; so an order exists, and a checker that finds none is wrong. The objects here are written
without the models, as a program would be: a mistake has to be made twice to stay hidden.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from mutiny.history.events import Entry

Request = tuple[str, dict[str, object], str | None]
"""Operation, arguments, key."""


class Simulated(Protocol):
    """A shared object together with the habits of its users."""

    def choose(self, process: str, random: Random) -> Request:
        """What a process asks for next."""

    def apply(self, asked: Entry) -> object:
        """Do it, at one moment, and say the answer."""

    def heard(self, process: str, answer: object) -> None:
        """The process got its answer."""


def simulate(
    target: Simulated, random: Random, *, operations: int, processes: int, lost: float = 0.0
) -> list[Entry]:
    """Let processes work at once. `lost` is the share of answers that never arrive."""
    world = _World(target, random, operations, lost)
    for number in range(processes):
        world.later(random.random(), _Invoke(f"p{number}"))
    world.run()
    return sorted(world.entries, key=lambda entry: entry.invoked)


@dataclass(frozen=True)
class _Invoke:
    process: str

    def __call__(self, world: _World) -> None:
        if world.remaining == 0:
            return
        world.remaining -= 1
        operation, arguments, key = world.target.choose(self.process, world.random)
        asked = Entry(self.process, operation, arguments, None, world.now, None, key)
        if world.random.random() >= world.lost:
            world.later(world.random.random(), _Effect(asked))
            return
        world.entries.append(asked)
        if world.random.random() < 0.5:  # it happens some time later, or never
            world.later(world.random.expovariate(0.2), _Effect(asked, heard=False))
        world.later(world.random.random(), self)


@dataclass(frozen=True)
class _Effect:
    asked: Entry
    heard: bool = True

    def __call__(self, world: _World) -> None:
        answer = world.target.apply(self.asked)
        if self.heard:
            world.later(world.random.random(), _Return(self.asked, answer))


@dataclass(frozen=True)
class _Return:
    asked: Entry
    answer: object

    def __call__(self, world: _World) -> None:
        world.target.heard(self.asked.process, self.answer)
        world.entries.append(replace(self.asked, answer=self.answer, returned=world.now))
        world.later(world.random.random() / 4, _Invoke(self.asked.process))


@dataclass
class _World:
    """Simulated time: what happens next, and what was seen of it."""

    target: Simulated
    random: Random
    remaining: int
    lost: float
    now: float = 0.0
    entries: list[Entry] = field(default_factory=list)
    _agenda: list[tuple[float, int, Callable[[_World], None]]] = field(default_factory=list)
    _count: int = 0

    def later(self, delay: float, what: Callable[[_World], None]) -> None:
        self._count += 1  # equal times keep their order, and steps are never compared
        heapq.heappush(self._agenda, (round(self.now + delay, 6), self._count, what))

    def run(self) -> None:
        while self._agenda:
            self.now, _, what = heapq.heappop(self._agenda)
            what(self)


@dataclass
class SimulatedRegisters:
    """Some registers, read and written at random."""

    keys: int = 1
    values: int = 5
    content: dict[str | None, object] = field(default_factory=dict)

    def choose(self, process: str, random: Random) -> Request:
        """Half reads, the rest writes and swaps."""
        key = f"k{random.randrange(self.keys)}"
        kind = random.random()
        first, second = random.randrange(self.values), random.randrange(self.values)
        if kind < 0.5:
            return "read", {}, key
        return ("write", {"value": first}, key) if kind < 0.75 else _swap(first, second, key)

    def apply(self, asked: Entry) -> object:
        """What the operation does and says."""
        before = self.content.get(asked.key)
        if asked.operation == "read":
            return before
        if asked.operation == "write":
            self.content[asked.key] = asked.arguments["value"]
            return None
        if before != asked.arguments["old"]:
            return False
        self.content[asked.key] = asked.arguments["new"]
        return True

    def heard(self, process: str, answer: object) -> None:
        """Nothing to remember."""


def _swap(old: int, new: int, key: str) -> Request:
    return "cas", {"old": old, "new": new}, key


@dataclass
class SimulatedBoard:
    """A task board and its workers: they add, claim, work, and sometimes ask for what is not theirs.

    With `endless` there is one task that everybody wants and nobody completes.
    """

    endless: bool = False
    mischief: float = 0.25
    """The share of requests that name somebody else's task or an old epoch."""
    tasks: dict[str, dict[str, object]] = field(default_factory=dict)
    plans: dict[str, list[Request]] = field(default_factory=dict)
    added: int = 0

    def choose(self, process: str, random: Random) -> Request:
        """The next step of the worker's own plan, or some mischief."""
        plan = self.plans.setdefault(process, [])
        if self.tasks and random.random() < self.mischief:
            name = random.choice(list(self.tasks)[-8:])
            verb = random.choice(("complete", "start", "fail", "release", "retry", "cancel"))
            if self.endless and verb in ("complete", "cancel"):
                verb = "claim"
            worker: dict[str, object] = {} if verb in ("retry", "cancel") else {"worker": process}
            epoch: dict[str, object] = {"epoch": random.randrange(1, 4)}
            named = {**worker, "task": name, **(epoch if worker and verb != "claim" else {})}
            return verb, named, None
        if plan:
            return plan.pop(0)
        if not self.tasks or (not self.endless and random.random() < 0.4):
            self.added += 1
            return "add", {"id": f"t{self.added}"}, None
        wanted: dict[str, object] = {"task": "t1"} if self.endless else {}
        return "claim", {"worker": process, **wanted}, None

    def heard(self, process: str, answer: object) -> None:
        """A worker that got a task plans what to do with it."""
        if not isinstance(answer, Mapping) or "epoch" not in answer:
            return
        task, epoch = answer["task"], answer["epoch"]
        named: dict[str, object] = {"worker": process, "task": task, "epoch": epoch}
        last = "complete"
        if self.endless or epoch == 1:
            last = "fail" if (int(str(task)[1:]) + epoch) % 3 == 0 else last
        if self.endless:
            last = "release" if last == "complete" else last
        self.plans[process] += [("start", named, None), (last, named, None)]

    def apply(self, asked: Entry) -> object:
        """What the operation does and says."""
        verb, arguments = asked.operation, asked.arguments
        if verb == "add":
            name = str(arguments["id"])
            if name in self.tasks:
                return _refusal("duplicate_id")
            self.tasks[name] = {"status": "available", "owner": None, "epoch": 0}
            return {"ok": True, "task": name}
        if verb == "claim":
            return self._claim(arguments)
        task = self.tasks.get(str(arguments["task"]))
        if task is None:
            return _refusal("unknown_task")
        return self._by_hand(verb, task) or self._by_owner(verb, task, arguments)

    def _claim(self, arguments: Mapping[str, object]) -> object:
        names = [str(arguments["task"])] if "task" in arguments else list(self.tasks)
        for name in names:
            task = self.tasks.get(name)
            if task is not None and task["status"] == "available":
                epoch = int(str(task["epoch"])) + 1
                task.update(status="claimed", owner=arguments["worker"], epoch=epoch)
                return {"ok": True, "task": name, "epoch": epoch}
        if "task" not in arguments:
            return _refusal("nothing_to_claim")
        return _refusal("task_not_available" if names[0] in self.tasks else "unknown_task")

    def _by_hand(self, verb: str, task: dict[str, object]) -> object:
        if verb not in ("retry", "cancel"):
            return None
        over = task["status"] in ("done", "cancelled", "failed")
        if (verb == "cancel" and over) or (verb == "retry" and task["status"] != "failed"):
            return _refusal("wrong_status")
        task.update(status="available" if verb == "retry" else "cancelled", owner=None)
        return {"ok": True}

    def _by_owner(
        self, verb: str, task: dict[str, object], arguments: Mapping[str, object]
    ) -> object:
        if task["owner"] != arguments["worker"]:
            return _refusal("not_owner")
        if arguments["epoch"] != task["epoch"]:
            return _refusal("stale_epoch")
        if task["status"] not in (["claimed"] if verb == "start" else ["claimed", "in_progress"]):
            return _refusal("wrong_status")
        after = {"start": "in_progress", "complete": "done"}.get(verb, "available")
        owner = task["owner"] if verb in ("start", "complete") else None
        task.update(status=after, owner=owner)
        return {"ok": True}


def _refusal(error: str) -> dict[str, object]:
    return {"ok": False, "error": error}


def spoiled(entries: Sequence[Entry], random: Random) -> list[Entry]:
    """The same history with the answers of two operations of one kind exchanged."""
    kinds: dict[str, list[int]] = {}
    for number, entry in enumerate(entries):
        if entry.returned is not None:
            kinds.setdefault(entry.operation, []).append(number)
    pairs = [
        (first, second)
        for numbers in kinds.values()
        for first in numbers
        for second in numbers
        if first < second and entries[first].answer != entries[second].answer
    ]
    changed = list(entries)
    if pairs:
        first, second = random.choice(pairs)
        changed[first] = replace(entries[first], answer=entries[second].answer)
        changed[second] = replace(entries[second], answer=entries[first].answer)
    return changed
