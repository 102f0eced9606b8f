"""The bugs that can be planted into a target: those of longboat as longboat itself lists them."""

from __future__ import annotations

from mutiny.errors import UsageError, nearest
from mutiny.kit.descriptor import TargetForm

_BOARDS = {
    "longboat": "",
    "longboat-board": "A",
    "longboat-broker": "B",
    "longboat-crew": "C",
}
"""Which of longboat's boards a target is; empty: none of them, but its workers."""


def check_plants(spec: TargetForm, plant: str) -> None:
    """Refuse a plant that longboat does not have, or one for a target whose file says `{plant}` nowhere."""
    target = spec.name
    if not plant:
        return
    if not any("{plant}" in value for value in spec.environment.values()):
        raise UsageError(f"target {target!r} has no plants; its file says {{plant}} nowhere")
    if target not in _BOARDS and spec.program != "longboat":
        return  # what it knows is its own matter
    from longboat.plants import PLANTS

    for name in plant.split(","):
        if name not in PLANTS:
            raise UsageError(
                f"unknown plant {name!r}{nearest(name, list(PLANTS))}; see `mutiny plants`"
            )
        board = _BOARDS.get(target)
        fitting = [one for one, part in _BOARDS.items() if part in (PLANTS[name].boards or [""])]
        if board is not None and target not in fitting:
            raise UsageError(f"plant {name!r} belongs to {', '.join(fitting)}, not to {target!r}")
