"""The most stubborn load a box may meet, to be run inside one: ``box_payload.py all|hold NAME``.

Insight: every process of it holds a shared lock on one file for as long as it lives. Whoever gets
that lock exclusively from outside has the kernel's word that all of them are dead; no process list
can be as sure.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

BEAT_S = 0.002
TEMPORARY = Path(os.environ["TMPDIR"])


def beat(name: str) -> None:
    with open(TEMPORARY / f"beat-{name}", "ab", buffering=0) as file:
        file.write(b".")


def hold_lock() -> None:
    descriptor = os.open(TEMPORARY / "alive.lock", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(descriptor, True)
    fcntl.flock(descriptor, fcntl.LOCK_SH)


def hold(name: str) -> None:
    """Ignore every polite signal and beat for ever."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    hold_lock()
    while True:
        beat(name)
        time.sleep(BEAT_S)


def daemonise(name: str) -> None:
    """Fork twice with a new session: no parent, no group and no terminal to be found by."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            hold(name)
        os._exit(0)
    os.wait()


def hop() -> None:
    """A process that is never there: it forks its successor and ends, every two milliseconds."""
    if os.fork() == 0:
        os.setsid()
        hold_lock()
        while True:
            beat("hopper")
            time.sleep(BEAT_S)
            if os.fork() != 0:
                os._exit(0)


def start_all() -> None:
    for name in ("daemon-1", "daemon-2"):
        daemonise(name)
    hop()
    command = f"exec {sys.executable} -IS {os.path.abspath(__file__)} hold pane"  # noqa: PTH100
    subprocess.run(["tmux", "new-session", "-d", "-s", "same-name", command], check=True)
    names = ["daemon-1", "daemon-2", "hopper", "pane"]
    deadline = time.monotonic() + 20
    while not all((TEMPORARY / f"beat-{name}").exists() for name in names):
        if time.monotonic() > deadline:
            sys.exit(f"not all of {names} came to life")
        time.sleep(BEAT_S)


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(sys.argv[2])
    start_all()
    print("ready")
