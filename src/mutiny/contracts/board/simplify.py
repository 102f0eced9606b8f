"""What makes a sequence simpler, and which shortened ones are nonsense."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.background import named
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.outcomes import COMMANDS
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.sentences import understand
from mutiny.contracts.board.symbolic import Walk
from mutiny.kit import operations as common
from mutiny.kit.simplifying import (
    Forms,
    deeds,
    exact_points,
    fewer,
    mentioned,
    smaller_waits,
    unwrapped,
    with_one,
    without,
)
from mutiny.model.operation import Operation


def plausible(
    profile: BoardProfile, sequence: Sequence[Operation], original: Sequence[Operation] = ()
) -> bool:
    """Walk the sequence on a clock of its own; False when it is nonsense."""
    if not sequence or not isinstance(sequence[0], common.Reset):
        return False
    promised = {one for way, one in _walked(profile, original) if _agrees(way.model, one)}
    if sequence[-1] not in promised and not _still_means_it(sequence, original):
        return False
    return all(
        _sensible(way, operation) and (operation not in promised or _agrees(way.model, operation))
        for way, operation in _walked(profile, sequence)
    )


def _walked(
    profile: BoardProfile, sequence: Sequence[Operation]
) -> Iterator[tuple[Walk, Operation]]:
    """Every operation with the state that it meets."""
    way = Walk(BoardModel(profile))
    for operation in sequence:
        if isinstance(operation, common.Reset):
            way = Walk(BoardModel(profile))
            continue
        yield way, operation
        way.apply(operation)


def _agrees(model: BoardModel, operation: Operation) -> bool:
    """Does the model say what is asserted? Then no shorter sequence may make it wrong by itself."""
    if isinstance(operation, op.AssertStatus):
        task = model.tasks.get(operation.task)
        return task is not None and task.status == operation.status
    if isinstance(operation, op.AssertOwner):
        task = model.tasks.get(operation.task)
        return task is not None and task.held and task.owner == operation.worker
    if isinstance(operation, op.Verify) and not model.loose:
        return understand(operation.sentence).of(_pictured(model)).so is True
    return False


def _pictured(model: BoardModel) -> BoardObservation:
    """The board as the model sees it; for how long nothing has changed, and servers, it cannot say."""
    views = {
        task.id: TaskView(
            task.id,
            task.status,
            task.owner,
            task.epoch,
            task.attempts,
            task.max_attempts,
            task.priority,
            task.depends,
            unchanged_s=math.inf,
        )
        for task in model.tasks.values()
    }
    leader = None if model.leader is None else model.leader.node
    return BoardObservation(tasks=views, absent=not model.initialised, leader=leader)


def _still_means_it(sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
    """A sentence at the end that no model decides is about everything before it: of that nothing but
    looking may be left out.
    """
    last = sequence[-1]
    if not isinstance(last, op.Verify) or last not in original:
        return True
    end = len(original) - original[::-1].index(last)
    return deeds(sequence) == deeds(original[:end])


def _sensible(way: Walk, operation: Operation) -> bool:
    model = way.model
    early = (op.Init, op.Up, op.Configure, common.Sleep)
    if not model.initialised and not isinstance(operation, early):
        return isinstance(operation, common.ExpectError) and way.served(operation.inner) is False
    if isinstance(operation, common.ExpectError):
        served = isinstance(operation.inner, COMMANDS) and way.certain(operation.inner)
        return served is not True or model.damaged
    if isinstance(operation, op.AssertStatus | op.AssertOwner | op.WaitForStatus):
        return operation.task in model.tasks
    if isinstance(operation, op.KillWorker | op.PauseWorker | op.StopWorker):
        return bool(named(model.spawned, operation.worker))
    if isinstance(operation, op.KillServer | op.StartSecondServer | op.RestartServer):
        return model.serving is True
    if isinstance(operation, op.WaitForSettled):
        return bool(model.spawned) or all(task.over for task in model.tasks.values())
    if (
        model.profile.server
        and isinstance(operation, COMMANDS)
        and not isinstance(operation, early)
    ):
        return model.serving is not False
    return True


def simpler(sequence: Sequence[Operation]) -> Forms:
    """Simpler forms, the most promising first; each with a word for the progress line."""
    yield from unwrapped(sequence)
    yield from fewer("workers", "worker", sequence)
    yield from fewer("nodes", "node", sequence)
    yield from _without_tasks(sequence)
    yield from _plainer(sequence)
    yield from smaller_waits(sequence)
    yield from exact_points(sequence)


def _without_tasks(sequence: Sequence[Operation]) -> Forms:
    """A task that nobody needs, with everything that is said about it."""
    for name in reversed(mentioned(sequence, "task")):
        kept = without(sequence, "task", name)
        if len(kept) < len(sequence):
            yield "tasks", kept
    for index, item in enumerate(sequence):
        if isinstance(item, op.AddBatch) and len(item.tasks) > 1:
            for one in item.tasks:
                rest = tuple(other for other in item.tasks if other != one)
                if rest:
                    yield "batch", with_one(sequence, index, op.AddBatch(rest))


def _plainer(sequence: Sequence[Operation]) -> Forms:
    """Arguments back to what they are by default."""
    for index, item in enumerate(sequence):
        if isinstance(item, op.AddTask):
            for change in ({"depends": ()}, {"size": 0}, {"priority": 5}, {"max_attempts": None}):
                other = replace(item, **change)
                if other != item:
                    yield "arguments", with_one(sequence, index, other)
        if isinstance(item, op.Complete) and item.size:
            yield "arguments", with_one(sequence, index, replace(item, size=0))
        if isinstance(item, op.SpawnWorker) and item.count > 1:
            yield "arguments", with_one(sequence, index, replace(item, count=1))
