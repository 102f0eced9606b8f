"""Which shortened sequences of a board are nonsense: what would fail on a healthy board, too."""

from __future__ import annotations

import pytest

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.simplify import plausible, simpler
from mutiny.kit.faults import FillDisk, SlowFiles
from mutiny.kit.operations import (
    CrashAt,
    ExpectError,
    Interleave,
    KillDuring,
    Parallel,
    Reset,
    Sleep,
)
from mutiny.model.operation import Operation
from mutiny.targets.registry import find_spec

PROFILE = find_spec("longboat-board")[0].profile
BEGIN: tuple[Operation, ...] = (Reset(), op.Init(), op.Up())
ADDED = op.AddBatch(("a", "b"))
ALL_DONE = op.Verify("all tasks are done")


def ok(shorter: tuple[Operation, ...], original: tuple[Operation, ...]) -> bool:
    return plausible(PROFILE, shorter, original)


def test_a_sentence_keeps_everything_that_was_done_before_it() -> None:
    work = (*BEGIN, ADDED, op.SpawnWorker("w"), op.Settle())
    whole = (*work, op.List(), ALL_DONE)
    assert ok(whole, whole)
    assert ok((*work, ALL_DONE), whole), "looking changes nothing"
    assert not ok((*BEGIN, ADDED, ALL_DONE), whole), "nobody has worked"
    assert not ok((*BEGIN, ADDED, op.SpawnWorker("w"), ALL_DONE), whole), "nobody has waited"


def test_an_assertion_keeps_what_makes_it_true() -> None:
    claimed = op.AssertStatus("a", "claimed")
    owned = op.AssertOwner("a", "w1")
    whole = (*BEGIN, ADDED, op.Claim("w1"), claimed, owned)
    assert ok((*BEGIN, op.AddBatch(("a",)), op.Claim("w1"), owned), whole)
    assert not ok((*BEGIN, ADDED, claimed), whole)
    assert not ok((*BEGIN, ADDED, op.Claim("w2"), owned), whole)


def test_what_the_model_never_promised_may_be_asserted() -> None:
    """The workers did it; the model cannot tell."""
    whole = (*BEGIN, ADDED, op.SpawnWorker("w"), op.AssertStatus("a", "done"))
    assert ok(whole, whole)


def test_a_sentence_that_the_model_decides_keeps_what_makes_it_true() -> None:
    held = op.Verify("task a is claimed")
    whole = (*BEGIN, ADDED, op.Claim("w1"), op.Claim("w2"), held)
    assert ok((*BEGIN, op.AddBatch(("a",)), op.Claim("w1"), held), whole), "b and w2 are not needed"
    assert not ok((*BEGIN, ADDED, held), whole)
    assert not ok((*BEGIN, held), whole), "there is no such task"


def test_a_sentence_about_time_is_not_decided_by_the_model() -> None:
    stuck = op.Verify("no tasks stuck in CLAIMED > 2 seconds")
    whole = (*BEGIN, ADDED, op.Claim("w1"), Sleep(3.0), op.Recover(), stuck)
    assert ok(whole, whole)
    assert not ok((*BEGIN, ADDED, op.Claim("w1"), Sleep(3.0), stuck), whole)


BOTH = (op.Claim("w1"), op.Claim("w2"))


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        (Parallel(BOTH), BOTH),
        (Interleave(BOTH, "0x2 1x3"), BOTH),
        (KillDuring(BOTH[0], 20.0), BOTH[:1]),
        (CrashAt(BOTH[0], 7), BOTH[:1]),
        (FillDisk(during=BOTH[0]), BOTH[:1]),
        (op.HoldBoardLock(1.0, BOTH[0]), BOTH[:1]),
        (op.KillServer(BOTH[0]), BOTH[:1]),
    ],
)
def test_a_command_under_a_fault_is_tried_without_it(
    item: Operation, parts: tuple[Operation, ...]
) -> None:
    found = [form[-1] for word, form in simpler((*BEGIN, item)) if word == "unwrap"]
    assert found == list(parts)


def test_waits_are_halved_and_a_random_kill_becomes_an_exact_one() -> None:
    waits = {word: form[-1] for word, form in simpler((*BEGIN, Sleep(4.0)))}
    assert waits["waits"] == Sleep(2.0)
    lasting = {word: form[-1] for word, form in simpler((*BEGIN, SlowFiles(seconds=4.0)))}
    assert lasting["waits"] == SlowFiles(seconds=2.0)
    forms = list(simpler((*BEGIN, KillDuring(BOTH[0], 20.0))))
    exact = [form[-1] for word, form in forms if word == "exact point"]
    assert exact[:2] == [CrashAt(BOTH[0], 0), CrashAt(BOTH[0], 1)]


def test_a_refusal_that_is_expected_is_not_unwrapped() -> None:
    assert "unwrap" not in dict(simpler((*BEGIN, ExpectError(op.Claim("w1")))))
