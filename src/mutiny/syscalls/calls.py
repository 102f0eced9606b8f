"""A call as it is recorded, and when two records mean the same.

Insight: two runs of one command never agree in pids, temporary names and hashes, and always agree
in the rest. For people the unstable parts are replaced by patterns. For machines there is something
better than patterns: two sequences are the same if the calls agree and the names of one can be
renamed, one to one, into the names of the other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from mutiny.syscalls import tables

CONTINUED = "continued"


class Counted(Enum):
    """Which calls below the roots are numbered, recorded and decided about."""

    CHANGES = "changes"
    """Those that change files, or say when changes are durable."""
    READS = "reads"
    """Opens that only read, by the target itself."""
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Call:
    """One trapped call below the chosen roots, at its place in the total order."""

    index: int
    pid: int
    """The process as the host numbers it."""
    process: str
    """What runs, and the how-many-th of its kind: ``git commit#1``."""
    name: str
    paths: tuple[str, ...]
    """Relative to their root, with the unstable parts replaced."""
    files: tuple[str, ...]
    """The same as real host paths."""
    result: str = CONTINUED
    """What the policy made of it."""
    flags: int = 0
    """For opens: the flags. For renames: those of ``renameat2``. For ``unlinkat``: its flags."""
    length: int = 0
    """For writes: how many bytes (vectors: how many vectors); for truncations: the new length."""
    task: int = 0
    """The thread that called."""
    command: str = ""
    """The tag of the launched command that this process descends from."""

    def __str__(self) -> str:
        how = " (read)" if self.reads else ""
        return f"{self.index} {self.process} {self.name} {' -> '.join(self.paths)}{how}"

    @property
    def reads(self) -> bool:
        """Whether it opens a file only to read it."""
        return self.name in tables.OPENS and not self.flags & tables.CHANGING_OPEN_FLAGS

    @property
    def borrowed(self) -> bool:
        """Whether git or tmux made it: what they read differs from run to run, and is their own care."""
        return self.process.startswith(("git", "tmux"))

    @property
    def key(self) -> tuple[str, str, tuple[str, ...]]:
        """What is comparable between runs at once (see ``difference`` for the exact comparison)."""
        return (self.process, self.name, self.paths)


# --- names ----------------------------------------------------------------------------------------

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"(?<=objects/)[0-9a-f]{2}(?=/|$)"), "<xx>"),
    (re.compile(r"(?<![0-9a-zA-Z])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-zA-Z])"), "<hex>"),
    (re.compile(r"(?<![0-9a-zA-Z])[0-9a-f]{16,}(?![0-9a-zA-Z])"), "<hex>"),
    # mkstemp of C programs: six characters after a separator, in a name that says "temporary"
    (re.compile(r"((?:te?mp|lock)[\w.-]*[_.-])[A-Za-z0-9]{6}(?=$|/)"), r"\1<temp>"),
    # tempfile of Python: eight characters of its alphabet after "tmp"
    (re.compile(r"((?:^|/|[._-])tmp)[a-z0-9_]{8}(?=$|[./-])"), r"\1<temp>"),
    # the same after any other prefix: recognised when at least two digits or underscores are in it
    (
        re.compile(
            r"(?<=[A-Za-z._-])(?=(?:[a-z]*[0-9_]){2})(?=[0-9_]*[a-z])[a-z0-9_]{8}(?=$|/|\.(?:tmp|json))"
        ),
        "<temp>",
    ),
    (re.compile(r"(?<![0-9])[0-9]{4,}(?![0-9])"), "<n>"),
)


@lru_cache(maxsize=4096)
def normalise(path: str, own_numbers: frozenset[str] = frozenset()) -> str:
    """Replace what differs between runs: hashes, unique ids, temporary names, numbers of processes.

    ``own_numbers`` are the numbers of the calling process; they are replaced even when short.
    """
    for pattern, replacement in _PATTERNS:
        path = pattern.sub(replacement, path)
    if own_numbers:
        path = re.sub(
            r"(?<![0-9A-Za-z])[0-9]+(?![0-9A-Za-z])",
            lambda found: "<n>" if found.group() in own_numbers else found.group(),
            path,
        )
    return path


_INTERPRETERS = re.compile(r"^(python[0-9.]*|node|ruby|perl|bash|sh|dash|zsh)$")
_WORD = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*$")


def label_of(argv: Sequence[str]) -> str:
    """A short stable name of a process: the program and its command (``git commit``)."""
    if not argv or not argv[0]:
        return "?"
    program = os.path.basename(argv[0]).lstrip("-")  # noqa: PTH119
    if not _INTERPRETERS.match(program):
        command = next((word for word in argv[1:] if _WORD.match(word)), None)
        return f"{program} {command}" if command else program
    for place, word in enumerate(argv[1:], 1):
        if word.startswith("-") and word.endswith("c") and not word.startswith("--"):
            return f"{program} -c"
        if word == "-m" and place + 1 < len(argv):
            return f"{program} -m {argv[place + 1]}"
        if not word.startswith("-"):
            return f"{program} {os.path.basename(word)}"  # noqa: PTH119
    return program


# --- comparing ------------------------------------------------------------------------------------


def difference(left: Sequence[Call], right: Sequence[Call]) -> str | None:
    """Say where two sequences differ, None when they are the same up to a renaming of files.

    Real names may differ where their normalised forms agree or where the call makes the file; from
    then on each name must always stand for the same other one.
    """
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for one, other in zip(left, right, strict=False):
        text = f"call {one.index}: {one} / {other}"
        if (one.process, one.name, len(one.paths)) != (other.process, other.name, len(other.paths)):
            return text
        for place, (mine, yours) in enumerate(zip(one.files, other.files, strict=True)):
            if mine not in there and yours not in back:
                if one.paths[place] != other.paths[place] and not _makes(one, place):
                    return text
                there[mine], back[yours] = yours, mine
            if there.get(mine) != yours or back.get(yours) != mine:
                return text
    if len(left) != len(right):
        return f"{len(left)} calls / {len(right)} calls"
    return None


def _makes(call: Call, place: int) -> bool:
    """Whether a call may give a name to something new at this place."""
    if call.name in tables.OPENS:
        return call.name == "creat" or bool(call.flags & tables.O_CREAT)
    new_names = ("mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "bind")
    return call.name in new_names or place == 1
