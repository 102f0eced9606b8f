"""What happens between a point of a sweep and the next start of the target."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.kit.operations import SweepPoint
from mutiny.model.operation import Operation

Way = tuple[SweepPoint, tuple[Operation, ...]]
"""A point, and what somebody else does behind it before anything is started again."""


def ways_on(
    points: Sequence[SweepPoint], meanwhile: tuple[Operation, ...], *, each: bool
) -> list[Way]:
    """Nothing happens in between, or somebody else goes on from what is there: `each` point is tried both
    ways; otherwise they take turns, so that a few points stay a few.
    """
    if not meanwhile:
        return [(point, ()) for point in points]
    if each:
        return [(point, between) for point in points for between in ((), meanwhile)]
    return [(point, meanwhile if place % 2 else ()) for place, point in enumerate(points)]
