"""Which bugs longboat was asked to have: ``LONGBOAT_PLANT=name[,name]``.

Apart from the table of them all (`longboat.plants`): every command asks, and none needs the table.
"""

from __future__ import annotations

import os

_ACTIVE = frozenset(filter(None, os.environ.get("LONGBOAT_PLANT", "").split(",")))


def planted(*names: str) -> bool:
    """True when one of these bugs was asked for."""
    return not _ACTIVE.isdisjoint(names)
