"""Hazards for exploration: commands broken or hindered, and faults of the library mixed into a sequence.

Pure: beliefs and a source of chance in, operations out. A hazard after which the beliefs could not
say whether a worker exists is followed by the same command once more, which settles it either way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.expect import expect
from mutiny.contracts.workers.model import WorkersModel
from mutiny.kit import faults
from mutiny.model.operation import Operation

Hazard = tuple[float, Callable[[], Operation]]
BREAKING = (op.CrashAt, op.KillAt, op.FailAt)
KILL_AFTER_MS = (5.0, 30.0, 60.0, 90.0, 120.0, 180.0, 260.0)
OFFSETS_S = (3600.0, -3600.0, 86400.0, -86400.0, 2.0)


class Hazards:
    """Makes the hazards that are sensible for some beliefs."""

    def __init__(self, model: WorkersModel, chance: random.Random, names: tuple[str, ...]) -> None:
        self._model = model
        self._chance = chance
        self._names = names
        """Workers whose agents do as they are told."""
        self._lock = model.profile.has_lock

    def calm(self) -> Iterator[Hazard]:
        """While nothing lasts: something breaks, hinders, or begins to last."""
        if any(expect(self._model, item, None).success_due for item in self._commands()):
            yield 0.7, self._broken
        if any(expect(self._model, item, None).success for item in self._commands()):
            yield 0.8, self._hindered
        yield 0.6, self._short
        yield 0.35, self._lasting
        yield 0.3, self._damage

    def during(self) -> Iterator[Hazard]:
        """While a fault lasts: commands that it may hinder, and its end."""
        yield 3.0, faults.Heal
        yield 0.6, op.Status
        yield 0.4, op.Doctor
        yield 0.6, lambda: op.Sleep(self._chance.choice((0.1, 0.3)))
        hindered = [item for item in self._commands() if not isinstance(item, op.Add | op.Nuke)]
        legal = [item for item in hindered if expect(self._model, item, None).success]
        if legal:
            yield 1.5, lambda: self._chance.choice(legal)

    def _commands(self) -> list[Operation]:
        found: list[Operation] = []
        for name in self._names:
            if name not in self._model.workers:
                found.append(op.Add(name))
                continue
            found += [
                op.Start(name, f"Create {name}.txt with 'in spite of all'"),
                op.Accept(name),
                op.Message(name, "Mind the gap"),
                op.ResetWorker(name),
                op.Nuke(name),
            ]
        return found

    def _legal(self, *, due: bool) -> Operation:
        fitting = []
        for item in self._commands():
            expectation = expect(self._model, item, None)
            if expectation.success_due if due else expectation.success:
                fitting.append(item)
        return self._chance.choice(fitting)

    def _broken(self) -> Operation:
        """A command that is due to succeed, broken at one call or after some milliseconds."""
        command = self._legal(due=True)
        sure = self._model.profile.sure_calls
        if not sure or self._chance.random() < 0.4:
            whole = self._chance.random() < 0.5
            return faults.KillDuring(command, self._chance.choice(KILL_AFTER_MS), whole)
        kind = self._chance.choice(BREAKING)
        call = self._chance.randrange(sure)
        if kind is op.FailAt:
            return op.FailAt(command, call, self._chance.choice(op.ERRNOS))
        return kind(command, call)

    def _hindered(self) -> Operation:
        command = self._legal(due=False)
        place = self._chance.choice(("state", "state", "source"))
        if not isinstance(command, op.Accept):
            place = (
                "state"  # the others need not touch the user's repository, and feel nothing there
            )
        lock = (faults.HoldLock(during=command, seconds=0.3),) if self._lock else ()
        # A command that is refused may write nothing at all: it would feel no disk.
        writes = expect(self._model, command, None).success_due
        disk: tuple[Operation, ...] = (
            faults.FillDisk("bytes", place, during=command),
            faults.FillDisk("inodes", place, during=command),
            faults.ReadOnlyDisk(place, during=command),
            faults.SlowFiles(self._chance.choice((1.0, 5.0)), place, during=command),
        )
        choices: tuple[Operation, ...] = (
            *(disk if writes else ()),
            *lock,
            faults.Forbid(during=command),
            faults.LowerLimit(spare=self._chance.choice((0, 1, 3)), during=command),
            faults.SkewClock(offset_s=self._chance.choice(OFFSETS_S), during=command),
            faults.StarveCpu(0.2, during=command),
        )
        return self._chance.choice(choices)

    def _short(self) -> Operation:
        lock = (faults.HoldLock(seconds=0.4),) if self._lock else ()
        choices: tuple[Operation, ...] = (
            faults.SkewClock(offset_s=self._chance.choice(OFFSETS_S), seconds=0.3),
            faults.StarveCpu(0.15, seconds=0.4),
            faults.LowerLimit(spare=self._chance.choice((0, 1, 3)), seconds=0.4),
            faults.LowerLimit(what="file_size", seconds=0.4),
            *lock,
            faults.Forbid(seconds=0.3),
        )
        return self._chance.choice(choices)

    def _lasting(self) -> Operation:
        return self._chance.choice(
            (
                faults.SkewClock(offset_s=self._chance.choice(OFFSETS_S), lasting=True),
                faults.StarveCpu(0.3, lasting=True),
                faults.LowerLimit(spare=self._chance.choice((0, 1, 3)), lasting=True),
                faults.Forbid(lasting=True),
            )
        )

    def _damage(self) -> Operation:
        how = self._chance.choice(("append", "flip", "stale", "truncate"))
        return faults.DamageFile(how, seed=self._chance.randrange(1, 100))


def settles(hazard: Operation) -> tuple[Operation, ...]:
    """What must follow a hazard so that the beliefs know again who exists."""
    inner = hazard.children()[0] if hazard.children() else None
    up = (op.Up(),) if ends_world(hazard) else ()
    again = (inner,) if isinstance(inner, op.Add | op.Nuke) else ()
    return (*up, *again)


def ends_world(hazard: Operation) -> bool:
    """Is every process of the box dead after it?"""
    return isinstance(hazard, op.SweepPoint | faults.KillDuring) and hazard.ends_world
