"""The bugs that can be planted into longboat, as longboat itself lists them."""

from __future__ import annotations

from mutiny.errors import UsageError, nearest

_BOARDS = {
    "longboat": "",
    "longboat-board": "A",
    "longboat-broker": "B",
    "longboat-crew": "C",
}
"""Which of longboat's boards a target is; empty: none of them, but its workers."""


def check_plants(target: str, plant: str) -> None:
    """Refuse a plant that does not exist, or one for a target that has none."""
    if not plant:
        return
    from longboat.plants import PLANTS

    if not target.startswith("longboat"):
        raise UsageError(f"only longboat has plants; target {target!r} cannot have {plant!r}")
    for name in plant.split(","):
        if name not in PLANTS:
            raise UsageError(
                f"unknown plant {name!r}{nearest(name, list(PLANTS))}; see `mutiny plants`"
            )
        board = _BOARDS.get(target)
        fitting = [one for one, part in _BOARDS.items() if part in (PLANTS[name].boards or [""])]
        if board is not None and target not in fitting:
            raise UsageError(f"plant {name!r} belongs to {', '.join(fitting)}, not to {target!r}")
