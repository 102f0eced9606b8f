"""Faults of the library as operations: what they may say, how commands under them are judged, and
what exploration, minimisation and replay make of them.
"""

from __future__ import annotations

import errno
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from builders import (
    CONTRACT,
    OK,
    PATTERNS,
    TOKEN,
    TRACEBACK,
    advance,
    belief,
    check_state,
    judge_answer,
    model,
    picture,
    view,
)
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.engine.minimise import minimise
from mutiny.errors import TechniqueMissing
from mutiny.faults import catalogue
from mutiny.faults.base import Availability
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.judging import Judged
from mutiny.model.operation import Kind, Operation, walk
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.syscalls.calls import Call
from mutiny.syscalls.policies import Continue, Fail, FullBelow
from mutiny.targets.kit import requirements

pytestmark = pytest.mark.usefixtures("by_chance_alone")

START = op.Start("alpha", "Create a.txt")
NOW = 2000.0
IDLE, WORKING = picture(view()), picture(view(status="working", prompt="x"))
FULL = OperationResult(1, stderr="the system refused: No space left on device", tokens=(TOKEN,))


# --- the operations themselves ------------------------------------------------------------------


def test_every_fault_of_the_library_is_an_operation() -> None:
    assert {cls.__name__ for cls in faults.FAULTS} <= set(op.OPERATIONS)
    assert str(faults.FillDisk("inodes", during=op.Up())) == 'FillDisk(what="inodes", during=Up())'


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: faults.FillDisk(), "say how long"),
        (lambda: faults.FillDisk(lasting=True, seconds=1), "give one of"),
        (lambda: faults.FillDisk("sectors", lasting=True), "none of bytes, inodes"),
        (lambda: faults.FillDisk(during=common.Settle()), "must be a command"),
        (lambda: faults.Forbid("all", lasting=True), "cannot be looked at"),
        (lambda: faults.SkewClock(lasting=True), "offset_s"),
        (lambda: faults.SlowLink(lasting=True), "either"),
        (lambda: faults.LowerLimit("agent", lasting=True), "needs its worker"),
        (lambda: faults.DamageFile("melt"), "none of"),
        (lambda: common.KillDuring(common.Settle(), 5), "only a command"),
        (lambda: faults.StarveCpu(2, lasting=True), "between"),
    ],
)
def test_nonsense_is_refused(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


# --- judging ------------------------------------------------------------------------------------


def judge(
    believed: WorkersModel,
    operation: Operation,
    answer: OperationResult,
    seen: Observation = IDLE,
) -> Judged[WorkersModel]:
    result = answer
    if operation.kind is not Kind.COMMAND:
        result = OperationResult(fired=True, technique="x", inner=(answer,), tokens=answer.tokens)
    return judge_answer(believed, operation, result, IDLE, seen, PATTERNS, NOW)


LASTING = faults.LowerLimit(lasting=True)
UNDER = [
    (faults.FillDisk(during=START), model(belief())),
    (faults.StarveCpu(during=START), model(belief())),
    (START, model(belief(), lasting=(LASTING,))),
]


@pytest.mark.parametrize(("operation", "believed"), UNDER)
def test_under_a_fault_a_command_may_fail_in_its_own_words(
    operation: Operation, believed: WorkersModel
) -> None:
    answer = judge(believed, operation, FULL)
    assert answer.verdict is Verdict.EXPECTED
    both = answer.models
    assert [set(one.workers["alpha"].statuses) for one in both] == [{"idle"}, {"working"}]
    assert [TOKEN in one.work for one in both] == [False, True]


@pytest.mark.parametrize(("operation", "believed"), UNDER)
def test_what_it_acknowledges_has_happened(operation: Operation, believed: WorkersModel) -> None:
    answer = judge(believed, operation, OperationResult(tokens=(TOKEN,)), WORKING)
    assert (answer.verdict, answer.models[1:]) == (Verdict.SUCCESS, ())
    assert answer.models[0].work[TOKEN].fate == "open"


@pytest.mark.parametrize(("operation", "believed"), UNDER)
@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (OperationResult(None, timed_out=True), "workers.answers_in_time"),
        (OperationResult(1, stderr=TRACEBACK), "workers.no_crash"),
        (OperationResult(None, signal=11), "workers.no_crash"),
        (OperationResult(1), "workers.fails_clearly"),
    ],
)
def test_it_may_neither_hang_nor_crash_nor_fail_silently(
    operation: Operation, believed: WorkersModel, answer: OperationResult, rule: str
) -> None:
    violation = judge(believed, operation, answer).violation
    assert violation is not None
    assert violation.rule == rule


