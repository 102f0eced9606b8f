"""Board C: `crew serve` keeps the board and its agents, `crew COMMAND` asks it.

One crew a directory: a kernel lock says who. A standby waits for that lock, or for the end of the
lease of a crew that holds the lock but does nothing; the journal then changes hands by a rename.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time

from longboat.board import codec, config, files, words
from longboat.board.config import Config
from longboat.board.values import Answer, Command, Refused, SystemRefused
from longboat.errors import UsageError
from longboat.planting import planted

_HELP = """\
usage: longboat crew serve [--dir DIR] [--agents N] [--agent-command CMD] [--standby]
       longboat crew [--dir DIR] [--json] COMMAND ...

A task board that runs agents. DIR is --dir, else $LONGBOAT_BOARD, else .board here.
`serve` stays in the foreground and prints `crew is ready`; --agents 0: only a coordinator."""
_SHAPES = {
    "serve": words.Shape((), ("--agents", "--agent-command", "--standby!"), "runs the crew"),
    **words.SHAPES,
}
STANDBY_TICK_S = 0.05


def main(arguments: list[str]) -> int:
    """Serve, or ask the one that serves."""
    line = words.split(arguments, _SHAPES)
    if line.flags & {"--help", "-h"}:
        sys.stdout.write(words.help_text("longboat crew", _SHAPES, _HELP) + "\n")
        return 0
    directory = words.directory_of(line)
    settings = config.load(directory)
    if line.verb == "serve":
        return _serve(line, directory, settings)
    answer = ask(directory, words.to_command(line), settings.lock_timeout_s)
    return words.show(line.verb, answer, as_json="--json" in line.flags)


def ask(directory: str, command: Command, timeout_s: float) -> Answer:
    """One verb through the socket of a crew."""
    from longboat.board.daemon import short_path

    sent = False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            with short_path(directory, "crew.sock") as short:
                connection.connect(short)
            connection.sendall(codec.to_json(codec.encode_command(command)).encode() + b"\n")
            sent = True
            received = b""
            while not received.endswith(b"\n"):
                data = connection.recv(1 << 20)
                if not data:
                    raise ConnectionResetError("the crew ended")
                received += data
    except TimeoutError:
        text = f"The crew did not answer in {timeout_s:g} s"
        return _unanswered("busy", text, sent=sent)
    except OSError as error:
        if not sent:
            text = f"No crew is running in {directory} ({error}): run `longboat crew serve`"
            return Refused("not_running", text).answer()
        return _unanswered("system", f"The crew did not answer: {error}", sent=sent)
    import json

    answer = json.loads(received)
    assert isinstance(answer, dict)
    return answer


def _unanswered(kind: str, text: str, *, sent: bool) -> Answer:
    if sent:
        doubt = f"{text} (it is unknown whether it happened)"
        return SystemRefused(kind, doubt, "unknown").answer()
    return SystemRefused(kind, f"{text} (nothing was changed)", "no").answer()


def _serve(line: words.Line, directory: str, settings: Config) -> int:
    from longboat.board.agents import default_command, stop_signals
    from longboat.board.daemon import Crew
    from longboat.board.journal import Fenced
    from longboat.board.journal_store import JournalStore

    count = line.option("--agents") or "1"
    if not (count.isascii() and count.isdigit() and int(count) <= 256):
        raise UsageError(f"--agents needs a number up to 256, not {count}")
    command = line.option("--agent-command") or default_command(settings.agent_model)
    try:
        files.make_directory(directory)
        lock = _become_the_crew(directory, settings, standby="--standby" in line.flags)
        store = JournalStore(directory, settings)
    except files.Doubtful as doubt:
        raise files.refusal_of(doubt.error, "unknown") from None
    except OSError as error:
        raise files.refusal_of(error, "no") from None
    held = [lock]

    def take_lock() -> None:
        """After a takeover from one that slept: its lock is free when it has ended."""
        if held[0] is None:
            held[0] = files.try_lock(os.path.join(directory, "crew.lock"))

    crew = Crew(store, int(count), command, take_lock)
    for number in stop_signals():
        signal.signal(number, crew.stop)
    try:
        crew.run()
    except Fenced as fenced:
        crew.abandon()
        sys.stderr.write(f"longboat crew: {fenced}: this one stops\n")
        return 1
    store.close()
    return 0


def _become_the_crew(directory: str, settings: Config, *, standby: bool) -> int | None:
    """The lock of the directory; None when a crew that sleeps holds it still."""
    path = os.path.join(directory, "crew.lock")
    lock = files.try_lock(path)
    if lock is not None or planted("second-crew-allowed"):
        return lock
    if not standby:
        raise Refused("busy", f"A crew is running on {directory} already (try --standby)")
    sys.stdout.write("crew is standing by\n")
    sys.stdout.flush()
    while True:
        lock = files.try_lock(path)
        if lock is not None or _lease_is_over(directory, settings):
            return lock
        time.sleep(STANDBY_TICK_S)


def _lease_is_over(directory: str, settings: Config) -> bool:
    try:
        last = os.stat(os.path.join(directory, "crew.lease")).st_mtime_ns / 1e9
    except FileNotFoundError:  # it is still starting
        return False
    now = files.touch(os.path.join(directory, "crew.standby"))
    return now - last > settings.leader_lease_s
