"""Who carries the runs of a campaign out: slots on this machine, each with one command at a time.

Runs wait most of their time, for leases, agents and settling, so there are more slots than cores.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mutiny.errors import TechniqueMissing
from mutiny.modes.own_command import Answer, OwnCommand
from mutiny.system.machine import cores

SLOTS_A_CORE = 4
LOOK_S = 0.5
"""How long a slot waits before it looks whether it is to stop."""


class CrewGone(TechniqueMissing):
    """Nobody is left to carry runs out: what was not done has shown nothing."""


@dataclass(frozen=True)
class Delivered:
    """An attempt that came to its end."""

    id: str
    answer: Answer
    seconds: float
    where: str


@dataclass(frozen=True)
class Missing:
    """An attempt of which nobody will hear any more."""

    id: str
    why: str


class Crew(Protocol):
    """Whoever carries runs out."""

    @property
    def slots(self) -> int:
        """How many go side by side just now; 0: nobody is there, at the moment."""
        ...

    def start(self, id_: str, words: Sequence[str]) -> None:
        """Let somebody carry a command out."""
        ...

    def next(self, timeout_s: float) -> Delivered | Missing | None:
        """The next attempt that is over; None: none within this time."""
        ...

    def close(self) -> None:
        """End what is under way, and go."""
        ...


class LocalCrew:
    """Slots on this machine."""

    def __init__(self, folder: Path, home: Path, slots: int | None = None) -> None:
        """`folder`: where commands work; `home`: each attempt's runs go into a folder in it."""
        self.slots = slots or SLOTS_A_CORE * cores()
        self._folder, self._home = folder, home
        self._over: queue.SimpleQueue[Delivered] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def start(self, id_: str, words: Sequence[str]) -> None:
        """In a thread of its own, which outlasts the command."""
        self._threads = [one for one in self._threads if one.is_alive()]
        thread = threading.Thread(target=self._carry_out, args=(id_, tuple(words)), daemon=True)
        self._threads.append(thread)
        thread.start()

    def next(self, timeout_s: float) -> Delivered | Missing | None:
        try:
            return self._over.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _carry_out(self, id_: str, words: tuple[str, ...]) -> None:
        answer, seconds = carry_out(words, self._folder, self._home / id_, self._stop)
        self._over.put(Delivered(id_, answer, seconds, "here"))


def carry_out(
    words: Sequence[str], folder: Path, place: Path, stop: threading.Event | None = None
) -> tuple[Answer, float]:
    """Run one command to its end, or until somebody wants it to stop; everything of it lies in `place`."""
    began = time.monotonic()
    try:
        place.mkdir(parents=True, exist_ok=True)
        command = OwnCommand([*words, "--runs", str(place)], folder, place)
    except Exception as error:  # noqa: BLE001  nobody else would hear of it
        return Answer(70, None, f"it could not be started: {error}"), 0.0
    try:
        while not command.wait(LOOK_S):
            if stop is not None and stop.is_set():
                command.stop()
    finally:
        if not command.is_over():
            command.stop()
    return command.answer(), time.monotonic() - began
