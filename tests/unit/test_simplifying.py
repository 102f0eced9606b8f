"""One order of smaller, and passes that are named and counted."""

from __future__ import annotations

import pytest

from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.engine.minimise import Budget, Pass, minimise
from mutiny.kit import operations as common
from mutiny.kit.simplifying import size, smaller
from mutiny.model.operation import Operation

Run = tuple[Operation, ...]
START = op.Start("alpha", "Create a.txt")
PLENTY = Budget(runs=10_000, seconds=10_000, confirm=1, of=1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((op.Up(),), (op.Up(), op.Down())),
        ((op.Up(), op.Down()), (op.Up(), common.Parallel((op.Down(), op.Up())))),
        ((op.Add("zeta"), op.Nuke("zeta")), (op.Add("a"), op.Nuke("b"))),
        ((common.CrashAt(START, 39),), (common.KillDuring(START, 5.0),)),
        ((common.Sleep(0.5),), (common.Sleep(1.5),)),
        ((op.Message("alpha", "x"),), (op.Message("alpha", "Use uppercase"),)),
        ((op.Add("alpha"),), (op.Add("w"),)),
    ],
    ids=["steps", "inside", "names", "chance", "time", "text", "plain name"],
)
def test_what_is_smaller(one: Run, other: Run) -> None:
    assert smaller(one, other)
    assert not smaller(other, one)
    assert not smaller(one, one)


@pytest.mark.parametrize("contract", [WorkersContract(), BoardContract()], ids=lambda one: one.name)
def test_the_order_is_total_and_every_pass_has_a_name(
    contract: WorkersContract | BoardContract,
) -> None:
    for seed in range(10):
        whole = contract.generate(seed, 15)
        sizes = [size(form) for _, form in contract.simpler(whole)]
        assert sorted(sizes), "sizes of any two forms can be compared"
        assert all(name.strip() for name, _ in contract.simpler(whole))


def test_every_pass_is_counted_with_what_it_took_and_won() -> None:
    whole: Run = (
        common.Reset(),
        op.Init(),
        common.Sleep(2.0),
        op.Message("w", "long text"),
        op.Status(),
    )

    def fails(candidate: Run) -> bool:
        told = any(isinstance(item, op.Message) for item in candidate)
        return told and any(isinstance(item, common.Sleep) for item in candidate)

    def simpler(sequence: Run) -> list[tuple[str, Run]]:
        return list(WorkersContract().simpler(sequence))

    found = minimise(whole, fails, simpler=lambda one: iter(simpler(one)), budget=PLENTY)
    assert len(found.operations) == 2
    assert found.passes["delete"].won >= 2, "blocks that were left out"
    assert found.passes["texts"] == Pass(trials=1, won=1)
    assert found.passes["waits"].won == 3, "2 s, 1 s, 0.5 s, 0.25 s"
    assert sum(one.trials for one in found.passes.values()) == found.runs
