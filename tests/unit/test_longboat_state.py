"""The state of longboat: its JSON form, and that it survives what happens to files."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from longboat.errors import LongboatError, StateUnreadable
from longboat.workers import store
from longboat.workers.state import (
    RECEIVED,
    Agent,
    Daemon,
    Delivery,
    Intent,
    Prompt,
    State,
    Task,
    Worker,
    contradictions,
    decode,
    encode,
)
from longboat.workers.store import Book, DaemonLock, Home, HomeLock


def full_state() -> State:
    prompt = Prompt("p1", "task", "Create x\nwith ünïcode", "t1", attempts=2)
    agent = Agent(10, 20, "mark", "%3", 5, 6, 1.5, "session", True, "t1", False, "/talk")
    worker = Worker(
        name="alpha",
        status="working",
        branch="longboat/alpha",
        worktree="/w/alpha",
        session="longboat-alpha",
        current_prompt="Create x",
        agent=agent,
        inflight=Delivery(prompt, RECEIVED, 10, 20, "abc", 3.25),
        inbox=(prompt._replace(id="p2", kind="message"),),
        task_id="t1",
    )
    state = State(generation=7, daemon=Daemon(1, 2), daemon_running=True, last_reviewed="alpha")
    state = state.with_worker(worker).with_task(Task("t1", "alpha", "Create x", "active"))
    return state.with_intent(Intent("rebase", "alpha", base="b", head="h"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    for name in ("logs", "spool"):
        (tmp_path / name).mkdir()
    return store.open_home(str(tmp_path))


def test_state_survives_its_json_form() -> None:
    state = full_state()
    assert decode(json.loads(json.dumps(encode(state)))) == state


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"workers": None}, {"tasks": {"t": {"id": "t"}}}, {"daemon": {}}]
)
def test_wrong_json_is_refused(change: dict[str, object]) -> None:
    document = {**encode(full_state()), **change}
    if change == {"daemon": {}}:
        document["daemon"] = {"pid": 1}
    with pytest.raises(ValueError, match=r"version|missing"):
        decode(document)


def test_being_away_for_a_while_ends_nobodys_wait() -> None:
    waits = full_state().workers["alpha"]._replace(status="needs_review", since_generation=3)
    state = full_state().without_worker("alpha").with_worker(waits)
    away = state.with_worker(waits._replace(status="offline", resume="needs_review"))
    back = away.with_worker(away.workers["alpha"]._replace(status="needs_review", resume="idle"))
    assert [one.workers["alpha"].since_generation for one in (away, back)] == [3, 3]
    moved = away.with_worker(away.workers["alpha"]._replace(status="working", resume="idle"))
    assert moved.workers["alpha"].since_generation == 8


def test_contradictions_are_named_and_never_saved(home: Home) -> None:
    idle = full_state().workers["alpha"]._replace(status="idle")
    state = full_state().with_worker(idle)
    assert contradictions(state) == ["worker 'alpha' is idle but has a prompt"]
    with pytest.raises(LongboatError, match="contradictory"):
        store.write_state(home, state)
    assert not Path(home.state).exists()


def test_torn_main_file_falls_back_to_the_backup(home: Home) -> None:
    store.write_state(home, full_state())
    whole = Path(home.state).read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 3):
        Path(home.state).write_bytes(whole[:size])
        loaded = store.read_state(home)
        assert loaded.state == full_state()
        assert loaded.main_is_bad
    Path(home.state).write_bytes(whole.replace(b'"working"', b'"offline"'))
    assert "checksum" in store.read_state(home).problems[0]
    Path(home.state).unlink()
    assert store.read_state(home).state == full_state()


def test_both_files_bad_is_a_refusal_never_an_empty_state(home: Home) -> None:
    with pytest.raises(StateUnreadable, match="doctor --repair"):
        store.read_state(home)
    store.write_state(home, full_state())
    Path(home.state).write_bytes(b"{")
    Path(home.backup).write_bytes(b"")
    with pytest.raises(StateUnreadable):
        store.read_state(home)


def test_bad_file_is_kept_aside_and_replaced(home: Home) -> None:
    store.write_state(home, full_state())
    Path(home.state).write_bytes(b"bad")
    lock = HomeLock(home, 1.0, "test")
    Book(home, lock, store.read_state(home))
    lock.release()
    aside = list(Path(home.path).glob("state.corrupt-*.json"))
    assert [one.read_bytes() for one in aside] == [b"bad"]
    healed = store.read_state(home)
    assert not healed.main_is_bad
    assert healed.state.generation == 8


def test_a_failed_write_leaves_the_old_file(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write_state(home, full_state())
    before = Path(home.state).read_bytes()

    def full_disk(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        store.write_state(home, full_state()._replace(generation=8))
    assert Path(home.state).read_bytes() == before
    assert [p.name for p in Path(home.path).glob("*.tmp")] == []


def test_save_writes_only_what_changed(home: Home) -> None:
    store.write_state(home, full_state())
    lock = HomeLock(home, 1.0, "test")
    book = Book(home, lock, store.read_state(home))
    book.save()
    assert book.state.generation == 7
    book.state = book.state._replace(last_reviewed=None)
    book.save()
    lock.release()
    assert store.read_state(home).state.generation == 8


def test_lock_names_its_holder(home: Home) -> None:
    lock = HomeLock(home, 1.0, "accept alpha")
    with pytest.raises(LongboatError, match=rf"process {os.getpid()} \(accept alpha\)"):
        HomeLock(home, 0.01, "nuke")
    lock.release()
    HomeLock(home, 0.01, "nuke").release()


def test_a_lock_whose_note_cannot_be_written_is_given_back(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(*_: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", too_large)
        with pytest.raises(OSError, match="too large"):
            HomeLock(home, 1, "a test")
    HomeLock(home, 0.2, "the next one").release()


def test_an_old_copy_is_recognised_by_its_backup(home: Home) -> None:
    store.write_state(home, State(generation=3))
    old = Path(home.state).read_bytes()
    store.write_state(home, State(generation=4, last_reviewed="alpha"))
    Path(home.state).write_bytes(old)
    assert store.read_state(home).state.last_reviewed == "alpha"
    lock = HomeLock(home, 1, "a test")
    Book(home, lock, store.read_state(home))
    lock.release()
    assert store.parse_state(Path(home.state).read_bytes()).last_reviewed == "alpha"


def test_daemon_lock_can_be_asked_without_being_taken(home: Home) -> None:
    assert not store.daemon_is_alive(home)
    lock = DaemonLock(home)
    assert lock.take()
    assert store.daemon_is_alive(home)
    other = DaemonLock(home)
    assert not other.take()
    other.close()
    lock.close()
    assert not store.daemon_is_alive(home)
