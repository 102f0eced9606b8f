"""The helpers for processes and for changes of files."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mutiny.system import processes, procfs
from mutiny.system.files import BoxPath
from mutiny.system.inotify import DirectoryWatch
from mutiny.targets.kit import watching
from mutiny.targets.kit.watching import Stirs


@pytest.fixture(params=[True, False], ids=["inotify", "polling"])
def watch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DirectoryWatch]:
    with DirectoryWatch([tmp_path], use_inotify=request.param) as made:
        if request.param and made.polling_because is not None:
            pytest.skip(made.polling_because)
        yield made


def test_nothing_happens(watch: DirectoryWatch) -> None:
    assert watch.wait(0.01) == []


def test_changes_before_the_wait_are_kept(watch: DirectoryWatch, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("x")
    events = watch.wait(5)
    assert {event.name for event in events} == {"new"}
    assert "create" in events[0].masks
    assert all(event.path == tmp_path for event in events)


def test_replacing_and_deleting_are_seen(watch: DirectoryWatch, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("1")
    watch.wait(5)
    (tmp_path / "state.new").write_text("22")
    (tmp_path / "state.new").rename(tmp_path / "state")
    names = {event.name for event in watch.wait(5)}
    assert "state" in names
    (tmp_path / "state").unlink()
    assert any("delete" in event.masks for event in watch.wait(5))


def test_a_wait_wakes_at_the_change(watch: DirectoryWatch, tmp_path: Path) -> None:
    timer = threading.Timer(0.05, (tmp_path / "late").touch)
    timer.start()
    events = watch.wait(600)  # a wait that slept through it would end with the suite's own limit
    timer.join()
    assert events[0].name == "late"


def test_a_single_file_can_be_watched(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("1")
    for use_inotify in (True, False):
        with DirectoryWatch([path], use_inotify=use_inotify) as watch:
            path.write_text(path.read_text() + "2")
            event = watch.wait(5)[0]
            assert (event.path, event.name) == (path, "")


def test_what_does_not_exist_cannot_be_watched(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="cannot watch"):
        DirectoryWatch([tmp_path / "missing"])


def test_a_closed_watch_says_so(tmp_path: Path) -> None:
    watch = DirectoryWatch([tmp_path])
    watch.close()
    watch.close()
    if watch.polling_because is None:
        with pytest.raises(ValueError, match="closed"):
            watch.wait(0)


def test_names_with_parentheses_do_not_confuse_the_parser() -> None:
    rest = "S 1 2 3 4 5 " + " ".join(str(number) for number in range(6, 30))
    fields, name = procfs.split_stat(f"77 (evil) R 9 (x) {rest}")
    assert name == "evil) R 9 (x"
    assert fields[:5] == ["S", "1", "2", "3", "4"]


def test_a_process_is_known_by_pid_and_start() -> None:
    own = processes.read_stat(os.getpid())
    assert own is not None
    assert own.parent_pid == os.getppid()
    assert processes.start_ticks(os.getpid()) == own.start
    assert processes.is_alive(os.getpid(), own.start)
    assert not processes.is_alive(os.getpid(), own.start + 1)
    assert processes.open_handle(os.getpid(), own.start + 1) is None
    assert os.getpid() in processes.all_pids()


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["sleep", "60"])
    start = processes.start_ticks(child.pid)
    assert start is not None
    assert not processes.wait_gone(child.pid, start, 0)
    child.kill()
    assert processes.wait_gone(child.pid, start, 10)
    assert processes.start_ticks(child.pid) == start, "not reaped yet"
    assert not processes.is_alive(child.pid, start)
    child.wait()
    assert processes.read_stat(child.pid) is None
    assert processes.wait_gone(child.pid, start, 0)


def test_the_environment_of_a_process() -> None:
    line = [
        "sh",
        "-c",
        "echo ready; read word",
    ]  # before it says so, the kernel may still set it up
    with subprocess.Popen(line, env={"WORD": "a=b"}, stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert processes.environment_of(child.pid) == {"WORD": "a=b"}
        child.kill()
    assert processes.environment_of(child.pid) is None


def test_changes_are_counted_one_by_one_until_it_is_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "STILL_S", 0.05)
    with Stirs(BoxPath(tmp_path, "state")) as stirs:
        (tmp_path / "lock").write_text("1")
        (tmp_path / "state").write_text("1")
        (tmp_path / "state.tmp").write_text("1")
        first = stirs.wait(2)  # what else has happened is told with it
        assert first[0] == "create state"
        assert len(first) >= 2
        stirs.answered()
        assert len(stirs.wait(1000)) < 1000
    with Stirs(BoxPath(tmp_path) / "nowhere" / "state") as stirs:
        assert stirs.wait(1) == []


def test_who_begins_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "STILL_S", 0.0)
    with Stirs(BoxPath(tmp_path, "state"), lag_s=30.0) as stirs:
        stirs.answered()
        late = threading.Timer(0.3, (tmp_path / "state").write_text, ("1",))
        late.start()
        assert stirs.wait(1)[0] == "create state"
        late.join()


def test_who_never_rests_is_not_watched_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "STILL_S", 1000.0)
    monkeypatch.setattr(watching, "RESTLESS_S", 0.05)
    with Stirs(BoxPath(tmp_path, "state")) as stirs:
        stirs.answered()
        assert stirs.wait(1) == []
