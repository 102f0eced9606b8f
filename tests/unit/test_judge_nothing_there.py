"""Faults on somebody who is not there: nothing was broken, and what that proves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_judge import judge, verdict, waiting

from mutiny.contracts.workers import operations as op
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict


@pytest.mark.parametrize(
    ("damaged", "worker", "right"),
    [
        (True, "beta", Verdict.EXPECTED),
        (False, "beta", Verdict.INCONCLUSIVE),
        (True, "alpha", Verdict.INCONCLUSIVE),
    ],
)
def test_who_could_not_be_added_over_a_damaged_state_has_nothing_to_break(
    damaged: bool, worker: str, right: Verdict
) -> None:
    state = replace(waiting("idle"), state_damaged=damaged)
    nothing = OperationResult(1, stderr=f"worker {worker} has no session", fired=False)
    answer = judge(state, op.KillTmuxSession(worker), nothing)
    assert verdict(answer) == (right, None)
