"""The three boards in one process, on a clock that a test moves; and the real programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from longboat import planting
from longboat.board import service
from longboat.board.config import Config
from longboat.board.file_store import FileStore
from longboat.board.journal_store import JournalStore
from longboat.board.sqlite_store import SqliteStore
from longboat.board.values import Answer, Command, NewTask

LONGBOAT = [sys.executable, "-m", "longboat.cli"]
LIMIT_S = 60.0
PATIENT = Config(lease_s=60, leader_lease_s=60, retry_base_s=30, retry_cap_s=100, breaker_open_s=60)
"""No test on a slow machine runs into a lease: the clock only moves when the test moves it."""


class Store(Protocol):
    """What the three stores have in common."""

    def execute(self, command: Command) -> Answer: ...


class Bench:
    """One board of one kind; `restart` is a new process for B and C, `advance` moves its clock."""

    def __init__(
        self, kind: str, directory: Path, patch: pytest.MonkeyPatch, config: Config = PATIENT
    ) -> None:
        self.kind = kind
        self.directory = directory
        self.config = config
        self.ahead_s = 0.0
        self._store: Any = None
        self._patch = patch
        real_now, real_beat, real = FileStore._now, FileStore._beat, time.monotonic

        class Clock:
            @staticmethod
            def monotonic() -> float:
                return real() + self.ahead_s

        def beat(store: FileStore, worker: str) -> None:
            real_beat(store, worker)
            place = directory / "heartbeats" / worker
            late_s = place.stat().st_mtime + self.ahead_s
            os.utime(place, (late_s, late_s))

        if kind == "A":
            patch.setattr(FileStore, "_now", lambda store: real_now(store) + self.ahead_s)
            patch.setattr(FileStore, "_beat", beat)
        patch.setattr(service, "time", Clock)
        directory.mkdir(exist_ok=True)
        self.restart()
        assert self("init")["ok"]

    def restart(self) -> None:
        """What is not on the disk is gone. Nothing is closed in good order."""
        if self.kind == "B" and self._store is not None:
            database = self._store._database
            if database is not None:
                if database.in_transaction:
                    database.execute("rollback")  # as the death of the process does
                database.close()
        make: dict[str, Callable[[str, Config], Any]] = {
            "A": FileStore,
            "B": SqliteStore,
            "C": JournalStore,
        }
        self._store = make[self.kind](str(self.directory), self.config)

    @property
    def store(self) -> Any:
        """The store itself, for what is not a verb."""
        return self._store

    @property
    def state_file(self) -> Path:
        """What holds the board."""
        return (
            self.directory / {"A": "board.json", "B": "broker.db", "C": "crew.journal"}[self.kind]
        )

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.ahead_s += seconds

    def __call__(self, verb: str, **fields: Any) -> Answer:
        """Run one verb."""
        answer: Answer = self._store.execute(Command(verb, **fields))
        return answer

    def add(self, name: str, *depends: str, **fields: Any) -> Answer:
        """One task."""
        return self("add", new=(NewTask("do it", name, depends=depends, **fields),))

    def claim(self, worker: str = "w1", task: str = "") -> Answer:
        """One claim."""
        return self("claim", worker=worker, task=task)

    def tasks(self) -> dict[str, dict[str, Any]]:
        """All tasks by name."""
        listed = self("list")
        assert listed["ok"], listed
        tasks = listed["tasks"]
        assert isinstance(tasks, list)
        return {task["id"]: task for task in tasks}

    def status_of(self, name: str) -> str:
        """The status of one task, or that there is none."""
        return str(self.tasks().get(name, {}).get("status", "missing"))

    def corrupt(self) -> None:
        """Damage the state so that nobody can take it for a good one."""
        self.state_file.write_bytes(b"\0 not a board \n" * 40)
        self.restart()


MakeBench = Callable[..., Bench]


def plant(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Switch bugs on in this process."""
    patch.setattr(planting, "_ACTIVE", frozenset(names))


