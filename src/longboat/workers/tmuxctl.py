"""tmux, asked carefully.

A question to tmux has three answers: yes, no, and **unknown**. Only a complete listing by a server
that answered, or a server that is proven dead, means that a session is gone; an error, a timeout or
a missing socket means nothing at all.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.errors import LongboatError
from longboat.planting import planted
from longboat.workers.gitops import PLACES_OF_GIT
from longboat.workers.proc import Result, run
from longboat.workers.processes import Identity, identify, is_alive

_TIMEOUT_S = 2.0
_PANE_FORMAT = "#{pane_id} #{pane_pid} #{pane_dead} #{pid} #{session_name}"


class Pane(NamedTuple):
    """One pane of a session."""

    pane: str
    pid: int
    dead: bool
    session: str


class Listing(NamedTuple):
    """Everything that the tmux server holds; ``known`` is False when it did not answer."""

    known: bool
    panes: tuple[Pane, ...] = ()
    server_pid: int = 0
    complaint: str = ""

    def of_session(self, session: str) -> list[Pane]:
        """The panes of exactly this session."""
        if planted("session-prefix-match"):
            return [pane for pane in self.panes if pane.session.startswith(session)]
        return [pane for pane in self.panes if pane.session == session]


class Started(NamedTuple):
    """A session that was just started."""

    pid: int
    pane: str
    server_pid: int


def _tmux(*arguments: str, stdin: bytes = b"", timeout_s: float = _TIMEOUT_S) -> Result:
    environment = {k: v for k, v in os.environ.items() if k != "TMUX"}
    return run(["tmux", *arguments], timeout_s=timeout_s, stdin=stdin, environment=environment)


def _target(session: str) -> str:
    """Exactly this session: without the signs, tmux takes any that begins like it."""
    return session if planted("session-prefix-match") else f"={session}:"


def list_panes() -> Listing:
    """All panes of the server; "no server" is a known answer with no panes."""
    result = _tmux("list-panes", "-a", "-F", _PANE_FORMAT)
    if not result.ok:
        if not result.timed_out and _says_no_server(result.err):
            return Listing(True)
        return Listing(False, complaint=result.last_words)
    panes = []
    server_pid = 0
    for line in result.out.splitlines():
        pane, pid, dead, server, session = line.split(" ", 4)
        server_pid = int(server)
        panes.append(Pane(pane, int(pid), dead == "1", session))
    return Listing(True, tuple(panes), server_pid)


def _says_no_server(complaint: str) -> bool:
    return (
        "no server running on" in complaint
        or "no current session" in complaint
        or "(No such file or directory)" in complaint
    )


def is_gone(listing: Listing, session: str, server: Identity) -> bool:
    """True only when it is certain that the session does not exist any more.

    ``server`` is the tmux server that started it. While that server lives, only its own complete
    listing counts: a socket that somebody deleted makes tmux say "no server", too.
    """
    if not is_alive(server):
        return True
    if planted("reaped-on-query-failure") and not listing.known:
        return True
    if planted("session-renamed-for-task"):
        return False
    return listing.known and listing.server_pid == server.pid and not listing.of_session(session)


def shell_quote(word: str) -> str:
    """A word for /bin/sh (the standard ``shlex`` costs a start-up)."""
    if word and all(c.isalnum() or c in "-_./=:@%+," for c in word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def start_session(
    session: str, directory: str, environment: dict[str, str], command: str
) -> Started | str:
    """Start a detached session whose pane process is the command itself; a text says why not."""
    variables = [part for key, value in environment.items() for part in ("-e", f"{key}={value}")]
    result = _tmux(
        *("new-session", "-d", "-s", session, "-x", "200", "-y", "50", "-c", directory),
        *variables,
        *("-P", "-F", "#{pane_pid} #{pane_id} #{pid}"),
        # tmux takes its own directory when it cannot enter this one: the agent would work somewhere else.
        # A server that was started from a hook of git would send the agent's commits to the user's branch.
        f"unset {' '.join(PLACES_OF_GIT)}; cd {shell_quote(directory)} || exit 1; {command}",
        timeout_s=10.0,
    )
    if not result.ok:
        return result.last_words
    fields = result.out.split()
    if len(fields) != 3:
        return f"tmux answered {result.out.strip()!r}"
    return Started(int(fields[0]), fields[1], int(fields[2]))


def mark(session: str, variable: str) -> str | None:
    """A variable of a session's environment; None when it cannot be had."""
    result = _tmux("show-environment", "-t", _target(session), variable)
    name, _, value = result.out.rstrip("\n").partition("=")
    return value if result.ok and name == variable else None


