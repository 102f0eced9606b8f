"""The corpus: replays of what failed once, each a file, and an index of how it stands with them.

`open`: it still fails, or has not passed often enough to be believed. `guard`: it was mended, and whoever
breaks it again hears that. How often is enough follows from how often it failed when it was found: so many
passes that luck explains them in less than one case of twenty.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mutiny import documents
from mutiny.codec import decode
from mutiny.engine.replay import Replay
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import FormatError, UsageError

INDEX = "corpus.toml"
OPEN, GUARD = "open", "guard"
LUCK = 0.05
MOST_PASSES = 20


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One kept replay."""

    name: str
    rule: str = ""
    state: str = OPEN
    passes: int = 0
    """In a row, since it failed last."""
    since: str = ""
    """The day on which it got its state."""
    reason: str = ""

    def problem(self) -> str | None:
        """Why it cannot be; None when it can."""
        if self.state not in (OPEN, GUARD):
            return f"{self.name}: state {self.state!r} is none of {OPEN}, {GUARD}"
        plain = self.name and "/" not in self.name and not self.name.startswith(".")
        return None if plain else f"name: {self.name!r} is no name of a file"

    def after(self, *, broke: bool, needed: int, today: str) -> Entry:
        """How it stands after one more run that showed something."""
        if broke:
            since = self.since if self.state == OPEN else today
            return replace(self, state=OPEN, passes=0, since=since)
        passes = self.passes + 1
        if self.state == OPEN and passes >= needed:
            return replace(self, state=GUARD, passes=passes, since=today)
        return replace(self, passes=passes)


def passes_needed(replay: Replay) -> int:
    """So many passes in a row mean that it is mended, and not luck."""
    found = replay.reproduced
    share = 0.5 if found is None or not found.failed else found.failed / (found.tries + 1)
    return min(max(math.ceil(math.log(LUCK) / math.log(1 - share)), 1), MOST_PASSES)


@dataclass(frozen=True)
class Corpus:
    """A folder of replays with its index."""

    folder: Path
    entries: tuple[Entry, ...] = ()

    def path(self, entry: Entry) -> Path:
        """Where its replay lies."""
        return self.folder / f"{entry.name}.json"

    def ordered(self) -> Sequence[Entry]:
        """What failed last comes first, then what is being mended, then the guards."""
        return sorted(self.entries, key=lambda one: (one.state == GUARD, one.passes > 0, one.name))

    def having(self, entry: Entry) -> Corpus:
        """The same with an entry, in the place of one of its name."""
        others = [one for one in self.entries if one.name != entry.name]
        return replace(self, entries=tuple(sorted([*others, entry], key=lambda one: one.name)))

    def without(self, name: str) -> Corpus:
        """The same without an entry."""
        return replace(self, entries=tuple(one for one in self.entries if one.name != name))

    def write(self) -> None:
        """Keep the index."""
        RunDirectory(self.folder).write_text(
            self.folder / INDEX, "\n".join(map(_written, self.entries))
        )


def read_corpus(folder: Path) -> Corpus:
    """A folder's replays; one that the index does not know is open."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no corpus; `mutiny corpus add RUN` begins one")
    index = folder / INDEX
    rows = documents.read_toml(index, "index of the corpus")[0] if index.exists() else {}
    unknown = [
        f"unknown table {key!r}; entries begin with [[entry]]" for key in rows if key != "entry"
    ]
    if unknown or not isinstance(rows.get("entry", []), list):
        raise FormatError(str(index), unknown or ["entries begin with [[entry]]"])
    told = {
        one.name: one
        for one in (decode(Entry, row, where=str(index)) for row in rows.get("entry", []))
    }
    problems = [problem for one in told.values() if (problem := one.problem()) is not None]
    if problems:
        raise FormatError(str(index), problems)
    names = sorted(path.stem for path in folder.glob("*.json"))
    return Corpus(folder, tuple(told.get(name, Entry(name=name)) for name in names))


def _written(entry: Entry) -> str:
    lines = ["[[entry]]", f"name = {json.dumps(entry.name)}", f"rule = {json.dumps(entry.rule)}"]
    lines += [f"state = {json.dumps(entry.state)}", f"passes = {entry.passes}"]
    lines += [f"since = {json.dumps(entry.since)}"]
    lines += [f"reason = {json.dumps(entry.reason)}"] if entry.reason else []
    return "\n".join([*lines, ""])
