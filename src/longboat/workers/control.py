"""The control socket: one line to the daemon, one line back.

The socket is reached by way of its open directory, because a socket address holds 107 bytes and a
home may be deeper than that. A socket file without a daemon behind it is no obstacle to anybody.
"""

from __future__ import annotations

import _socket
import os
import select
import time
from typing import TYPE_CHECKING

from longboat.workers.store import Home

if TYPE_CHECKING:
    import socket


def _address(directory: int) -> str:
    return f"/proc/self/fd/{directory}/control.sock"


def listen(home: Home) -> socket.socket:
    """Bind the socket; only the holder of the daemon lock may do that."""
    if os.path.lexists(home.file("control.sock")):
        os.unlink(home.file("control.sock"))
    directory = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY)
    import socket

    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.bind(_address(directory))
        server.listen(64)
        server.setblocking(False)
    except OSError:
        server.close()
        raise
    finally:
        os.close(directory)
    return server


def ask(home: Home, request: str, timeout_s: float) -> str | None:
    """Send a request and wait for the answer; None when there is nobody or no answer in time."""
    connection = _connect(home)
    if connection is None:
        return None
    deadline = time.monotonic() + timeout_s
    answer = b""
    try:
        connection.send(request.encode() + b"\n")
        while not answer.endswith(b"\n"):
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([connection], [], [], left_s)[0]:
                return None
            chunk = connection.recv(4096)
            if not chunk:
                return None
            answer += chunk
    except OSError:
        return None
    finally:
        connection.close()
    return answer.decode("utf-8", "replace").strip()


def poke(home: Home) -> None:
    """Wake the daemon; when nobody listens its next patrol does the work."""
    connection = _connect(home)
    if connection is None:
        return
    try:
        connection.send(b"poke\n")
    except OSError:
        return
    finally:
        connection.close()


def _connect(home: Home) -> _socket.socket | None:
    try:
        directory = os.open(home.path, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(_address(directory))
    except OSError:
        connection.close()
        return None
    finally:
        os.close(directory)
    return connection
