"""Reading logs that grow: each look reads only what is new, and a line that is not whole yet waits."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mutiny.foreign import lines, parse
from mutiny.system.files import BoxPath, UnsafeFile

MOST_BYTES = 64 << 20
MOST_ROWS = 200_000
"""More are the log of no session, and memory that Mutiny needs."""
MOST_BAD = 20
"""So many bad lines are kept: one is enough to tell."""
SHOWN = 160


class _Kept(Mapping[str, Any]):
    """A line as it is kept for hours: of its lists only how long they are, and what is as in the line
    before it is there once.
    """

    __slots__ = ("_names", "_values")

    def __init__(self, row: Mapping[str, Any], before: _Kept | None) -> None:
        names = tuple(map(sys.intern, row))
        old: tuple[Any, ...] = (None,) * len(names)
        if before is not None and before._names == names:
            names, old = before._names, before._values
        self._names: tuple[str, ...] = names
        self._values: tuple[Any, ...] = tuple(map(_kept, row.values(), old))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[self._names.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _kept(value: Any, old: Any) -> Any:
    if isinstance(value, list | tuple):
        value = (None,) * len(value)
    if type(value) is type(old) and value == old:
        return old
    return sys.intern(value) if isinstance(value, str) else value


class Tail:
    """One file of JSON lines; of a `regular` one only the last line is kept with all its parts."""

    def __init__(
        self, path: BoxPath, required: tuple[str, ...] = (), *, regular: bool = False
    ) -> None:
        self.path = path
        self._required = required
        self._regular = regular
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
            if whole.count(b"\n") + len(self._rows) > MOST_ROWS:
                raise UnsafeFile(f"{self.path} has more than {MOST_ROWS} lines")
            read = (self._row(line) for line in lines(whole.decode("utf-8", "replace")))
            fresh = [*self._rows[-1:], *(row for row in read if row is not None)]
            older = self._rows[:-1]
            if self._regular:
                before = next((row for row in older[-1:] if isinstance(row, _Kept)), None)
                for place, row in enumerate(fresh[:-1]):
                    fresh[place] = before = _Kept(row, before)
            self._offset += len(whole)
            self._rows = (*older, *fresh)
        return self._rows

    def _row(self, line: str) -> Mapping[str, Any] | None:
        try:
            row = parse(line)
        except ValueError as error:
            row, why = None, f"no JSON: {error}"
        else:
            why = "no object" if not isinstance(row, dict) else self._lacks(row)
        if why and len(self.bad) < MOST_BAD:
            self.bad = (*self.bad, f"{self.path.name}: {why}: {line[:SHOWN]}")
        return None if why else row

    def _lacks(self, row: Mapping[str, Any]) -> str:
        missing = [name for name in self._required if name not in row]
        return f"no {missing[0]} in it" if missing else ""
