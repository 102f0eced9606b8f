"""Start processes that must die with Mutiny, from a thread that lives as long as Mutiny.

Insight: the kernel's "kill me when my parent dies" (used by ``bwrap --die-with-parent`` and
``setpriv --pdeathsig``) means the parent THREAD. A box started from a worker thread would be killed
as soon as that thread ends, with no trace of why. So every box is started by one thread that never
ends before the process does.
"""

from __future__ import annotations

import os
import queue
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class _Order:
    argv: Sequence[str]
    environment: Mapping[str, str]
    inherit: Sequence[int]
    output: int
    result: queue.SimpleQueue[subprocess.Popen[bytes] | BaseException] = field(
        default_factory=queue.SimpleQueue
    )


class _Launcher:
    """The thread and its queue of orders."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders: queue.SimpleQueue[_Order] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, order: _Order) -> subprocess.Popen[bytes]:
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


def _start_here(order: _Order) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        order.argv,
        env=dict(order.environment),
        pass_fds=order.inherit,
        stdin=subprocess.DEVNULL,
        stdout=order.output,
        stderr=order.output,
        cwd="/",
        start_new_session=True,  # a Ctrl-C on Mutiny's terminal is not for the box
    )


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
) -> subprocess.Popen[bytes]:
    """Start a process whose parent thread lasts as long as Mutiny; it writes to ``output``."""
    return _launcher.start(_Order(argv, environment, inherit, output))
