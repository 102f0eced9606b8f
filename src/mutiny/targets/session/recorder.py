"""A line of metrics for every so many seconds of session time, in the directory of the run.

Each line has a number and is on disk before the next is due, so that whoever goes on after a kill knows
which one comes next: none is lost, none is there twice. Between two lines of one session time passes, and
nothing of it while nobody records.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mutiny.contracts.session.checkpoints import METRICS

FILE = "metrics.jsonl"
SHORTEST_S = 0.01


def last_line(path: Path) -> Mapping[str, Any] | None:
    """The last whole line of a record; what a kill left of another one is cut off."""
    if not path.exists():
        return None
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        os.truncate(path, len(whole))
    lines = whole.splitlines()
    return json.loads(lines[-1]) if lines else None


class Recorder:
    """Writes lines until it is closed."""

    def __init__(
        self,
        directory: Path,
        every_s: float,
        now: Callable[[], float],
        rate: Callable[[], float],
        sample: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.path = directory / FILE
        self._every_s = every_s
        self._now = now
        self._rate = rate
        self._sample = sample
        self._over = threading.Event()
        self.trouble = ""
        last = last_line(self.path)
        self._number = 0 if last is None else int(last["number"])
        self.began = now() if last is None else float(last["began"])
        """The session time at which the recording began."""
        self._file = os.open(
            self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Begin, or go on behind the last line."""
        self._thread.start()

    def close(self) -> None:
        """No more lines."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        os.close(self._file)

    def _run(self) -> None:
        while True:
            due = self.began + self._every_s * (self._number + 1)
            left_s = (due - self._now()) / self._rate()
            if self._over.wait(max(left_s, SHORTEST_S) if left_s > 0 else 0):
                return
            if self._now() >= due:
                try:
                    self._write(due)
                except (OSError, ValueError) as error:  # told at the end of the run, not lost
                    self.trouble = f"{type(error).__name__}: {error}"
                    return

    def _write(self, due: float) -> None:
        line = {
            "number": self._number + 1,
            "session_seconds": round(due - self.began, 3),
            "late_s": round(self._now() - due, 3),
            "began": self.began,
            **self._sample(),
        }
        os.write(self._file, json.dumps(line, ensure_ascii=False).encode() + b"\n")
        os.fsync(self._file)
        self._number += 1


def with_all_fields(told: Mapping[str, Any] | None) -> dict[str, Any]:
    """The figures that a session told last: all of the plan, null where there are none yet."""
    found = {} if told is None else told
    more = ("phase", "status", "tool_calls", "model_calls", "descriptors", "recoveries", "progress")
    return {
        **{name: found.get(name) for name in METRICS},
        **{name: found[name] for name in more if name in found},
    }