def environment(*names: str, **settings: object) -> dict[str, str]:
    """The environment of a real program with these bugs and settings."""
    given = {f"LONGBOAT_BOARD_{name.upper()}": str(value) for name, value in settings.items()}
    return {**os.environ, "LONGBOAT_PLANT": ",".join(names), **given}


def board(directory: Path, *words: str, code: int = 0, **settings: object) -> dict[str, Any]:
    """One real `longboat board` command; the answer is its JSON. Leases outlast a crowded machine."""
    done = subprocess.run(
        [*LONGBOAT, "board", "--dir", str(directory), "--json", *words],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env=environment(**{"lease_s": 60, **settings}),
        check=False,
    )
    assert done.returncode == code, (words, done)
    answer: dict[str, Any] = json.loads(done.stdout)
    assert answer["ok"] is (code == 0)
    return answer


class Crew:
    """One real `longboat crew serve`."""

    def __init__(self, directory: Path, *words: str, plants: str = "", **settings: object) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [*LONGBOAT, "crew", "serve", "--dir", str(directory), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(plants, **settings),
        )

    def line(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ready(self) -> Crew:
        """Wait until it is."""
        said = self.line()
        assert said == "crew is ready", (said, self.process.poll())
        return self

    def ask(self, verb: str, **fields: Any) -> Answer:
        """One verb through its socket."""
        from longboat.board.crew import ask

        return ask(str(self.directory), Command(verb, **fields), LIMIT_S)

    def add(self, name: str, *depends: str, text: str = "do it") -> Answer:
        """One task."""
        return self.ask("add", new=(NewTask(text, name, depends=depends),))

    def tasks(self) -> dict[str, dict[str, Any]]:
        """All tasks by name."""
        tasks = self.ask("list")["tasks"]
        assert isinstance(tasks, list)
        return {task["id"]: task for task in tasks}

    def until(self, condition: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, Any]:
        """The tasks as soon as they are like that; every question waits for the crew's answer."""
        deadline = time.monotonic() + LIMIT_S
        while not condition(tasks := self.tasks()):
            assert time.monotonic() < deadline, tasks
        return tasks

    def kill(self) -> None:
        """As hard as possible."""
        self.process.kill()
        self.close()

    def terminate(self) -> int:
        """In good order."""
        self.process.terminate()
        code = self.process.wait(LIMIT_S)
        self.close()
        return code

    def close(self) -> None:
        """Nothing stays."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LIMIT_S)
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


AGENT = """
import json, os, sys
text = sys.stdin.read()
name = text.split()[2]
with open(sys.argv[1], "a") as log:
    log.write(f"{name} {os.getpid()}\\n")
if "crash" in text:
    os._exit(3)
if "slow" in text:
    os.read(os.open(sys.argv[2], os.O_RDWR), 1)
print("not json")
said = {"content": [{"type": "text", "text": f"did {name}"}]}
print(json.dumps({"type": "assistant", "message": said}))
print(json.dumps({"type": "result", "is_error": "wrong" in text}), flush=True)
"""


def agent_command(directory: Path) -> str:
    """An agent that notes what it was given in DIR/log, and is slow until DIR/gate opens."""
    script = directory / "agent.py"
    script.write_text(AGENT)
    if not (directory / "gate").exists():
        os.mkfifo(directory / "gate")
    (directory / "log").touch()
    return f"{sys.executable} -IS {script} {directory / 'log'} {directory / 'gate'}"


def runs(directory: Path) -> list[str]:
    """Which tasks agents were given, in that order."""
    return [line.split()[0] for line in (directory / "log").read_text().splitlines()]


@pytest.fixture
def make_bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeBench]:
    """Make a board of a kind, with settings; in memory where there is such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as place:

        def make(
            kind: str, name: str = "board", config: Config = PATIENT, **settings: Any
        ) -> Bench:
            return Bench(kind, Path(place) / name, monkeypatch, config._replace(**settings))

        yield make


@pytest.fixture(params=["A", "B", "C"])
def bench(request: pytest.FixtureRequest, make_bench: MakeBench) -> Bench:
    """Each of the three."""
    return make_bench(request.param)
