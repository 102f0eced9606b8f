"""Damage to the content of files: what changes, what does not, and when it is taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mutiny.faults import content
from mutiny.faults.base import Fault
from mutiny.system.files import BoxPath

STATE = b'{"workers": {"alpha": "idle"}}'
FAULTS: dict[str, Callable[[BoxPath, content.Way], Fault]] = {
    "truncate": lambda path, way: content.truncate(path, 0.5, way=way),
    "empty": lambda path, way: content.truncate(path, 0, way=way),
    "junk": lambda path, way: content.append_junk(path, 10, way=way),
    "bit": lambda path, way: content.flip_bit(path, way=way),
    "garbage": lambda path, way: content.corrupt(path, way=way),
}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(STATE)
    path.chmod(0o640)
    return path


def at(path: Path) -> BoxPath:
    return BoxPath(path.parent, path.name)


@pytest.mark.parametrize("way", ["rename", "in place"])
@pytest.mark.parametrize("name", FAULTS)
def test_damage_is_proved_named_and_taken_back(state: Path, name: str, way: content.Way) -> None:
    inode = state.stat().st_ino
    with FAULTS[name](at(state), way) as fault:
        assert fault.injected is not None
        assert fault.injected.fired
        assert "place" in fault.technique if way == "in place" else "rename" in fault.technique
        assert state.read_bytes() != STATE
        assert (state.stat().st_ino == inode) == (way == "in place")
        assert state.stat().st_mode & 0o777 == 0o640
    assert state.read_bytes() == STATE
    assert sorted(path.name for path in state.parent.iterdir()) == ["state.json"]


def test_exactly_one_bit_is_flipped_and_the_seed_says_which() -> None:
    first = content.with_flipped_bit(STATE, 1)
    changed = [a ^ b for a, b in zip(STATE, first, strict=True) if a != b]
    assert len(changed) == 1
    assert changed[0].bit_count() == 1
    assert content.with_flipped_bit(STATE, 1) == first
    assert len({content.with_flipped_bit(STATE, seed) for seed in range(20)}) > 10


def test_what_the_target_has_written_since_is_not_overwritten(state: Path) -> None:
    with content.corrupt(at(state)) as fault:
        state.write_bytes(b"{}")
    assert state.read_bytes() == b"{}"
    assert not fault.heal().fired


def test_nothing_to_damage_is_not_called_fired(tmp_path: Path) -> None:
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.write_bytes(b"")
    nothing = at(missing)
    for fault in (
        content.corrupt(nothing),
        content.DeleteFile(nothing),
        content.flip_bit(at(empty)),
    ):
        assert fault.inject().fired is False
        assert fault.heal().fired is False


def test_a_deleted_file_comes_back_unless_there_is_a_new_one(state: Path) -> None:
    with content.DeleteFile(at(state)):
        assert not state.exists()
    assert (state.read_bytes(), state.stat().st_mode & 0o777) == (STATE, 0o640)
    with content.DeleteFile(at(state)):
        state.write_bytes(b"new")
    assert state.read_bytes() == b"new"


def test_a_stale_copy_is_the_content_of_the_preparation(state: Path) -> None:
    fault = content.StaleCopy(at(state))
    fault.prepare()
    assert fault.inject().fired is False, "nothing has changed yet"
    state.write_bytes(b"newer")
    assert fault.inject().fired
    assert state.read_bytes() == STATE
    assert fault.heal().fired
    assert state.read_bytes() == b"newer"
