"""Snapshots and the durable shadow, fed with calls by hand."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call
from mutiny.syscalls.durability import Durability
from mutiny.syscalls.schedules import Outcome, Step, parse_schedule
from mutiny.syscalls.snapshots import Snapshots

CREATE = tables.O_CREAT | tables.O_WRONLY


def call(name: str, *files: Path, flags: int = 0, length: int = 0) -> Call:
    paths = tuple(map(str, files))
    return Call(0, 1, "x#1", name, paths, paths, flags=flags, length=length)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    place = tmp_path / "live"
    place.mkdir()
    (place / "state").write_text("old")
    return place


# --- snapshots ------------------------------------------------------------------------------------


def test_a_change_that_no_stamp_shows_is_still_seen(tmp_path: Path, live: Path) -> None:
    snapshots = Snapshots(live, tmp_path / "store")
    before = (live / "state").stat()
    snapshots.capture(call("write", live / "state"))
    (live / "state").write_text("new")
    os.utime(live / "state", ns=(before.st_atime_ns, before.st_mtime_ns))
    snapshots.capture(call("fsync", live / "state"))
    contents = [state.entries["state"].content for state in snapshots.states]
    assert [content.read() for content in contents if content is not None] == [b"old", b"new"]


@pytest.mark.parametrize("thorough", [True, False])
def test_states_are_independent_of_what_comes_later(
    tmp_path: Path, live: Path, thorough: bool
) -> None:
    snapshots = Snapshots(live, tmp_path / "store", thorough=thorough)
    snapshots.capture(call("mkdir", live / "sub"))
    (live / "sub").mkdir()
    snapshots.capture(call("rename", live / "state", live / "sub" / "state"))
    (live / "state").rename(live / "sub" / "state")
    snapshots.capture(call("unlink", live / "sub" / "state"))
    (live / "sub" / "state").unlink()
    final = snapshots.finish()
    names = [sorted(state.entries) for state in (*snapshots.states, final)]
    assert names == [["state"], ["state", "sub"], ["sub", "sub/state"], ["sub"]]
    place = snapshots.states[2].materialise(tmp_path / "made")
    assert (place / "sub" / "state").read_text() == "old"
    (place / "sub" / "state").write_text("recovered")
    again = snapshots.states[2].materialise(tmp_path / "again")
    assert (again / "sub" / "state").read_text() == "old"


def test_kinds_links_modes_and_stale_sockets_are_kept(tmp_path: Path, live: Path) -> None:
    (live / "program").write_text("#!")
    (live / "program").chmod(0o755)
    (live / "twin").hardlink_to(live / "program")
    (live / "link").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(live / "s"))
    os.mkfifo(live / "pipe")
    (live / ".mutiny-1.sock").touch()
    place = Snapshots(live, tmp_path / "store").finish().materialise(tmp_path / "made")
    assert (place / "program").stat().st_mode & 0o777 == 0o755
    assert (place / "program").samefile(place / "twin")
    assert (place / "link").readlink() == Path("nowhere")
    assert (place / "s").is_socket()
    assert (place / "pipe").is_fifo()
    assert not (place / ".mutiny-1.sock").exists()


def test_large_files_are_kept_outside_of_memory(tmp_path: Path, live: Path) -> None:
    (live / "large").write_bytes(b"x" * (2 << 20))
    snapshots = Snapshots(live, tmp_path / "store")
    entry = snapshots.finish().entries["large"]
    assert entry.content is not None
    assert entry.content.data == b""
    assert len(entry.content.read()) == 2 << 20


def test_equal_states_have_equal_fingerprints(tmp_path: Path, live: Path) -> None:
    snapshots = Snapshots(live, tmp_path / "store")
    snapshots.capture(call("fsync", live / "state"))
    snapshots.capture(call("write", live / "state"))
    (live / "state").write_text("new")
    snapshots.capture(call("fsync", live / "state"))
    first, second, third = (state.fingerprint for state in snapshots.states)
    assert first == second != third


# --- durability -----------------------------------------------------------------------------------


def durable(model: Durability) -> dict[str, bytes | None]:
    entries = model.finish().entries
    return {
        name: entry.content.read() if entry.content is not None else None
        for name, entry in entries.items()
    }


def test_only_synced_content_survives(tmp_path: Path, live: Path) -> None:
    model = Durability(live, tmp_path / "store")
    model.follow(call("openat", live / "new", flags=CREATE))
    (live / "new").write_text("content")
    model.follow(call("write", live / "new"))
    assert durable(model) == {"state": b"old", "new": b""}
    model.follow(call("fsync", live / "new"))
    model.follow(call("rename", live / "new", live / "state"))
    assert durable(model) == {"state": b"content"}


def test_truncation_is_durable_at_once(tmp_path: Path, live: Path) -> None:
    model = Durability(live, tmp_path / "store")
    model.follow(call("ftruncate", live / "state", length=2))
    assert durable(model) == {"state": b"ol"}
    model.follow(call("openat", live / "state", flags=tables.O_WRONLY | tables.O_TRUNC))
    assert durable(model) == {"state": b""}


def test_calls_that_will_fail_change_nothing(tmp_path: Path, live: Path) -> None:
    model = Durability(live, tmp_path / "store")
    model.follow(call("openat", live / "state", flags=CREATE | tables.O_EXCL | tables.O_TRUNC))
    model.follow(call("rename", live / "missing", live / "state"))
    model.follow(call("rmdir", live / "state"))
    model.follow(call("mkdir", live / "state"))
    model.follow(call("unlink", live / "missing"))
    assert durable(model) == {"state": b"old"}


def test_with_o_sync_every_write_survives(tmp_path: Path, live: Path) -> None:
    model = Durability(live, tmp_path / "store")
    model.follow(call("openat", live / "log", flags=CREATE | tables.O_SYNC))
    (live / "log").write_text("line")
    assert durable(model)["log"] == b"line"


def test_strict_names_need_a_sync_of_their_directory(tmp_path: Path, live: Path) -> None:
    model = Durability(live, tmp_path / "store", strict=True)
    model.follow(call("openat", live / "new", flags=CREATE))
    (live / "new").write_text("content")
    model.follow(call("fsync", live / "new"))
    model.follow(call("rename", live / "new", live / "state"))
    assert durable(model) == {"state": b"old"}
    model.follow(call("fsync", live))
    assert durable(model) == {"state": b"content"}


def test_links_exchange_and_removal(tmp_path: Path, live: Path) -> None:
    model = Durability(live, tmp_path / "store")
    model.follow(call("link", live / "state", live / "twin"))
    (live / "twin").hardlink_to(live / "state")
    model.follow(call("symlink", live / "pointer"))
    (live / "pointer").symlink_to("state")
    model.follow(call("mkdir", live / "sub"))
    (live / "sub").mkdir()
    model.follow(call("renameat2", live / "twin", live / "sub", flags=tables.RENAME_EXCHANGE))
    assert durable(model) == {"state": b"old", "sub": b"old", "twin": None, "pointer": None}
    assert model.finish().entries["pointer"].target == "state"


# --- schedules ------------------------------------------------------------------------------------


def test_leaving_a_command_that_could_go_on_is_a_preemption() -> None:
    both = (0, 1)
    steps = (Step(0, "start", both), Step(0, "open", both), Step(1, "start", both))
    assert (
        Outcome((*steps, Step(1, "open", both), Step(0, "rename", (0,))), "done").preemptions == 1
    )


def test_schedules_are_read_back() -> None:
    assert parse_schedule("0 0 1 0") == (0, 0, 1, 0)
    with pytest.raises(Exception, match="not a schedule"):
        parse_schedule("0 a")