def test_under_a_fault_what_is_illegal_is_still_refused() -> None:
    believed = model(belief("alpha", "working"), lasting=(LASTING,))
    refused = judge_answer(
        believed,
        common.ExpectError(START),
        OperationResult(inner=(FULL,)),
        WORKING,
        WORKING,
        PATTERNS,
        NOW,
    )
    assert refused.verdict is Verdict.EXPECTED
    served = judge_answer(believed, START, OperationResult(), WORKING, WORKING, PATTERNS, NOW)
    assert served.violation is not None
    assert served.violation.rule == "workers.rejects_illegal"


def test_a_fault_that_did_not_fire_proves_nothing() -> None:
    result = OperationResult(1, fired=False, stderr="no")
    answer = judge_answer(
        model(belief()), faults.FillDisk(during=START), result, IDLE, IDLE, PATTERNS, NOW
    )
    assert answer.verdict is Verdict.INCONCLUSIVE


def test_nothing_is_due_while_a_fault_lasts_and_all_deadlines_begin_anew_after_it() -> None:
    due = belief("alpha", "working", due_at=0.0, disturbed="x", disturbed_at=0.0, tokens=(TOKEN,))
    on = advance(model(due), LASTING, OK, now=1.0)
    late = picture(view(status="working", prompt="x"), at=500.0, agents=())

    def broken(believed: WorkersModel) -> set[str]:
        found, _ = check_state(believed, op.Status(), True, late, late, {})
        return {item.violation.rule for item in found}

    assert not broken(on) & {"workers.recovers", "workers.completes"}
    healed = advance(on, common.Heal(), OK, now=499.0)
    assert healed.lasting == ()
    assert (healed.workers["alpha"].due_at, healed.workers["alpha"].disturbed_at) == (499.0, 499.0)
    assert not broken(healed) & {"workers.recovers", "workers.completes"}
    assert "workers.recovers" in broken(advance(on, common.Heal(), OK, now=2.0))


def test_a_wait_that_runs_out_under_a_fault_proves_nothing() -> None:
    believed = model(belief("alpha", "working", due_at=0.0), lasting=(LASTING,))
    late = OperationResult(None, timed_out=True)
    wait = judge_answer(
        believed, op.WaitForNeedsReview("alpha"), late, WORKING, WORKING, PATTERNS, NOW
    )
    assert wait.verdict is Verdict.INCONCLUSIVE


def test_settle_ends_every_lasting_fault() -> None:
    assert advance(model(lasting=(LASTING,)), common.Settle(), OK).lasting == ()


def test_a_kill_leaves_both_open_and_ends_the_world() -> None:
    killed = OperationResult(None, signal=9, tokens=(TOKEN,))
    answer = judge(model(belief()), common.KillDuring(START, 5), killed, picture(daemons=()))
    assert answer.verdict is Verdict.SUCCESS
    assert len(answer.models[1:]) == 1
    served = judge(model(belief()), common.KillDuring(START, 5), OperationResult(tokens=(TOKEN,)))
    assert TOKEN in served.models[0].work
    assert served.models[1:] == ()


# --- exploration and minimisation ---------------------------------------------------------------


@cache
def explored(sure_calls: int, seed: int) -> tuple[Operation, ...]:
    """What exploration does with a target whose commands surely make so many calls."""
    return WorkersContract(Profile(sure_calls=sure_calls)).generate(seed, 40)


def test_exploration_breaks_commands_only_where_they_surely_come() -> None:
    points = [
        part
        for seed in range(25)
        for item in explored(3, seed)
        for part in walk(item)
        if isinstance(part, common.SweepPoint)
    ]
    assert points
    assert max(point.call for point in points) < 3
    none = [part for seed in range(25) for part in explored(0, seed)]
    assert not any(isinstance(part, common.SweepPoint) for part in none)


def test_a_lasting_fault_of_exploration_is_healed_before_the_end() -> None:
    lasted = 0
    for seed in range(25):
        on = False
        for item in explored(3, seed):
            on = on or (isinstance(item, common.LibraryFault) and item.lasting)
            lasted += on
            if isinstance(item, common.Settle | op.Down | op.KillDaemon):
                assert not on, f"seed {seed}: {item} while a fault lasts"
            on = on and not isinstance(item, common.Heal)
    assert lasted


