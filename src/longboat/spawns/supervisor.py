"""The supervisor of one run: a process of its own session that outlives whoever started it.

It starts the provider behind a gate, commits who that is, and opens the gate only then. It waits for the
end, ends what was left behind, writes down how it went, and tries again where that is right.
"""

from __future__ import annotations

import contextlib
import os
import select
import sqlite3
import sys
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from longboat.board.values import Refused, SystemRefused
from longboat.complaints import complain
from longboat.planting import planted
from longboat.spawns import ending, providers, settings
from longboat.spawns.attempt import Attempt, started
from longboat.spawns.database import now
from longboat.spawns.ledger import PENDING, RUNNING, Spawn
from longboat.spawns.office import Office
from longboat.spawns.starting import mark_of
from longboat.workers.processes import Identity, identify

T = TypeVar("T")

_PATIENCE = 10.0
"""Supervisors wait this much longer for the database than commands do."""
_TRIES, _REST_S = 600, 1.0
"""How often a supervisor tries to write down what it knows before it gives up."""
_LOOK_S = (0.02, 0.5)
"""How often it looks for the session file: at first, and at last."""


class Ended(NamedTuple):
    """How an attempt ended; no problem: well."""

    problem: str
    exit_code: int | None


def main() -> None:
    """`HOME NUMBER`: look after one run to its end."""
    home, number = sys.argv[1], int(sys.argv[2])
    while os.read(0, 4096):  # the gate: closed when the transaction is over
        pass
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    insisting(number, lambda: Supervisor(home, number).run())


def insisting(number: int, does: Callable[[], T]) -> T:
    """A full disk and a held database pass; whoever works here has nobody else to turn to."""
    for _ in range(_TRIES):
        try:
            return does()
        except (SystemRefused, OSError, sqlite3.Error) as error:
            complain(f"s{number}, {now()}: {error}; trying again")
        time.sleep(_REST_S)
    return does()


class Supervisor:
    """One run, from the first attempt to the last."""

    def __init__(self, home: str, number: int) -> None:
        self.number = number
        self.settings = settings.load()
        self.office = Office(home, self.settings, patience=_PATIENCE)
        myself = identify(os.getpid())
        assert myself is not None
        self.myself: Identity = myself

    def run(self) -> None:
        """Attempts, as long as the run is ours and is to be tried."""
        while (spawn := self._mine(PENDING)) is not None:
            agent = self.office.ledger.agent(spawn.agent)
            assert agent is not None
            line = providers.command_line(self.settings, agent)
            program = providers.found(line[0])
            if program is None:
                self._finish(spawn, Ended("provider missing", None))
            else:
                self._attempt(spawn, [program, *line[1:]])
            if self._mine(PENDING) is not None:
                self._rest()

    def _mine(self, status: str) -> Spawn | None:
        """The run, when it has this status and is ours to look after."""
        spawn = self.office.ledger.spawn(self.number)
        ours = spawn is not None and spawn.status == status and spawn.supervisor == self.myself
        return spawn if ours else None

    def _rest(self) -> None:
        """Before it is tried again; ends early when there is nothing to try."""
        until = time.monotonic() + self.settings.retry_delay_s
        while time.monotonic() < until and self._mine(PENDING) is not None:
            time.sleep(min(0.1, max(0.0, until - time.monotonic())))

    # --- one attempt ------------------------------------------------------------------------------

    def _attempt(self, spawn: Spawn, argv: list[str]) -> None:
        number = 1 if planted("attempt-not-counted") else spawn.attempt + 1
        mark = mark_of(self.office.ledger, spawn, number)
        attempt = started(self.office, spawn, number, argv, mark)
        if planted("pid-after-start"):
            os.write(attempt.gate, b"go")
        try:
            running = self._begin(attempt, number)
        except BaseException:
            attempt.abandon()
            raise
        if running is None:
            attempt.abandon()
            return
        if planted("pid-after-start"):
            os.close(attempt.gate)
        else:
            attempt.let_go()
        ended = self._wait(running, attempt, mark)
        self._finish(running, ended)

    def _begin(self, attempt: Attempt, number: int) -> Spawn | None:
        """Write down who is about to work; None: it must not begin any more."""
        with self.office.change() as flow:
            spawn = self._mine(PENDING)
            if spawn is None or spawn.stopping:
                return None
            moment = time.monotonic()
            first = spawn.began if planted("deadline-of-first-attempt") else None
            code = spawn.exit_code if planted("exit-code-of-the-first") else None
            flow.ledger.move(
                spawn.id,
                RUNNING,
                f"{number} {attempt.identity.pid} {attempt.identity.start}",
                attempt=number,
                reason="",
                session=None,
                session_file=None,
                exit_code=code,
                started_at=now(),
                began=first or moment,
                progress=moment,
                pid=None if _pid_is_late() else attempt.identity.pid,
                start=None if _pid_is_late() else attempt.identity.start,
            )
        return self.office.ledger.fresh(spawn.id)

    def _wait(self, spawn: Spawn, attempt: Attempt, mark: str) -> Ended:
        """Until the provider ends, or its time is over."""
        watch = Watch(self, spawn, attempt, mark)
        deadline = (spawn.began or 0.0) + self.settings.timeout_s
        pause = _LOOK_S[0]
        poller = select.poll()
        poller.register(attempt.pidfd, select.POLLIN)
        while not poller.poll(max(0.0, min(pause, deadline - time.monotonic())) * 1000):
            if time.monotonic() >= deadline and not planted("no-timeout"):
                ending.end_processes(self.office, spawn)
                attempt.reap()
                watch.look()
                return Ended("timeout", None)
            if not planted("session-at-the-end"):
                watch.look()
            pause = min(pause * 1.5, _LOOK_S[1], max(0.02, self.settings.stall_s / 3))
        code = attempt.reap()
        watch.look()
        if planted("death-not-recorded") and code < 0:
            sys.exit(1)
        if code == 0:
            return Ended("", 0)
        return Ended(f"exit {code}" if code > 0 else f"signal {-code}", code)

    def _finish(self, spawn: Spawn, ended: Ended) -> None:
        """End what was left behind, and write down how it went."""

        def write_down() -> None:
            late = planted("over-before-dead")
            if spawn.status == RUNNING and not late:
                ending.end_processes(self.office, spawn)
            with self.office.change() as flow:
                now_it_is = self._mine(spawn.status)
                if now_it_is is not None:
                    flow.after_attempt(now_it_is, *ended)
            if spawn.status == RUNNING and late:
                ending.end_processes(self.office, spawn)

        insisting(spawn.id, write_down)


