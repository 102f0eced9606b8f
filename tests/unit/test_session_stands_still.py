"""On a crowded machine nothing of a session may run for seconds: no line and no checkpoint is missing."""

from __future__ import annotations

from typing import Any

import pytest
from test_contract_session import CALLS, broken, event, lines, seen, used

STILL = lines({"elapsed_seconds": 40}, {"elapsed_seconds": 48})
AWAKE = tuple(used(0, at_s, f"c{at_s:g}") for at_s in (41.0, 42.5, 43.5, 44.5, 45.5, 46.5, 47.5))
QUICK: dict[str, Any] = {"metrics_s": "1", "interval_s": "60"}


@pytest.mark.parametrize(("calls", "accused"), [(CALLS, False), ((*CALLS, *AWAKE), True)])
def test_a_gap_in_the_metrics_counts_when_something_else_was_written(
    calls: tuple[dict[str, object], ...], accused: bool
) -> None:
    assert ("metrics_regular" in broken(seen(metrics=STILL, calls=calls), **QUICK)) is accused


@pytest.mark.parametrize(("still", "accused"), [(True, False), (False, True)])
def test_a_checkpoint_may_be_late_by_as_long_as_nothing_ran(still: bool, accused: bool) -> None:
    told = [second for second in range(5, 72) if not (still and 50 < second < 68)]
    metrics = lines(*({"elapsed_seconds": second} for second in told))
    late = event("checkpoint.written", 74.0, checkpoint=2)
    look = seen(more=(late,), metrics=metrics)
    assert ("checkpoint_by_time" in broken(look, **QUICK)) is accused
