"""Curves of a long session: the figures of `metrics.jsonl`, read as it grows, thinned for a screen.

Thinned by extremes: each stretch of time keeps its lowest and its highest value, so that a spike of one
line is still seen among ten thousand.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from mutiny.engine.record import lines_since, table
from mutiny.report.escape import plain
from mutiny.system.files import BoxPath

FIELDS = (
    *("tokens_per_minute", "test_pass_rate", "test_coverage", "tasks_completed", "tasks_remaining"),
    *("memory_usage_mb", "errors_encountered", "checkpoint_count", "availability"),
)
"""What is drawn; what the lines lack is not."""
_SCALE = {"test_coverage": 0.01}
"""What is told in percent, while other shares are told as such."""
FIGURES = (*FIELDS, "elapsed_seconds", "estimated_remaining", "lines_of_code", "files_modified")
NAME = "metrics.jsonl"
STRETCHES = 400
"""Two points each."""


class Series:
    """The figures of one run so far."""

    def __init__(self, folder: BoxPath) -> None:
        self._path = folder / NAME
        self._offset = 0
        self.times = array("d")
        self.columns = {name: array("d") for name in FIELDS}
        self.last: Mapping[str, Any] = {}

    def read_on(self) -> bool:
        """Take in lines that are new, some at a time; whether there were any."""
        lines, self._offset = lines_since(self._path, self._offset)
        for line in lines:
            at = line.get("elapsed_seconds")
            if not isinstance(at, int | float):
                continue
            self.times.append(at)
            for name, column in self.columns.items():
                column.append(_figure(line.get(name)) * _SCALE.get(name, 1.0))
            self.last = line
        return bool(lines)

    def drawn(self) -> dict[str, Any]:
        """Times and columns for a screen; a column without any value is left out."""
        kept = {
            name: column
            for name, column in self.columns.items()
            if any(value == value for value in column)  # not all are missing
        }
        times, thin = thinned(self.times, kept)
        return {"lines": len(self.times), "times": times, "columns": thin, "now": self.now()}

    def now(self) -> dict[str, Any]:
        """The last line: figures, and what the agents do."""
        told = {
            name: self.last[name] * _SCALE.get(name, 1)
            for name in FIGURES
            if isinstance(self.last.get(name), int | float)
        }
        phase = self.last.get("phase")
        agents = self.last.get("agent_utilization")
        rows = [table(one) for one in agents] if isinstance(agents, list) else []
        return {
            **told,
            "phase": _words(table(phase).get("name") or (phase if isinstance(phase, str) else "")),
            "agents": [
                {
                    "name": _words(row.get("agent") or row.get("name")),
                    "role": _words(row.get("role")),
                    "doing": _words(row.get("doing") or row.get("task") or row.get("status")),
                    "utilization": _share(row.get("utilization")),
                    "tokens": row.get("tokens") if isinstance(row.get("tokens"), int) else None,
                }
                for row in rows[:64]
            ],
        }


def thinned(
    times: Sequence[float], columns: Mapping[str, Sequence[float]], stretches: int = STRETCHES
) -> tuple[list[float], dict[str, list[float | None]]]:
    """As many points as a screen can show: two for each stretch, with its extremes in their order."""
    count = len(times)
    if count <= 2 * stretches:
        return list(times), {name: [_plain(v) for v in column] for name, column in columns.items()}
    edges = [round(place * count / stretches) for place in range(stretches + 1)]
    spans = [(begin, end) for begin, end in pairwise(edges) if end > begin]
    shown = [at for begin, end in spans for at in (times[begin], times[end - 1])]
    thin: dict[str, list[float | None]] = {}
    for name, column in columns.items():
        kept: list[float | None] = []
        for begin, end in spans:
            part = [place for place in range(begin, end) if column[place] == column[place]]
            if not part:
                kept += [None, None]
                continue
            low, high = min(part, key=column.__getitem__), max(part, key=column.__getitem__)
            kept += [column[place] for place in sorted((low, high))]
        thin[name] = kept
    return shown, thin


def _words(value: object) -> str:
    return plain(str(value or "")[:200])


def _figure(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _plain(value: float) -> float | None:
    return value if value == value else None


def _share(value: object) -> float | None:
    if not isinstance(value, int | float):
        return None
    return min(max(value if value <= 1 else value / 100, 0.0), 1.0)