class Watch:
    """What a provider leaves behind while it works: its session, and signs of progress."""

    def __init__(self, supervisor: Supervisor, spawn: Spawn, attempt: Attempt, mark: str) -> None:
        self._supervisor = supervisor
        self._office = supervisor.office
        self._spawn = spawn
        self._attempt = attempt
        self._mark = mark
        self._others: set[str] = set()
        self._session = ""
        self._size = -1
        self._told = time.monotonic()

    def look(self) -> None:
        """Look for the session, and whether anything was written; trouble is no reason to end a run."""
        with contextlib.suppress(Refused, OSError, sqlite3.Error):
            if not self._session:
                self._find()
            self._progress()

    def _find(self) -> None:
        cwd = self._office.file("agents", self._spawn.agent)
        found = providers.find_session(self._spawn.provider, self._mark, cwd, self._others)
        if found is None:
            return
        session, path = found
        with self._office.change() as flow:
            taken = flow.ledger.has_session(session) and not planted("session-by-newest")
            if self._supervisor._mine(RUNNING) is not None and not taken:
                flow.ledger.set(self._spawn.id, session=session, session_file=path)
                if planted("pid-with-session"):
                    pid, start = self._attempt.identity
                    flow.ledger.set(self._spawn.id, pid=pid, start=start)
                flow.ledger.note("session", None, self._spawn.id, session)
        self._session = path

    def _progress(self) -> None:
        """Anything new counts; it is told only now and then, because each time costs a sync."""
        size = sum(_size(path) for path in (*self._attempt.outputs, self._session) if path)
        moment = time.monotonic()
        if planted("progress-not-noted"):
            return
        if size == self._size or moment - self._told < self._supervisor.settings.stall_s / 3:
            return
        self._size, self._told = size, moment
        with self._office.change() as flow:
            if self._supervisor._mine(RUNNING) is not None:
                flow.ledger.set(self._spawn.id, progress=moment)


def _pid_is_late() -> bool:
    return planted("pid-never-recorded", "pid-with-session")


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
