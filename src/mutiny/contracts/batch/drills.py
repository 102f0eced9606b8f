"""Resume drills: a run dies at every named moment, and is resumed in every way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mutiny.contracts.batch.operations import Init, Plan, Resume, Run, Status
from mutiny.contracts.batch.scenarios import STALE_S
from mutiny.kit.abilities import Drill
from mutiny.kit.faults import SkewClock
from mutiny.kit.moments import At, KillOrchestrator
from mutiny.kit.operations import Parallel, Reset, Settle
from mutiny.model.operation import Operation

WAYS: Mapping[str, tuple[Operation, ...]] = {
    "resume now": (Resume(),),
    "resume twice": (Resume(), Resume()),
    "resume when stale": (SkewClock(offset_s=STALE_S, during=Resume()),),
    "two resumes at once": (Parallel((Resume(), Resume())),),
}


def drills(form: Any) -> tuple[Drill, ...]:
    """Every moment that the target's file names, in every way."""
    begin = (Reset(), Init(), Plan(("a", "b needs=a")))
    return tuple(
        Drill(
            moment,
            way,
            (*begin, At(moment, Run(), KillOrchestrator()), *resumed, Status(), Settle()),
        )
        for moment in form.profile.moments
        for way, resumed in WAYS.items()
    )
