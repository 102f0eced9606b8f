"""A run in which nothing broke is a pass only when the target was asked something."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.contracts.board import operations as board
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.profile import Profile
from mutiny.engine.untested import why_untested
from mutiny.experiments.compile import compile_experiment
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.experiment import Action, Probe, SteadyState, Unwatch, Watch
from mutiny.kit.operations import ExpectError, Parallel, Reset, Sleep
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.modes.experiment_files import library, load
from mutiny.targets.registry import find_target, shipped


def untested(*operations: Operation, repeats: bool = False) -> tuple[str, ...]:
    steps: Any = [
        SimpleNamespace(operation=operation, result=OperationResult(fired=_fired(operation)))
        for operation in operations
    ]
    return why_untested(steps, repeats=repeats)


def _fired(operation: Operation) -> bool | None:
    return True if operation.kind is Kind.FAULT else None


LASTING = faults.StarveCpu(0.2, lasting=True)


@pytest.mark.parametrize(
    "operations",
    [
        (Reset(),),
        (Reset(), Sleep(1.0)),
        (Reset(), op.WaitForIdle("alpha")),
        (Reset(), common.Settle()),
        (Reset(), op.AssertState("alpha", "idle")),
        (Reset(), op.DirtySource()),
        (Reset(), op.Behave("alpha", ("hang",)), Sleep(0.1)),
        (Reset(), common.Heal()),
        (Reset(), faults.SkewClock(offset_s=60, seconds=0.1)),
        (Reset(), Watch(), SteadyState(("all is well",), "before"), Unwatch()),
        (Reset(), board.SpawnWorker("w1"), board.Verify("all tasks are done")),
        (),
    ],
)
def test_without_a_command_nothing_is_tested(operations: tuple[Operation, ...]) -> None:
    assert untested(*operations) == ("no command of the target ran",)


@pytest.mark.parametrize(
    "operation",
    [
        op.Init(),
        ExpectError(op.Add("alpha")),
        Parallel((op.Init(), op.Init())),
        faults.FillDisk(during=op.Init()),
        Watch(op.Status()),
        Action("a", {"type": "process", "path": "true"}),
        Probe("p", {"type": "process", "path": "true"}),
    ],
)
def test_a_command_is_a_command_wherever_it_stands(operation: Operation) -> None:
    assert "no command of the target ran" not in untested(Reset(), operation)


@pytest.mark.parametrize("end", [(common.Heal(),), (common.Settle(), op.Status()), ()])
def test_a_lasting_fault_that_nobody_could_feel(end: tuple[Operation, ...]) -> None:
    (reason, *_) = untested(op.Init(), LASTING, Sleep(1.0), *end)
    assert reason == f"nothing was asked of the target while {LASTING.short()} was on"
    assert untested(op.Init(), LASTING, *end, repeats=True) == (), (
        "a replay has only what is needed"
    )


@pytest.mark.parametrize(
    "meanwhile", [op.Status(), op.WaitForIdle("alpha"), ExpectError(op.Init()), LASTING]
)
def test_a_lasting_fault_is_felt_by_whoever_is_asked_meanwhile(meanwhile: Operation) -> None:
    reasons = untested(op.Init(), LASTING, meanwhile, op.Status(), common.Heal(), op.Status())
    assert reasons == ()


def test_a_probe_that_asks_all_the_time_feels_it_too() -> None:
    watched = (op.Init(), Watch(op.Status()), LASTING, Sleep(1.0), common.Heal(), Unwatch())
    assert untested(*watched, op.Status()) == ()
    blind = (op.Init(), Watch(), LASTING, Sleep(1.0), common.Heal(), Unwatch(), op.Status())
    assert len(untested(*blind)) == 1


@pytest.mark.parametrize(
    "fault",
    [
        op.KillDaemon(),
        op.CorruptState(),
        common.KillDuring(op.Init(), 5),
        common.CrashAt(op.Init(), 1),
    ],
)
def test_after_the_last_fault_the_target_is_asked_again(fault: Operation) -> None:
    assert untested(op.Init(), fault, Sleep(1.0)) == (
        f"nothing was asked of the target after {fault.short()}",
    )
    assert untested(op.Init(), fault, common.Settle()) == ()
    assert untested(op.Init(), fault, repeats=True) == (), "a replay ends where the failure was"


def test_a_command_under_a_fault_has_answered() -> None:
    assert untested(op.Init(), faults.FillDisk(during=op.Status())) == ()


def test_faults_of_which_none_happened_have_tested_nothing() -> None:
    missed = OperationResult(fired=False, stderr="the command had ended before")
    fault = common.KillDuring(op.Init(), 60_000, whole=False)
    steps: Any = [
        SimpleNamespace(operation=fault, result=missed),
        SimpleNamespace(operation=op.Status(), result=OperationResult()),
    ]
    (reason,) = why_untested(steps)
    assert reason == f"no fault happened: {fault.short()}: the command had ended before"
    hit: Any = SimpleNamespace(operation=op.KillDaemon(), result=OperationResult(fired=True))
    assert why_untested([hit, *steps]) == ()


# --- what ships tests something ----------------------------------------------------------------------


@pytest.mark.parametrize("name", list(library()))
def test_every_experiment_of_the_library_tests_something(name: str) -> None:
    assert untested(*compile_experiment(load(library()[name])).operations) == ()


@pytest.mark.parametrize("name", list(shipped()))
def test_every_scenario_tests_something(name: str) -> None:
    """Also as it is left where a target lacks some of its words."""
    vain = {
        scenario: reasons
        for scenario, operations in find_target(name, program=sys.executable)
        .contract()
        .scenarios.items()
        if (reasons := untested(*operations))
    }
    assert vain == {}


def test_every_explored_sequence_tests_something() -> None:
    for seed in range(50):
        assert untested(*WorkersContract(Profile()).generate(seed, 30)) == (), seed
