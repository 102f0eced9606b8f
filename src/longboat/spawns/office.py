"""One home, open: its database, its settings, and changes that may start supervisors."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from longboat.board.files import Lock
from longboat.board.values import Refused, SystemRefused
from longboat.planting import planted
from longboat.spawns import database
from longboat.spawns.flow import Flow
from longboat.spawns.ledger import Ledger, Spawn
from longboat.spawns.settings import Settings
from longboat.spawns.starting import MARK, Starter, mark_of
from longboat.workers.processes import is_alive


class Office:
    """A home in use."""

    def __init__(self, home: str, settings: Settings, *, patience: float = 1.0) -> None:
        self.home = home
        self.settings = settings
        self._patience_s = settings.busy_s * patience
        self.database = database.connect(home, self._patience_s)
        self.ledger = Ledger(self.database)
        self._started: list[int] = []

    def file(self, *names: str) -> str:
        """A path below the home."""
        return os.path.join(self.home, *names)

    @contextlib.contextmanager
    def change(self) -> Iterator[Flow]:
        """One transaction; the supervisors that it starts begin when it is over.

        Whoever changes something waits in the kernel's queue: SQLite alone lets the lucky ones through.
        """
        starter = Starter(self.home, self.ledger)
        try:
            lock = Lock(self.file("lock"), self._patience_s)
        except Refused as refusal:
            raise SystemRefused(refusal.error, refusal.message, "no") from refusal
        try:
            with database.change(self.database):
                yield Flow(self.ledger, self.settings, starter)
        finally:
            lock.release()
            starter.let_go()
            self._started += starter.pids

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()
        if planted("supervisors-die-with-command"):
            for pid in self._started:
                os.kill(pid, signal.SIGKILL)

    # --- who speaks -------------------------------------------------------------------------------

    def speaker(self) -> Spawn | None:
        """The run from within which this command was given; None: a person. In a transaction.

        A run that is over, is being stopped, or was given up by everybody says nothing any more.
        """
        mark = os.environ.get(MARK, "")
        if not mark:
            return None
        identity, _, rest = mark.partition(".")
        name, _, attempt = rest.partition(".")
        if identity != self.ledger.identity:
            return None  # an agent of somebody else is a person to us
        spawn = self.ledger.known(name)
        supervised = spawn.supervisor is not None and is_alive(spawn.supervisor)
        right = spawn.status == "running" and mark_of(self.ledger, spawn, spawn.attempt) == mark
        if not right or spawn.stopping or not supervised:
            text = f"Run {name}, attempt {attempt}, is over: nothing is taken from it any more"
            raise Refused("not_running", text)
        return spawn
