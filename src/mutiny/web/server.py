"""The server behind `mutiny serve`: a socket on loopback, uvicorn on it, and an end when asked for one."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from mutiny.engine.rundir import storing
from mutiny.errors import UsageError
from mutiny.web.app import Dashboard
from mutiny.web.guard import token_of

LOOPBACK = "127.0.0.1"
PATIENCE_S = 2
"""So long answers that are under way may take when it ends."""


class _Quiet(uvicorn.Server):
    """Signals are handled here: uvicorn would raise them again after it has ended."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """It listens from the moment it is made, so that its address is true when it is printed."""

    def __init__(self, root: Path, port: int, *, is_fixed: bool) -> None:
        with storing(root):
            root.mkdir(parents=True, exist_ok=True)
            self._token = token_of(root)
        self._dashboard = Dashboard(root)
        self._dashboard.prepare()
        self._socket = _listening(port, is_fixed=is_fixed)
        self._port = int(self._socket.getsockname()[1])

    @property
    def address(self) -> str:
        """What a browser opens."""
        return f"http://{LOOPBACK}:{self._port}/?token={self._token}"

    def run(self, announce: Callable[[], None]) -> None:
        """Serve until a signal asks for the end; it is obeyed from the moment the address is announced."""
        with self._socket:
            asyncio.run(self._serve(announce))

    async def _serve(self, announce: Callable[[], None]) -> None:
        dashboard = self._dashboard
        config = uvicorn.Config(
            dashboard.app(self._token, self._port),
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=PATIENCE_S,
        )
        server = _Quiet(config)

        def end() -> None:
            dashboard.closing.set()
            server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, end)
        announce()
        await server.serve(sockets=[self._socket])


def _listening(port: int, *, is_fixed: bool) -> socket.socket:
    """A socket on loopback; a port that was not asked for gives way to a free one."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((LOOPBACK, port))
        made.listen(128)
    except OSError as error:
        made.close()
        if is_fixed:
            raise UsageError(f"port {port}: {error.strerror}; give another one") from error
        return _listening(0, is_fixed=True)
    return made
