"""Keeping the box's files before every call of a traced command, so that one pass gives every crash
state.

Each state is a complete box directory in which a new box can go on: the files as they were
(`files`), or as a power loss would have left them (`synced`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mutiny.syscalls import policies
from mutiny.syscalls.calls import Call


class Keeper(Protocol):
    """Keeps one state before each call."""

    def policy(self) -> policies.Policy: ...

    def finish(self, calls: int) -> None: ...


def state_name(index: int) -> str:
    """The directory of the state before call `index`."""
    return f"{index:04d}"


class FileKeeper:
    """Copies the box as it is. Unchanged files are linked from the state before: a state is never
    written to by the target that made it, and whoever goes on from one makes it its own first
    (`own`).
    """

    def __init__(self, box: Path, states: Path) -> None:
        self._box = box
        self._states = states
        self._previous: Path | None = None
        states.mkdir(parents=True, exist_ok=True)

    def policy(self) -> policies.Policy:
        return policies.BeforeEach(self._keep)

    def _keep(self, call: Call) -> None:
        self._copy(self._states / state_name(call.index))

    def finish(self, calls: int) -> None:
        self._copy(self._states / state_name(calls))

    def _copy(self, destination: Path) -> None:
        mirror(self._box, destination, self._previous)
        self._previous = destination


def mirror(source: Path, destination: Path, previous: Path | None) -> None:
    """Copy a tree; a file that is the same as in `previous` (size, time, inode kept aside) is
    hard-linked.
    """
    destination.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in entries:
            place = destination / entry.name
            old = previous / entry.name if previous is not None else None
            if entry.is_symlink():
                place.symlink_to(os.readlink(entry.path))
            elif entry.is_dir():
                mirror(Path(entry.path), place, old if old is not None and old.is_dir() else None)
            elif entry.is_file():
                _copy_file(Path(entry.path), place, old)
    shutil.copymode(source, destination)


def _copy_file(source: Path, place: Path, old: Path | None) -> None:
    if old is not None:
        try:
            known, now = old.lstat(), source.stat()
            if (known.st_size, known.st_mtime_ns) == (now.st_size, now.st_mtime_ns):
                os.link(old, place)
                return
        except FileNotFoundError:
            pass
    shutil.copy2(source, place)


def own(state: Path, destination: Path) -> None:
    """A copy of a state that shares no file with any other."""
    shutil.copytree(state, destination, symlinks=True)


def keeper_of(keep: str, box: Path, states: Path, roots: Sequence[Path]) -> Keeper | None:
    """The keeper that a trace asks for."""
    if keep == "files":
        return FileKeeper(box, states)
    if keep == "synced":
        from mutiny.targets.durable import SyncedKeeper

        return SyncedKeeper(box, states, roots)
    return None
