"""Exploration: sequences that the model allows, chosen by weight, faults mixed in.

A sequence is a pure function of the seed: the model walks through it on a clock of its own. What the
commands really answer is judged with the moments at which they really ran.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.profile import LONGEST_WAIT_S, BoardProfile
from mutiny.contracts.board.supported import supported
from mutiny.contracts.board.symbolic import Walk
from mutiny.contracts.board.tasks import Task
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.seeds import stream

WORKERS = ("w1", "w2", "w3")
NODES = ("n1", "n2")
MOST_TASKS = 9
MOST_CRASHES = 3
BACKGROUND = ("healthy", "slow:300", "claim-and-die", "double", "stranger", "deaf", "flood")


@dataclass(frozen=True)
class _Candidate:
    weight: float
    make: Callable[[], Operation]


def generate(profile: BoardProfile, seed: int, length: int) -> tuple[Operation, ...]:
    """Reset, Init, Up, `length` chosen operations, then recovery."""
    chooser = _Chooser(profile, stream(seed, "explore"))
    sequence: list[Operation] = [common.Reset()]
    beginning: tuple[Operation, ...] = (op.Init(), op.Up(), op.AddTask("t1"))
    for operation in beginning:
        sequence.append(operation)
        chooser.walk.apply(operation)
    while len(sequence) < length + 1 or chooser.next:
        operation = chooser.choose()
        sequence.append(operation)
        chooser.walk.apply(operation)
    sequence.extend(chooser.recovery())
    return tuple(sequence)


class _Chooser:
    """Chooses the next operation from the beliefs."""

    def __init__(self, profile: BoardProfile, rng: random.Random) -> None:
        self.profile = profile
        self.walk = Walk(BoardModel(profile))
        self.random = rng
        self.next: list[Operation] = []
        """What must come next, whatever else would be sensible."""
        self.added = 1
        self.crashes = 0
        self.spawns = 0

    @property
    def model(self) -> BoardModel:
        return self.walk.model

    def choose(self) -> Operation:
        """One operation that makes sense now."""
        if self.next:
            return self.next.pop(0)
        if self.profile.server and self.model.serving is not True:
            return op.Up()
        while True:
            candidates = [one for one in self._candidates() if one.weight > 0]
            weights = [one.weight for one in candidates]
            operation = self.random.choices(candidates, weights)[0].make()
            self.next = [one for one in self.next if supported(self.profile, one)]
            if supported(self.profile, operation):
                return operation
            self.next = []

    def recovery(self) -> Iterator[Operation]:
        """Faults off; a healthy worker comes, and every task comes to its end."""
        if self.profile.server and self.model.serving is not True:
            yield op.Up()
        for name in sorted({name.rpartition("-")[0] or name for name in self.model.spawned}):
            yield op.StopWorker(name)
        yield op.Status()
        yield op.SpawnWorker("helper")
        yield op.Settle()
        yield op.StopWorker("helper")
        if self.profile.all_settles:
            yield op.Verify("all tasks are settled")
        if self.profile.counts_completions:
            yield op.Verify("no task is completed twice")
        yield op.Settle()

    # --- candidates ------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[_Candidate]:
        yield from self._tasks_come()
        yield from self._claims()
        for task in self.model.tasks.values():
            yield from self._of_task(task)
        yield from self._copies()
        yield from self._leaders()
        yield from self._faults()
        yield from self._background()
        yield _Candidate(0.5, op.Status)
        yield _Candidate(0.4, op.List)
        yield _Candidate(0.8, op.Recover)
        yield _Candidate(0.3, op.Settle)
        yield _Candidate(0.5, lambda: common.Sleep(self.random.choice((0.05, 0.2, 0.5))))
        lease_s = self.profile.figures.lease_s
        held = any(task.held for task in self.model.tasks.values())
        if held and self.profile.leases and lease_s <= LONGEST_WAIT_S:
            yield _Candidate(0.5, lambda: common.Sleep(round(lease_s + 0.5, 3)))

    def _name(self) -> str:
        self.added += 1
        return f"t{self.added}"

    def _worker(self) -> str:
        return self.random.choice(WORKERS)

    def _some(self, names: list[str], most: int) -> tuple[str, ...]:
        count = min(len(names), self.random.randint(0, most))
        return tuple(sorted(self.random.sample(names, count)))

    def _add(self) -> Operation:
        depends = self._some(list(self.model.tasks), 2) if self.random.random() < 0.4 else ()
        priority = self.random.choice((1, 5, 5, 9))
        most = 1 if self.random.random() < 0.15 else None
        size = self.random.choice((0, 0, 0, 5000))
        return op.AddTask(self._name(), priority, depends, most, size)

    def _batch(self) -> Operation:
        first, second = self._name(), self._name()
        kind = self.random.random()
        if kind < 0.2:
            return op.AddBatch((f"{first}:{second}", f"{second}:{first}"))
        if kind < 0.4:
            return op.AddBatch((first, f"{second}:nobody"))
        if kind < 0.5 and self.model.tasks:
            return op.AddBatch((first, next(iter(self.model.tasks))))
        return op.AddBatch((first, f"{second}:{first}"))

    def _tasks_come(self) -> Iterator[_Candidate]:
        open_tasks = sum(1 for task in self.model.tasks.values() if not task.over)
        room = len(self.model.tasks) < MOST_TASKS * 2 and open_tasks < MOST_TASKS
        yield _Candidate(4 if room else 0.2, self._add)
        yield _Candidate(1.2 if room and self.profile.batches else 0, self._batch)
        if self.model.tasks and self.profile.names_new_tasks:
            known = self.random.choice(list(self.model.tasks))
            yield _Candidate(0.3, lambda: op.AddTask(known))

    def _claims(self) -> Iterator[_Candidate]:
        free = any(task.status == "available" for task in self.model.tasks.values())
        yield _Candidate(6 if free else 0.8, lambda: op.Claim(self._worker()))
        if self.model.tasks:
            known = self.random.choice(list(self.model.tasks))
            yield _Candidate(0.8, lambda: op.Claim(self._worker(), known))
        if free:
            both = (op.Claim("w1"), op.Claim("w2"))
            yield _Candidate(0.9, lambda: common.Parallel(both))
            yield _Candidate(
                0.5, lambda: common.Parallel((op.Claim("w3"), op.AddTask(self._name())))
            )

    def _of_task(self, task: Task) -> Iterator[_Candidate]:
        name, owner = task.id, task.owner
        if task.held and owner is not None and owner not in self.model.spawned:
            yield _Candidate(3, lambda: op.Complete(owner, name, size=self._size()))
            if task.status == "claimed":
                yield _Candidate(1, lambda: op.Start(owner, name))
            yield _Candidate(1, lambda: op.Fail(owner, name))
            yield _Candidate(0.7, lambda: op.Release(owner, name))
            yield _Candidate(1, lambda: op.Heartbeat(owner))
            yield _Candidate(0.3, lambda: op.Complete(owner, name, stale=True))
            pair = (op.Complete(owner, name), op.Recover())
            yield _Candidate(0.2, lambda: common.Parallel(pair))
        yield _Candidate(0.15, lambda: op.Complete(self._worker(), name))
        yield _Candidate(0.15, lambda: op.Cancel(name))
        yield _Candidate(1.0 if task.status == "failed" else 0.05, lambda: op.Retry(name))

    def _size(self) -> int:
        return self.random.choice((0, 0, 0, 3000))

    def _copies(self) -> Iterator[_Candidate]:
        yield _Candidate(0.5, lambda: op.Checkpoint(self.random.choice(("c1", "c2"))))
        if self.model.checkpoints and not self.model.loose:
            known = self.random.choice(sorted(self.model.checkpoints))
            yield _Candidate(0.5, lambda: op.Restore(known))

    def _leaders(self) -> Iterator[_Candidate]:
        node = self.random.choice(NODES)
        yield _Candidate(0.8, lambda: op.Elect(node))
        if self.model.tokens:
            yield _Candidate(0.5, lambda: op.WriteAsLeader(node))
            yield _Candidate(0.2, lambda: op.WriteAsLeader(node, stale=True))
            yield _Candidate(0.3, lambda: op.Renew(node))
            yield _Candidate(0.3, lambda: op.StepDown(node))

    # --- faults ----------------------------------------------------------------------------------

    def _change(self, *, at_any_pace: bool = False) -> Operation:
        """A command that changes the board; `at_any_pace`: also when every lease has ended before it."""
        held = [task for task in self.model.tasks.values() if task.held and task.owner in WORKERS]
        wanted: list[Operation] = [op.AddTask(self._name())]
        for task in () if at_any_pace else held:
            complete = op.Complete(str(task.owner), task.id)
            if self.walk.certain(complete):
                wanted.append(complete)
        claim = op.Claim(self._worker())
        if self.walk.certain(claim):
            wanted.append(claim)
        return self.random.choice(wanted)

    def _faults(self) -> Iterator[_Candidate]:
        if self.model.loose:
            return
        if self.profile.server:
            yield _Candidate(0.5, op.KillServer)
            yield _Candidate(0.5, lambda: op.KillServer(self._change()))
            yield _Candidate(0.3, op.RestartServer)
            yield _Candidate(0.2, op.StartSecondServer)
        else:
            yield _Candidate(0.6, self._corrupt)
            yield _Candidate(0.4, lambda: faults.FillDisk(during=self._change(at_any_pace=True)))
            yield _Candidate(0.3, lambda: op.HoldBoardLock(0.3, self._change()))
        if not self.profile.server:
            skew = self.random.choice((-3600.0, 3600.0))
            yield _Candidate(
                0.4, lambda: faults.SkewClock(offset_s=skew, during=op.Claim(self._worker()))
            )
        if self.crashes >= MOST_CRASHES or self.profile.server:
            return
        after_ms = self.random.choice((5.0, 40.0, 80.0))
        whole = self.random.random() < 0.5
        yield _Candidate(
            0.6, lambda: self._crash(faults.KillDuring(self._change(), after_ms, whole))
        )
        if self.profile.sure_calls:
            call = self.random.randrange(self.profile.sure_calls)
            errno = self.random.choice(common.ERRNOS)
            yield _Candidate(0.6, lambda: self._crash(common.CrashAt(self._adding(), call)))
            yield _Candidate(0.4, lambda: self._crash(common.KillAt(self._adding(), call)))
            yield _Candidate(0.5, lambda: self._crash(common.FailAt(self._adding(), call, errno)))

    def _adding(self) -> Operation:
        return op.AddTask(self._name())

    def _crash(self, hazard: Operation) -> Operation:
        self.crashes += 1
        self.next = [op.List()]
        return hazard

    def _corrupt(self) -> Operation:
        self.next = [op.Claim(self._worker()), op.Repair(), op.List()]
        if not supported(self.profile, op.Repair()):  # nothing brings it back: a new board, then
            anew = (common.Reset(), op.Init(), op.Up(), op.AddTask(self._name()))
            self.next = [op.Claim(self._worker()), op.List(), *anew]
        how = self.random.choice(("garbage", "truncate", "flip", "empty", "delete"))
        return op.CorruptBoard(how, self.random.randrange(100))

    def _background(self) -> Iterator[_Candidate]:
        if self.model.spawned:
            name = self.random.choice(sorted(self.model.spawned))
            yield _Candidate(3, lambda: op.StopWorker(name))
            yield _Candidate(1, lambda: op.KillWorker(name))
            return
        if self.spawns < 2 and self.model.tasks:
            yield _Candidate(0.7, self._spawn)

    def _spawn(self) -> Operation:
        self.spawns += 1
        behaviour = self.random.choice(BACKGROUND)
        name = f"spawned{self.spawns}"
        if behaviour == "claim-and-die":
            self.next = [common.Sleep(0.5), op.StopWorker(name)]
        return op.SpawnWorker(name, behaviour)