def type_text(pane: str, pid: int, text: str, delay_ms: int) -> str:
    """Paste a text into exactly this agent's pane and press Enter, in one call to the server.

    The server itself checks that the pane still belongs to the agent, so a late call can never
    reach the agent that came after. Returns "" (typed), "stale" (certainly not typed) or a
    complaint (nobody knows).
    """
    buffer = f"longboat-{pid}"
    if text.startswith("/") and text[1:].isalpha():
        # A command of the agent's own: typed, because a pasted one may count as plain text.
        keys = [f"send-keys -l -t {pane} {text} ; delete-buffer -b {buffer}"]
    else:
        keys = [f"paste-buffer -p -d -b {buffer} -t {pane}"]
    if delay_ms > 0:
        keys.append(f"run-shell -d {delay_ms / 1000:.3f}")
    keys.append(f"send-keys -t {pane} Enter")
    result = _tmux(
        *("load-buffer", "-b", buffer, "-", ";"),
        *("if-shell", "-F", "-t", pane, f"#{{==:#{{pane_pid}},{pid}}}"),
        " ; ".join(keys),
        f"delete-buffer -b {buffer} ; display-message -p stale",
        stdin=text.encode(),
        timeout_s=_TIMEOUT_S + delay_ms / 1000,
    )
    if result.ok:
        return "stale" if result.out.strip() == "stale" else ""
    if not result.timed_out and ("can't find pane" in result.err or _says_no_server(result.err)):
        return "stale"
    return result.last_words


def interrupt(panes: list[str]) -> None:
    """Press Ctrl-C twice in these panes; a courtesy, so failures do not matter."""
    for pane in panes:
        _tmux("send-keys", "-t", pane, "C-c", "C-c", timeout_s=1.0)


def kill_session(session: str) -> None:
    """Remove exactly this session; absent or unknown is left to the caller's own proof."""
    _tmux("kill-session", "-t", _target(session))


def rename_session(session: str, name: str) -> None:
    """Plants only: give a session another name."""
    _tmux("rename-session", "-t", _target(session), name)


def respawn(pane: str, command: str) -> Identity:
    """Plants only: end what runs in a pane, and run something else there."""
    asked = ("display-message", "-p", "-t", pane, "#{pane_pid}")
    result = _tmux("respawn-pane", "-k", "-t", pane, command, ";", *asked)
    return identify_server(int(result.out))


def kill_server() -> None:
    """Plants only: end every session of the user."""
    _tmux("kill-server")


def capture(session: str, lines: int) -> str:
    """The last lines of a session's pane."""
    result = _tmux("capture-pane", "-p", "-t", _target(session), "-S", f"-{lines}")
    if not result.ok:
        raise LongboatError(f"tmux cannot show session {session}: {result.last_words}")
    shown = result.out.rstrip("\n").splitlines()[-lines:]
    return "\n".join(shown)


def attach_command(session: str) -> list[str]:
    """The command that shows a session to a person."""
    if os.environ.get("TMUX"):
        return ["tmux", "switch-client", "-t", f"={session}"]
    return ["tmux", "attach-session", "-t", f"={session}"]


def identify_server(pid: int) -> Identity:
    """The identity of the server; a server that is already gone gets a start that never was."""
    return identify(pid) or Identity(pid, 0)
