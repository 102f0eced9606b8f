"""A repair loses nothing: after any damage to its main file a board has all that was acknowledged."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from board_bench import Bench, MakeBench

from longboat.board import codec
from mutiny.faults import content

Damage = Callable[[bytes], bytes | None]
DAMAGES: dict[str, Damage] = {
    "garbage": lambda raw: content.garbage(raw, 1),
    "truncated": lambda raw: content.truncated(raw, 0.5),
    "nearly whole": lambda raw: raw[:-7],
    "empty": lambda raw: b"",
    "junk": lambda raw: content.with_junk(raw, 64, 1),
    "deleted": lambda raw: None,
    "last byte": lambda raw: raw[:-20] + bytes([raw[-20] ^ 4]) + raw[-19:],
    **{f"flip {seed}": partial(content.with_flipped_bit, seed=seed) for seed in range(12)},
}


def fill(bench: Bench) -> None:
    """A start, changes of every kind after it, and one that was acknowledged last."""
    for name in "abc":
        bench.add(name)
    bench.add("d", "a", priority=2)
    words = bench.claim("w1", "a")
    bench("complete", worker="w1", task="a", epoch=words["epoch"], text="the output")
    bench("elect", name="n1")
    bench.claim("w2", "b")
    bench("cancel", task="c")
    bench.add("last")


def stop(bench: Bench) -> None:
    """In good order: B's database has everything in its main file only then."""
    if bench.kind != "A":
        bench.store.close()


