"""Supervisors that begin with the transaction that names them, or never.

A supervisor is started while the transaction is open, and waits on a pipe. Its number and start time are
committed together with the run that it is for; the closed pipe lets it go. Then it asks the database
whether the run is really its own: so it does not matter whether whoever started it still lives.
"""

from __future__ import annotations

import os
import signal
import sys

import longboat
from longboat.planting import planted
from longboat.spawns.ledger import PENDING, Ledger, Spawn
from longboat.workers.processes import identify

MARK = "LONGBOAT_SPAWN"
"""The variable that everything carries which a run has started."""
OF_A_RUN = (
    MARK,
    "LONGBOAT_SPAWN_ID",
    "LONGBOAT_SPAWN_ATTEMPT",
    "LONGBOAT_AGENT",
    "LONGBOAT_CHANNEL",
)
"""What a provider is told; a supervisor belongs to no run of anybody else."""

_START = """\
import sys
sys.path.insert(0, sys.argv.pop(1))
from longboat.spawns.supervisor import main
main()
"""


def mark_of(ledger: Ledger, spawn: Spawn, attempt: int) -> str:
    """What everything carries that this attempt starts."""
    return f"{ledger.identity}.s{spawn.id}.{attempt}"


class Starter:
    """The supervisors of one transaction."""

    def __init__(self, home: str, ledger: Ledger) -> None:
        self._home = home
        self._ledger = ledger
        self._gate: tuple[int, int] | None = None
        self.pids: list[int] = []

    def start(self, spawn: Spawn) -> None:
        """A supervisor for a run that is pending from now on."""
        self._ledger.move(spawn.id, PENDING, "", reason="")
        self.supervise(spawn)

    def supervise(self, spawn: Spawn) -> None:
        """A new supervisor for a pending run."""
        self.pids.append(self._spawn(spawn.id))
        identity = identify(self.pids[-1])
        pid, start = identity or (None, None)  # dead at once: the next command sees that
        self._ledger.set(spawn.id, supervisor_pid=pid, supervisor_start=start)
        self._ledger.note("supervisor", None, spawn.id, f"{pid} {start}")

    def _spawn(self, number: int) -> int:
        if self._gate is None:
            self._gate = os.pipe()
        left_out = () if planted("mark-inherited") else OF_A_RUN
        environment = {name: text for name, text in os.environ.items() if name not in left_out}
        environment["LONGBOAT_SPAWNS_HOME"] = self._home
        root = os.path.dirname(os.path.dirname(os.path.abspath(longboat.__file__)))
        log = os.path.join(self._home, "supervisors.log")
        argv = [sys.executable, "-IS", "-c", _START, root, self._home, str(number)]
        return os.posix_spawn(
            sys.executable,
            argv,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, self._gate[0], 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE],
        )

    def let_go(self) -> None:
        """The transaction is over, one way or the other: they look for themselves."""
        if self._gate is not None:
            for descriptor in self._gate:
                os.close(descriptor)
            self._gate = None
