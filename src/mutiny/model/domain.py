"""Which numbers can be, by the unit in which a name ends: `timeout_seconds`, `lease_s`, `delay_ms`, `size`.

One table instead of a check in every operation and every target file: a wait of a hundred years, or a
payload of a terabyte, is a slip of the pen.
"""

from __future__ import annotations

MOST_SECONDS = 604_800.0
"""A week."""
CENTURY_S = 3_155_760_000.0
_MOST = {
    "seconds": MOST_SECONDS,
    "s": MOST_SECONDS,
    "ms": MOST_SECONDS * 1000,
    "hz": 1_000.0,
    "size": 64_000_000.0,
    "seed": 2.0**63,
}
_BOTH_WAYS = ("offset_s", "jump_s")
"""A clock can be wrong in both directions, and by much."""


def misfit(name: str, value: float) -> str | None:
    """Why a value of this name cannot be; None when it can."""
    if name in _BOTH_WAYS:
        wrong = not -CENTURY_S <= value <= CENTURY_S
        return f"must be between {-CENTURY_S:g} and {CENTURY_S:g}, got {value:g}" if wrong else None
    most = None if name.endswith("_per_s") else _MOST.get(name.rpartition("_")[2])
    if most is None:
        return None
    if value < 0:
        return f"must not be negative, got {value:g}"
    return f"must be at most {most:g}, got {value:g}" if not value <= most else None