def kept(tasks: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Tasks without what a repair may change: claims are freed, epochs jump."""
    plain = {}
    for name, task in tasks.items():
        freed = task["status"] in ("claimed", "in_progress")
        status = "available" if freed else task["status"]
        rest = {key: task[key] for key in task if key not in ("epoch", "history", "owner")}
        plain[name] = {**rest, "status": status}
    return plain


def damage(bench: Bench, how: Damage) -> None:
    raw = how(bench.state_file.read_bytes())
    if raw is None:
        bench.state_file.unlink()
    else:
        bench.state_file.write_bytes(raw)


@pytest.mark.parametrize("how", DAMAGES)
def test_after_any_damage_all_is_there(bench: Bench, how: str) -> None:
    fill(bench)
    before, epochs = bench.tasks(), {n: t["epoch"] for n, t in bench.tasks().items()}
    stop(bench)
    damage(bench, DAMAGES[how])
    bench.restart()
    listed = bench("list")
    if listed["ok"]:  # healed at the start, or nothing was hit that counts: then all is as it was
        assert bench.tasks() == before
    else:
        assert listed["error"] == "unreadable"
    repaired = bench("repair")
    assert repaired["ok"], repaired
    assert "lost_changes" not in repaired
    assert kept(bench.tasks()) == kept(before)
    assert all(task["epoch"] >= epochs[name] for name, task in bench.tasks().items())
    assert bench.add("after")["ok"]
    stop(bench)
    bench.restart()
    assert set(bench.tasks()) == {*before, "after"}
    assert int(str(bench("elect", name="n2").get("token", 2))) > 1


@pytest.mark.parametrize("name", ["board.json", "broker.db", "crew.journal"])
def test_an_old_file_is_not_taken_for_the_newest(make_bench: MakeBench, name: str) -> None:
    kind = {"board.json": "A", "broker.db": "B", "crew.journal": "C"}[name]
    bench = make_bench(kind)
    bench.add("a")
    stop(bench)
    old = bench.state_file.read_bytes()
    bench.restart()
    bench.add("b")
    stop(bench)
    bench.state_file.write_bytes(old)
    bench.restart()
    if kind != "C":  # its mirror has the rest, and it says so
        assert bench("list")["error"] == "unreadable"
        assert bench.add("c")["error"] == "unreadable"
        assert bench("repair")["repaired"] is True
    assert set(bench.tasks()) == {"a", "b"}


def test_every_repair_can_be_followed_by_another(bench: Bench) -> None:
    expected: set[str] = set()
    for number in range(4):
        assert bench.add(f"t{number}")["ok"]
        expected.add(f"t{number}")
        bench.corrupt()
        assert bench("repair")["repaired"] is True
        assert set(bench.tasks()) == expected


def test_a_second_copy_that_could_not_be_named_is_told_and_made_up_for(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("A")
    bench.add("a")
    real = os.rename

    def rename(source: str, target: str) -> None:
        if "backups" in target:
            raise OSError(errno.EIO, "Input/output error")
        real(source, target)

    with monkeypatch.context() as broken:
        broken.setattr("longboat.board.files.os.rename", rename)
        answer = bench.add("b")
        assert (answer["ok"], answer["happened"]) == (False, "unknown")
        refused = bench.add("c")
        assert (refused["ok"], refused["happened"]) == (False, "no")
    assert set(bench.tasks()) == {"a", "b"}
    assert bench.claim("w")["ok"]
    bench.corrupt()
    assert bench("repair")["ok"]
    assert set(bench.tasks()) == {"a", "b"}


def test_no_copy_shares_its_file_with_the_board(make_bench: MakeBench) -> None:
    bench = make_bench("A")
    for name in "abcde":
        bench.add(name)
    copies = list((bench.directory / "backups").iterdir())
    assert len(copies) == bench.config.backups
    assert all(one.stat().st_nlink == 1 for one in [*copies, bench.state_file])
    newest = bench.directory / "backups" / "board.6.json"
    assert newest.read_bytes() == bench.state_file.read_bytes()


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_change_that_the_broker_cannot_copy_is_not_promised(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("B")
    bench.add("a")
    with monkeypatch.context() as broken:
        broken.setattr("longboat.board.journal.os.write", no_space)
        answer = bench.add("b")
        assert (answer["error"], answer["happened"]) == ("no_space", "unknown")
        refused = bench.add("c")
        assert (refused["error"], refused["happened"]) == ("no_space", "no")
        assert set(bench.tasks()) == {"a", "b"}
    assert bench.add("c")["ok"]
    bench.corrupt()
    assert bench("repair")["ok"]
    assert set(bench.tasks()) == {"a", "b", "c"}


def test_a_line_that_fails_costs_the_broker_a_backup_only(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("B")
    failed: list[int] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if not failed:
            failed.append(descriptor)
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    with monkeypatch.context() as broken:
        broken.setattr("longboat.board.journal.os.fsync", fsync)
        assert bench.add("a")["ok"]
    assert failed
    bench.corrupt()
    assert bench("repair")["ok"]
    assert set(bench.tasks()) == {"a"}


def test_a_change_that_is_only_in_one_journal_is_taken_back(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = make_bench("C")
    bench.add("a")
    real, calls = os.fsync, []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:  # of the mirror
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor)

    with monkeypatch.context() as broken:
        broken.setattr("longboat.board.journal.os.fsync", fsync)
        answer = bench.add("b")
    assert (answer["ok"], answer["happened"]) == (False, "no")
    assert bench.add("c")["ok"]
    bench.restart()
    assert set(bench.tasks()) == {"a", "c"}


@pytest.mark.parametrize("name", ["crew.mirror", "broker.journal", "backups"])
def test_damage_to_the_second_copy_costs_nothing(make_bench: MakeBench, name: str) -> None:
    bench = make_bench({"crew.mirror": "C", "broker.journal": "B", "backups": "A"}[name])
    bench.add("a")
    bench.add("b")
    stop(bench)
    place = bench.directory / name
    for path in [place] if place.is_file() else sorted(place.iterdir()):
        path.write_bytes(content.garbage(path.read_bytes(), 3))
    bench.restart()
    assert bench.add("c")["ok"]
    assert set(bench.tasks()) == {"a", "b", "c"}
    bench.corrupt()
    assert bench("repair")["ok"]
    assert set(bench.tasks()) == {"a", "b", "c"}


def test_what_both_journals_have_lost_is_said(make_bench: MakeBench) -> None:
    bench = make_bench("C")
    for name in "abcd":
        bench.add(name)
    stop(bench)
    for name in ("crew.journal", "crew.mirror"):
        path = Path(bench.directory, name)
        lines = path.read_bytes().splitlines(keepends=True)
        lines[2] = b"rubbish\n"
        path.write_bytes(b"".join(lines))
    bench.restart()
    assert bench("list")["error"] == "unreadable"
    assert bench("repair")["lost_changes"] == 1
    assert set(bench.tasks()) == {"a", "c", "d"}


def test_a_streamed_backup_is_the_same_file(make_bench: MakeBench) -> None:
    bench = make_bench("B")
    for number in range(300):
        bench.add(f"t{number}", payload="ü" * number)
    fill(bench)
    ledger = bench.store._ledger()
    streamed = b"".join(codec.seal_pieces(ledger.pieces()))
    assert streamed == codec.write_board(ledger.board())
    assert codec.read_board(streamed) == ledger.board()
