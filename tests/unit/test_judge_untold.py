"""A worker at rest that was never told what the target has taken for it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_judge import INCONCLUSIVE, bug, judge, timed_out, verdict, waiting

from builders import TOKEN, picture, view
from mutiny.contracts.workers import operations as op
from mutiny.model.verdict import Verdict


@pytest.mark.parametrize(
    ("status", "changes", "expected"),
    [
        ("no_changes", {}, bug("nothing_lost")),
        ("needs_review", {}, bug("nothing_lost")),
        ("working", {}, INCONCLUSIVE),
        ("no_changes", {"disturbed": "KillAgent"}, INCONCLUSIVE),
        ("no_changes", {"hits": 1}, INCONCLUSIVE),
        ("no_changes", {"tokens": ()}, INCONCLUSIVE),
    ],
    ids=["it rests", "it waits for review", "it works", "it was hit", "so was its task", "no word"],
)
def test_who_rests_is_told_what_was_taken_for_it_whatever_it_makes_of_it(
    status: str, changes: dict[str, object], expected: tuple[Verdict, str | None]
) -> None:
    seen = replace(picture(view("alpha", status)), receipts=())
    said = {"tokens": (TOKEN,), "behaviours": ("nothing", "obey"), **changes}
    believed = waiting(status, **said)
    assert verdict(judge(believed, op.WaitForIdle("alpha"), timed_out(), seen)) == expected
    excused = replace(believed, faults=("FillDisk",))
    assert verdict(judge(excused, op.WaitForIdle("alpha"), timed_out(), seen)) == INCONCLUSIVE
    in_haste = op.WaitForIdle("alpha", timeout_seconds=0.5)
    assert verdict(judge(believed, in_haste, timed_out(), seen)) == INCONCLUSIVE
