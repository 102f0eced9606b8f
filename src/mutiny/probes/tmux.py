"""How tmux is asked who is there, and told whom something is meant for.

A worker has a session of its own, or a window of a session that it shares. A window is called
`session:window` (no name of a session has a colon), and both are named exactly: tmux would take the
beginning of a name for the name.
"""

from __future__ import annotations

import re

SILENT = re.compile(r"no server running|No such file or directory|Connection refused")
"""What tmux says where there is no server: nobody is there."""
SESSIONS = ("tmux", "list-sessions", "-F", "#{session_name}")
_WINDOWS = ("tmux", "list-windows", "-a", "-F", "#{session_name}:#{window_name}")
PANES = ("tmux", "list-panes", "-a", "-F", "#{session_name}\t#{window_name}\t#{pane_pid}")


def listing(*, windows: bool) -> tuple[str, ...]:
    """Asks for the names of all sessions, or of all windows."""
    return _WINDOWS if windows else SESSIONS


def pids(answer: str) -> dict[str, int]:
    """The names of sessions and of windows -> the process in the first pane, from an answer to `PANES`."""
    found: dict[str, int] = {}
    for line in answer.splitlines():
        session, _, rest = line.partition("\t")
        window, _, pid = rest.rpartition("\t")
        for name in (session, f"{session}:{window}"):
            found.setdefault(name, int(pid) if pid.isdecimal() else -1)
    return found


def is_window(name: str) -> bool:
    """Is it the name of a window?"""
    return ":" in name


def pane(name: str) -> str:
    """The first pane of a session or of a window."""
    session, _, window = name.partition(":")
    return f"={session}:={window}" if window else f"={session}:"


def killing(name: str) -> tuple[str, ...]:
    """Ends a session, or a window."""
    return (
        ("tmux", "kill-window", "-t", pane(name))
        if is_window(name)
        else ("tmux", "kill-session", "-t", f"={name}")
    )
