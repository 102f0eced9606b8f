"""Which processes of a box are the target's daemon: known by what was started, not by a name.

Insight: a program may be renamed, linked or wrapped, and then no pattern of command lines fits. But every
process that descends from a command of the target carries a mark in its environment, and the daemon is
what is left of `up` when `up` has ended: outside of tmux, child of nobody else. Its arguments are
remembered, so that a second daemon, or one that comes back, is recognised as well; a git that outlives a
killed daemon is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from mutiny.box.agent import TARGET_MARK
from mutiny.box.results import ProcessInfo

MARK = {TARGET_MARK.decode(): "1"}
"""In the environment of every command of the target."""

_HELPERS = frozenset({"git", "tmux", "ssh-agent", "gpg-agent"})
"""Programs that leave processes of their own behind."""

Identity = tuple[int, int]


class Daemons:
    """What is known of one target's daemon."""

    def __init__(self, hint: str = "") -> None:
        self._hint = re.compile(hint) if hint else None
        self._identities: set[Identity] = set()
        self._arguments: set[tuple[str, ...]] = set()

    def started(self, identity: Identity) -> None:
        """Mutiny itself has started the daemon, in the foreground of a command that stays."""
        self._identities.add(identity)

    def learn(self, processes: Sequence[ProcessInfo]) -> None:
        """`up` has just ended well: what is left of it is the daemon."""
        for process in _left_behind(processes):
            self._identities.add((process.pid, process.start))
            self._arguments.add(process.argv)

    def among(self, processes: Sequence[ProcessInfo]) -> tuple[ProcessInfo, ...]:
        """The daemons that run; a child that a daemon has just forked bears its arguments for a moment,
        and is none.
        """
        left = {process.pid for process in _left_behind(processes)}
        found = [
            process
            for process in processes
            if process.state != "Z"
            and (
                (process.pid, process.start) in self._identities
                or (process.pid in left and process.argv in self._arguments)
                or (self._hint is not None and self._hint.search(" ".join(process.argv)))
            )
        ]
        pids = {process.pid for process in found}
        tops = [process for process in found if process.parent_pid not in pids]
        return tuple(self._named(top, found) or _behind_script(top, processes) for top in tops)

    def _named(self, top: ProcessInfo, found: Sequence[ProcessInfo]) -> ProcessInfo | None:
        """What the target's file names, directly below what was started: a bridge is not the server."""
        if self._hint is None or self._hint.search(" ".join(top.argv)):
            return None
        return next((one for one in found if one.parent_pid == top.pid), None)


def _left_behind(processes: Sequence[ProcessInfo]) -> Iterable[ProcessInfo]:
    """What commands of the target have left running, without tmux and what runs in it."""
    by_pid = {process.pid: process for process in processes if process.state != "Z"}
    for process in by_pid.values():
        parent = by_pid.get(process.parent_pid)
        if process.of_target and not process.in_pane and not _is_helper(process):
            orphan = parent is None or not (parent.of_target or parent.asked_for)
            if orphan and not process.asked_for:
                yield process


def _behind_script(process: ProcessInfo, processes: Sequence[ProcessInfo]) -> ProcessInfo:
    """The program to which a script has handed on its own words, and for which it waits."""
    words = process.argv[2:]  # behind the interpreter and the script
    for one in processes:
        child = one.parent_pid == process.pid and one.state != "Z"
        if words and child and one.argv != process.argv and one.argv[-len(words) :] == words:
            return _behind_script(one, processes)
    return process


def _is_helper(process: ProcessInfo) -> bool:
    return process.name.startswith("tmux") or (
        bool(process.argv) and PurePosixPath(process.argv[0]).name in _HELPERS
    )
