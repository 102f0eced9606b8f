"""Board A under the system-call engine: every crash point, a cut of power, and interleavings.

The healthy board survives all of them; what only these can find is planted here.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from board_bench import environment, plant

from longboat.board.config import Config
from longboat.board.file_store import FileStore
from longboat.board.files import Lock
from longboat.board.values import Command, NewTask, Refused
from mutiny.syscalls.durability import Durability
from mutiny.syscalls.policies import BeforeEach, FailAt
from mutiny.syscalls.schedules import Interleaver, Outcome
from mutiny.syscalls.snapshots import Snapshots
from mutiny.syscalls.starters import OnHost, Starter
from mutiny.syscalls.supervisor import Supervisor

LIMIT_S = 30.0


def store(place: Path) -> FileStore:
    return FileStore(str(place), Config(lease_s=600))


def made(place: Path, *names: str) -> Path:
    """A board with tasks, and a checkpoint of it."""
    store(place).execute(Command("init"))
    for name in names:
        assert store(place).execute(Command("add", new=(NewTask("x", name),)))["ok"]
    assert store(place).execute(Command("checkpoint", name="one"))["ok"]
    return place


def longboat(place: Path, plant: str, *words: str) -> list[str]:
    """A command line with its plant in it."""
    settings = ["LONGBOAT_BOARD_LEASE_S=600", f"LONGBOAT_PLANT={plant}"]
    program = [sys.executable, "-m", "longboat.cli", "board", "--dir", str(place), "--json"]
    return ["env", *settings, *program, *words]


def seen(place: Path) -> str:
    """What the healthy board finds in a directory."""
    listed = store(place).execute(Command("list"))
    if not listed["ok"]:
        return str(listed["error"])
    tasks = listed["tasks"]
    assert isinstance(tasks, list)
    return " ".join(task["id"] for task in tasks)


def restored(place: Path) -> str:
    """What is there after a restore of the checkpoint."""
    answer = store(place).execute(Command("restore", name="one"))
    return seen(place) if answer["ok"] else str(answer["error"])


def crash_states(tmp_path: Path, plant: str, *words: str) -> list[Path]:
    """The directory as it is before each call of a command, and after it."""
    live = tmp_path / "live"
    snapshots = Snapshots(live, tmp_path / "store")
    with Supervisor(BeforeEach(snapshots.capture), roots=[live]) as supervisor:
        supervisor.run(longboat(live, plant, *words), timeout_s=LIMIT_S)
    states = [*snapshots.states, snapshots.finish()]
    return [state.materialise(tmp_path / f"state{n}") for n, state in enumerate(states)]


@pytest.mark.parametrize("plant", ["", "board-in-place"])
def test_every_crash_point_of_an_add(tmp_path: Path, plant: str) -> None:
    made(tmp_path / "live", "a")
    found = [seen(place) for place in crash_states(tmp_path, plant, "add", "x", "--id", "b")]
    assert (found[0], found[-1]) == ("a", "a b")
    assert len(found) >= 6
    assert set(found) == ({"a", "a b", "unreadable"} if plant else {"a", "a b"})


@pytest.mark.parametrize("plant", ["", "checkpoint-in-place"])
def test_every_crash_point_of_a_second_checkpoint(tmp_path: Path, plant: str) -> None:
    live = made(tmp_path / "live", "a")
    store(live).execute(Command("add", new=(NewTask("x", "b"),)))
    found = [restored(place) for place in crash_states(tmp_path, plant, "checkpoint", "one")]
    assert (found[0], found[-1]) == ("a", "a b")
    assert set(found) == ({"a", "a b", "unreadable"} if plant else {"a", "a b"})


@pytest.mark.parametrize("plant", ["", "board-renamed-unsynced"])
def test_a_cut_of_power_after_an_acknowledged_add(tmp_path: Path, plant: str) -> None:
    live = made(tmp_path / "live", "a")
    model = Durability(live, tmp_path / "store")
    with Supervisor(BeforeEach(model.follow), roots=[live]) as supervisor:
        supervisor.run(longboat(live, plant, "add", "x", "--id", "b"), timeout_s=LIMIT_S)
    states = [*model.states, model.finish()]
    found = [seen(state.materialise(tmp_path / f"lost{n}")) for n, state in enumerate(states)]
    assert found[-1] == ("unreadable" if plant else "a b")
    assert set(found) <= ({"a", "a b", "unreadable"} if plant else {"a", "a b"})


@pytest.mark.slow
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EACCES", "EINTR"])
def test_an_error_at_any_call_is_told_truly(tmp_path: Path, error: str) -> None:
    ready, live = made(tmp_path / "ready", "a"), tmp_path / "live"
    words = longboat(live, "", "add", "x", "--id", "b")
    for index in range(9):
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(ready, live)
        said = tmp_path / "said"
        argv = ["sh", "-c", f'exec "$@" > {said}', "sh", *words]
        with Supervisor(FailAt(index, error), roots=[live]) as supervisor:
            supervisor.run(argv, timeout_s=LIMIT_S)
            assert supervisor.fired
        answer = json.loads(said.read_text())
        if answer["ok"]:
            assert seen(live) == "a b"
        elif answer.get("happened") != "unknown":
            assert seen(live) == "a"
        assert seen(live) in ("a", "a b")


def race(tmp_path: Path, plant: str, claims: int) -> Interleaver:
    """Parallel claims of one task: at most one may succeed."""
    ready, live = made(tmp_path / "ready", "a"), tmp_path / "live"
    live.mkdir()

    def prepare() -> Starter:
        shutil.rmtree(live)
        shutil.copytree(ready, live)
        return OnHost()

    def judge(outcome: Outcome) -> str | None:
        codes = sorted(end.exit_code if end.exit_code is not None else -1 for end in outcome.ends)
        return None if codes == [0] + [1] * (claims - 1) else f"exit codes {codes}"

    commands = [longboat(live, plant, "claim", f"w{number}") for number in range(claims)]
    return Interleaver(commands, roots=[live], prepare=prepare, judge=judge, preemption_bound=2)


@pytest.mark.parametrize(
    ("plant", "claims", "limit"),
    [("board-without-lock", 2, 12), ("lock-dropped-before-write", 2, 12)],
)
def test_a_double_claim_is_found(tmp_path: Path, plant: str, claims: int, limit: int) -> None:
    found = race(tmp_path, plant, claims).explore(limit=limit)
    assert [problem.text for problem in found.problems] == ["exit codes [0, 0]"]


@pytest.mark.parametrize("limit", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_no_order_gives_a_task_to_two(tmp_path: Path, limit: int) -> None:
    found = race(tmp_path, "", 2).explore(limit=limit)
    assert (found.problems, found.diverged) == ((), 0)


@pytest.mark.parametrize("active", [False, True])
def test_a_removed_lock_file_is_two_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, active: bool
) -> None:
    """The order that a sweep of three claims has to find: open, remove, lock, open, lock."""
    plant(monkeypatch, *(["lock-file-removed"] if active else []))
    path = str(tmp_path / "board.lock")
    first = Lock(path, LIMIT_S)
    with open(path, "r+") as second:
        first.release()
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if active:
            Lock(path, LIMIT_S).release()
        else:
            with pytest.raises(Refused) as refusal:
                Lock(path, 0.02)
            assert refusal.value.error == "busy"


def test_the_commands_of_these_tests_work(tmp_path: Path) -> None:
    made(tmp_path / "live", "a")
    done = subprocess.run(
        longboat(tmp_path / "live", "", "claim", "w1"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(),
    )
    assert json.loads(done.stdout)["task"] == "a"
