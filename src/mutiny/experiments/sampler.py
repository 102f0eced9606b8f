"""The availability probe: one operation of the target, asked at a fixed rate by a thread of its own.

Ticks are counted on the clock, not on the answers: an answer that takes longer than a tick stands for all
the ticks that it covers, so a target that hangs for two seconds is not excused as one slow answer.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mutiny import stopping
from mutiny.kit.sentences import Sample
from mutiny.model.result import OperationResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutiny.experiments.recorder import Recorder

SLOW_S = 1.0
"""An answer that takes longer does not count as available."""
MEASURE_EVERY_S = 0.5
JOIN_S = 40.0

Ask = Callable[[], OperationResult]
Measure = Callable[[], tuple[int, int] | None]
"""Memory in bytes and open descriptors of the lasting processes."""


class Sampler:
    """Asks until it is told to stop; every answer is a line of `availability.jsonl`."""

    def __init__(
        self, ask: Ask, measure: Measure, rate_hz: float, recorder: Recorder, path: Path
    ) -> None:
        self._ask = ask
        self._measure = measure
        self._period_s = 1.0 / rate_hz
        self._recorder = recorder
        self._path = path
        self._stop = threading.Event()
        self._free = threading.Condition()
        self._held = 0
        self._asking = False
        self._measured_at = 0.0
        self._thread = threading.Thread(target=self._run, name="availability", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop asking; an answer that is under way is waited for."""
        self._stop.set()
        with self._free:
            self._free.notify_all()
        if stopping.asked():
            return  # whatever it waits for ends with the box
        stopping.join(self._thread, JOIN_S)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nobody asks while a command is swept: the probe would change what is swept."""
        with self._free:
            self._held += 1
            self._free.wait_for(lambda: not self._asking or stopping.asked(), JOIN_S)
        try:
            yield
        finally:
            with self._free:
                self._held -= 1
                self._free.notify_all()

    def _run(self) -> None:
        with self._path.open("a", encoding="utf-8") as out:
            due = time.monotonic()
            while not self._stop.is_set():
                with self._free:
                    if not self._free.wait_for(self._may_ask, 60.0) or self._stop.is_set():
                        continue
                    self._asking = True
                late = time.monotonic()
                due = max(due, late - self._period_s)  # a pause is nobody's silence
                try:
                    sample = self._one()
                finally:
                    with self._free:
                        self._asking = False
                        self._free.notify_all()
                self._recorder.sampled(sample)
                out.write(json.dumps(sample.as_json()) + "\n")
                out.flush()
                due += self._period_s * sample.slots
                self._stop.wait(max(due - time.monotonic(), 0.0))

    def _may_ask(self) -> bool:
        return self._stop.is_set() or not self._held

    def _one(self) -> Sample:
        at = time.time()
        began = time.perf_counter()
        ok: bool | None
        try:
            result = self._ask()
            ok, note = result.succeeded, result.stderr.strip()[:200]
            if result.harness_error is not None:
                ok, note = None, result.harness_error[:200]
        except Exception as error:  # noqa: BLE001  a probe that breaks down is a sample, not a crash
            ok, note = None, f"{type(error).__name__}: {error}"[:200]
        took_s = time.perf_counter() - began
        if ok and took_s > SLOW_S:
            ok, note = False, f"answered after {took_s:.1f} s"
        slots = max(int(took_s / self._period_s + 0.5), 1)
        memory, descriptors = self._measured()
        note = "" if ok else note
        return Sample(at, ok, took_s * 1000, slots, note, memory, descriptors)

    def _measured(self) -> tuple[int | None, int | None]:
        now = time.monotonic()
        if now - self._measured_at < MEASURE_EVERY_S:
            return None, None
        self._measured_at = now
        try:
            found = self._measure()
        except OSError:
            return None, None
        return found if found is not None else (None, None)


def uptime_s() -> float:
    """Seconds since the machine started: the clock of process start times."""
    return float(Path("/proc/uptime").read_text().split()[0])


def lasting_processes(
    root_pid: int, own: frozenset[int], born_before_s: float
) -> tuple[int, int] | None:
    """Resident bytes and descriptors of all descendants that were there when the watch began.

    Those that came later would look like growth, and are often Mutiny's own.
    """
    tick = os.sysconf("SC_CLK_TCK")
    page = os.sysconf("SC_PAGE_SIZE")
    memory = descriptors = found = 0
    waiting = [root_pid]
    while waiting:
        pid = waiting.pop()
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            waiting.extend(int(child) for child in children)
            if pid in own:
                continue
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if int(fields[19]) / tick > born_before_s:
                continue
            memory += int(fields[21]) * page
            descriptors += len(list(Path(f"/proc/{pid}/fd").iterdir()))
            found += 1
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has just ended
    return (memory, descriptors) if found else None
