"""How far something is that takes long: `progress.json` in its run directory, for whoever looks on.

Insight: who looks on reads files only, so that a killed Mutiny and a watcher that starts anew both find
everything there. A file cannot say that its writer is dead; it names the process (pid and start time),
and the reader asks the kernel.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mutiny.engine.rundir import FORMAT, RunDirectory
from mutiny.system.processes import start_ticks

if TYPE_CHECKING:
    from mutiny.model.forms import ProcessForm

NAME = "progress.json"
EVERY_S = 0.5
"""It is not written more often."""


def this_process() -> ProcessForm:
    """Whoever holds a run that this process makes."""
    pid = os.getpid()
    return {"pid": pid, "start": start_ticks(pid) or 0}


@dataclass
class Progress:
    """Writes how far a run is; `done` and `total` count `unit`s."""

    directory: Path
    kind: str
    title: str
    target: str
    contract: str = ""
    plant: str = ""
    seed: int | None = None
    unit: str = ""
    started_unix: float = field(default_factory=time.time)
    _written: float = float("-inf")
    _alone: threading.Lock = field(default_factory=threading.Lock)
    """What runs side by side tells side by side."""

    def tell(
        self,
        done: float,
        total: float | None,
        note: str = "",
        counts: Mapping[str, int] | None = None,
        *,
        verdict: str | None = None,
    ) -> None:
        """Write it down, at most twice a second; with a verdict it is over. `total`: None while nobody
        knows it.
        """
        told = {
            "format": FORMAT,
            "kind": self.kind,
            "title": self.title,
            "target": self.target,
            "contract": self.contract,
            "plant": self.plant,
            "seed": self.seed,
            "process": this_process(),
            "started_unix": self.started_unix,
            "updated_unix": time.time(),
            "unit": self.unit,
            "done": done,
            "total": total,
            "note": note,
            "counts": dict(counts or {}),
            "verdict": verdict,
        }
        with self._alone:
            now = time.monotonic()
            if verdict is None and now - self._written < EVERY_S:
                return
            self._written = now
            RunDirectory(self.directory).write_json(self.directory / NAME, told)
