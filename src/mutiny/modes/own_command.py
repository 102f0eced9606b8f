"""Mutiny's own commands as processes: one code path for whoever lets Mutiny work and only reads its answer.

Each is `mutiny VERB ... --json` in a process of its own, whose output goes into files. It dies with whoever
started it: the kernel sends it SIGTERM, and it takes its boxes with it.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutiny import documents
from mutiny.engine.rundir import storing
from mutiny.stopping import HARD_LIMIT_S

MOST_SAID = 2000
"""So much of the end of what was said on stderr is worth a look."""
GRACE_S = HARD_LIMIT_S + 5.0
"""Whatever happens, a command that was asked to stop is gone then by itself."""


@dataclass(frozen=True)
class Answer:
    """How a command ended: negative exit codes are signals."""

    exit_code: int
    document: Mapping[str, Any] | None
    """What it printed; None when it did not come to that."""
    said: str
    """The end of what it said on stderr."""

    @property
    def problem(self) -> str | None:
        """Why there is no result, in one line; None when there is one."""
        if self.document is None:
            last = self.said.strip().splitlines()[-1:] or [f"exit code {self.exit_code}"]
            return f"the command gave no answer: {last[0]}"
        error = self.document.get("error")
        return str(error["message"]) if isinstance(error, dict) else None

    @property
    def broken_off(self) -> str | None:
        """Why it did not come to its end although nothing was wrong with it; None when it did."""
        if self.exit_code < 0:
            return f"its process was ended by signal {-self.exit_code}"
        error = (self.document or {}).get("error")
        is_stopped = isinstance(error, dict) and error.get("kind") == "interrupted"
        return str(error["message"]) if is_stopped else None  # type: ignore[index]


class OwnCommand:
    """A command under way. The thread that starts it must outlast it: with that thread it would die."""

    def __init__(self, words: Sequence[str], folder: Path, scratch: Path) -> None:
        """`folder`: where it works; `scratch`: a directory for what it prints."""
        self._output, self._errors = scratch / "output.json", scratch / "stderr.txt"
        with storing(scratch), self._output.open("wb") as output, self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*dying_with_us(), *own_program(), *words, "--json"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                start_new_session=True,  # a Ctrl-C on the terminal is for us; we pass it on
            )

    @property
    def pid(self) -> int:
        """Its number, as run directories name it."""
        return self._process.pid

    def is_over(self) -> bool:
        """Has it ended?"""
        return self._process.poll() is not None

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within this time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ask_to_stop(self) -> None:
        """Let it come to its end: the box goes, what was written stays."""
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        """Ask, wait, and end it in any case."""
        self.ask_to_stop()
        if not self.wait(GRACE_S):
            self._process.kill()
            self._process.wait()

    def answer(self) -> Answer:
        """What it printed, once it is over."""
        code = self._process.wait()
        said = documents.read_bytes(self._errors, "output").decode(errors="replace")
        return Answer(code, _document(self._output), said[-MOST_SAID:])


def own_program() -> list[str]:
    """This Mutiny, whatever lies in the directory in which it is started (-P)."""
    return [sys.executable, "-P", "-m", "mutiny"]


def dying_with_us() -> list[str]:
    """What lets a process die with the thread that started it, where the machine offers it."""
    found = shutil.which("setpriv")
    return [found, "--pdeathsig", "TERM"] if found else []


def _document(path: Path) -> Mapping[str, Any] | None:
    try:
        value = json.loads(documents.read_bytes(path, "output"))
    except ValueError:  # it was ended before it had said everything
        return None
    return value if isinstance(value, dict) else None
