"""Somebody wants Mutiny to stop: Ctrl-C, a CI that cancels, a terminal that closes. One way for all.

Insight: an exception alone reaches only the main thread, and a flag alone nobody who sleeps. So the signal
sets a flag that every wait of a run looks at, and raises `Stopped` in the main thread unless it is just
doing what must be done to its end (a rollback, a summary). That has `LAST_S` seconds of waiting; then its
waits, too, give up. A second signal changes nothing: the first is being obeyed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread, local
from types import FrameType
from typing import NoReturn, TypeVar

T = TypeVar("T")

LAST_S = 1.5
"""So long may rollback and evidence wait for the target."""
HARD_LIMIT_S = 20.0
"""Whatever happens, Mutiny is gone then; its boxes die with it."""
SLICE_S = 0.1
"""How long a wait may be blind."""
NAMES: dict[int, str] = {
    signal.SIGINT: "SIGINT",
    signal.SIGTERM: "SIGTERM",
    signal.SIGHUP: "SIGHUP",
}


class Stopped(KeyboardInterrupt):
    """Mutiny was asked to stop."""


class _Thread(local):
    runs = 0
    """It is inside of so many runs, which stop when asked."""
    held = 0
    """It does what must be done to its end."""


_here = _Thread()
_asked = 0
_since = 0.0


def listen() -> None:
    """Take the signals from now on; one that the parent ignores, too, except for a terminal's end."""
    for number in NAMES:
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue  # nohup
        signal.signal(number, _heard)


def ignore() -> None:
    """Everything is said and written: another signal must not turn the exit code into its own."""
    for number in NAMES:
        signal.signal(number, signal.SIG_IGN)


def leave(code: int) -> NoReturn:
    """End at once with this code: everything is said and written, and the boxes die with Mutiny.

    On its way out Python gives signals back their own meaning, and on a busy machine that takes long
    enough for the alarm of the hard limit to become the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody listens any more
            stream.flush()
    os._exit(code)


def _heard(number: int, frame: FrameType | None) -> None:
    global _asked, _since
    if _asked:
        return
    _since = time.monotonic()
    _asked = number
    signal.signal(signal.SIGALRM, lambda *_: os._exit(exit_code()))
    signal.setitimer(signal.ITIMER_REAL, HARD_LIMIT_S)
    if not _here.held:
        raise Stopped(reason())


def asked() -> bool:
    """Whether somebody wants Mutiny to stop."""
    return _asked != 0


def exit_code() -> int:
    """What a shell reports of a program that the signal ended."""
    return 128 + (_asked or signal.SIGINT)


def reason() -> str:
    """The signal, in words."""
    return f"interrupted by {NAMES[_asked or signal.SIGINT]}"


def check() -> None:
    """Raise `Stopped` when this thread's run is to end. Every wait calls it, at least each `SLICE_S`."""
    if _asked and _here.runs and (not _here.held or time.monotonic() > _since + LAST_S):
        raise Stopped(reason())


def obey() -> None:
    """Raise `Stopped` when somebody has asked, wherever this is."""
    if _asked:
        raise Stopped(reason())


def unless_asked(items: Iterable[T]) -> Iterator[T]:
    """These, one after the other, until somebody asks to stop."""
    for item in items:
        if _asked:
            return
        yield item


def sleep(seconds: float) -> None:
    """Let time pass, unless Mutiny is asked to stop."""
    end = time.monotonic() + seconds
    check()
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, SLICE_S))
        check()


def join(thread: Thread, timeout_s: float = 1e9) -> None:
    """Wait for a thread, unless Mutiny is asked to stop."""
    end = time.monotonic() + timeout_s
    check()
    while thread.is_alive() and (left := end - time.monotonic()) > 0:
        thread.join(min(left, SLICE_S))
        check()


@contextmanager
def running() -> Iterator[None]:
    """This thread is inside of a run: its waits observe the wish to stop."""
    _here.runs += 1
    try:
        yield
    finally:
        _here.runs -= 1


@contextmanager
def held_off() -> Iterator[None]:
    """What must be done to its end: no `Stopped` in here before `LAST_S` are over."""
    _here.held += 1
    try:
        yield
    finally:
        _here.held -= 1


@contextmanager
def let_in() -> Iterator[None]:
    """A part of what must be done to its end that may be cut short all the same."""
    held, _here.held = _here.held, 0
    try:
        obey()
        yield
    finally:
        _here.held = held
