"""Commands that were broken off in the middle, and what may come of them later."""

from __future__ import annotations

from test_judge import EXPECTED, HEALTHY, NOW, bug, judge, verdict

from builders import CONTRACT, belief, model, picture, refused, view
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.judge import WorkersJudge
from mutiny.kit import operations as common
from mutiny.model.result import OperationResult


def test_a_reset_that_was_broken_off_may_be_finished_by_whoever_comes_next() -> None:
    """It is seen idle, and the next command finishes the reset and finds it offline."""
    asked = WorkersJudge(CONTRACT, HEALTHY, picture(), NOW)
    broken_off = asked.unknown(
        model(belief()), op.ResetWorker("alpha"), asked.moment(refused("killed"))
    )
    away = refused("Worker 'alpha' is not idle (status: offline)")
    unfinished = [one for one in broken_off if "alpha" in one.unfinished]
    assert unfinished
    for one in unfinished:
        hit = one.disturb("KillDuring", ("alpha",), NOW).see(picture(view()))
        start = op.Start("alpha", "Create a.txt")
        assert verdict(judge(hit, start, away, picture(view("alpha", "offline")))) == EXPECTED
    settled = judge(hit, common.Settle(), OperationResult(), picture(view())).models[0]
    late = judge(settled, start, away, picture(view("alpha", "offline")))
    assert verdict(late) == bug("serves_legal"), "by now it is over"
