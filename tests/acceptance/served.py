"""The real `mutiny serve` as a process, and what it says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutiny_command import COMMAND

LIMIT_S = 240.0


@dataclass(frozen=True)
class Served:
    """A server that listens."""

    address: str
    process: subprocess.Popen[str]

    @property
    def base(self) -> str:
        """The address without its token."""
        return self.address.partition("/?")[0]

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])


@contextmanager
def serving(root: Path, port: int = 0) -> Iterator[Served]:
    """A server on the runs of a folder, ended as a user ends it."""
    process = subprocess.Popen(
        [COMMAND, "serve", "--no-open", "--port", str(port), "--runs", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.match(r"Mutiny is at (http://127\.0\.0\.1:\d+/\?token=\S+) ", said)
        assert found is not None, said + process.stdout.read()
        yield Served(found[1], process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            rest, _ = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert (process.returncode, rest) == (0, "")
