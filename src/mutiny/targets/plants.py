"""The bugs that can be planted into a target: those of longboat as longboat itself lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.errors import UsageError, nearest
from mutiny.kit.descriptor import TargetForm

if TYPE_CHECKING:
    from longboat.plants import Plant

_PARTS = {
    "longboat": "sessions",
    "longboat-board": "A",
    "longboat-broker": "B",
    "longboat-crew": "C",
    "longboat-batch": "pipeline",
    "longboat-spawns": "bridge",
    "longboat-session": "session",
}
"""Which part of longboat a target is: its workers, a board, its batches, its spawns, its long sessions."""


def _parts_of(plant: Plant) -> tuple[str, ...]:
    return (plant.part,) if plant.part else tuple(plant.boards) or ("sessions",)


def targets_of(plant: Plant) -> tuple[str, ...]:
    """The targets that ship with Mutiny and can have a plant."""
    parts = _parts_of(plant)
    return tuple(target for target, part in _PARTS.items() if part in parts)


def check_plants(spec: TargetForm, plant: str) -> None:
    """Refuse a plant that longboat does not have, or one for a target whose file says `{plant}` nowhere."""
    target = spec.name
    if not plant:
        return
    if not any("{plant}" in value for value in spec.environment.values()):
        raise UsageError(f"target {target!r} has no plants; its file says {{plant}} nowhere")
    if target not in _PARTS and spec.program != "longboat":
        return  # what it knows is its own matter
    from longboat.plants import PLANTS

    for name in plant.split(","):
        if name not in PLANTS:
            raise UsageError(
                f"unknown plant {name!r}{nearest(name, list(PLANTS))}; see `mutiny plants`"
            )
        fitting = targets_of(PLANTS[name])
        if target in _PARTS and target not in fitting:
            raise UsageError(f"plant {name!r} belongs to {', '.join(fitting)}, not to {target!r}")
