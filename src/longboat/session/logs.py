"""Files of JSON lines that only grow, and always end in a whole line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from longboat.batch.store import whole_lines
from longboat.planting import planted


class Lines:
    """One such file, open for appending; a line that a killed writer left half is cut off."""

    def __init__(self, path: str) -> None:
        self.path = path
        fresh = not os.path.lexists(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._end = whole_lines(self._descriptor)
        self._unsynced_name = fresh

    def append(self, data: bytes, *, sync: bool = False) -> None:
        """A line that is there wholly or not at all; with `sync` it survives a power cut."""
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], self._end + written)
            if sync:
                os.fsync(self._descriptor)
                self._sync_name()
        except OSError:
            os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(data)

    def _sync_name(self) -> None:
        if self._unsynced_name:
            from longboat.workers.store import sync_directory

            sync_directory(os.path.dirname(self.path))
            self._unsynced_name = False

    def say(self, line: dict[str, Any], *, sync: bool = False) -> None:
        """One line of JSON."""
        data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
        if planted("session-log-torn") and b"task.done" in data:
            data = data[:-10] + b"\n"
        self.append(data, sync=sync)

    def close(self) -> None:
        """Nothing more will be said."""
        os.close(self._descriptor)


def read_lines(path: str) -> Iterator[dict[str, Any]]:
    """All whole lines, one after the other, so that a long file costs no memory."""
    try:
        file = open(path, "rb")  # noqa: SIM115  closed below, by whoever reads to the end
    except FileNotFoundError:
        return
    with file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # never said to the end, or damaged from outside
            if isinstance(entry, dict):
                yield entry
