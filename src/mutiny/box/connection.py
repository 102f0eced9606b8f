"""Mutiny's end of the line to an in-box agent: requests out, answers and events in.

Insight: several threads may ask at once (parallel operations) and an event may come at any time, so
one reader thread owns the receiving side and hands each answer to the caller that waits for its
number. When the line breaks, everybody who waits gets the reason at once; nobody waits for a dead
box.
"""

from __future__ import annotations

import _socket as socket  # the public module adds enumerations and files, which nobody needs here
import contextlib
import json
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from mutiny import stopping
from mutiny.box.errors import BoxDied
from mutiny.system.wire import first_message, framed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Message: TypeAlias = "dict[str, Any]"
Line = socket.socket

SEND_LIMIT_S = 10
_CREDENTIALS = "3i"


def socket_pair() -> tuple[Line, Line]:
    """Two ends of a line; the kernel names the sender of what arrives at the first one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM, 0)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    return ours, theirs


class AgentConnection:
    """One connection to one agent; any thread may call."""

    def __init__(
        self,
        line: Line,
        on_event: Callable[[Message], None],
        explain_death: Callable[[], str],
    ) -> None:
        self._line = line
        self._on_event = on_event
        self._explain_death = explain_death
        self._send_lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[Message | None]] = {}
        self._last_id = 0
        self._dead_because: str | None = None
        self._closing_because: str | None = None
        self._buffer = bytearray()
        self._reader = threading.Thread(target=self._read_all, name="box-reader", daemon=True)

    def greet(self, timeout_s: float) -> int:
        """Wait for the agent's hello, start reading, and return the agent's pid as the host sees
        it.

        The kernel writes the sender's pid, translated into our pid namespace, on every message: the
        only way to learn it that the box cannot falsify.
        """
        import struct  # while the agent starts there is time for it

        size = struct.calcsize(_CREDENTIALS)
        self._line.settimeout(timeout_s)
        try:
            data, ancillary, _, _ = self._line.recvmsg(65536, socket.CMSG_SPACE(size))
        except TimeoutError:
            raise BoxDied(f"the in-box agent did not say hello within {timeout_s} s") from None
        except ConnectionResetError:
            data, ancillary = b"", []
        if not data:
            raise BoxDied(f"the box did not start: {self._explain_death()}")
        credentials = [
            struct.unpack(_CREDENTIALS, payload[:size])
            for level, kind, payload in ancillary
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS
        ]
        if not credentials or credentials[0][0] <= 0:
            raise BoxDied("the kernel did not name the sender of the agent's hello")
        self._buffer += data
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        self._line.settimeout(None)
        self._line.setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_LIMIT_S, 0)
        )
        self._reader.start()
        return int(credentials[0][0])

    def call(self, request: Mapping[str, Any], timeout_s: float) -> Message:
        """Send one request and return its answer."""
        return self.call_all([request], timeout_s)[0]

    def call_all(self, requests: Sequence[Mapping[str, Any]], timeout_s: float) -> list[Message]:
        """Send requests back to back in one write and return their answers in the same order."""
        stopping.check()
        answers: list[tuple[int, queue.SimpleQueue[Message | None]]] = []
        frames = bytearray()
        with self._send_lock:
            for request in requests:
                self._last_id += 1
                frames += framed(json.dumps({"id": self._last_id, **request}))
                answers.append((self._last_id, queue.SimpleQueue()))
            self._waiting.update(answers)
            try:
                if self._dead_because is None:
                    self._line.sendall(frames)
            except BlockingIOError:
                self._forget(answers)
                raise BoxDied(f"the in-box agent took no request for {SEND_LIMIT_S} s") from None
            except OSError:
                pass  # the reader meets the same broken line and tells every waiting call why
        # Looked at after the registration: either the reader sees our entry, or we see its reason.
        if self._dead_because is not None:
            self._forget(answers)
            raise BoxDied(self._dead_because)
        deadline = time.monotonic() + timeout_s
        try:
            return [self._take(waiter, deadline, timeout_s) for _, waiter in answers]
        finally:
            self._forget(answers)

    def _take(
        self, waiter: queue.SimpleQueue[Message | None], deadline: float, timeout_s: float
    ) -> Message:
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            try:
                answer = waiter.get(timeout=min(left_s, stopping.SLICE_S))
                break
            except queue.Empty:
                if left_s == 0.0:
                    raise BoxDied(
                        f"the in-box agent did not answer within {timeout_s:.1f} s"
                    ) from None
            stopping.check()
        if answer is None:
            raise BoxDied(self._dead_because or "the connection to the in-box agent broke")
        return answer

    def _forget(self, answers: Sequence[tuple[int, object]]) -> None:
        for identity, _ in answers:
            self._waiting.pop(identity, None)

    def _read_all(self) -> None:
        """The reader thread: hand out messages until the line ends."""
        reason = None
        try:
            while True:
                self._hand_out()
                data = self._line.recv(1024 * 1024)
                if not data:
                    break
                self._buffer += data
        except (OSError, ValueError, KeyError) as error:
            reason = f"the line to the in-box agent broke: {error}"
        self._dead_because = self._closing_because or reason or self._explain_death()
        for waiter in list(self._waiting.values()):
            waiter.put(None)
        self._on_event({"event": "end"})

    def _hand_out(self) -> None:
        while (text := first_message(self._buffer)) is not None:
            message: Message = json.loads(text)
            if "event" in message:
                self._on_event(message)
                continue
            waiter = self._waiting.pop(message["id"], None)
            if waiter is not None:  # None: the caller has given up
                waiter.put(message)

    def expect_end(self, reason: str) -> None:
        """Say why the line is about to end, so that waiting calls get this reason."""
        self._closing_because = reason

    def close(self) -> None:
        """End the line. The agent takes that as the end of Mutiny. Safe to call twice."""
        if self._closing_because is None:
            self._closing_because = "the box was closed"
        if self._reader.is_alive():
            with contextlib.suppress(OSError):  # already disconnected by the other side
                self._line.shutdown(socket.SHUT_RDWR)
            self._reader.join(timeout=5)
        self._line.close()
        if self._dead_because is None:
            self._dead_because = self._closing_because
