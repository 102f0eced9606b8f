"""`longboat hook EVENT --worker X`: what an agent's hook leaves for the daemon.

It runs several times a turn inside the agent, so it loads next to nothing: it does not even parse
the JSON on its input, it stores it. The file is complete and durable before the daemon is poked, so
no hook is lost while the daemon is down.
"""

from __future__ import annotations

import os
import sys
import time

_LIMIT_BYTES = 4 << 20


def main(arguments: list[str] | None = None) -> int:
    """Store one hook; exit 1 with a line when that fails (2 would block the agent)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = {"--worker": "", "--home": os.environ.get("LONGBOAT_HOME", "")}
    event = ""
    while words:
        word = words.pop(0)
        if word in options and words:
            options[word] = words.pop(0)
        elif not event:
            event = word
    home = options["--home"] or os.path.expanduser("~/longboat")
    try:
        _store(home, event, options["--worker"], _read_input())
    except OSError as error:
        sys.stderr.write(f"longboat hook: cannot store {event} in {home}: {error}\n")
        return 1
    _poke(home)
    return 0


def _read_input() -> bytes:
    if os.isatty(0):
        return b""
    chunks = []
    size = 0
    while size < _LIMIT_BYTES:
        chunk = os.read(0, 65536)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _store(home: str, event: str, worker: str, payload: bytes) -> None:
    spawn = os.environ.get("LONGBOAT_SPAWN") or "-"
    now = time.monotonic_ns()
    header = f"longboat-hook 1 {event} {worker} {spawn} {now}\n".encode()
    spool = os.path.join(home, "spool")
    name = f"{now:020d}-{os.getpid()}.hook"
    temporary = os.path.join(spool, "." + name)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        data = header + payload
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    os.rename(temporary, os.path.join(spool, name))
    directory = os.open(spool, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _poke(home: str) -> None:
    """Wake the daemon; when there is none, its next patrol or start finds the file anyway."""
    import _socket  # the C module: the Python one costs as much as the rest of the hook

    try:
        directory = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        # By way of the open directory: a long home would not fit into a socket address.
        connection.connect(f"/proc/self/fd/{directory}/control.sock")
        connection.send(b"poke\n")
    except OSError:
        return
    finally:
        connection.close()
        os.close(directory)
