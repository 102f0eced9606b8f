"""A run that goes on, as its directory shows it: how far it is, what was done, how well it is answered.

Each reader has its own place in the journal; nothing is remembered between two looks but that place and
a few sums, so that a watcher that comes late, or a server that starts anew, sees the same.
"""

from __future__ import annotations

import time
from typing import Any

from mutiny.engine.record import RUNNING, Record, lines_since, read_record, table
from mutiny.report.escape import plain
from mutiny.report.run_page import registry_of, told_step
from mutiny.system.files import BoxPath
from mutiny.web.series import Series

MOST_STEPS = 300
"""So many are sent to one who comes late: the last ones."""
_SENT = ("number", "kind", "text", "at_s", "took_s", "verdict", "word", "fired", "technique")
_ANSWERED = frozenset({"success", "expected"})


class Follower:
    """One reader's view of one run."""

    def __init__(self, folder: BoxPath) -> None:
        self._folder = folder
        self._offset = 0
        self._samples_offset = 0
        self._begin: float | None = None
        self._done = self._asked = self._answered = self._faults = 0
        self._samples = [0, 0]
        self._series = Series(folder)

    def look(self) -> dict[str, Any] | None:
        """What is new since the last look, and where everything stands; None: it is gone."""
        record = read_record(self._folder)
        if record is None:
            return None
        contract = str(record.about("contract") or "")
        steps = self._steps(contract)
        grown = self._series.read_on()
        look = {
            "state": record.state,
            "verdict": record.verdict,
            "steps": steps[-MOST_STEPS:],
            "faults": self._faults,
            "availability": self._availability(),
            "counts": table((record.progress or {}).get("counts")),
            **self._standing(record),
        }
        if self._series.times:
            look["session"] = self._series.drawn() if grown else {"now": self._series.now()}
        look["more"] = grown  # some are read at a time
        return look

    def _steps(self, contract: str) -> list[dict[str, Any]]:
        registry = registry_of(contract)
        found: list[dict[str, Any]] = []
        while True:
            lines, self._offset = lines_since(self._folder / "operations.jsonl", self._offset)
            if not lines:
                break
            for line in lines:
                at = float(line.get("timestamp_unix") or 0)
                self._begin = at if self._begin is None else self._begin
                step = told_step(line, registry, at - self._begin)
                self._count(step)
                note = step["notes"][0][:300] if step["notes"] else ""
                sent = {**{name: step[name] for name in _SENT}, "note": note}
                found.append({name: _shown(value) for name, value in sent.items()})
            del found[:-MOST_STEPS]
        return found

    def _count(self, step: dict[str, Any]) -> None:
        self._done += 1
        self._faults += step["fired"]
        if step["kind"] == "command":
            self._asked += 1
            self._answered += step["verdict"] in _ANSWERED

    def _availability(self) -> float | None:
        """The share of the probe's questions that were answered; without a probe that of all commands."""
        lines, self._samples_offset = lines_since(
            self._folder / "availability.jsonl", self._samples_offset
        )
        for line in lines:
            if isinstance(line.get("ok"), bool):
                self._samples[line["ok"]] += 1
        told = self._series.last.get("availability")
        if isinstance(told, int | float):
            return float(told)
        if any(self._samples):
            return self._samples[True] / sum(self._samples)
        return self._answered / self._asked if self._asked else None

    def _standing(self, record: Record) -> dict[str, Any]:
        """How far it is, and how long it takes from here: as it went so far."""
        progress, plan = record.progress, record.plan or {}
        planned = len(plan.get("operations") or ()) + len(plan.get("rollback") or ())
        done: float = self._done
        total: float | None = planned or None
        unit, note = "operations", ""
        if progress is not None:
            done, total = progress.get("done") or 0, progress.get("total")
            unit, note = str(progress.get("unit") or ""), str(progress.get("note") or "")
        started = record.about("started_unix")
        passed = max(time.time() - started, 0.0) if isinstance(started, int | float) else None
        left = None
        if record.state == RUNNING and passed and total and done:
            left = passed * max(total - done, 0) / done
        return {
            "done": done,
            "total": total,
            "unit": unit,
            "note": plain(note[:300]),
            "passed_s": passed if record.state == RUNNING else None,
            "left_s": left,
        }


def _shown(value: object) -> object:
    return plain(value) if isinstance(value, str) else value
