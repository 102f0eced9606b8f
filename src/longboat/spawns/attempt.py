"""One attempt: a provider behind a gate. It can do nothing before somebody has written down who it is."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import NamedTuple

from longboat.board import files
from longboat.planting import planted
from longboat.spawns.ledger import Spawn
from longboat.spawns.office import Office
from longboat.spawns.providers import prompt_for
from longboat.spawns.starting import MARK
from longboat.workers.processes import Identity, identify

_SET_DEATH_SIGNAL = 1
_NOT_STARTED = 127
_libc = ctypes.CDLL(None)


class Attempt(NamedTuple):
    """A provider that waits for its gate to open."""

    identity: Identity
    pidfd: int
    gate: int
    outputs: tuple[str, str]

    def let_go(self) -> None:
        """It may act from now on."""
        os.write(self.gate, b"go")
        os.close(self.gate)

    def abandon(self) -> None:
        """It never acts: a gate that is closed before it was opened ends it."""
        os.close(self.gate)
        self.reap()

    def reap(self) -> int:
        """Its exit code, negative for a signal."""
        os.close(self.pidfd)
        return os.waitstatus_to_exitcode(os.waitpid(self.identity.pid, 0)[1])


def started(office: Office, spawn: Spawn, number: int, argv: list[str], mark: str) -> Attempt:
    """Everything that an attempt needs, and its process behind the gate."""
    folder, cwd = office.file("runs", f"s{spawn.id}"), office.file("agents", spawn.agent)
    files.make_directory(folder)
    files.make_directory(cwd)
    prompt = os.path.join(folder, "prompt")
    text = prompt_for(mark, spawn, office.ledger.message(spawn.message))
    files.write_temporary(prompt, text.encode("utf-8", "surrogateescape"), sync=False)
    outputs = (
        os.path.join(folder, f"attempt-{number}.out"),
        os.path.join(folder, f"attempt-{number}.err"),
    )
    environment = {
        **os.environ,
        "LONGBOAT_SPAWNS_HOME": office.home,
        MARK: mark,
        "LONGBOAT_SPAWN_ID": f"s{spawn.id}",
        "LONGBOAT_SPAWN_ATTEMPT": str(number),
        "LONGBOAT_AGENT": spawn.agent,
        "LONGBOAT_CHANNEL": spawn.channel,
    }
    return _behind_gate(argv, environment, cwd, prompt, outputs)


def _behind_gate(
    argv: list[str],
    environment: dict[str, str],
    cwd: str,
    prompt: str,
    outputs: tuple[str, str],
) -> Attempt:
    """A child that waits; the files are opened before, so that an error is told here."""
    into = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    opened: list[int] = []
    try:
        opened.append(
            _left_open(prompt) if planted("stdin-left-open") else os.open(prompt, os.O_RDONLY)
        )
        opened += [os.open(path, into, 0o644) for path in outputs]
        read_end, gate = os.pipe()
        opened.append(read_end)
        pid = os.fork()
        if pid == 0:
            _become(argv, environment, cwd, opened, gate)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    identity = identify(pid)
    assert identity is not None  # it waits for us
    return Attempt(identity, os.pidfd_open(pid), gate, outputs)


def _left_open(prompt: str) -> int:
    """Plants only: a pipe that somebody still holds open when all has been written."""
    read_end, write_end = os.pipe()
    with open(prompt, "rb") as file:
        os.write(write_end, file.read())
    os.set_inheritable(write_end, True)
    return read_end


def _become(
    argv: list[str], environment: dict[str, str], cwd: str, opened: list[int], gate: int
) -> None:
    """In the child: wait, and become the provider; or never."""
    try:
        os.setpgid(0, 0)
        if not planted("orphans-left", "stop-asks-only"):
            _libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)  # nobody works without a supervisor
        os.close(gate)
        if os.read(opened[3], 2) == b"go":
            for number, descriptor in enumerate(opened[:3]):
                os.dup2(descriptor, number)
            os.chdir(cwd)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.execve(argv[0], argv, environment)
    finally:
        os._exit(_NOT_STARTED)