def test_who_may_or_may_not_exist_is_settled_at_once() -> None:
    """After an `Add` or `Nuke` that a fault may have cut short, the same one is given plainly."""
    seen = 0
    for seed in range(25):
        sequence = explored(3, seed)
        for index, operation in enumerate(sequence):
            inner = [part for part in list(walk(operation))[1:] if type(part) in (op.Add, op.Nuke)]
            if inner and not isinstance(operation, common.ExpectError):
                seen += 1
                assert inner[0] in sequence[index + 1 : index + 4], (seed, str(operation))
    assert seen > 10


def test_a_random_kill_becomes_an_exact_one() -> None:
    for whole, kind in ((True, common.CrashAt), (False, common.KillAt)):
        sequence = (common.Reset(), op.Init(), common.KillDuring(op.Up(), 40, whole))
        exact = [form[-1] for word, form in CONTRACT.simpler(sequence) if word == "exact point"]
        assert exact[:3] == [kind(op.Up(), call) for call in range(3)]
        assert len(exact) == 40
        assert any(form[-1] == op.Up() for _, form in CONTRACT.simpler(sequence))


def test_the_minimiser_keeps_the_point_that_shows_the_same() -> None:
    def fails(sequence: tuple[Operation, ...]) -> bool:
        kills = isinstance(sequence[-1], common.KillDuring)
        return kills or sequence[-1] == common.CrashAt(op.Up(), 5)

    sequence = (common.Reset(), op.Init(), common.KillDuring(op.Up(), 40))
    found = minimise(sequence, fails, simpler=CONTRACT.simpler, plausible=lambda one: bool(one))
    assert found.operations[-1] == common.CrashAt(op.Up(), 5)


# --- the policy of a full disk ------------------------------------------------------------------


def test_a_full_disk_refuses_what_needs_space_and_nothing_else(tmp_path: Path) -> None:
    there, new = str(tmp_path / "there"), str(tmp_path / "new")
    Path(there).touch()
    no_space = Fail(errno.ENOSPC)

    def decided(what: Any, name: str, file: str, flags: int = 0) -> object:
        call = Call(0, 1, "x#1", name, (file,), (file,), flags=flags)
        return FullBelow(str(tmp_path), what).decide(call, 0)

    assert decided("bytes", "write", there) == no_space
    assert decided("inodes", "write", there) == Continue()
    assert decided("inodes", "openat", new, 0o100) == no_space
    assert decided("bytes", "openat", new, 0o100) == Continue()
    assert decided("inodes", "openat", there, 0o100) == Continue()
    for what in ("bytes", "inodes"):
        assert decided(what, "mkdir", new) == no_space
        assert decided(what, "mkdir", there) == Continue()
        assert decided(what, "unlink", there) == Continue()
        assert decided(what, "write", "/elsewhere") == Continue()


# --- what a machine lacks -----------------------------------------------------------------------


def test_what_a_sequence_needs() -> None:
    sequence = (
        faults.FillDisk(during=START),
        common.Parallel((op.Up(), op.Up())),
        faults.FillDisk(lasting=True),
        faults.Partition(seconds=1),
        common.CrashAt(START, 1),
        faults.SkewClock(offset_s=1, seconds=1),
    )
    assert requirements.needs(sequence) == (
        *("calls: full disk", "disk: full, bytes", "network: partition"),
        *("calls: crash before a call", "clock: offset"),
    )
    assert requirements.needs((common.Reset(), op.KillDaemon())) == ()
    known = {item.fault for item in catalogue.survey_without_box()} | set(catalogue.in_a_box())
    assert set(requirements.needs(sequence)) <= known


def test_what_is_lacking_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def survey(*_: object) -> tuple[Availability, ...]:
        return (
            Availability("network: partition", "nftables", "there is no nft"),
            Availability("clock: offset", "clock shim", None),
            Availability("resources: processor quota", "cpu cgroup quota", "no controller"),
        )

    monkeypatch.setattr(catalogue, "survey_machine", survey)
    requirements.refuse_lacking("it", (faults.SkewClock(offset_s=1, seconds=1),))
    with pytest.raises(TechniqueMissing, match=r"nftables .*there is no nft") as caught:
        requirements.refuse_lacking("it", (faults.Partition(seconds=1),))
    assert caught.value.exit_code == 3
    with pytest.raises(TechniqueMissing, match="cpu cgroup quota: no controller"):
        requirements.refuse_lacking("it", (common.Reset(),), ["cpu cgroup quota"])
    scenarios = {"a": (faults.Partition(seconds=1),), "b": (common.Reset(),)}
    assert list(requirements.left_out(scenarios)) == ["a"]
