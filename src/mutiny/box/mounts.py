"""The file system that a bubblewrap box sees, as arguments for ``bwrap``.

Insight: do not take the host's root and try to forbid writing; start from an empty root and put in,
read-only, what is needed. What nobody mounted cannot be written by mistake. The box itself is
always at ``/box``: the same path in every run (recorded paths can be compared) and a short one
(socket names have about 100 bytes).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

INSIDE = "/box"
"""What a box's directory is called inside."""
NAMED = "/boxes"
"""Where it is found a second time when it was given a name of its own."""
SOURCE_ROOT = Path(__file__).resolve().parents[2]
"""The directory that holds the ``mutiny`` package: the agent is imported from it."""

_REPLACED = ("/proc", "/dev", "/tmp", "/run", INSIDE, NAMED)
_NOT_NEEDED = ("/lost+found",)
_TEMPORARY = ("/tmp", "/var/tmp")


def is_below(path: Path, ancestor: Path) -> bool:
    """Say whether ``path`` is ``ancestor`` or lies below it."""
    return f"{path}/".startswith(f"{str(ancestor).rstrip('/')}/")


def mount_arguments(
    directory: Path,
    *,
    inside: str = INSIDE,
    read_only: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
) -> list[str]:
    """Return the ``bwrap`` arguments for the file system of a box that lives in ``directory``.

    ``inside``: another name for it in there, beside the usual one.

    ``read_only``: paths that must stay visible, even below a directory that is hidden. ``hidden``:
    directories that become empty. The parent of the box is always hidden, because other boxes may
    be its neighbours, and so are the homes of the users: a read-only mount does not stop anybody from
    connecting to a socket, and keys and passwords are nobody's business in there.
    """
    covered = _outermost([directory.parent, *_homes(), *(path.resolve() for path in hidden)])
    arguments = [*_host_root(), *_kernel_file_systems()]
    for place in _TEMPORARY:
        if Path(place).is_dir() and not Path(place).is_symlink():
            arguments += ["--bind", str(directory / "tmp"), place]
    replaced = [Path(place) for place in (*_REPLACED, *_TEMPORARY)]
    # What lies below a directory that is replaced anyway is hidden with it and is not there to be
    # covered.
    covered = [path for path in covered if not any(is_below(path, place) for place in replaced)]
    for path in covered:
        arguments += ["--tmpfs", str(path)]
    for path in _still_needed(read_only):
        if any(is_below(path, place) for place in (*replaced, *covered)):
            arguments += ["--ro-bind", str(path), str(path)]
    for path in covered:
        arguments += ["--remount-ro", str(path)]
    for name in dict.fromkeys((INSIDE, inside)):
        arguments += ["--bind", str(directory), name]
    return [*arguments, "--chdir", inside, "--remount-ro", "/"]


def _homes() -> list[Path]:
    """Where users keep what is theirs."""
    own = Path(os.environ.get("HOME", "/"))
    places = [Path("/home"), Path("/root"), *([own.resolve()] if own.is_absolute() else [])]
    return [place for place in places if not _is_empty(str(place))]


def _outermost(places: Iterable[Path]) -> list[Path]:
    """The directories among them that lie in no other of them."""
    kept: list[Path] = []
    for path in sorted({place for place in places if place.is_dir() and place != Path("/")}):
        if not any(is_below(path, earlier) for earlier in kept):
            kept.append(path)
    return kept


def _host_root() -> list[str]:
    """Every top-level directory of the host read-only, every top-level link as a link."""
    arguments: list[str] = []
    with os.scandir("/") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.path in _REPLACED or entry.path in _NOT_NEEDED:
                continue
            if entry.is_symlink():
                arguments += ["--symlink", os.readlink(entry.path), entry.path]  # noqa: PTH115
            elif entry.is_dir():
                # A mount costs a third of a millisecond, and an empty directory is quicker made.
                kind = ["--dir"] if _is_empty(entry.path) else ["--ro-bind", entry.path]
                arguments += [*kind, entry.path]
    return arguments


def _is_empty(directory: str) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is None
    except PermissionError:
        return False
    except (FileNotFoundError, NotADirectoryError):
        return True


def _kernel_file_systems() -> list[str]:
    """An own /proc, a minimal /dev and an empty /run."""
    arguments = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run"]
    if os.geteuid() == 0:
        # The owner of the kernel's switches may turn them even without any capability, and
        # bubblewrap leaves /proc/sys as it is. For everybody else they are read-only anyway.
        for switch in _kernel_switches():
            arguments += ["--ro-bind-try", switch, switch]
    return arguments


def _kernel_switches() -> list[str]:
    """What in /proc does not belong to a process and could be written by its owner."""
    with os.scandir("/proc") as entries:
        return sorted(
            entry.path
            for entry in entries
            if not entry.name.isdigit()
            and not entry.is_symlink()
            and (entry.is_dir() or entry.stat().st_mode & 0o222)
        )


def _still_needed(read_only: Iterable[Path]) -> list[Path]:
    """Paths that must be visible at their own place: Python, Mutiny, and what the caller names."""
    python = Path(sys.executable)
    wanted = [
        Path(sys.prefix),
        Path(sys.base_prefix),
        python.parent,
        python.resolve().parent,
        SOURCE_ROOT,
        Path("/etc/resolv.conf"),  # often a link into /run
        *read_only,
    ]
    both = [form for path in wanted for form in (path.absolute(), path.resolve())]
    kept: list[Path] = []
    for path in sorted(set(both)):  # parents come before their children and make them superfluous
        if path.exists() and not any(is_below(path, earlier) for earlier in kept):
            kept.append(path)
    return kept
