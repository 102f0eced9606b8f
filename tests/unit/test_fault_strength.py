"""No fault may be so weak that nobody can feel it: it is refused, it is felt, or it was not injected."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.contracts.board import operations as board
from mutiny.contracts.workers import operations as op
from mutiny.faults import content, network
from mutiny.faults.clock import SkewClock
from mutiny.faults.process import kill
from mutiny.faults.resources import DutyCycle, StarveCpu
from mutiny.kit import faults
from mutiny.kit.faults import LIBRARY
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.kit.fault_runner import _Ended

Make = Callable[..., Operation]

WEAK: list[tuple[Make, dict[str, object]]] = [
    (faults.StarveCpu, {"share": 1}),
    (faults.StarveCpu, {"share": 0.51}),
    (faults.StarveCpu, {"share": float("nan")}),
    (faults.LimitProcesses, {"spare": 1_000_000}),
    (faults.LimitProcesses, {"spare": 17}),
    (faults.LimitProcesses, {"spare": -1}),
    (faults.LowerLimit, {"what": "descriptors", "spare": 17}),
    (faults.LowerLimit, {"what": "descriptors", "spare": -1}),
    (faults.LowerLimit, {"what": "memory", "spare": 1 << 40}),
    (faults.LowerLimit, {"what": "file_size", "spare": 1 << 20}),
    (faults.SlowFiles, {"delay_ms": 0}),
    (faults.SlowFiles, {"delay_ms": 0.001}),
    (faults.SlowFiles, {"delay_ms": float("nan")}),
    (faults.SlowLink, {"delay_ms": 0}),
    (faults.SlowLink, {"kilobits_per_s": 1_000_000_000}),
    (faults.Partition, {"loss": 0}),
    (faults.Partition, {"loss": 1e-9}),
    (faults.SkewClock, {"offset_s": 0}),
    (faults.SkewClock, {"offset_s": 0.001}),
    (faults.SkewClock, {"offset_s": -0.001}),
    (faults.SkewClock, {"offset_s": float("nan")}),
    (faults.SkewClock, {"rate": 1.0}),
    (faults.SkewClock, {"rate": 1.0001}),
    (faults.SkewClock, {"rate": 0}),
    (faults.SkewClock, {"offset_s": 0.001, "rate": 2.0}),
]


@pytest.mark.parametrize(("make", "arguments"), WEAK)
def test_what_nobody_could_feel_is_refused(make: Make, arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must|give"):
        make(**arguments, lasting=True)


NEEDED: dict[type[Operation], dict[str, object]] = {
    faults.SkewClock: {"offset_s": 60.0},
    faults.SlowLink: {"kilobits_per_s": 100},
}


@pytest.mark.parametrize("kind", LIBRARY)
@pytest.mark.parametrize("seconds", [1e-9, 0.01, float("nan"), -1.0])
def test_no_fault_is_shorter_than_anybody_can_notice(kind: Make, seconds: float) -> None:
    needed: dict[str, Any] = NEEDED.get(kind, {})  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="seconds"):
        kind(**needed, seconds=seconds)
    with pytest.raises(ValueError, match="seconds"):
        kind(**needed, seconds=seconds, during=op.Status())


@pytest.mark.parametrize(
    "make",
    [
        lambda s: op.PauseProcess("daemon", s),
        lambda s: op.PauseProcess("daemon", s, during=op.Status()),
        lambda s: board.PauseWorker("w1", s),
        lambda s: board.HoldBoardLock(s),
        lambda s: board.HoldBoardLock(s, board.Status()),
    ],
)
def test_neither_is_a_pause_or_a_held_lock(make: Callable[[float], Operation]) -> None:
    with pytest.raises(ValueError, match="seconds"):
        make(0.0)
    assert make(0.05).kind is Kind.FAULT


def test_every_fault_with_a_number_has_a_least_strength() -> None:
    """A new fault with a number belongs into the table above."""
    tried = {make for make, _ in WEAK}
    plain = {"seconds", "seed"}
    for kind in LIBRARY:
        numbers = [
            name
            for base in kind.__mro__
            for name, text in getattr(base, "__annotations__", {}).items()
            if str(text) in ("int", "float") and name not in plain
        ]
        assert kind in tried or not numbers, f"{kind.__name__}: {numbers}"


# --- faults that count what they did ---------------------------------------------------------------


def test_a_clock_that_never_went_wrong_was_not_felt() -> None:
    page = SimpleNamespace(offset_s=0.002)
    clocks: Any = {"default": page}
    skew = SkewClock(clocks, rate=1.01)
    assert skew.unfelt() == "the clock of default was never more than 2 ms wrong"
    page.offset_s = -0.5
    assert skew.unfelt() is None


def test_a_duty_cycle_that_stopped_nobody_was_not_felt() -> None:
    starve = StarveCpu.__new__(StarveCpu)
    starve._cycle = DutyCycle.__new__(DutyCycle)
    starve._cycle.stops = 0
    assert starve.unfelt() == "no process of the box was ever stopped"
    starve._cycle.stops = 3
    assert starve.unfelt() is None


def test_a_partition_counts_only_what_the_target_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    box: Any = None
    partition = network.Partition(box, network.Party("peer", "10.0.0.1"), loss=0.25)
    poked: list[int] = []
    lost = [4]
    monkeypatch.setattr(partition, "_poke", poked.append)
    monkeypatch.setattr(partition, "packets", lambda: lost[0])
    done = subprocess.CompletedProcess([], 0, "", "")
    monkeypatch.setattr(partition, "_nft", lambda *_: done)
    assert partition.inject().fired
    assert poked == [4], "every fourth packet is lost: four are enough to see one go"
    assert partition.unfelt() == "no packet to or from peer was lost meanwhile"
    lost[0] = 5
    assert partition.unfelt() is None


def test_a_slow_link_without_traffic_was_not_felt(monkeypatch: pytest.MonkeyPatch) -> None:
    box: Any = None
    link = network.SlowLink(box, kilobits_per_s=100)
    said = ["qdisc tbf 8001: root\n Sent 0 bytes 0 pkt (dropped 0, overlimits 0)"]
    answer = lambda *_: subprocess.CompletedProcess([], 0, said[0], "")  # noqa: E731
    monkeypatch.setattr(network, "execute_in", answer)
    assert link.inject().fired
    assert link.unfelt() == "no packet went over lo meanwhile"
    said[0] = said[0].replace("0 bytes 0 pkt", "120 bytes 2 pkt")
    assert link.unfelt() is None


def test_a_fault_that_was_not_felt_did_not_fire() -> None:
    injected = OperationResult(stdout="done", fired=True)
    told = _Ended(None, "nobody was there").told(injected)
    assert not told.fired
    assert not told.succeeded
    assert told.stderr == "the fault was not felt: nobody was there"
    assert not _Ended(None, "x").told(OperationResult(stdout="1 healed")).succeeded
    assert _Ended(None, None).told(injected) is injected


# --- faults that find nothing to change ------------------------------------------------------------


@pytest.mark.parametrize("how", [how for how in faults.DAMAGES if how not in ("delete", "stale")])
def test_damage_that_leaves_a_file_as_it_is_did_not_happen(tmp_path: Path, how: str) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(b"")
    file = BoxPath(tmp_path, path.name)
    first = content.damage(file, how).inject()
    changed = path.read_bytes() != b""
    assert first.fired is changed
    content.damage(file, "garbage").inject()
    assert not content.damage(file, "garbage").inject().fired, "the same rubbish once more"


def test_a_kill_without_anybody_to_kill_did_not_happen() -> None:
    box: Any = None
    assert kill(box, (), "daemon").fired is False
