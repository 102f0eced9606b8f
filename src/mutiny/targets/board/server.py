"""The server of a live board: started, stopped, killed by handle; none at all for a board of files."""

from __future__ import annotations

import re
import secrets
import signal
from pathlib import Path

from mutiny.doubles import boards
from mutiny.faults import process as process_faults
from mutiny.kit.answer import answer_of
from mutiny.kit.views import ProcessView
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.system.keepsakes import Keepsake, last_words
from mutiny.targets.board.host import BoardHost
from mutiny.targets.kit.combinations import unable
from mutiny.targets.kit.daemons import Daemons
from mutiny.targets.kit.starting import broke_in_driver, why_not_started


class Server:
    """The server processes of one board."""

    def __init__(self, live: BoardHost) -> None:
        self._live = live
        self._logs: list[BoxPath] = []
        spec = live.spec.server
        hint = "" if spec is None else live.filled(spec.process, re.escape)
        self._known = Daemons(hint)
        self._made = live.has_board  # of the box whose files this one continues

    def processes(self) -> tuple[ProcessView, ...]:
        """Those that run now: by what was started, the program may be called anything."""
        if self._live.spec.server is None:
            return ()
        found = self._known.among(self._live.box.processes())
        return tuple(process_faults.view_of(one) for one in found)

    def count(self) -> int:
        """How many run."""
        return len(self.processes())

    def start(self) -> OperationResult:
        """Start it and wait until it says that it is ready, or has ended."""
        live, spec = self._live, self._live.spec.server
        if spec is None:
            return OperationResult(stdout="the board needs no server")
        argv = tuple(live.filled(word) for word in spec.argv)
        log = live.box.files / "tmp" / f"server-{secrets.token_hex(4)}.log"
        self._logs.append(log)
        spawned, result = live.start(argv, spec.ready, live.limits.up_s, log)
        self._known.started((spawned.pid, spawned.start))
        match = re.search(spec.ready, result.stdout) if result.succeeded else None
        if match is None:
            return result
        live.found_at(match.groupdict().get("endpoint") or "")
        return self._make_board() or result

    def _make_board(self) -> OperationResult | None:
        """Once: the commands that the target's file wants after its first server."""
        spec = self._live.spec.server
        if self._made or spec is None:
            return None
        for name in spec.then:
            said = self._live.ask(name)
            there = answer_of(said, self._live.spec.words).error == "already_initialised"
            ours = why_not_started(said) or broke_in_driver(said)
            if ours is not None:
                return unable(f"{name} failed: {ours}")
            if not said.succeeded and not there:
                return said  # what the target answers to its first words is judged as any answer
        self._made = True
        return None

    def stop(self) -> OperationResult:
        """Ask it to end, in the way that its file says."""
        spec = self._live.spec.server
        if spec is None:
            return OperationResult(stdout="the board needs no server")
        found = self.processes()
        if not found:
            return OperationResult(1, stderr="no server runs", details=_refused("server_down"))
        number = signal.Signals[f"SIG{spec.stop}"]
        box, limit_s = self._live.box, self._live.limit(self._live.limits.stop_s)
        for process in found:
            box.signal(process.pid, process.start, number)
        late = [one for one in found if not box.wait_gone(one.pid, one.start, limit_s)]
        if late:
            return OperationResult(None, stderr="the server does not end", timed_out=True)
        return OperationResult(stdout="stopped")

    def restart(self) -> OperationResult:
        """Stop it and start it."""
        stopped = self.stop()
        return self.start() if stopped.succeeded else stopped

    def kill(self) -> OperationResult:
        """SIGKILL, and the proof that it is gone."""
        if self._live.spec.server is None:
            return unable(f"target {self._live.spec.name} has no server")
        return process_faults.kill(self._live.box, self.processes(), "server")

    def once(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A command that brings its own server and ends it."""
        live, spec = self._live, self._live.spec.server
        assert spec is not None
        server = [live.filled(word) for word in spec.argv]
        script = str(Path(boards.__file__).with_name("once.py"))
        python = str(live.values["python"])
        return (python, "-IS", script, spec.ready, str(len(server)), *server, *argv)

    def logs(self) -> dict[str, Keepsake]:
        """What the servers printed."""
        return {f"target_logs/{path.name}": Keepsake(path) for path in self._logs}

    def log_text(self) -> str:
        """The last server's words."""
        return last_words(self._logs[-1]) if self._logs else ""


def _refused(error: str) -> dict[str, object]:
    return {"answer": {"ok": False, "error": error}}
