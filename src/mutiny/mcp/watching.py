"""How far a command is, seen from the run directories that name its process: nothing has to be asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mutiny.engine.record import Record, lines_since, read_record
from mutiny.system.files import BoxPath

NEWEST = 40
"""So many directories of a folder are looked at: whatever is under way is among them."""
SERIES = ("explorations", "sweeps", "campaigns")
"""Folders of what is made of many runs: it tells itself how far it is."""


@dataclass(frozen=True)
class Seen:
    """How far something is."""

    done: float
    total: float | None
    note: str


class Watcher:
    """Looks at what one process makes."""

    def __init__(self, runs: Path, pid: int) -> None:
        self._runs, self._pid = runs, pid
        self._steps: dict[str, int] = {}

    def look(self) -> Seen | None:
        """How far it is by now; None: nothing is there to be seen yet."""
        for folder in SERIES:
            for record in self._own(self._runs / folder):
                told = record.progress or {}
                note = f"{told.get('done')} {told.get('unit')}; {told.get('note') or ''}"
                return Seen(float(told.get("done") or 0), told.get("total"), note.rstrip("; "))
        own = self._own(self._runs)
        for record in own:
            self._steps[record.folder.root] = _steps(record)
        if not own:
            return None
        newest = own[0]
        at, of = _steps(newest), len((newest.plan or {}).get("operations") or ())
        note = f"{(newest.plan or {}).get('title')}: step {at} of {of}"
        return Seen(float(sum(self._steps.values())), None, note)

    def _own(self, folder: Path) -> list[Record]:
        """The records in a folder that name the process, the newest first."""
        try:
            made = [(one.stat().st_mtime, one) for one in folder.glob("run_*")]
        except OSError:  # one of them was just thrown away
            return []
        newest = [path for _, path in sorted(made, reverse=True)[:NEWEST]]
        found = (read_record(BoxPath(path)) for path in newest)
        return [one for one in found if one is not None and self._is_own(one)]

    def _is_own(self, record: Record) -> bool:
        process = record.about("process")
        return isinstance(process, dict) and process.get("pid") == self._pid


def _steps(record: Record) -> int:
    """How many steps a run has made: the lines of its journal."""
    journal, offset, count = record.folder / "operations.jsonl", 0, 0
    while True:
        lines, offset = lines_since(journal, offset)
        if not lines:
            return count
        count += len(lines)
