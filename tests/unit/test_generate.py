"""Explored sequences: a pure function of the seed, and only what the model allows."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from builders import CONTRACT
from mutiny.codec import decode_operation
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.model import completing
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.contracts.workers.outcomes import expect
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.symbolic import Walk
from mutiny.kit import operations as common
from mutiny.model.operation import Kind, Operation, walk
from mutiny.targets.registry import find_spec
from mutiny.targets.workers.spec import TargetSpec

pytestmark = pytest.mark.usefixtures("by_chance_alone")

SEEDS = range(80)
LENGTH = 30
Run = tuple[Operation, ...]


@cache
def generated(seed: int) -> Run:
    return CONTRACT.generate(seed, LENGTH)


@cache
def counted() -> Counter[str]:
    """Every operation of all seeds, also those inside others."""
    return Counter(
        part.type for seed in SEEDS for operation in generated(seed) for part in walk(operation)
    )


def final_settle(sequence: Run) -> int:
    """Where the recovery phase waits for everything."""
    return max(index for index, item in enumerate(sequence) if isinstance(item, common.Settle))


def test_the_same_seed_gives_the_same_sequence() -> None:
    for seed in range(8):
        assert CONTRACT.generate(seed, LENGTH) == generated(seed)


def test_other_seeds_give_other_sequences() -> None:
    assert len({generated(seed) for seed in SEEDS}) == len(SEEDS)


def test_a_longer_sequence_begins_like_a_shorter_one() -> None:
    for seed in range(8):
        assert CONTRACT.generate(seed, 60)[: LENGTH + 1] == generated(seed)[: LENGTH + 1]


@pytest.mark.parametrize("length", [0, 3, 4, 12, 30])
def test_the_length_is_what_was_asked_for(length: int) -> None:
    for seed in range(8):
        chaos = len(CONTRACT.generate(seed, length)) - 1
        assert max(length, 3) + 4 <= chaos <= max(length, 3) + 9, "and the recovery phase"


def test_every_sequence_begins_with_a_new_box_and_a_worker() -> None:
    early = 0
    for seed in SEEDS:
        sequence = generated(seed)
        began = {part.type for part in sequence[:6]}
        assert isinstance(sequence[0], common.Reset)
        assert {"Init", "Up", "Add"} <= began
        early += isinstance(WorkersContract().generate(seed, 3)[1], common.ExpectError)
    assert 0.15 * len(SEEDS) < early < 0.45 * len(SEEDS), (
        "sometimes a command comes before there is a workspace"
    )


def test_every_sequence_ends_with_recovery() -> None:
    for seed in SEEDS:
        sequence = generated(seed)
        assert sequence[-4:] == (common.Settle(), op.Doctor(), op.Status(), op.Down())
        assert not any(item.kind is Kind.FAULT for item in sequence[final_settle(sequence) :])


def test_at_the_end_the_daemon_runs_and_the_users_checkout_is_clean() -> None:
    for seed in SEEDS:
        dirty, running = False, False
        for item in generated(seed)[:-4]:
            for part in walk(item) if not isinstance(item, common.ExpectError) else ():
                if isinstance(part, op.DirtySource):
                    dirty = not part.undo
                if isinstance(part, op.Up | op.Down | op.KillDaemon):
                    running = isinstance(part, op.Up)
        assert running
        assert not dirty


@pytest.mark.parametrize("name", ["ideal", "longboat", "llmc"])
def test_every_sequence_is_plausible(name: str) -> None:
    profile = Profile()
    if name != "ideal":
        spec, _ = find_spec(name)
        assert isinstance(spec, TargetSpec)
        profile = spec.make_profile()
    contract = WorkersContract(profile)
    for seed in range(15):
        sequence = contract.generate(seed, LENGTH)
        assert contract.plausible(sequence, ()), f"seed {seed}: {_culprit(contract, sequence)}"


def _culprit(contract: WorkersContract, sequence: Run) -> str:
    ends = range(1, len(sequence) + 1)
    first = next(end for end in ends if not contract.plausible(sequence[:end], ()))
    return f"operation {first - 1}: {sequence[first - 1]}"


def test_every_sequence_survives_being_written_down() -> None:
    for seed in SEEDS:
        for item in generated(seed):
            assert decode_operation(item.as_json(), OPERATIONS, where="test") == item


def test_every_fault_occurs() -> None:
    faults = {
        name
        for name, cls in OPERATIONS.items()
        if cls.kind is Kind.FAULT and not issubclass(cls, common.SweepPoint)
    }
    # Nothing of this contract uses the network; the limit on processes does not bind root everywhere;
    # and this profile does not say that its daemon listens.
    faults -= {"Partition", "SlowLink", "LimitProcesses", "SilentClient"}
    missing = {name for name in faults if counted()[name] == 0}
    assert missing == set()
    with_faults = [seed for seed in SEEDS if any(i.kind is Kind.FAULT for i in generated(seed))]
    assert len(with_faults) > 0.95 * len(SEEDS)


def test_every_command_occurs_and_work_gets_done() -> None:
    commands = {name for name, cls in OPERATIONS.items() if cls.kind is Kind.COMMAND}
    assert {name for name in commands - {"Attach"} if counted()[name] == 0} == set()
    assert counted()["Accept"] > len(SEEDS) / 2, "an exploration that never merges tests little"
    assert counted()["Start"] > 1.5 * len(SEEDS)


def test_refusals_and_races_occur() -> None:
    assert counted()["ExpectError"] > 20
    assert counted()["Parallel"] > 5
    for how in op.CORRUPTIONS:
        assert any(op.CorruptState(how) in generated(seed) for seed in SEEDS)


def test_no_wait_that_cannot_end() -> None:
    for seed in SEEDS:
        walked = Walk(CONTRACT.profile)
        for index, item in enumerate(generated(seed)):
            place = f"seed {seed}, operation {index}: {item}"
            if isinstance(item, op.WaitForIdle | op.WaitForNeedsReview):
                assert walked.model.daemon_certain is True, place
                assert item.worker in walked.model.workers, place
                assert item.status in walked.model.allowed(item.worker), place
            if isinstance(item, op.WaitForNeedsReview):
                turns = walked.model.scripts.get(item.worker, ("obey",))
                assert all(completing(turn) for turn in turns), place
                assert not walked.model.allowed(item.worker) & {"idle"}, place
            walked.apply(item)


def test_what_must_be_refused_is_due_to_be_refused() -> None:
    for seed in SEEDS:
        walked = Walk(CONTRACT.profile)
        for index, item in enumerate(generated(seed)):
            if isinstance(item, common.ExpectError):
                due = expect(walked.model, item.inner, None)
                assert due.rejection_due, f"seed {seed}, operation {index}: {item}"
            walked.apply(item)


def test_faults_hit_only_what_is_there() -> None:
    for seed in SEEDS:
        walked = Walk(CONTRACT.profile)
        for index, item in enumerate(generated(seed)):
            place = f"seed {seed}, operation {index}: {item}"
            if isinstance(item, op.KillAgent | op.KillTmuxSession):
                assert item.worker in walked.model.workers, place
            if isinstance(item, op.KillDaemon | op.PauseProcess):
                assert walked.model.daemon_certain is True, place
            walked.apply(item)


def test_one_task_is_not_killed_for_ever() -> None:
    """After two faults on one task a target may give up: more would teach nothing."""
    for seed in SEEDS:
        hits: Counter[str] = Counter()
        for item in generated(seed):
            if isinstance(item, op.KillAgent | op.KillTmuxSession):
                hits[item.worker] += 1
                assert hits[item.worker] <= 3
            if isinstance(item, op.Start | op.Nuke | op.Accept | op.Up):
                hits.clear()
