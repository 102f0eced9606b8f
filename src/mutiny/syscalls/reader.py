"""From a trapped call to a ``Call``: which files, which process, is it below a root at all.

Insight: most trapped calls are not about the state directories (pipes, logs, caches). The cheap
question, the path, comes first; who called is asked only for calls that count.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call, Counted, normalise
from mutiny.syscalls.identity import Identities
from mutiny.syscalls.listeners import Trapped
from mutiny.syscalls.memory import read_memory, real
from mutiny.syscalls.policies import is_below

_OPEN_HOW_FLAGS = struct.Struct("=Q")
_CREAT_FLAGS = tables.O_WRONLY | tables.O_CREAT | tables.O_TRUNC
_LINKING = frozenset({"symlink", "symlinkat"})
_FLAGS_ARGUMENT = {"unlinkat": 2, "renameat2": 4, "fallocate": 1}


class CallReader:
    """Understands trapped calls with respect to some roots."""

    def __init__(self, roots: Sequence[Path], counted: Counted = Counted.CHANGES) -> None:
        self.roots: tuple[str, ...] = tuple(real(root) for root in roots)
        self.mapped: set[str] = set()
        self._counted = counted
        self._no_follow = tables.this_machine().no_follow
        self._identities = Identities()

    def forget(self) -> None:
        """Start to number processes anew."""
        self._identities = Identities()

    def read(self, trapped: Trapped, index: int) -> Call | None:
        """Return the call if it counts, else None. Raises Gone when the caller has ended."""
        kind, task, arguments = trapped.kind, trapped.task, trapped.arguments
        if not self.roots:
            return None
        if kind.group is tables.Group.EXEC:
            self._identities.executes(task)
            return None
        flags = self._flags(trapped)
        reads = kind.name in tables.OPENS and not flags & tables.CHANGING_OPEN_FLAGS
        if reads and self._counted is Counted.CHANGES:
            return None  # `openat2`: the kernel could not look behind the pointer
        sight = trapped.listener.sight
        files: list[str] = []
        for argument in kind.files:
            no_follow = bool(flags & self._no_follow) or _exclusive(flags)
            found = sight.of_argument(task, argument, arguments, no_follow)
            if found is not None:
                files.append(found)
        if kind.name in _LINKING or (kind.name in tables.RENAMES and not _is_plain(files[0])):
            sight.names_changed()
        if not reads and self._counted is Counted.READS:
            return None
        roots = [self._root_of(file) for file in files]
        if not any(roots):
            return None
        if kind.group is tables.Group.BLIND_SPOT:
            self.mapped.update(files)
            return None
        who = self._identities.of(task)
        call = Call(
            index=index,
            pid=who.pid,
            process=who.label,
            name=kind.name,
            paths=tuple(
                normalise(file[len(root) + 1 :] or ".", who.numbers) if root else normalise(file)
                for file, root in zip(files, roots, strict=True)
            ),
            files=tuple(files),
            flags=flags,
            length=_length(trapped),
            task=task,
            command=trapped.listener.tag,
        )
        return None if self._counted is Counted.READS and call.borrowed else call

    def _root_of(self, file: str) -> str | None:
        return next((root for root in self.roots if is_below(file, root)), None)

    @staticmethod
    def _flags(trapped: Trapped) -> int:
        kind, arguments = trapped.kind, trapped.arguments
        if kind.open_flags is not None:
            return arguments[kind.open_flags] & 0xFFFFFFFF
        if kind.name == "creat":
            return _CREAT_FLAGS
        if kind.name == "openat2":
            data = read_memory(trapped.task, arguments[2], _OPEN_HOW_FLAGS.size)
            return int(_OPEN_HOW_FLAGS.unpack(data)[0]) if len(data) == 8 else 0
        place = _FLAGS_ARGUMENT.get(kind.name)
        return arguments[place] & 0xFFFFFFFF if place is not None else 0


def _is_plain(file: str) -> bool:
    """Whether moving this cannot change where any other path leads to."""
    try:
        return stat.S_ISREG(os.lstat(file).st_mode)
    except OSError:
        return False


def _length(trapped: Trapped) -> int:
    if trapped.kind.data is not None:
        return trapped.arguments[trapped.kind.data[1]]
    return trapped.arguments[1] if trapped.kind.name in ("truncate", "ftruncate") else 0


def _exclusive(flags: int) -> bool:
    """O_CREAT with O_EXCL never follows a link in the last component."""
    both = tables.O_CREAT | tables.O_EXCL
    return flags & both == both
