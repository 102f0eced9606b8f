"""Which shortened sequences of a board are nonsense: what would fail on a healthy board, too."""

from __future__ import annotations

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.simplify import plausible
from mutiny.contracts.common import Reset
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
