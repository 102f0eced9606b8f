"""Plants: bugs that longboat can be asked to have, one per known way that orchestrators fail."""

from __future__ import annotations

import os

_ACTIVE = frozenset(filter(None, os.environ.get("LONGBOAT_PLANT", "").split(",")))


def planted(*names: str) -> bool:
    """True when one of these bugs was asked for."""
    return not _ACTIVE.isdisjoint(names)
