"""A session that dies just when it has told of something: it stands still at every look."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mutiny.contracts.session import operations as op
from mutiny.system.files import BoxPath
from mutiny.targets.session.tails import Tail
from mutiny.targets.session.troubles import _told

STARTED = {"type": "task.start", "task": "a"}
DONE = {"type": "task.done", "task": "a"}
STOPPED = {"type": "session.stop"}


class _Session:
    """Writes one line each time that it is let go on, and knows whether it stands still."""

    rate = 1.0

    def __init__(self, place: Path, *later: dict[str, str]) -> None:
        self._log, self._later, self.still = place / "events.jsonl", list(later), False
        self._log.write_text("")
        self._write(DONE)  # of an earlier task
        tail = Tail(BoxPath(place, "events.jsonl"), ("type",))
        files = SimpleNamespace(events=tail)
        self.observer = SimpleNamespace(names=lambda: ("s1",), files=lambda _name: files)

    def _write(self, row: dict[str, str]) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def limit(self, seconds: float) -> float:
        return seconds

    def signalled(self, views: Any, number: signal.Signals) -> int:
        self.still = number is signal.SIGSTOP
        if not self.still and self._later:
            self._write(self._later.pop(0))
        return 1


def test_it_stands_still_when_it_has_told_of_the_next_one(tmp_path: Path) -> None:
    session = _Session(tmp_path, STARTED, DONE, STARTED)
    assert _told(session, "task.done", ())
    assert session.still
    assert session._log.read_text().count("task.start") == 1, "it goes on behind what it told"


def test_a_session_at_its_end_goes_on_and_is_waited_for_no_longer(tmp_path: Path) -> None:
    session = _Session(tmp_path, STARTED, STOPPED)
    assert not _told(session, "task.done", ())
    assert not session.still


def test_only_what_is_so_from_now_on_is_such_a_moment() -> None:
    with pytest.raises(ValueError, match="told"):
        op.SystemCrash(told="metrics")
