"""Run a child program with a deadline and collect what it says.

The standard ``subprocess`` module costs more to import than most longboat commands cost to run, and
longboat needs one thing that it makes awkward: a child may **keep the home lock open**. A git
command that outlives its killed parent then still holds the lock, so nobody starts to recover while
that git is changing things.
"""

from __future__ import annotations

import os
import select
import signal
import time
from typing import NamedTuple

KEPT_LOCK_FD = 9


class Result(NamedTuple):
    """What a finished (or killed) child said."""

    argv: tuple[str, ...]
    code: int
    out: str
    err: str
    timed_out: bool = False

    @property
    def ok(self) -> bool:
        """True when the child ended with exit code 0."""
        return self.code == 0 and not self.timed_out

    @property
    def last_words(self) -> str:
        """The last line of the child's complaint, for one-line messages."""
        if self.timed_out:
            return "no answer in time"
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1].strip() if lines else f"exit code {self.code}"


def run(
    argv: list[str],
    *,
    timeout_s: float,
    stdin: bytes = b"",
    environment: dict[str, str] | None = None,
    kept_lock: int | None = None,
) -> Result:
    """Run ``argv`` to its end or to the deadline; a missing program is code 127, never an error."""
    parent_in, child_in = _stdin_pipe(stdin)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    actions: list[tuple[int, int, int]] = [
        (os.POSIX_SPAWN_DUP2, child_in, 0),
        (os.POSIX_SPAWN_DUP2, out_write, 1),
        (os.POSIX_SPAWN_DUP2, err_write, 2),
    ]
    if kept_lock is not None:
        actions.append((os.POSIX_SPAWN_DUP2, kept_lock, KEPT_LOCK_FD))
    try:
        pid = os.posix_spawnp(
            argv[0],
            argv,
            os.environ if environment is None else environment,
            file_actions=actions,
            setpgroup=0,  # Ctrl-C at a terminal must not cut a git command in half
            setsigdef=[signal.SIGPIPE],
        )
    except FileNotFoundError:
        for descriptor in {parent_in, out_read, err_read} - {-1}:
            os.close(descriptor)
        return Result(tuple(argv), 127, "", f"{argv[0]}: command not found")
    finally:
        for descriptor in (child_in, out_write, err_write):
            os.close(descriptor)
    out, err, timed_out = _converse(pid, parent_in, stdin, out_read, err_read, timeout_s)
    _, status = os.waitpid(pid, 0)
    return Result(
        tuple(argv),
        os.waitstatus_to_exitcode(status),
        out.decode("utf-8", "surrogateescape"),  # file names may be any bytes
        err.decode("utf-8", "replace"),
        timed_out,
    )


def _stdin_pipe(stdin: bytes) -> tuple[int, int]:
    if not stdin:
        return -1, os.open("/dev/null", os.O_RDONLY)
    child_in, parent_in = os.pipe()
    os.set_blocking(parent_in, False)
    return parent_in, child_in


def _converse(
    pid: int, parent_in: int, stdin: bytes, out_read: int, err_read: int, timeout_s: float
) -> tuple[bytes, bytes, bool]:
    """Feed and drain the pipes until both outputs end; kill the child's group at the deadline."""
    deadline = time.monotonic() + timeout_s
    chunks: dict[int, list[bytes]] = {out_read: [], err_read: []}
    open_reads = {out_read, err_read}
    poller = select.poll()
    for descriptor in open_reads:
        poller.register(descriptor, select.POLLIN)
    if parent_in >= 0:
        poller.register(parent_in, select.POLLOUT)
    sent = 0
    timed_out = False
    while open_reads:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            timed_out = True
            os.killpg(pid, signal.SIGKILL)  # our own unreaped child: the number cannot be reused
            break
        for descriptor, _ in poller.poll(left_s * 1000):
            if descriptor == parent_in:
                try:
                    sent += os.write(parent_in, stdin[sent : sent + 65536])
                except BrokenPipeError:
                    sent = len(stdin)  # the child closed its input: it has what it wants
                if sent >= len(stdin):
                    poller.unregister(parent_in)
                    os.close(parent_in)
                    parent_in = -1
                continue
            data = os.read(descriptor, 65536)
            if data:
                chunks[descriptor].append(data)
            else:
                poller.unregister(descriptor)
                open_reads.discard(descriptor)
    for descriptor in {parent_in, out_read, err_read} - {-1}:
        os.close(descriptor)
    return b"".join(chunks[out_read]), b"".join(chunks[err_read]), timed_out
