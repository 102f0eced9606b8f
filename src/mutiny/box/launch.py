"""Start processes that must die with Mutiny, from a thread that lives as long as Mutiny.

Insight: the kernel's "kill me when my parent dies" (used by ``bwrap --die-with-parent`` and
``setpriv --pdeathsig``) means the parent THREAD. A box started from a worker thread would be killed
as soon as that thread ends, with no trace of why. So every box is started by one thread that never
ends before the process does.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mutiny.system.processes import handle_ended


@dataclass(frozen=True, slots=True)
class _Order:
    argv: Sequence[str]
    environment: Mapping[str, str]
    inherit: Sequence[int]
    output: int
    result: queue.SimpleQueue[Lasting | BaseException] = field(default_factory=queue.SimpleQueue)


class Lasting:
    """A process that was started here. (`subprocess` would load an event loop and languages for it.)"""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._handle = os.pidfd_open(pid)  # not reaped yet, so the number is still its own
        self._lock = threading.Lock()
        self._code: int | None = None

    def wait(self, timeout_s: float) -> int:
        """Its exit code, or the number of its signal as a negative one; `TimeoutError` if it runs on."""
        if self._code is None and not handle_ended(self._handle, timeout_s):
            raise TimeoutError(f"pid {self.pid} did not end within {timeout_s} s")
        with self._lock:
            if self._code is None:
                _, status = os.waitpid(self.pid, 0)
                self._code = os.waitstatus_to_exitcode(status)
            return self._code

    def __del__(self) -> None:
        os.close(self._handle)


class _Launcher:
    """The thread and its queue of orders."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, order: _Order) -> Lasting:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._serve, name="box-launcher", daemon=True
                )
                self._thread.start()
        self._orders.put(order)
        result = order.result.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def _serve(self) -> None:
        while True:
            order = self._orders.get()
            try:
                order.result.put(_start_here(order))
            except BaseException as error:  # noqa: BLE001 - raised again in the thread that asked
                order.result.put(error)


def _start_here(order: _Order) -> Lasting:
    for descriptor in order.inherit:
        os.set_inheritable(descriptor, True)
    pid = os.posix_spawnp(
        order.argv[0],
        list(order.argv),
        order.environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, order.output, 1),
            (os.POSIX_SPAWN_DUP2, order.output, 2),
        ],
        setsid=True,  # a Ctrl-C on Mutiny's terminal is not for the box
        # Python ignores the first two, and whoever started Mutiny may ignore the others.
        setsigdef=(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP),
    )
    return Lasting(pid)


_launcher = _Launcher()


def _forget_launcher_after_fork() -> None:
    """A forked child has no such thread; it makes its own when it needs one."""
    global _launcher
    _launcher = _Launcher()


os.register_at_fork(after_in_child=_forget_launcher_after_fork)


def start_lasting(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    inherit: Sequence[int],
    output: int,
) -> Lasting:
    """Start a process whose parent thread lasts as long as Mutiny; it writes to ``output``."""
    return _launcher.start(_Order(argv, environment, inherit, output))
