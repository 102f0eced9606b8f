"""Reading logs that grow: each look reads only what is new, and a line that is not whole yet waits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mutiny.system.files import BoxPath

MOST_BYTES = 64 << 20
SHOWN = 160


class Tail:
    """One file of JSON lines."""

    def __init__(self, path: BoxPath, required: tuple[str, ...] = ()) -> None:
        self.path = path
        self._required = required
        self._offset = 0
        self._rows: tuple[Mapping[str, Any], ...] = ()
        self.bad: tuple[str, ...] = ()
        """Lines that are not as they should be, each with the reason."""

    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """All whole lines up to now."""
        try:
            if self.path.stat().st_size < self._offset:  # somebody has cut it off
                self._offset, self._rows, self.bad = 0, (), ()
            data = self.path.read_from(self._offset, MOST_BYTES)
        except FileNotFoundError:
            return self._rows
        whole = data[: data.rfind(b"\n") + 1]
        if whole:
            self._offset += len(whole)
            fresh = [self._row(line) for line in whole.decode("utf-8", "replace").splitlines()]
            self._rows = (*self._rows, *(row for row in fresh if row is not None))
        return self._rows

    def _row(self, line: str) -> Mapping[str, Any] | None:
        try:
            row = json.loads(line)
        except ValueError as error:
            row, why = None, f"no JSON: {error}"
        else:
            why = "no object" if not isinstance(row, dict) else self._lacks(row)
        if why:
            self.bad = (*self.bad, f"{self.path.name}: {why}: {line[:SHOWN]}")
        return None if why else row

    def _lacks(self, row: Mapping[str, Any]) -> str:
        missing = [name for name in self._required if name not in row]
        return f"no {missing[0]} in it" if missing else ""
