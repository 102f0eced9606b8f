"""How a command ends that did not come to its own end.

Insight: exit code 1 means "bug found", and it is what Python exits with after any exception. So every
exception that nobody foresaw becomes 70 here, with one line for people and the traceback in a file.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FAILED = 70
_NAME_MAX, _PATH_MAX = 255, 4096
"""Longer names and paths no file has on Linux."""
READER_GONE = 141
"""As a program that SIGPIPE ended: nobody reads on, so nothing is said about the target."""


def crashed(error: BaseException, say: Callable[[str], None]) -> int:
    """Keep the traceback of an unforeseen error and tell where it is."""
    what = _shortly(error)
    place = _keep(error)
    where = f"the traceback is in {place}" if place else "the traceback could not be written"
    say(f"mutiny: Mutiny itself failed, this is no finding: {what}; {where}")
    return FAILED


def too_long(error: BaseException, words: Sequence[str]) -> str:
    """The path that no file can have, if somebody gave us one; empty if not.

    Ours begin with one that was given, too, and what it was met by may have been told in other words.
    """
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError) or cause.errno != errno.ENAMETOOLONG:
        return ""
    names = (part for word in words for part in word.split("/"))
    given = any(len(word) >= _PATH_MAX for word in words) or any(
        len(os.fsencode(name)) > _NAME_MAX for name in names
    )
    return str(cause.filename or "") if given else ""


def reader_gone() -> bool:
    """Has whoever read our output gone away? Other lines may break, too: those are no reader's end."""
    import select

    try:
        poller = select.poll()
        poller.register(sys.stdout.fileno(), 0)
        return any(bits & select.POLLERR for _, bits in poller.poll(0))
    except (OSError, ValueError, AttributeError):
        return False


def drop_output() -> int:
    """Nobody reads on: what is still in the buffer must not complain at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return READER_GONE


def _shortly(error: BaseException) -> str:
    """The error in one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # noqa: BLE001  an error that cannot even be printed has a name still
        text = ""
    shown = text if len(text) <= 200 else text[:200] + "..."
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def _keep(error: BaseException) -> str | None:
    """Write the traceback below `chaos_runs`, or where temporary files go; returns the path."""
    import tempfile
    import time
    import traceback

    from mutiny import __version__

    text = (
        f"mutiny {__version__}, python {sys.version.split()[0]}\n"
        f"{time.strftime('%Y-%m-%d %H:%M:%S')} {sys.argv!r}\n\n"
        + "".join(traceback.format_exception(error))
    )
    for directory in ("chaos_runs", None):
        try:
            handle, path = tempfile.mkstemp(".txt", "crash-", directory)
            with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return None
