"""Every fault of the library as an operation on the live longboat: fired, felt, healed, and never
weaker than asked for.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mutiny.box.isolation import why_not
from mutiny.contracts.workers import operations as op
from mutiny.engine.loop import Event, Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.faults import resources
from mutiny.faults.clock import why_no_shim
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Assignment, Bench
from mutiny.syscalls.supervisor import why_not as why_no_engine
from mutiny.targets.kit.requirements import lacking
from mutiny.targets.registry import find_target
from mutiny_command import run_mutiny

CREW: tuple[Operation, ...] = (
    common.Reset(),
    op.Init(),
    op.Up(),
    op.Add("alpha"),
    op.WaitForIdle("alpha"),
)
START = op.Start("alpha", "Create a.txt")


def need(reason: str | None) -> None:
    if reason is not None:
        pytest.skip(reason)


def run(directory: Path, *operations: Operation) -> Outcome:
    need(why_not("bwrap"))
    return Bench(find_target("longboat"), directory).run(Assignment(operations, "test", 7))


def trouble(outcome: Outcome) -> str:
    step = outcome.steps[-1]
    return f"{step.operation}: {step.result.stderr} {step.violations} {step.inconclusive}"


@pytest.mark.deep
@pytest.mark.parametrize(
    "group",
    [
        (
            faults.FillDisk(during=op.Add("beta")),
            faults.FillDisk("inodes", "source", during=op.Add("gamma")),
            faults.ReadOnlyDisk(during=op.Doctor()),
            faults.SlowFiles(2.0, during=op.Status()),
        ),
        (
            faults.Forbid(seconds=0.1),
            faults.HoldLock(seconds=0.1),
            faults.DamageFile("append", seconds=0.05),
            faults.LowerLimit(during=op.Status()),
            faults.LowerLimit("agent", "descriptors", worker="alpha", seconds=0.1),
            faults.StarveCpu(0.3, during=op.Status()),
        ),
        (faults.SkewClock(offset_s=7200, during=op.Status()),),
        (faults.LimitProcesses(seconds=0.1),),
    ],
    ids=lambda group: group[0].type,
)
def test_each_fires_and_is_healed(tmp_path: Path, group: tuple[Operation, ...]) -> None:
    need("; ".join(lacking(group)) or None)
    outcome = run(tmp_path, *CREW, *group, common.Settle(), START, op.WaitForNeedsReview("alpha"))
    assert outcome.verdict in (Verdict.SUCCESS, Verdict.EXPECTED), trouble(outcome)
    for step in outcome.steps:
        if isinstance(step.operation, common.LibraryFault):
            assert (step.result.fired, bool(step.result.technique)) == (True, True)


def test_a_lasting_fault_is_on_until_it_is_healed(tmp_path: Path) -> None:
    need(why_no_engine())
    slow = faults.SlowFiles(30.0, lasting=True)
    outcome = run(
        tmp_path, *CREW, START, slow, op.ResetWorker("alpha"), common.Heal(), common.Settle()
    )
    assert outcome.verdict is Verdict.SUCCESS, trouble(outcome)
    assert outcome.steps[7].result.target_ms > 1000  # more than a hundred calls, each 30 ms late


@pytest.mark.slow
def test_a_full_disk_lasts_only_where_nobody_uses_it_yet(tmp_path: Path) -> None:
    full = faults.FillDisk(lasting=True)
    early = (common.Reset(), op.Init(), full, op.Up(), common.Heal(), op.Up(), op.Add("alpha"))
    outcome = run(tmp_path, *early, op.WaitForIdle("alpha"), faults.ReadOnlyDisk(lasting=True))
    words = [step.verdict.value for step in outcome.steps]
    assert words == ["success"] * 3 + ["expected"] + ["success"] * 4 + ["inconclusive"]
    assert "open for writing" in trouble(outcome)
    # The files of the box's own disk are saved before the box ends.
    state = json.loads((outcome.directory.box_path / "home/longboat/state.json").read_text())
    assert list(state["workers"]) == ["alpha"]
    late = run(tmp_path, *CREW, full)
    assert late.verdict is Verdict.INCONCLUSIVE
    assert "already uses" in trouble(late)


def test_ctrl_c_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need(why_not("bwrap"))
    healed: list[int] = []
    original = resources.StarveCpu.heal

    def heal(fault: resources.StarveCpu) -> OperationResult:
        healed.append(1)
        return original(fault)

    monkeypatch.setattr(resources.StarveCpu, "heal", heal)

    def interrupt(event: Event) -> None:
        if isinstance(event.operation, common.Sleep):
            raise KeyboardInterrupt

    bench = Bench(find_target("longboat"), tmp_path)
    engine = bench.engine(RunDirectory.create(tmp_path), 7)
    engine._listeners = (interrupt,)
    with pytest.raises(KeyboardInterrupt):
        engine.run((*CREW, faults.StarveCpu(0.5, lasting=True), common.Sleep(9)))
    assert healed == [1]


def test_nothing_of_it_is_there_when_no_fault_is_planned(tmp_path: Path) -> None:
    need(why_not("bwrap"))
    live: Any = find_target("longboat").make_live(tmp_path / "box")
    try:
        live.prepare((common.Reset(), op.KillDaemon()))
        assert not live.injured
        assert "LD_PRELOAD" not in live.environment()
        need(why_no_shim())
        live.prepare((faults.SkewClock(offset_s=1, lasting=True),))
        assert "LD_PRELOAD" in live.environment()
    finally:
        live.close()


def test_a_replay_that_needs_what_is_lacking_is_refused_by_name(tmp_path: Path) -> None:
    sequence = [item.as_json() for item in (*CREW, faults.Partition(seconds=0.1))]
    (tmp_path / "bug.json").write_text(json.dumps(sequence))
    for words in (("replay", "bug.json"), ("run", "--scenario", "bug.json")):
        ran = run_mutiny(tmp_path, *words, "--isolation", "subreaper")
        assert ran.code == 3, ran.stdout + ran.stderr
        assert "nftables" in ran.stderr
        assert not (tmp_path / "chaos_runs").exists()


@pytest.mark.slow
def test_a_replay_names_the_techniques_of_its_faults(tmp_path: Path) -> None:
    need(why_not("bwrap"))
    words = ("run", "--scenario", "accept_then_crash", "--plant", "up-refused-after-crash")
    ran = run_mutiny(tmp_path, *words, "--no-minimise", "--seed", "1")
    assert ran.code == 1, ran.stdout + ran.stderr
    replay = json.loads((tmp_path / "chaos_runs/latest/minimal_replay.json").read_text())
    assert replay["techniques"] == ["SIGKILL by handle"]
    replay["techniques"].append("tc netem in the network namespace of the box")
    (tmp_path / "bug.json").write_text(json.dumps(replay))
    refused = run_mutiny(tmp_path, "replay", "bug.json", "--isolation", "subreaper")
    assert refused.code == 3
    assert "tc netem" in refused.stderr


def test_doctor_lists_every_fault(tmp_path: Path) -> None:
    ran = run_mutiny(tmp_path, "doctor", "--json")
    report = json.loads(ran.stdout)
    families = set(report["faults"])
    assert families == {
        *(
            "calls",
            "clock",
            "containers",
            "disk",
            "file",
            "link",
            "model API",
            "network",
            "process",
        ),
        "resources",
    }
    for item in (item for items in report["faults"].values() for item in items):
        assert item["technique"]
        assert item["available"] == (item["reason"] is None)
    if why_not("bwrap") is None and shutil.which("nft") and shutil.which("cc"):
        assert report["faults_available"] >= 0.8 * report["faults_known"]
    shown = run_mutiny(tmp_path, "doctor").stdout
    assert f"{report['faults_available']} of {report['faults_known']} faults available" in shown
