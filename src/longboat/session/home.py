"""The files of a session home, its two locks, and which sessions there are.

config.toml  command.lock  supervisor.lock
sessions/ID/session.json  project.toml  control.sock  supervisor.log
sessions/ID/checkpoints/  events.jsonl  calls.jsonl  metrics.jsonl
sessions/ID/project/      what the agents build, a git repository

A session exists from the moment at which `session.json` is there; everything else was made before.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator

from longboat.board.files import try_lock
from longboat.planting import planted
from longboat.session.checkpoints import Checkpoints
from longboat.session.values import SAFE, Json, Refused, check_name

_LOOK_AGAIN_S = 0.05


class Home:
    """Where everything of one session home lies."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def file(self, *names: str) -> str:
        """A path below the home."""
        return os.path.join(self.path, *names)

    def sessions(self) -> list[str]:
        """All sessions, the oldest first."""
        try:
            names = os.listdir(self.file("sessions"))
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = [
            (Session(self, name).order, name)
            for name in names
            if SAFE.match(name) and os.path.lexists(self.file("sessions", name, "session.json"))
        ]
        return [name for _, name in sorted(found)]

    def session(self, wanted: str) -> Session:
        """One session by its name, or the newest."""
        known = self.sessions()
        if wanted:
            check_name(wanted, "session")
            if planted("session-unknown-accepted") and wanted not in known and known:
                return Session(self, known[-1])
            if wanted not in known:
                raise Refused("no_session", f"There is no session '{wanted}'")
            return Session(self, wanted)
        if not known:
            raise Refused("no_home", f"There are no sessions in {self.path} yet")
        return Session(self, known[-1])

    @contextlib.contextmanager
    def commanding(self, timeout_s: float) -> Iterator[None]:
        """One command at a time changes anything."""
        lock = self._wait_for("command.lock", timeout_s)
        if lock is None:
            raise Refused("busy", "Another longboat session command is at work here")
        try:
            yield
        finally:
            os.close(lock)

    @contextlib.contextmanager
    def without_supervisor(self, timeout_s: float) -> Iterator[int]:
        """The supervisor's place is ours. Git keeps the lock: who outlives its parent still holds it."""
        lock = self._wait_for("supervisor.lock", timeout_s)
        if lock is None and planted("session-second-supervisor"):
            lock = os.open(os.devnull, os.O_RDONLY)
        if lock is None:
            raise Refused("running", f"A session of {self.path} is running")
        try:
            yield lock
        finally:
            os.close(lock)

    def _wait_for(self, name: str, timeout_s: float) -> int | None:
        deadline = time.monotonic() + timeout_s
        while True:
            lock = try_lock(self.file(name))
            if lock is not None or time.monotonic() > deadline:
                return lock
            time.sleep(_LOOK_AGAIN_S)

    def supervised(self) -> bool:
        """Does a supervisor live here now?"""
        try:
            descriptor = os.open(self.file("supervisor.lock"), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


class Session:
    """Where everything of one session lies."""

    def __init__(self, home: Home, name: str) -> None:
        self.home = home
        self.name = name
        self.directory = home.file("sessions", name)
        self.checkpoints = Checkpoints(self.file("checkpoints"), name)

    def file(self, *names: str) -> str:
        """A path below the session."""
        return os.path.join(self.directory, *names)

    @property
    def mark(self) -> str:
        """What every process of its agents carries in its environment."""
        return f"{self.home.path}:{self.name}"

    @property
    def order(self) -> int:
        """Sessions are numbered in the order of their beginning."""
        return int(self.about()["order"])

    def about(self) -> Json:
        """What never changes: project, agents, hours."""
        path = self.file("session.json")
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
            good = isinstance(data, dict) and {"order", "project", "agents", "hours"} <= set(data)
        except FileNotFoundError:
            raise Refused("no_session", f"There is no session '{self.name}'") from None
        except (ValueError, UnicodeDecodeError):
            good = False
        if not good:
            raise Refused("invalid", f"{path} cannot be read: it is no description of a session")
        return dict(data)
