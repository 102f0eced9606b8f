"""The desk of the doubles in a box: what they are told, where they wait, and what they wrote down.

Everything that Mutiny itself has to remember of a box lies here, too, so that a box that goes on from kept
files knows it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mutiny import doubles
from mutiny.foreign import lines, parse
from mutiny.system.files import BoxPath

SECRET = "sk-mutiny-4f1c9b7e2a"
_LAUNCHER = """\
#!{python} -IS
import os, sys
sys.path.append({root!r})
from mutiny.doubles.tasks.{name} import main
from mutiny.doubles.tasks.records import Desk
sys.exit(main(Desk(os.path.dirname(os.path.abspath(__file__))), sys.argv[1:]))
"""


class Desk:
    """One directory of the box."""

    def __init__(self, place: BoxPath) -> None:
        self.place = place
        place.mkdir(exist_ok=True)
        self._script = self._read("script.json") or {"secret": SECRET, "gates": {}}
        self._notes = self._read("notes.json") or {"knobs": {}, "foreign": [], "edited": False}
        self.holds.mkdir(exist_ok=True)
        root, python = str(Path(doubles.__file__).parents[2]), str(Path(sys.executable).resolve())
        for name in ("agent", "codex", "gate"):
            text = _LAUNCHER.format(python=python, root=root, name=name)
            (place / name).replace_bytes(text.encode(), 0o755)
        self._write()

    @property
    def holds(self) -> BoxPath:
        """Where the doubles are told to wait."""
        return self.place / "holds"

    @property
    def record(self) -> BoxPath:
        """What the doubles wrote down."""
        return self.place / "record.jsonl"

    def gate_says(self, gate: str, verdict: str) -> None:
        """From now on a gate says this."""
        self._script["gates"][gate] = verdict
        self._write()

    @property
    def knobs(self) -> Mapping[str, str]:
        """Settings of the target that were changed."""
        knobs: dict[str, str] = self._notes["knobs"]
        return knobs

    def configure(self, name: str, value: str) -> None:
        """From now on a setting is this."""
        self._notes["knobs"][name] = value
        self._write()

    @property
    def foreign(self) -> frozenset[str]:
        """Commits that somebody else has brought to the branch."""
        return frozenset(self._notes["foreign"])

    def note_foreign(self, commit: str) -> None:
        """Somebody else has just moved the branch."""
        self._notes["foreign"].append(commit)
        self._write()

    @property
    def edited(self) -> bool:
        """Has the user an edit that is not committed?"""
        return bool(self._notes["edited"])

    def note_edit(self, *, is_there: bool) -> None:
        """The user has edited a file, or has taken that back."""
        self._notes["edited"] = is_there
        self._write()

    def _write(self) -> None:
        for name, value in (("script.json", self._script), ("notes.json", self._notes)):
            (self.place / name).replace_bytes(json.dumps(value).encode())

    def _read(self, name: str) -> dict[str, Any] | None:
        """What an earlier box has left."""
        path = self.place / name
        if not path.exists():
            return None
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def records(self) -> list[dict[str, Any]]:
        """All that was written down; the line of a double that was killed while it wrote is left out."""
        if not self.record.exists():
            return []
        found = []
        for line in lines(self.record.read_text(errors="replace")):
            try:
                found.append(parse(line))
            except ValueError:
                continue
        return found

    def agents_of(self, task: str) -> set[int]:
        """The processes of the agents that were started for a task."""
        return {
            one["pid"] for one in self.records() if one["what"] == "agent" and one["of"] == task
        }
