"""The supervisor: serves every trapped call of a run in one order, and does what a policy says.

Insight: one thread receives, decides and answers, so that there is one total order over all
processes of the run, daemons and tmux servers included, and while it looks at a call (or copies a
directory, or kills the world) nobody else can change anything. The order is that of the calls'
beginnings; before a call of another thread is shown, the one before it is given time to finish, so
that what is on disk at call k is what calls 0 to k-1 have done.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Self

from mutiny.box.box import Box
from mutiny.box.errors import BoxDied, CommandNotStarted
from mutiny.box.mounts import SOURCE_ROOT
from mutiny.box.results import CommandResult
from mutiny.errors import MutinyError
from mutiny.syscalls import effects, tables
from mutiny.syscalls.calls import Call, Counted
from mutiny.syscalls.filter import Wanted, build, packed
from mutiny.syscalls.launcher import NOT_STARTED
from mutiny.syscalls.listeners import (
    Event,
    Listeners,
    NotStarted,
    Started,
    Trapped,
    launcher_argv,
)
from mutiny.syscalls.memory import Denied, Gone
from mutiny.syscalls.policies import (
    Answer,
    Continue,
    Delay,
    Fail,
    KillProcess,
    KillWorld,
    Perform,
    Policy,
    Record,
    Tear,
)
from mutiny.syscalls.reader import CallReader

SETTLE_LIMIT_S = 0.005
JOIN_LIMIT_S = 10.0
PROBE_LIMIT_S = 5.0


class Supervisor:
    """Serves the traced commands of one run.

    ``roots``: host directories; only calls below them are counted, recorded and decided about.
    ``counted``: of these, those that change files, those that only open one to read it, or both.
    ``kill_world``: how everything is killed; ``run_in`` and ``run`` set it themselves.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        roots: Sequence[Path],
        counted: Counted = Counted.CHANGES,
        wanted: Wanted | None = None,
        kill_world: Callable[[], None] | None = None,
    ) -> None:
        wanted = replace(wanted or Wanted(), reads=counted is not Counted.CHANGES)
        self._program = packed(build(tables.this_machine(), wanted))
        self._reader = CallReader(roots, counted)
        self._policy: Policy = policy or Record()
        self._kill_world = kill_world
        self._listeners = Listeners()
        self._lock = threading.Lock()
        self._own: dict[str, subprocess.Popen[bytes]] = {}
        self._starting = threading.Lock()
        """Held while a process is started: a kill of all processes reaches it, or it is not started."""
        self._calls: list[Call] = []
        self._fired: list[Call] = []
        self._not_started: dict[str, str] = {}
        self._delayed: list[tuple[float, int, Trapped]] = []
        self._previous: Trapped | None = None
        self._denied = 0
        self._only: frozenset[str] | None = None
        self._world_dead = False
        self._failure: BaseException | None = None
        self._ending = False
        self._rounds = 0
        self._round_done = threading.Condition()
        self._thread: threading.Thread | None = None

    # --- life

    def start(self) -> None:
        """Begin to serve."""
        self._thread = threading.Thread(target=self._serve, name="syscalls", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Decide nothing more. Traced processes that still run (daemons) are let through from now
        on, by a thread that ends with the last of them. Raises what went wrong while serving.
        """
        if self._thread is None:
            self._listeners.close()
            return
        with self._lock:
            self._policy = Record()
            self._reader.roots = ()
            self._ending = True
        self._listeners.wake()
        if self._world_dead or self._listeners.live == 0:
            self._thread.join(JOIN_LIMIT_S)
        self._raise_failure()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what was seen

    @property
    def calls(self) -> tuple[Call, ...]:
        """All counted calls since the start or the last ``use``."""
        with self._lock:
            return tuple(self._calls)

    @property
    def fired(self) -> tuple[Call, ...]:
        """The calls in which the policy interfered: the proof that a fault happened."""
        with self._lock:
            return tuple(self._fired)

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """Files below the roots that were mapped for shared writing: their stores are not seen."""
        return tuple(sorted(self._reader.mapped))

    @property
    def denied(self) -> int:
        """How many calls were let go unseen because the kernel forbids to look at their process
        (set-uid programs, processes that made themselves private).
        """
        return self._denied

    @property
    def world_dead(self) -> bool:
        """Whether the policy has killed everything."""
        return self._world_dead

    def use(self, policy: Policy, *, only: Collection[str] | None = None) -> tuple[Call, ...]:
        """Change the policy and start to count from 0; return what was recorded until now.

        ``only``: tags of launched commands. Calls of all other traced processes (a daemon that
        works in the background) are let through uncounted, so that points stay the same in each
        run.
        """
        with self._lock:
            self._only = None if only is None else frozenset(only)
            recorded = tuple(self._calls)
            self._policy = policy
            self._calls.clear()
            self._fired.clear()
            self._reader.forget()
            return recorded

    # --- commands

    def wrap_argv(self, argv: Sequence[str], *, box: Box | None = None, tag: str = "") -> list[str]:
        """Return a command line that starts ``argv`` under this supervisor, for ``box.run``,
        ``box.spawn`` or (without a box) for any way to start a process.
        """
        with self._lock:
            door = self._listeners.door(box)
        self._listeners.wake()
        python = str(Path(sys.executable).resolve())
        return launcher_argv(python, str(SOURCE_ROOT), door, self._program, tag, argv)

    def run_in(
        self,
        box: Box,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        tag: str = "",
    ) -> CommandResult | None:
        """Run a command in a box under supervision; None when the policy killed the box.

        ``tag`` names it in the record (``Call.command``) and for ``use(..., only=...)``.
        """
        if self._kill_world is None:
            self._kill_world = box.kill
        tag = tag or secrets.token_hex(4)
        wrapped = self.wrap_argv(argv, box=box, tag=tag)
        try:
            result = box.run(wrapped, cwd=cwd, env=env, stdin=stdin, timeout_s=timeout_s)
        except BoxDied:
            self._raise_failure()
            if self._world_dead:
                return None
            raise
        if self._world_dead:  # some boxes die from the leaves, and tell of it on the way
            self._raise_failure()
            return None
        return self._checked(replace(result, argv=tuple(argv)), tag)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        tag: str = "",
    ) -> CommandResult | None:
        """Run a command on the host, without any box; None when the policy killed it.

        What it leaves behind in the background stays there, and is served.
        """
        tag = tag or secrets.token_hex(4)
        wrapped = self.wrap_argv(argv, tag=tag)
        if self._kill_world is None:
            self._kill_world = self._kill_own
        started = time.monotonic()
        # Files and no pipes: what stays in the background may hold them open for ever.
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
        ):
            given.write(stdin)
            given.seek(0)
            with self._starting:
                if self._world_dead:
                    return None
                process = subprocess.Popen(
                    wrapped,
                    cwd=cwd,
                    env={**(os.environ if env is None else env), effects.TAG: tag},
                    stdin=given,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,
                )
                self._own[tag] = process
            timed_out = False
            try:
                process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                timed_out = True
                effects.kill_tree(process.pid, tag)
                process.wait(JOIN_LIMIT_S)
            duration_s = time.monotonic() - started
            texts = [_text_of(file) for file in (output, errors)]
        self._raise_failure()
        if self._world_dead and timed_out:
            raise MutinyError(f"was to be killed, and still lived after {timeout_s:g} s: {argv[0]}")
        if self._world_dead:
            return None
        code = process.returncode
        result = CommandResult(
            argv=tuple(argv),
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            stdout=texts[0],
            stderr=texts[1],
            duration_s=duration_s,
            timed_out=timed_out,
            pid=process.pid,
            start=0,
            truncated=False,
        )
        return self._checked(result, tag)

    def _kill_own(self) -> None:
        with self._starting:
            own = tuple(self._own.items())
        for tag, process in own:
            effects.kill_tree(process.pid if process.returncode is None else None, tag)

    def _checked(self, result: CommandResult, tag: str) -> CommandResult:
        if result.exit_code == NOT_STARTED:
            self._catch_up()
        self._raise_failure()
        reason = self._not_started.pop(tag, None) or self._not_started.pop("", None)
        if reason is not None:
            raise CommandNotStarted(reason)
        return result

    def _catch_up(self) -> None:
        """Wait until the thread has heard everything that was said before this moment."""
        deadline = time.monotonic() + JOIN_LIMIT_S
        with self._round_done:
            # The round that is under way may have looked already; the one after it has not.
            wanted = self._rounds + 2
            while self._rounds < wanted and self._serving() and time.monotonic() < deadline:
                self._listeners.wake()
                self._round_done.wait(0.05)

    def _serving(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    # --- the thread

    def _serve(self) -> None:
        try:
            while not (self._ending and (self._world_dead or self._listeners.live == 0)):
                for event in self._listeners.receive(self._next_due_s()):
                    with self._lock:
                        self._handle(event)
                self._answer_due()
                with self._round_done:
                    self._rounds += 1
                    self._round_done.notify_all()
                if self._ending:
                    self._listeners.close_doors()
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that asks
            self._failure = error
            self._world_dead = True
            if self._kill_world is not None:  # nobody answers any more: it must not go on alone
                with contextlib.suppress(Exception):  # the first error is the one to tell
                    self._kill_world()
        finally:
            self._listeners.close()

    def _handle(self, event: Event) -> None:
        if isinstance(event, Trapped):
            if not self._world_dead:
                self._decide(event)
        elif isinstance(event, Started):
            self._listeners.go(event)
        elif isinstance(event, NotStarted):
            self._not_started[event.tag] = event.reason

    def _decide(self, trapped: Trapped) -> None:
        previous = self._previous
        if previous is not None and previous.task != trapped.task:
            settle(previous)
            self._previous = None
        if self._only is not None and trapped.listener.tag not in self._only:
            self._listeners.answer(trapped, go_on=True)
            return
        try:
            call = self._reader.read(trapped, len(self._calls))
        except Denied:
            self._denied += 1
            call = None
        except Gone:
            call = None
        if call is None or not self._listeners.waits(trapped):
            self._listeners.answer(trapped, go_on=True)
            return
        self._previous = trapped
        action = self._policy.decide(call, len(self._fired))
        if isinstance(action, Continue):
            self._calls.append(call)
            self._listeners.answer(trapped, go_on=True)
            return
        if isinstance(action, Perform):
            self._calls.append(call)
            try:
                action.effect(call)
            finally:
                self._listeners.answer(trapped, go_on=True)
            return
        self._interfere(trapped, call, action)

    def _interfere(self, trapped: Trapped, call: Call, action: object) -> None:
        """Carry out an action that is a fault, and write down what was done."""
        result = "continued: nothing to tear"
        if isinstance(action, Fail):
            result = f"failed: {effects.error_name(action.errno)}"
            self._listeners.answer(trapped, error=action.errno)
        elif isinstance(action, Answer):
            result = f"answered: {action.value}"
            self._listeners.answer(trapped, value=action.value)
        elif isinstance(action, Delay):
            result = f"delayed: {action.seconds} s"
            due = time.monotonic() + action.seconds
            heapq.heappush(self._delayed, (due, trapped.identity, trapped))
        elif isinstance(action, KillProcess):
            result = "killed: the process"
            effects.send_signal(call.pid, signal.SIGKILL, lambda: Listeners.waits(trapped))
        elif isinstance(action, KillWorld):
            result = "killed: the world"
            self._end_world()
        elif isinstance(action, Tear):
            torn = effects.tear(trapped, call, lie=action.mode == "lie")
            if torn is None:
                self._calls.append(replace(call, result=result))
                self._listeners.answer(trapped, go_on=True)
                return
            result = f"torn: {torn.written} of {torn.asked} bytes, {action.mode}"
            if action.mode == "kill":
                self._end_world()
            else:
                value = torn.written if action.mode == "short" else torn.asked
                self._listeners.answer(trapped, value=value)
        done = replace(call, result=result)
        self._calls.append(done)
        self._fired.append(done)

    def _end_world(self) -> None:
        if self._kill_world is None:
            raise ValueError("the policy kills the world, but nobody said how (kill_world)")
        self._world_dead = True
        self._kill_world()

    def _next_due_s(self) -> float | None:
        if not self._delayed:
            return None
        return max(0.0, self._delayed[0][0] - time.monotonic())

    def _answer_due(self) -> None:
        now = time.monotonic()
        while self._delayed and (self._delayed[0][0] <= now or self._ending):
            self._listeners.answer(heapq.heappop(self._delayed)[2], go_on=True)


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "backslashreplace")


@functools.cache
def why_not() -> str | None:
    """Try the whole engine in miniature; return why this machine cannot do it, or None."""
    try:
        with Supervisor(roots=[Path("/nonexistent")]) as supervisor:
            done = supervisor.run(["true"], timeout_s=PROBE_LIMIT_S)
    except (MutinyError, OSError) as error:
        return str(error)
    if done is None or done.exit_code != 0:
        return f"a traced 'true' ended with {done}"
    return None


def settle(previous: Trapped) -> None:
    """Give a call that was let go the time to finish, so that its effect is there.

    A task that was let go is runnable until it sleeps somewhere else or calls again; a task that
    computes looks the same, hence the limit.
    """
    number = tables.this_machine().number(previous.kind)
    unchanged = f"{number} {' '.join(f'{value:#x}' for value in previous.arguments)} ".encode()
    deadline = time.monotonic() + SETTLE_LIMIT_S
    while True:
        try:
            descriptor = os.open(f"/proc/{previous.task}/syscall", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return  # it has ended
        try:
            found = os.read(descriptor, 256)
        except OSError:
            return
        finally:
            os.close(descriptor)
        if not found.startswith((b"running", unchanged)) or time.monotonic() > deadline:
            return
