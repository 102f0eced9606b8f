"""What a person sees at a narrow terminal: no mode draws a line that its screen cannot hold."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from mutiny.report.screen import cells
from mutiny_command import COMMAND, LIMIT_S
from sampling import sampled

pytestmark = pytest.mark.deep

COLUMNS = 60
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def seen(directory: Path, *arguments: str, columns: int = COLUMNS) -> tuple[int, str]:
    """Exit code and everything that a command wrote to its terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [COMMAND, *arguments],
        cwd=directory,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    written = bytearray()
    deadline = time.monotonic() + LIMIT_S
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 1.0)[0]:
                continue
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux: nobody has the other end open any more
                break
            if not part:
                break
            written += part
    finally:
        os.close(master)
        if process.poll() is None:
            try:
                process.wait(max(deadline - time.monotonic(), 1.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
    return process.returncode, written.decode()


def redrawn(written: str) -> list[str]:
    """All lines that were drawn in order to be drawn over."""
    lines = ESCAPES.sub("", written).replace("\r\n", "\n").split("\n")
    return [piece for line in lines for piece in line.split("\r")[:-1] if piece]


MODES = {
    "explore": ("explore", "--seed", "3", "--seeds", "2", "--ops", "4", "--no-coverage"),
    "race": ("race", "--kind", "claims", "--schedules", "2", "--rounds", "0"),
    "load": ("load", "--target", "longboat-crew", "--shape", "dag", "--graph", "60"),
    "sweep": ("sweep", "crash", "--scenario", "basic_lifecycle", "--at", "Add", "--points", "2"),
    "run": ("run", "--scenario", "basic_lifecycle"),
    "many": ("run", "--scenario", "basic_lifecycle", "--scenario", "rejection_cycle"),
    "experiment": ("experiment", "run", "killed-agent", "--no-minimise"),
}


@pytest.mark.parametrize("mode", sampled(MODES, every=5))
def test_no_line_is_wider_than_the_screen(mode: str, tmp_path: Path) -> None:
    code, written = seen(tmp_path, *MODES[mode])
    assert code == 0, written
    drawn = redrawn(written)
    assert drawn, "nothing was drawn while it ran"
    assert [line for line in drawn if cells(line) >= COLUMNS] == []
    if mode == "run":
        last = ESCAPES.sub("", written).strip().splitlines()[-1]
        assert re.fullmatch(r"PASSED: basic_lifecycle, 11 operations in \d+\.\ds", last), last


@pytest.mark.slow
def test_minimising_fits_too(tmp_path: Path) -> None:
    plant = ("--plant", "sha-dropped-on-daemon-death", "--scenario", "review_survives_daemon")
    code, written = seen(tmp_path, "run", *plant, "--no-minimise")
    assert code == 1, written
    last = ESCAPES.sub("", written).strip().splitlines()[-1]
    ending = r"BUG FOUND: review_survives_daemon: workers.review_has_commit at step 9 in \d+\.\ds"
    assert re.fullmatch(ending, last), last
    code, written = seen(tmp_path, "minimise", "chaos_runs/latest", "--trials", "2", columns=40)
    assert code == 0, written
    drawn = [line for line in redrawn(written) if line.startswith("Minimising")]
    assert drawn
    assert [line for line in drawn if cells(line) >= 40] == []
