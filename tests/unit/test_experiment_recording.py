"""What is written down while an experiment runs: samples, shocks, recoveries, breaches."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from mutiny.contracts.workers import operations as op
from mutiny.experiments.instrumented import keep_watch
from mutiny.experiments.recorder import Recorder
from mutiny.experiments.sampler import Sampler, lasting_processes, uptime_s
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.operations import disturbs
from mutiny.kit.sentences import Sample, Sentence, Vocabulary, broken
from mutiny.model.result import OperationResult

FIRED = OperationResult(fired=True, technique="x")


def sampled(count: int, path: Path, answer: OperationResult | Exception) -> Recorder:
    """A recorder after so many answers of a probe."""
    recorder = Recorder()
    enough = threading.Event()
    asked: list[int] = []

    def ask() -> OperationResult:
        asked.append(1)
        if len(asked) >= count:
            enough.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    sampler = Sampler(ask, lambda: (7, 3), 100.0, recorder, path)
    assert enough.wait(10)
    sampler.close()
    return recorder


def test_every_answer_is_a_line(tmp_path: Path) -> None:
    path = tmp_path / "availability.jsonl"
    recorder = sampled(5, path, OperationResult())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == len(recorder.samples) >= 5
    assert all(line["ok"] for line in lines)
    assert lines[0]["memory_bytes"] == 7
    assert lines[0]["descriptors"] == 3


def test_a_refusal_is_not_available_and_a_breakdown_is_not_known(tmp_path: Path) -> None:
    refused = sampled(2, tmp_path / "a", OperationResult(1, stderr="down"))
    assert {sample.ok for sample in refused.samples} == {False}
    assert refused.samples[0].note == "down"
    unknown = sampled(2, tmp_path / "b", OSError("no box"))
    assert {sample.ok for sample in unknown.samples} == {None}


def test_nobody_asks_during_a_pause(tmp_path: Path) -> None:
    recorder = Recorder()
    sampler = Sampler(OperationResult, lambda: None, 100.0, recorder, tmp_path / "a")
    with sampler.paused():
        before = len(recorder.samples)
        assert not threading.Event().wait(0.1)
        assert len(recorder.samples) <= before + 1  # the one that was under way
    sampler.close()


def test_recovery_is_the_first_good_answer_when_nothing_is_pending_after_a_fault() -> None:
    recorder = Recorder()
    recorder.did(op.KillAgent("a"), FIRED, 10.0, 10.5)
    recorder.looked(11.0, None, ("worker a is offline",))
    recorder.sampled(Sample(11.5, False, 1.0))
    recorder.looked(12.0, None, ())
    assert recorder.shocks[0].recovered_s is None  # the probe does not answer yet
    recorder.sampled(Sample(12.5, True, 1.0))
    recorder.looked(13.0, None, ())
    recorder.looked(14.0, None, ())
    assert recorder.shocks[0].recovered_s == 2.0


def test_a_lasting_fault_is_recovered_from_only_after_it_was_healed() -> None:
    recorder = Recorder()
    recorder.did(faults.FillDisk(lasting=True), FIRED, 10.0, 10.1)
    recorder.looked(11.0, None, ())
    assert recorder.shocks[0].recovered_s is None
    recorder.did(common.Heal(), OperationResult(), 20.0, 20.1)
    recorder.looked(20.5, None, ())
    assert recorder.shocks[0].recovered_s is None  # nobody has asked it anything since
    recorder.did(op.Status(), OperationResult(), 20.6, 20.7)
    recorder.looked(21.0, None, ())
    assert recorder.shocks[0].recovered_s == 1.0


def test_a_fault_that_did_not_fire_is_no_shock() -> None:
    recorder = Recorder()
    recorder.did(op.KillAgent("a"), OperationResult(1, fired=False), 1.0, 2.0)
    assert recorder.shocks == []


def test_a_worker_that_is_told_to_misbehave_is_a_fault() -> None:
    assert disturbs(op.Behave("a", ("hang",)))
    assert not disturbs(op.Behave("a", ("slow:300", "obey")))
    assert not disturbs(op.Status())


def test_a_broken_line_is_noted_once() -> None:
    recorder = Recorder()
    always = Sentence("Never", lambda _w, _v: broken("it happened"), "", always=True)
    later = Sentence("Later", lambda _w, _v: broken("not yet"), "")
    vocabulary = Vocabulary((always, later))
    recorder.watched = (("Never", vocabulary.read("Never")), ("Later", vocabulary.read("Later")))
    assert keep_watch(recorder, None, None, ())
    assert keep_watch(recorder, None, None, ())
    assert [breach.line for breach in recorder.breaches] == ["Never"]


def test_only_processes_from_before_the_watch_are_measured() -> None:
    import os

    assert lasting_processes(os.getpid(), frozenset(), uptime_s()) is not None
    assert lasting_processes(os.getpid(), frozenset(), 0.0) is None
