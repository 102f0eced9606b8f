"""A process that has Mutiny loaded and becomes the command `mutiny` by a fork, as often as it is asked.

Half of what a short command of Mutiny costs is imports, and the tests give hundreds of commands. A fork
of a process that has done nothing but import is a process like any other: own pid, own output, own
signals. It is no stand-in where the start itself is tested, or where variables are set that Python reads
when it starts: `fits` says so, and the caller starts the program then.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib import import_module
from pkgutil import walk_packages
from typing import IO

READ_BY_PYTHON = ("PYTHON", "LANG", "LC_")
"""Variables that begin like this are read when Python starts: a fork would not obey them."""
LEFT_OUT = (
    "mutiny.box.agent",
    "mutiny.doubles",
    "mutiny.mcp",
    "mutiny.modes.dask",
    "mutiny.pytest_plugin",
    "mutiny.syscalls.launcher",
    "mutiny.targets.drivers",
    "mutiny.web",
)
"""Extras, and what runs elsewhere."""
MOST_BYTES = 1 << 20


class Warm:
    """The caller's end. One command at a time: a second thread waits for its turn."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._started_with = _start_variables(os.environ)

    def fits(self, environment: dict[str, str]) -> bool:
        """Would a new process begin as the one that waits did?"""
        return _start_variables(environment) == self._started_with

    def run(
        self,
        words: list[str],
        cwd: str,
        environment: dict[str, str],
        output: tuple[IO[bytes], IO[bytes]],
        limit_s: float,
    ) -> int:
        """The command's exit code, as `subprocess` tells it; what it prints goes to the two files."""
        said = json.dumps({"words": words, "cwd": cwd, "environment": environment}).encode()
        with self._lock:
            socket.send_fds(self._line, [said], [file.fileno() for file in output])
            self._line.settimeout(limit_s)
            try:
                answer = self._line.recv(64)
            except TimeoutError:
                self.close()
                raise subprocess.TimeoutExpired(words, limit_s) from None
        if not answer:
            raise RuntimeError("the process that has Mutiny loaded has ended")
        return int(answer)

    def close(self) -> None:
        """Ends the process, and the command that it may be at: it sees the end of the line."""
        self._line.close()
        self._process.wait(timeout=30)


def _start_variables(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(READ_BY_PYTHON)}


def serve(line: socket.socket) -> None:
    """Fork for each request and tell how it ended, until the line ends."""
    load()
    while True:
        said, files, _, _ = socket.recv_fds(line, MOST_BYTES, 2)
        if not said:
            return
        request = json.loads(said)
        child = os.fork()
        if not child:
            line.close()
            become(request["words"], request["cwd"], request["environment"], files)
        for file in files:
            os.close(file)
        code = ended(child, line)
        if code is None:
            return
        line.send(str(code).encode())


def load() -> None:
    """Everything that a command may import, but for what is an extra or runs elsewhere."""
    import mutiny

    for module in walk_packages(mutiny.__path__, "mutiny."):
        if not module.name.startswith(LEFT_OUT):
            import_module(module.name)


def become(words: list[str], cwd: str, environment: dict[str, str], files: list[int]) -> None:
    """From here on this process is the command; does not return."""
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    for number, file in enumerate(files, start=1):
        os.dup2(file, number)
        os.close(file)
    sys.argv = words
    from mutiny.cli.main import main

    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ended(child: int, line: socket.socket) -> int | None:
    """How the child ended; None when nobody waits for it any more."""
    handle = os.pidfd_open(child)
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.register(line, select.POLLHUP)
        if handle not in [number for number, _ in poller.poll()]:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as end:
        serve(end)
