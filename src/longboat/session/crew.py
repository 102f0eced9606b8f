"""Agents as the supervisor holds them: a process, an order at a time, and when it was last heard."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from longboat.session.home import Session
from longboat.session.values import Json
from longboat.workers.processes import Identity, carrying, identify, send, wait_dead

MARK = "LONGBOAT_SESSION_MARK"
"""Everything that a session's agents start carries this variable, so that nothing of it is forgotten."""
HAND = "LONGBOAT_SESSION_HAND"
_READ = 1 << 16


def end_carriers(marks: dict[str, str]) -> None:
    """End every process that carries these variables: what an agent has started ends with it."""
    for _ in range(100):
        living = carrying({f"{name}={value}".encode() for name, value in marks.items()})
        if not living:
            return
        for one in living:
            send(one, signal.SIGKILL)
        wait_dead(living, 0.5)


class Hand:
    """One agent's process. It never blocks who holds it: what it cannot take yet waits here."""

    def __init__(
        self,
        session: Session,
        name: str,
        selector: selectors.BaseSelector,
        heard: Callable[[Json], None],
        lost: Callable[[], None],
    ) -> None:
        self.name = name
        self.ready = False
        self.heard_at = time.monotonic()
        self._selector = selector
        self._heard = heard
        self._lost = lost
        self._received = bytearray()
        self._to_send = b""
        home = session.home.path
        self._marks = {MARK: session.mark, HAND: f"{name}-{time.monotonic_ns()}"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "longboat.session.agent", home, session.name, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._marks},
        )
        self.identity: Identity | None = identify(self._process.pid)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        selector.register(self._out, selectors.EVENT_READ, lambda _: self._hear())

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def order(self, line: Json) -> None:
        """Have it do one thing."""
        self.heard_at = time.monotonic()
        self._to_send += json.dumps(line, ensure_ascii=False).encode() + b"\n"
        self._give()

    def _give(self) -> None:
        try:
            sent = os.write(self._in, self._to_send[: 1 << 20])
            self._to_send = self._to_send[sent:]
        except BlockingIOError:
            pass  # the pipe is full: it goes on when the agent has read
        except OSError:
            self._to_send = b""  # it has died: its output ends, and that is told there
        watched = self._in in self._selector.get_map()
        if self._to_send and not watched:
            self._selector.register(self._in, selectors.EVENT_WRITE, lambda _: self._give())
        elif not self._to_send and watched:
            self._selector.unregister(self._in)

    def _hear(self) -> None:
        try:
            data = os.read(self._out, _READ)
        except BlockingIOError:
            return
        if not data:
            self.end()
            self._lost()
            return
        self.heard_at = time.monotonic()
        self._received += data
        if b"\n" not in data:
            return
        *lines, rest = bytes(self._received).split(b"\n")
        self._received = bytearray(rest)
        for line in lines:
            message = json.loads(line)
            if message.get("ready"):
                self.ready = True
            if not message.get("beat"):
                self._heard(message)

    def silent_s(self) -> float:
        """How long nothing was heard of it."""
        return time.monotonic() - self.heard_at

    def end(self) -> None:
        """End it surely, and everything of it here."""
        for descriptor in (self._in, self._out):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        self._process.kill()
        self._process.wait()
        end_carriers(self._marks)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
