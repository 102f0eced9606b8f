"""What is not said to the board: time, spawned workers, waits and assertions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.outcomes import server_killed
from mutiny.kit.operations import Heal
from mutiny.model.operation import Kind, Operation


def control(model: BoardModel, operation: Operation, seen: BoardObservation) -> BoardModel:
    """The beliefs after a step that is not said to the board."""
    if isinstance(operation, op.Configure):
        kind = type(getattr(model.profile.figures, operation.name))
        changed = {operation.name: kind(operation.value)}
        figures = replace(model.profile.figures, **changed)
        return replace(model, profile=replace(model.profile, figures=figures))
    if isinstance(operation, op.SpawnWorker):
        names = dict.fromkeys(operation.names, operation.behaviour)
        breaker = replace(model.breaker, unsure=True)  # how often they fail nobody counts
        return replace(model, spawned={**model.spawned, **names}, breaker=breaker)
    if isinstance(operation, op.StopWorker | op.KillWorker):
        gone = named(model.spawned, operation.worker)
        after = model.see(seen).without(gone, seen.began)
        return after.fault(str(operation)) if isinstance(operation, op.KillWorker) else after
    if isinstance(operation, op.KillServer):
        return server_killed(model).fault(str(operation))
    if isinstance(operation, op.Behave):
        obedient = operation.turn.partition(":")[0] in ("nothing", "obey", "slow", "stays")
        return replace(model, unruly=model.unruly or not obedient)
    if isinstance(operation, op.CorruptBoard):  # `damage.hurt` knows what can be told of it
        return replace(model.fault(str(operation)), damaged=True)
    if isinstance(operation, Heal):
        return replace(model, lasting=())
    if operation.kind is Kind.FAULT:
        return model.fault(str(operation))
    return model


def named(spawned: Mapping[str, str], worker: str) -> frozenset[str]:
    """This worker, or all that were spawned under this name."""
    return frozenset(
        name for name in spawned if name == worker or name.rpartition("-")[0] == worker
    )
