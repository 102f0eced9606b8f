"""All runs below a folder, one row each, kept up to date at the price of looking at what changed.

A row is read anew when its directory has changed (a summary was written) or while the run goes on. What
is a link is no run. Every change gets the next number, so that a page asks for what is newer than its own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mutiny.engine.record import RUNNING, Record, read_record
from mutiny.report.escape import plain
from mutiny.report.run_page import title_of
from mutiny.system.files import BoxPath

PAGES = (
    "campaign.html",
    "sweep.html",
    "matrix.html",
    "drill.html",
    "load.html",
    "final_report.html",
    "tree.html",
)
"""What shows something that is no ordinary run, or is more than one."""
PASSED_OVER = frozenset({"points", "trials"})
"""Folders of trial runs, which come and go."""
INNER = ("goals", "drills")
"""Folders in the directory of something that is made of runs."""
MOST = 20_000
"""Newest first; what is older is not listed."""
FRESH_S = 0.5
"""Who asks again sooner gets the same answer."""
Row = dict[str, Any]


class Index:
    """The rows by id, which is the path below the folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.epoch = os.urandom(8).hex()
        """Versions of another server mean nothing here."""
        self.version = 0
        self.rows: dict[str, Row] = {}
        self._stamps: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._looked = float("-inf")
        self._alone = threading.Lock()

    def refresh(self, *, now: bool = False) -> None:
        """Look for what changed, unless that was done a moment ago."""
        with self._alone:
            if not now and time.monotonic() - self._looked < FRESH_S:
                return
            seen = set()
            for name, stamp in sorted(self._directories(), reverse=True)[:MOST]:
                seen.add(name)
                row = self.rows.get(name)
                if self._stamps.get(name) != stamp or (row and row["state"] == RUNNING):
                    self._stamps[name] = stamp
                    self._read(name)
            for name in self.rows.keys() - seen:
                self._drop(name)
            self._stamps = {name: stamp for name, stamp in self._stamps.items() if name in seen}
            self._looked = time.monotonic()

    def since(self, version: int) -> tuple[list[Row], list[str]]:
        """Rows that are newer than a version, and ids that are gone since."""
        with self._alone:
            rows = [row for row in self.rows.values() if row["version"] > version]
            return rows, [name for name, gone in self._gone.items() if gone > version]

    def folder(self, name: str) -> BoxPath | None:
        """The directory of a run; None when it is not listed."""
        return self.place(self.root, name) if name in self.rows else None

    @staticmethod
    def place(root: Path, name: str) -> BoxPath:
        """The directory of an id."""
        return BoxPath(root) / name

    # --- parts ---------------------------------------------------------------------------------

    def _read(self, name: str) -> None:
        record = read_record(self.place(self.root, name))
        if record is None:
            self._drop(name)
            return
        row = row_of(name, record)
        known = self.rows.get(name)
        if known is None or {**known, "version": 0} != {**row, "version": 0}:
            self.version += 1
            self.rows[name] = {**row, "version": self.version}
            self._gone.pop(name, None)

    def _drop(self, name: str) -> None:
        if self.rows.pop(name, None) is not None:
            self.version += 1
            self._gone[name] = self.version
            while len(self._gone) > MOST:
                del self._gone[next(iter(self._gone))]

    def _directories(self) -> Iterator[tuple[str, int]]:
        """Every directory that may be a run's, and when it changed."""
        for name, stamp in _below(BoxPath(self.root)):
            if name.startswith("run_"):
                yield name, stamp
                inner = self.rows.get(name, {}).get("inner")
                for folder in INNER if inner else ():
                    yield from self._in(f"{name}/{folder}")
            elif not name.startswith(".") and name not in PASSED_OVER:
                yield from self._in(name)

    def _in(self, folder: str) -> Iterator[tuple[str, int]]:
        for name, stamp in _below(BoxPath(self.root) / folder):
            if name.startswith("run_"):
                yield f"{folder}/{name}", stamp


def _below(folder: BoxPath) -> list[tuple[str, int]]:
    """The directories in a folder, with the time of their last change; none where there is no folder."""
    try:
        descriptor = folder.open_directory()
    except OSError:
        return []
    found = []
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_mtime_ns))
    except OSError:
        pass  # it is being thrown away; the next look sees it gone
    finally:
        os.close(descriptor)
    return found


def row_of(name: str, record: Record) -> Row:
    """What the list shows of a run."""
    summary, progress, violation = (
        record.summary or {},
        record.progress or {},
        record.first_violation,
    )
    started, updated = record.about("started_unix"), progress.get("updated_unix")
    took = summary.get("duration_s")
    if took is None and record.verdict and _is_number(started) and _is_number(updated):
        took = updated - started
    doubts = record.error.get("inconclusive") or summary.get("untested") or [""]
    is_made = record.plan is None  # of runs: it is none itself
    return {
        "id": name,
        "kind": record.kind,
        "title": _text(title_of(record), 200),
        "target": _text(record.about("target")),
        "contract": _text(record.about("contract")),
        "plant": _text(record.about("plant")),
        "state": record.state,
        "verdict": record.verdict,
        "rule": _text(record.error.get("rule") or violation.get("rule")),
        "message": _text(violation.get("message") or doubts[0] or progress.get("note"), 300),
        "started": started if _is_number(started) else None,
        "took": took if _is_number(took) else None,
        "done": progress.get("done") if record.state == RUNNING else None,
        "total": progress.get("total") if record.state == RUNNING else None,
        "page": next((one for one in PAGES if one in record.names), "") if is_made else "",
        "inner": is_made and not record.names.isdisjoint(INNER),
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object, most: int = 120) -> str:
    return plain(str(value or "")[:most])
