"""Ways to start several traced commands at once: on the host, or in a box.

Insight: a command that is held at a call must not also be held by a full pipe, so that outputs go
to files on the host and to the agent's buffers in a box, never to a pipe that nobody reads.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from mutiny import stopping
from mutiny.box.box import Box
from mutiny.box.errors import BoxDied
from mutiny.box.results import Command
from mutiny.syscalls import effects

END_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How one of the commands ended; both None when it was killed with its world."""

    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str


class Starter(Protocol):
    """Starts commands for one schedule."""

    @property
    def box(self) -> Box | None:
        """Where the commands run; None: on the host."""

    def start(self, commands: Sequence[Sequence[str]]) -> None:
        """Start all of them and return at once."""

    def finish(self) -> tuple[CommandEnd, ...]:
        """Return how they ended; they have, or are about to."""

    def kill(self) -> None:
        """Kill them all."""


class OnHost:
    """Commands as plain processes of the host."""

    def __init__(self, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        self._cwd = cwd
        self._env = env
        self._tag = secrets.token_hex(4)
        self._running: list[tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]] = []

    @property
    def box(self) -> Box | None:
        """No box."""
        return None

    def start(self, commands: Sequence[Sequence[str]]) -> None:
        """Start all of them."""
        env = {**(os.environ if self._env is None else self._env), effects.TAG: self._tag}
        for argv in commands:
            output, errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
            process = subprocess.Popen(
                argv,
                cwd=self._cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            self._running.append((process, output, errors))

    def finish(self) -> tuple[CommandEnd, ...]:
        """Wait for all and read what they said."""
        ends = []
        for process, output, errors in self._running:
            code = process.wait(END_LIMIT_S)
            texts = []
            for file in (output, errors):
                with file:
                    file.seek(0)
                    texts.append(file.read().decode("utf-8", "backslashreplace"))
            ends.append(
                CommandEnd(code if code >= 0 else None, -code if code < 0 else None, *texts)
            )
        return tuple(ends)

    def kill(self) -> None:
        """Kill all trees."""
        for process, _, _ in self._running:
            effects.kill_tree(process.pid if process.poll() is None else None, self._tag)


class InBox:
    """Commands in one box, through its agent."""

    def __init__(
        self,
        box: Box,
        *,
        timeout_s: float = 60.0,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._box = box
        self._timeout_s = timeout_s
        self._cwd = cwd
        self._env = env or {}
        self._thread: threading.Thread | None = None
        self._ends: tuple[CommandEnd, ...] = ()
        self._failure: BaseException | None = None

    @property
    def box(self) -> Box | None:
        """The box."""
        return self._box

    def start(self, commands: Sequence[Sequence[str]]) -> None:
        """Ask the agent for all of them at once."""
        orders = [Command(argv, self._timeout_s, self._cwd, self._env) for argv in commands]
        self._thread = threading.Thread(target=self._run, args=(orders,), name="in-box")
        self._thread.start()

    def _run(self, orders: list[Command]) -> None:
        try:
            self._ends = tuple(
                CommandEnd(done.exit_code, done.signal, done.stdout, done.stderr)
                for done in self._box.run_many(orders)
            )
        except BoxDied:
            self._ends = tuple(CommandEnd(None, None, "", "") for _ in orders)
        except BaseException as error:  # noqa: BLE001 - raised again in finish
            self._failure = error

    def finish(self) -> tuple[CommandEnd, ...]:
        """Wait for the agent's answers."""
        if self._thread is not None:
            stopping.join(self._thread)
        if self._failure is not None:
            raise self._failure
        return self._ends

    def kill(self) -> None:
        """Kill the whole box, so that no process of the commands is left."""
        self._box.kill()
