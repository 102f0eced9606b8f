"""What the doubles of a batch read and write, lean by intention: they start thousands of times.

script.json  what each gate says, and the secret that may stand nowhere
record.jsonl  what they did, a line each
holds/WORD  whoever comes there waits as long as the file is there, and says so in holds/WORD.reached;
            with a word in it only the first one waits
"""

from __future__ import annotations

import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_WAIT_S = 60.0
"""Nobody waits for ever."""
LONGEST_MEETING_S = 10.0
"""Who should be met may have been given up, or may never begin."""


class Desk:
    """The directory in which the doubles find their script."""

    def __init__(self, path: str) -> None:
        self.path = path

    def script(self) -> dict[str, Any]:
        """What is to be done."""
        try:
            with open(os.path.join(self.path, "script.json"), encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
        except FileNotFoundError:
            return {}
        return found

    def write(self, what: str, subject: str, **more: object) -> int:
        """One line of the record; returns how many of its kind and subject there are now."""
        path = os.path.join(self.path, "record.jsonl")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            mark = f'"what": "{what}", "of": {json.dumps(subject)}'
            with open(path, encoding="utf-8") as file:
                number = sum(mark in line for line in file) + 1
            fields = json.dumps({"number": number, "at": time.monotonic(), **more})[1:]
            os.write(descriptor, f"{{{mark}, {fields}\n".encode())
        finally:
            os.close(descriptor)
        return number

    def meet(self, subject: str, count: int) -> None:
        """Wait until so many have come here, so that all of them go on in the same moment."""
        self.write("meets", subject)
        until = time.monotonic() + LONGEST_MEETING_S
        while self._met() < count and time.monotonic() < until:
            time.sleep(0.005)

    def _met(self) -> int:
        with open(os.path.join(self.path, "record.jsonl"), encoding="utf-8") as file:
            return sum('"what": "meets"' in line for line in file)

    def hold(self, word: str) -> None:
        """Wait here as long as somebody wants it."""
        place = os.path.join(self.path, "holds", word)
        try:
            only_one = os.path.getsize(place) > 0
        except FileNotFoundError:
            return
        if only_one and os.path.exists(place + ".reached"):
            return
        with open(place + ".reached", "w", encoding="utf-8"):
            pass
        until = time.monotonic() + LONGEST_WAIT_S
        while os.path.exists(place) and time.monotonic() < until:
            time.sleep(0.01)
