"""How far a step can reach, and whether the blast radius allows it.

A step's reach is derived from what it is and whom it names, so a new fault needs nothing here; a class may
say it itself with `reach`, and a contract's language may know better.
"""

from __future__ import annotations

from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.experiment import Action
from mutiny.kit.language import RADII, Language
from mutiny.model.operation import Kind, Operation

_STORAGE = (
    *(faults.FillDisk, faults.ReadOnlyDisk, faults.SlowFiles, faults.Forbid),
    *(faults.HoldLock, faults.DamageFile),
)
_BOX = (faults.Partition, faults.SlowLink, faults.StarveCpu, faults.LimitProcesses)
_BY_NAME = {
    "KillServer": "server",
    "RestartServer": "server",
    "CorruptBoard": "storage",
    "HoldBoardLock": "storage",
    "Restore": "storage",
    "Down": "server",
}
_FLOODS = ("flood", "stranger", "double", "byzantine")


def reach(operation: Operation, language: Language) -> str:
    """The smallest blast radius that contains an operation and everything inside it."""
    inner = [reach(child, language) for child in operation.children()]
    return max([_own(operation, language), *inner], key=RADII.index)


def _own(operation: Operation, language: Language) -> str:
    known = (
        language.reaches.get(operation.type)
        or getattr(operation, "reach", None)
        or _BY_NAME.get(operation.type)
    )
    if isinstance(known, str):
        return known
    if operation.type == "SpawnWorker":
        return _spawned(operation)
    if operation.kind is not Kind.FAULT:
        return RADII[0]
    return _fault(operation)


def _fault(operation: Operation) -> str:
    if isinstance(operation, common.SweepPoint | common.KillDuring):
        return "whole box" if operation.ends_world else "one worker"
    if isinstance(operation, common.LibraryFault) and operation.spares_others:
        return "one worker"
    if isinstance(operation, _STORAGE):
        return "storage"
    if isinstance(operation, (*_BOX, Action)):
        return "whole box"
    role = getattr(operation, "role", None)
    if role == "daemon":
        return "server"
    if role == "tmux":
        return "all workers"
    for name in ("worker", "node"):
        if getattr(operation, name, None) is not None:
            return "one worker"
    return "single task" if getattr(operation, "task", None) is not None else "whole box"


def _spawned(operation: Operation) -> str:
    """A worker that claims and misbehaves touches the task that it holds; a rude one touches all."""
    behaviour = str(getattr(operation, "behaviour", ""))
    if behaviour.partition(":")[0] in _FLOODS:
        return "all workers"
    return "single task" if getattr(operation, "count", 1) == 1 else "all workers"
