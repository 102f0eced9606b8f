"""The files of a batch home: one lock, a state that is whole or old, and a log that ends in a whole line.

config.toml  plan.json  ledger.json  lock
runs/RUN/state.json  runs/RUN/events.jsonl  runs/RUN/tasks/TASK/attempt-N.log
runs/RUN/workspaces/TASK-N                runs/RUN/merge-B   where a batch is put together
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any

from longboat.batch import values
from longboat.batch.values import Run, StateUnreadable, check_name
from longboat.errors import Rejection
from longboat.planting import planted
from longboat.workers.store import replace_file, sync_directory

_DOOMED = ".deleted-"
"""A run whose files are being removed: nobody sees it any more, and it is gone as soon as possible."""


class Home:
    """Where the files of one batch home are."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def file(self, *names: str) -> str:
        """A path below the home."""
        return os.path.join(self.path, *names)

    def run(self, run_id: str, *names: str) -> str:
        """A path below a run's directory."""
        return self.file("runs", check_name(run_id, "run"), *names)

    # --- the lock -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self, timeout_s: float) -> Iterator[int]:
        """One command at a time changes anything. Git keeps it open: who outlives us still holds it."""
        descriptor = os.open(self.file("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            deadline = time.monotonic() + timeout_s
            while not _try_lock(descriptor, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise Rejection(
                        "Another longboat batch command is at work here; try again later"
                    )
                time.sleep(0.02)
            yield descriptor
        finally:
            os.close(descriptor)

    def somebody_works(self) -> bool:
        """Does a command hold the lock just now?"""
        try:
            descriptor = os.open(self.file("lock"), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    # --- runs ---------------------------------------------------------------------------------

    def run_ids(self) -> list[str]:
        """All runs that have a state, in the order of their ids."""
        try:
            names = os.listdir(self.file("runs"))
        except FileNotFoundError:
            return []
        found = [name for name in names if values.SAFE.match(name)]
        return sorted(
            (name for name in found if os.path.lexists(self.run(name, "state.json"))), key=_order
        )

    def next_run_id(self) -> str:
        """A name that no run has had as long as its files are there."""
        numbers = [
            int(name[1:]) for name in self.run_ids() if name[:1] == "r" and name[1:].isdigit()
        ]
        return f"r{max(numbers, default=0) + 1}"

    def load(self, run_id: str) -> Run:
        """The state of a run."""
        path = self.run(run_id, "state.json")
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except FileNotFoundError:
            raise Rejection(f"There is no run {run_id}") from None
        except (ValueError, UnicodeDecodeError) as error:
            raise StateUnreadable(f"{path} cannot be read: {error}") from None
        return values.from_json(data, path)

    def save(self, run: Run) -> None:
        """Whole and on the disk, or as it was."""
        data = json.dumps(values.to_json(run), indent=1).encode()
        path = self.run(run.id, "state.json")
        if planted("batch-state-in-place"):
            with open(path, "wb") as file:
                file.write(data)
            return
        if planted("state-removed-first") and os.path.exists(path):
            os.unlink(path)
        replace_file(path, data, sync=not planted("batch-state-unsynced"))

    def make_run(self, run_id: str) -> None:
        """The directory of a new run."""
        make_directory(self.file("runs"))
        make_directory(self.run(run_id))

    def doom(self, run_id: str) -> None:
        """Take a run away: in one step for everybody who looks, then file by file."""
        os.rename(self.run(run_id), self.file("runs", _DOOMED + run_id))
        sync_directory(self.file("runs"))

    def doomed(self) -> list[str]:
        """Runs whose files are still being removed."""
        try:
            names = os.listdir(self.file("runs"))
        except FileNotFoundError:
            return []
        return [name.removeprefix(_DOOMED) for name in names if name.startswith(_DOOMED)]

    def bury(self, run_id: str) -> None:
        """Remove what is left of a run."""
        remove_tree(self.file("runs", _DOOMED + run_id))

    # --- plan and ledger ------------------------------------------------------------------------

    def read_json(self, name: str) -> Any:
        """A file of the home; None when it is not there."""
        try:
            with open(self.file(name), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None
        except (ValueError, UnicodeDecodeError) as error:
            raise StateUnreadable(f"{self.file(name)} cannot be read: {error}") from None

    def write_json(self, name: str, data: Any) -> None:
        """The same value gives the same bytes."""
        text = json.dumps(data, indent=1, sort_keys=True) + "\n"
        replace_file(self.file(name), text.encode())

    def note_merged(self, run: Run, commits: dict[str, str]) -> None:
        """Write down for good what a run has merged; saying it twice changes nothing."""
        ledger = self.read_json("ledger.json") or {}
        known = {f"{run.id}/{task}": commit for task, commit in commits.items()}
        if any(ledger.get(key) != commit for key, commit in known.items()):
            self.write_json("ledger.json", {**ledger, **known})


class Events:
    """`events.jsonl` of a run: whole lines, each on the disk before anything follows from it."""

    def __init__(self, home: Home, run_id: str) -> None:
        self._run_id = run_id
        path = home.run(run_id, "events.jsonl")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._end = whole_lines(self._descriptor)
        self._turn = threading.Lock()

    def say(self, kind: str, task: str = "", **more: object) -> None:
        """One event; what could not be written whole is taken back."""
        line = {"ts": round(time.time(), 3), "type": kind, "run_id": self._run_id}
        if task and not planted("event-without-task"):
            line["task_id"] = task
        data = json.dumps({**line, **more}).encode() + b"\n"
        with self._turn:
            self._append(data)

    def _append(self, data: bytes) -> None:
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._descriptor, data[written:], self._end + written)
            os.fsync(self._descriptor)
        except OSError:
            os.ftruncate(self._descriptor, self._end)
            raise
        self._end += len(data)

    def close(self) -> None:
        """Nothing more will be said."""
        os.close(self._descriptor)


def read_events(home: Home, run_id: str) -> list[dict[str, Any]]:
    """All whole lines of a run's log."""
    home.load(run_id)
    found = []
    try:
        with open(home.run(run_id, "events.jsonl"), "rb") as file:
            text = file.read()
    except FileNotFoundError:
        return []
    for line in text[: text.rfind(b"\n") + 1].splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # a line of an event that was never said to the end
    return found


def whole_lines(descriptor: int) -> int:
    """Cut off the line that a killed writer left; where the next one begins."""
    size = os.fstat(descriptor).st_size
    end = size
    while end > 0:
        begin = max(0, end - 4096)
        piece = os.pread(descriptor, end - begin, begin)
        newline = piece.rfind(b"\n")
        if newline >= 0:
            end = begin + newline + 1
            break
        end = begin
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def make_directory(path: str) -> None:
    """A directory that survives a power cut; one that is there already is fine."""
    try:
        os.mkdir(path, 0o755)
    except FileExistsError:
        return
    sync_directory(os.path.dirname(path))


def remove_tree(path: str) -> None:
    """Remove a directory of ours with all that is in it; a link is removed, never followed."""
    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    elif os.path.lexists(path):
        shutil.rmtree(path, onerror=_make_writable)


def _make_writable(function: Any, path: str, error: Any) -> None:
    """Git makes its objects read-only, and an agent may have made anything so."""
    parent = os.path.dirname(path)
    os.chmod(parent, 0o700)
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _try_lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _order(name: str) -> tuple[int, str]:
    counted = name[1:].isdigit() and not planted("newest-by-letters")
    return (int(name[1:]) if counted else 0, name)
