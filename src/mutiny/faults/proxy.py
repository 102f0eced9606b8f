"""A TCP proxy that makes a link slow, silent, one-way or broken, and heals it while connections are
open.

Insight: it needs nothing but a port, so that it works for everybody and where the kernel cannot
help; and it counts bytes, so that "reset after 1000 bytes" is the same byte in every run. A refused
connection is a real refusal: the listening socket is shut down and listens again on the same port
when healed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from mutiny.faults.base import Fault
from mutiny.model.result import OperationResult

Direction = Literal["up", "down", "both"]
Result = TypeVar("Result")
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_CHUNK_BYTES = 65536
_QUEUE_BYTES = 1 << 20
_BACKLOG = 128
_CONTROL_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class LinkRules:
    """What happens to a link. `up` is from the client to the server, `down` the other way."""

    latency_s: float = 0.0
    """Added to each direction."""
    bytes_per_s: float | None = None
    """The width of the link, for each connection and direction."""
    stalled: Direction | None = None
    """Bytes in this direction wait until it is healed; nobody is told."""
    refuse: bool = False
    """New connections are refused (ECONNREFUSED); open ones stay."""
    reset_after_bytes: int | None = None
    """A connection is reset when so many bytes of answers have passed."""

    def stalls(self, direction: Direction) -> bool:
        """Whether bytes in this direction have to wait."""
        return self.stalled in (direction, "both")


HEALTHY = LinkRules()


class FaultProxy:
    """A proxy in a thread of its own; open from `start` (or the `with` block) until `close`.

    Without `listener` it listens on a free port of the loopback address. With it (see
    `network.listen_inside`) it serves a box that has no network.
    """

    def __init__(self, upstream: tuple[str, int], *, listener: socket.socket | None = None) -> None:
        self._upstream = upstream
        self._listener = listener if listener is not None else _listener_on_free_port()
        self._listener.setblocking(False)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self.rules = HEALTHY
        self.connections = 0
        """Connections that were let through so far."""
        self.affected = 0
        """How often a rule delayed, held or broke something so far: the proof that a fault was
        felt.
        """
        self._changed = asyncio.Event()
        self._open: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fault-proxy", daemon=True)

    def start(self) -> FaultProxy:
        """Begin to serve."""
        self._thread.start()
        self._in_loop(self._accept_again)
        return self

    def apply(self, rules: LinkRules) -> None:
        """Let these rules hold from now on, also for the connections that are open."""
        self._in_loop(lambda: self._take(rules))

    def heal(self) -> None:
        """Let everything through again; what had to wait is delivered."""
        self.apply(HEALTHY)

    def listens(self) -> bool:
        """Whether the kernel accepts connections for it."""
        return bool(self._listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))

    def reset_all(self) -> int:
        """Reset every open connection at once, on both sides; return how many there were."""
        return self._in_loop(self._break_all)

    def close(self) -> None:
        """End the proxy and its connections. Safe to call twice."""
        if self._thread.is_alive():
            self._in_loop(self._break_all)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_CONTROL_LIMIT_S)
        self._listener.close()

    def __enter__(self) -> FaultProxy:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- in the thread of the loop

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in self._open:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._open, return_exceptions=True))
        self._loop.close()

    def _in_loop(self, action: Callable[[], Result]) -> Result:
        """Do something in the thread of the loop and wait for it."""

        async def do() -> Result:
            return action()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(_CONTROL_LIMIT_S)

    def _take(self, rules: LinkRules) -> None:
        before, self.rules = self.rules, rules
        self._changed.set()
        self._changed = asyncio.Event()
        if rules.refuse and not before.refuse:
            self._loop.remove_reader(self._listener)
            self._listener.shutdown(socket.SHUT_RD)  # stays bound, listens no more
        elif before.refuse and not rules.refuse:
            self._accept_again()

    def _accept_again(self) -> None:
        self._listener.listen(_BACKLOG)
        self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            task = self._loop.create_task(self._serve(client))
            self._open.add(task)
            task.add_done_callback(self._open.discard)

    async def _serve(self, client: socket.socket) -> None:
        client.setblocking(False)
        _no_delay(client)
        down_reader, down_writer = await asyncio.open_connection(sock=client)
        try:
            up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            _reset(down_writer)  # what the client would see of a dead server
            return
        _no_delay(up_writer.get_extra_info("socket"))
        self.connections += 1
        both = frozenset((down_writer, up_writer))
        self._writers |= both
        try:
            await asyncio.gather(
                self._pump(down_reader, up_writer, "up", both),
                self._pump(up_reader, down_writer, "down", both),
            )
        finally:
            self._writers -= both
            for writer in both:
                writer.close()

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        direction: Direction,
        both: frozenset[asyncio.StreamWriter],
    ) -> None:
        """Carry one direction: a reader that stamps each piece with its time, and this writer."""
        pieces: deque[tuple[float, bytes | None]] = deque()
        arrived, taken = asyncio.Event(), asyncio.Event()
        reading = self._loop.create_task(self._read(reader, pieces, arrived, taken))
        passed = 0
        try:
            while True:
                while not pieces:
                    arrived.clear()
                    await arrived.wait()
                due, data = pieces[0]
                await self._hold(direction, due)
                pieces.popleft()
                taken.set()
                if data is None:
                    raise ConnectionResetError
                if not data:
                    break
                limit = self.rules.reset_after_bytes if direction == "down" else None
                if limit is not None and passed + len(data) >= limit:
                    writer.write(data[: max(0, limit - passed)])
                    await writer.drain()
                    self.affected += 1
                    for each in both:
                        _reset(each)
                    return
                await self._write(writer, data)
                passed += len(data)
            writer.write_eof()
        except OSError:
            for each in both:
                _reset(each)  # a side that broke must look broken from the other side too
        finally:
            reading.cancel()

    async def _read(
        self,
        reader: asyncio.StreamReader,
        pieces: deque[tuple[float, bytes | None]],
        arrived: asyncio.Event,
        taken: asyncio.Event,
    ) -> None:
        data: bytes | None = b"-"
        while data:
            try:
                data = await reader.read(_CHUNK_BYTES)
            except OSError:
                data = None  # broken, which is not the same as ended
            pieces.append((self._loop.time(), data))
            arrived.set()
            while sum(len(piece or b"") for _, piece in pieces) > _QUEUE_BYTES:
                taken.clear()
                await taken.wait()

    async def _hold(self, direction: Direction, since: float) -> None:
        """Wait as long as the rules of each moment want it."""
        counted = False
        while True:
            stalled = self.rules.stalls(direction)
            remaining_s = since + self.rules.latency_s - self._loop.time()
            if not stalled and remaining_s <= 0:
                return
            if not counted:
                self.affected += 1
                counted = True
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), None if stalled else remaining_s)

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        view = memoryview(data)
        while view:
            speed = self.rules.bytes_per_s
            if speed is None:
                writer.write(view)
                await writer.drain()
                return
            self.affected += 1
            piece = view[: max(1, int(speed / 50))]  # smooth: fifty pieces in a second
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(len(piece) / speed)
            view = view[len(piece) :]

    def _break_all(self) -> int:
        count = len(self._writers) // 2
        self.affected += count
        for writer in list(self._writers):
            _reset(writer)
        return count


def _listener_on_free_port() -> socket.socket:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Bound by number: a port that the kernel chose is lost when the socket stops to listen.
    listener.bind(("127.0.0.1", port))
    return listener


def _no_delay(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        with contextlib.suppress(OSError):  # already broken by the other side
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    writer.transport.abort()


class DegradeLink(Fault):
    """Let rules hold on a proxy for a while."""

    def __init__(self, proxy: FaultProxy, rules: LinkRules) -> None:
        self._proxy = proxy
        self._rules = rules
        self.technique = "TCP fault proxy"

    def inject(self) -> OperationResult:
        """Set the rules; the proxy confirms them. `proxy.affected` tells later who felt them."""
        self._proxy.apply(self._rules)
        if self._rules.refuse and self._proxy.listens():
            return self.not_done(f"{self._proxy.address} still accepts connections")
        return self.done(f"link to port {self._proxy.address[1]}: {self._rules}")

    def heal(self) -> OperationResult:
        """Everything passes again."""
        self._proxy.heal()
        return self.done("link healed")
