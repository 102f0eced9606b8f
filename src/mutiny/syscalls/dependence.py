"""When the order of two operations matters, and when two orders are the same.

Insight: operations of two commands on different files can be swapped without anybody noticing, so a switch
just before an operation that nobody else cares about is the same as a switch just before the next one that
somebody does. And two runs in which all conflicting operations came in the same order are one run.
Both together turn hundreds of thousands of schedules into a few dozen.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from enum import Enum

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call


class Touch(Enum):
    """How an operation touches something."""

    READ = "read"
    WRITE = "write"
    NAME = "name"
    """It changes a name in a directory: that matters to whatever lists it, not to other names."""


_CHANGES_NAMES = frozenset(
    {
        *("mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "bind", "link", "linkat"),
        *("unlink", "unlinkat", "rmdir"),
    }
)


def touched(call: Call | None) -> dict[str, Touch]:
    """What an operation touches: files, directories as lists of names (`dir:`), locks (`lock:`)."""
    if call is None or call.name in tables.SYNCS:
        return {}  # the start of a command; syncing changes nothing that a process could see
    if call.name in tables.LOCKS:
        return {f"lock:{call.files[0]}": Touch.WRITE} if call.files else {}
    if call.name in tables.OPENS:
        return _opened(call)
    found: dict[str, Touch] = dict.fromkeys(call.files, Touch.WRITE)
    if call.name in _CHANGES_NAMES or call.name in tables.RENAMES:
        found.update(dict.fromkeys((_listing(file) for file in call.files), Touch.NAME))
    return found


def _opened(call: Call) -> dict[str, Touch]:
    file = call.files[0]
    if call.name == "creat" or call.flags & tables.O_CREAT:
        return {file: Touch.WRITE, _listing(file): Touch.NAME}
    if call.flags & os.O_DIRECTORY:
        return {f"dir:{file}": Touch.READ}
    return {file: Touch.WRITE if call.flags & tables.O_TRUNC else Touch.READ}


def _listing(file: str) -> str:
    return f"dir:{os.path.dirname(file)}"  # noqa: PTH120


def conflict(one: dict[str, Touch], other: dict[str, Touch]) -> bool:
    """Does the order of two operations matter?"""
    return any(name in other and _matters(touch, other[name]) for name, touch in one.items())


def _matters(one: Touch, other: Touch) -> bool:
    if Touch.WRITE in (one, other):
        return True
    return {one, other} == {Touch.READ, Touch.NAME}


def everything(calls: Iterable[Call | None]) -> dict[str, Touch]:
    """What some operations touch together, each thing in the strongest way."""
    order = (Touch.READ, Touch.NAME, Touch.WRITE)
    found: dict[str, Touch] = {}
    for call in calls:
        for name, touch in touched(call).items():
            found[name] = max(found.get(name, Touch.READ), touch, key=order.index)
    return found


def class_of(steps: Sequence[tuple[int, Call | None]]) -> str:
    """Equal for runs in which all conflicting operations came in the same order.

    `steps`: who moved, and over which operation.
    """
    counts: dict[int, int] = {}
    last: dict[str, tuple[int, int]] = {}
    since: dict[str, list[tuple[int, int]]] = {}
    total = hashlib.blake2b(digest_size=12)
    edges: set[str] = set()
    for who, call in steps:
        number = counts[who] = counts.get(who, -1) + 1
        here = (who, number)
        for name, touch in touched(call).items():
            if touch is Touch.READ:
                edges.add(f"{last.get(name)}>{here}")
                since.setdefault(name, []).append(here)
                continue
            edges.update(f"{reader}>{here}" for reader in since.pop(name, ()))
            if touch is Touch.WRITE:
                edges.add(f"{last.get(name)}>{here}")
            last[name] = here
    for edge in sorted(edges):
        total.update(edge.encode())
    return total.hexdigest()
