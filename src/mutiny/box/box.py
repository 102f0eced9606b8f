"""The box: everything of one run behind one wall, and the only door into it.

Insight: commands go through one in-box agent over one socket pair, so that each of them runs inside
the same walls and costs a few milliseconds instead of a new container. The box is never repaired:
to reset is to kill it (proved, not hoped) and to make a new one.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Self

from mutiny import stopping
from mutiny.box import layout
from mutiny.box.connection import AgentConnection, socket_pair
from mutiny.box.errors import BoxDied, BoxError, CommandNotStarted
from mutiny.box.isolation import Running, Walls
from mutiny.box.launch import start_lasting
from mutiny.box.mounts import INSIDE, SOURCE_ROOT, is_below
from mutiny.box.results import (
    Command,
    CommandResult,
    Delivery,
    Ending,
    ProcessInfo,
    Spawned,
)
from mutiny.system.files import BoxPath
from mutiny.system.processes import handle_ended
from mutiny.system.wire import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mutiny.box.connection import Message
    from mutiny.box.isolation import Technique
    from mutiny.box.launch import Lasting
    from mutiny.box.wishes import Wishes

START_LIMIT_S = 20.0
ROOM_FOR_A_REPOSITORY = 1 << 16
"""With less room than this git fails, and does not say why."""
KILL_LIMIT_S = 10.0
ANSWER_GRACE_S = 10.0
_LOG_TAIL_BYTES = 2000
_BOOT = (
    "import sys;sys.path.insert(0,sys.argv[1]);from mutiny.box.agent import main;"
    "main(int(sys.argv[2]),sys.argv[3])"
)


class Box:
    """One run's walls. Use ``startup.create_box`` and leave it to a ``with`` block to close."""

    def __init__(self, walls: Walls, technique: Technique, environment: Mapping[str, str]) -> None:
        self._walls = walls
        self._technique = technique
        self._inside_root = technique.inside_root(walls)
        self._environment = layout.box_environment(walls.box_id, self._inside_root, environment)
        self._log = os.memfd_create("box-log", os.MFD_CLOEXEC)
        self._process: Lasting | None = None
        self._running: Running | None = None
        self._connection: AgentConnection | None = None
        self._life_lock = threading.RLock()
        self._killed = False
        self._closed = False
        self._endings: dict[tuple[int, int], Ending] = {}
        self._ending_arrived = threading.Condition()

    def start(self, wishes: Wishes) -> None:
        """Make the directories and start the agent behind the walls, without waiting for it."""
        source, doubles = wishes.get("source", True), wishes.get("doubles", True)
        layout.make_layout(self.directory, self._inside_root, doubles=doubles, source=source)
        if doubles:
            from mutiny.doubles.install import install

            install(self.files / "bin", self.files / "doubles")
        self._technique.prepare(self._walls)
        self._start_agent()

    def finish(self, wishes: Wishes) -> None:
        """Wait for the agent, and let it make the source repository."""
        assert self._connection is not None
        assert self._running is not None
        outer = self._running
        agent_pid = self._connection.greet(START_LIMIT_S)
        self._running = Running(
            self.box_id, outer.outer_pid, outer.outer_handle, agent_pid, os.pidfd_open(agent_pid)
        )
        if wishes.get("source", True) and layout.needs_first_commit(self.directory):
            made = self.run(
                ["sh", "-c", layout.FIRST_COMMIT_SCRIPT],
                env=layout.FIRST_COMMIT_ENVIRONMENT,
                timeout_s=START_LIMIT_S,
            )
            if made.exit_code != 0:
                full = shutil.disk_usage(self.directory).free < ROOM_FOR_A_REPOSITORY
                why = os.strerror(errno.ENOSPC) if full else made.stderr.strip() or made
                place = self.directory / "source"
                raise BoxError(f"the source repository could not be made in {place}: {why}")

    def _start_agent(self) -> None:
        ours, theirs = socket_pair()
        try:
            options = json.dumps(self._technique.agent_options(self._walls))
            python = str(Path(sys.executable).resolve())
            agent = [python, "-IS", "-c", _BOOT, str(SOURCE_ROOT), str(theirs.fileno()), options]
            self._connection = AgentConnection(ours, self._on_event, self._explain_death)
            self._process = start_lasting(
                self._technique.argv(self._walls, agent),
                environment=self._environment,
                inherit=[theirs.fileno()],
                output=self._log,
            )
        finally:
            theirs.close()
        outer = self._process.pid
        self._running = Running(self.box_id, outer, os.pidfd_open(outer))

    # --- what it is

    @property
    def box_id(self) -> str:
        """The unique name of this box (``MUTINY_BOX`` inside)."""
        return self._walls.box_id

    @property
    def directory(self) -> Path:
        """The directory of the box on the host."""
        return self._walls.directory

    @property
    def files(self) -> BoxPath:
        """The same directory as Mutiny's own hands use it: what is in it belongs to the target."""
        return BoxPath(self._walls.directory)

    @property
    def inside_root(self) -> str:
        """The directory of the box as its processes see it."""
        return self._inside_root

    @property
    def technique(self) -> str:
        """The name of the technique that holds the walls."""
        return self._technique.name

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that every command gets."""
        return dict(self._environment)

    @property
    def agent_host_pid(self) -> int | None:
        """The pid of the in-box agent as the host sees it; None before it has started."""
        return self._running.agent_pid if self._running else None

    def facts(self) -> dict[str, object]:
        """What the record of a run must say about its box."""
        own_network = self._technique.walls_off_network and self._walls.network == "none"
        return {
            "technique": self._technique.name,
            "guarantee": self._technique.guarantee,
            "network": "none" if own_network else "host",
            "outside_writable": not self._technique.walls_off_files,
            "directory": str(self.directory),
            "inside": self._inside_root,
            "box_id": self.box_id,
        }

    def inside(self, path: Path | BoxPath, *, plain: bool = False) -> str:
        """Translate a host path below the box directory to the path that the box sees.

        ``plain``: by a name without blanks, for what cannot be quoted.
        """
        root = INSIDE if plain and self._technique.walls_off_files else self._inside_root
        if isinstance(path, BoxPath):
            path = path.host
        absolute = path.absolute()
        form = absolute if is_below(absolute, self.directory) else absolute.resolve()
        if not is_below(form, self.directory):
            raise ValueError(f"{path} is not in the box {self.directory}")
        return str(PurePosixPath(root) / form.relative_to(self.directory))

    def outside(self, path: str) -> BoxPath:
        """Translate an absolute path that the box sees to the same file as it is reached from outside."""
        pure = PurePosixPath(os.path.normpath(path))
        roots = {self._inside_root: self.files, str(self.directory): self.files}
        if self._technique.walls_off_files:
            roots |= {
                "/tmp": self.files / "tmp",
                "/var/tmp": self.files / "tmp",
                INSIDE: self.files,
            }
            del roots[str(self.directory)]  # hidden in there
        for root, place in roots.items():
            if pure.is_relative_to(root):
                return place / str(pure.relative_to(root))
        raise ValueError(f"{path} is not a path of the box (they start with {self._inside_root})")

    # --- commands

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        timeout_s: float,
    ) -> CommandResult:
        """Run a command inside and wait for its end; after ``timeout_s`` its process group is
        killed.

        ``cwd`` is a path as the box sees it (default: the source repository), ``env`` is added to
        the box's environment. Raises CommandNotStarted when the program cannot be executed, BoxDied
        when the box ends.
        """
        return self.run_many([Command(argv, timeout_s, cwd, env or {}, stdin)])[0]

    def run_many(self, commands: Sequence[Command]) -> list[CommandResult]:
        """Run commands at the same time and return their results in the same order.

        Raises CommandNotStarted, after all others have ended, when one of them could not be
        executed.
        """
        if not commands:
            return []
        requests = [
            {
                "op": "run",
                "argv": list(command.argv),
                "cwd": command.cwd or f"{self._inside_root}/source",
                "env": dict(command.env),
                "stdin": packed(command.stdin),
                "timeout_s": command.timeout_s,
            }
            for command in commands
        ]
        limit_s = max(command.timeout_s for command in commands) + ANSWER_GRACE_S
        answers = self._line.call_all(requests, limit_s)
        for request, answer in zip(requests, answers, strict=True):
            _refuse_not_started(request, answer)
        return [_result(command, answer) for command, answer in zip(commands, answers, strict=True)]

    def spawn(
        self,
        argv: Sequence[str],
        *,
        output: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Spawned:
        """Start a command in the background, in a session of its own; both outputs go to the file
        ``output``.
        """
        log = output or f"{self._inside_root}/tmp/spawned-{os.urandom(4).hex()}.log"
        request = {
            "op": "spawn",
            "argv": list(argv),
            "cwd": cwd or f"{self._inside_root}/source",
            "env": dict(env or {}),
            "output": log,
        }
        answer = self._line.call(request, ANSWER_GRACE_S)
        _refuse_not_started(request, answer)
        return Spawned(tuple(argv), answer["pid"], answer["start"], log)

    def wait_ended(self, spawned: Spawned, timeout_s: float) -> Ending | None:
        """Wait for the end of a background process; None when it still runs after ``timeout_s``."""
        key = (spawned.pid, spawned.start)
        deadline = time.monotonic() + timeout_s
        with self._ending_arrived:
            while key not in self._endings:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    return None
                self._ending_arrived.wait(min(remaining_s, stopping.SLICE_S))
                stopping.check()
                if not self.alive and key not in self._endings:
                    raise BoxDied(f"the box ended before pid {spawned.pid} was seen to end")
            return self._endings[key]

    # --- processes

    def signal(self, pid: int, start: int, number: int) -> Delivery:
        """Send a signal to exactly this process of the box (pid and start time, as the box sees
        them).
        """
        request = {"op": "signal", "pid": pid, "start": start, "signal": int(number)}
        answer = self._checked(request, ANSWER_GRACE_S)
        return Delivery(answer["delivered"], answer["reason"])

    def processes(self) -> tuple[ProcessInfo, ...]:
        """Return all processes of the box, zombies included, the agent itself excluded."""
        answer = self._checked({"op": "processes"}, ANSWER_GRACE_S)
        return tuple(
            ProcessInfo(
                pid=row["pid"],
                parent_pid=row["ppid"],
                start=row["start"],
                state=row["state"],
                name=row["name"],
                argv=tuple(row["argv"]),
                session_id=row["sid"],
                has_terminal=row["tty"],
                of_target=row["target"],
                in_pane=row["pane"],
                asked_for=row["asked"],
                descriptors=row["descriptors"],
                cpu_ticks=row["cpu"],
            )
            for row in answer["processes"]
        )

    def wait_gone(self, pid: int, start: int, timeout_s: float) -> bool:
        """Wait for the end of exactly this process; False when it runs on after ``timeout_s``."""
        request = {"op": "wait_gone", "pid": pid, "start": start, "timeout_s": timeout_s}
        return bool(self._checked(request, timeout_s + ANSWER_GRACE_S)["gone"])

    def ping(self, timeout_s: float = ANSWER_GRACE_S) -> float:
        """Return the seconds of one round trip to the agent."""
        started = time.monotonic()
        self._checked({"op": "ping"}, timeout_s)
        return time.monotonic() - started

    # --- the end

    @property
    def alive(self) -> bool:
        """Whether the box runs: not killed, and its agent has not ended."""
        handle = self._running.agent_handle if self._running else None
        return not self._killed and handle is not None and not handle_ended(handle)

    def kill(self) -> None:
        """Kill everything in the box and prove it; raises SurvivorsLeft otherwise. Safe to call
        twice.
        """
        with self._life_lock:
            if self._killed or self._running is None or self._process is None:
                self._killed = True
                return
            if self._connection is not None:
                self._connection.expect_end("the box was killed")
            self._technique.kill(self._running, KILL_LIMIT_S)
            self._process.wait(KILL_LIMIT_S)
            self._killed = True

    def close(self) -> None:
        """Kill the box and take away what it needed on the host; its directory stays. Safe to call
        twice.
        """
        with self._life_lock:
            if self._closed:
                return
            self._closed = True
            try:
                self.kill()
            finally:
                self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inner

    def _let_go(self) -> None:
        """Give back what Mutiny itself holds for the box."""
        if self._connection is not None:
            self._connection.close()
        self._technique.clean_up(self._walls)
        if self._running is not None:
            os.close(self._running.outer_handle)
            if self._running.agent_handle is not None:
                os.close(self._running.agent_handle)
        self._running = None
        os.close(self._log)

    @property
    def _line(self) -> AgentConnection:
        if self._connection is None or self._killed:
            raise BoxDied(f"the box {self.box_id} was killed" if self._killed else "no agent yet")
        return self._connection

    def _checked(self, request: Mapping[str, Any], timeout_s: float) -> Message:
        answer = self._line.call(request, timeout_s)
        if "error" in answer:
            raise BoxError(f"the in-box agent could not do {request['op']}: {answer['error']}")
        return answer

    def _on_event(self, message: Message) -> None:
        with self._ending_arrived:
            if message["event"] == "exit":
                key = (message["pid"], message["start"])
                self._endings[key] = Ending(message["exit_code"], message["signal"])
            self._ending_arrived.notify_all()

    def _explain_death(self) -> str:
        """Say how the outer process ended and what it complained about."""
        how = "it is still running"
        if self._process is not None:
            try:
                code = self._process.wait(1)
                how = f"signal {-code}" if code < 0 else f"exit code {code}"
            except TimeoutError:
                pass
        size = os.fstat(self._log).st_size
        tail = os.pread(self._log, _LOG_TAIL_BYTES, max(0, size - _LOG_TAIL_BYTES))
        said = tail.decode("utf-8", "backslashreplace").strip() or "nothing"
        return f"the box ({self.technique}) ended unexpectedly: {how}; it said: {said}"


def _refuse_not_started(request: Mapping[str, Any], answer: Message) -> None:
    if "error" in answer:
        about = answer.get("file") or request["argv"][0]
        raise CommandNotStarted(
            f"cannot start {request['argv'][0]!r} in {request['cwd']}: {answer['error']}: {about}"
        )


def _result(command: Command, answer: Message) -> CommandResult:
    return CommandResult(
        argv=tuple(command.argv),
        exit_code=answer["exit_code"],
        signal=answer["signal"],
        stdout=_text(answer["stdout"]),
        stderr=_text(answer["stderr"]),
        duration_s=answer["duration_s"],
        timed_out=answer["timed_out"],
        pid=answer["pid"],
        start=answer["start"],
        truncated=answer["truncated"],
    )


def _text(encoded: str) -> str:
    """Output as text; bytes that are not UTF-8 stay readable and can be written to the journal."""
    return unpacked(encoded).decode("utf-8", "backslashreplace")
