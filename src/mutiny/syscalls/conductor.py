"""Holds commands at their visible operations and lets one of them go on at a time.

Insight: after a command is let go there are three ways in which it stops: it comes to its next
visible operation, it ends, or it sleeps in a lock that somebody else holds. The first two are
events; the third is seen in /proc/PID/syscall: a task is runnable from the moment it is let go until
it really sleeps. So "who can go on" never depends on a clock. Only waiting for
something else than a lock (a pipe, a timer) does, and such a command counts as waiting after a
while, not as blocked.
"""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from mutiny import stopping
from mutiny.box.errors import CommandNotStarted
from mutiny.box.mounts import SOURCE_ROOT
from mutiny.errors import MutinyError
from mutiny.syscalls import tables
from mutiny.syscalls.calls import Call, Counted
from mutiny.syscalls.drain import let_through
from mutiny.syscalls.filter import Wanted, build, packed
from mutiny.syscalls.listeners import (
    Ended,
    Event,
    Listeners,
    NotStarted,
    Started,
    Trapped,
    launcher_argv,
)
from mutiny.syscalls.memory import Gone
from mutiny.syscalls.reader import CallReader
from mutiny.syscalls.starters import Starter
from mutiny.system import procfs
from mutiny.system.processes import handle_ended

LOOK_INTERVAL_S = 0.002
QUIET_LIMIT_S = 0.3
"""A command whose processes all sleep for so long, in no lock, is waiting for something."""
DEADLOCK_S = 2.0
"""All commands asleep in a lock for so long are a deadlock, not a lock that is held for a moment."""


class Status(Enum):
    """What a command does."""

    STARTING = "starting"
    AT_POINT = "at a visible operation"
    RUNNING = "running"
    LOCKED = "sleeping in a lock"
    WAITING = "sleeping, not in a lock"
    ENDED = "ended"


@dataclass(slots=True)
class _Command:
    number: int
    status: Status = Status.STARTING
    started: Started | None = None
    pid: int = 0
    handle: int = -1
    held: deque[tuple[Trapped, Call]] = field(default_factory=deque)
    lock_waits: dict[int, int] = field(default_factory=dict)
    """Tasks that were let into a lock call that may sleep, with the number of the call."""
    released: int = 0
    """The task that was let go last."""


class Conductor:
    """One execution of some commands under control."""

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        roots: Sequence[Path],
        starter: Starter,
        deadline: float,
    ) -> None:
        self._argvs = commands
        self._starter = starter
        self._deadline = deadline
        self._machine = tables.this_machine()
        self._program = packed(build(self._machine, Wanted(reads=True, locks=True)))
        self._listeners = Listeners()
        self._reader = CallReader(roots, Counted.BOTH)
        self._commands = [_Command(number) for number in range(len(commands))]
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._starter.kill()
        for command in self._commands:
            self._let_all_go(command)
            if command.handle >= 0:
                os.close(command.handle)
        # A daemon that a command left behind is still under the filter: without an answer it would
        # fail at its next call, and that would be our fault and not its own.
        let_through(self._listeners, self._starter.kill)

    # --- what the schedule asks

    def start(self) -> None:
        """Start all commands; each is held before it executes anything of its own."""
        door = self._listeners.door(self._starter.box)
        python = str(Path(sys.executable).resolve())
        self._starter.start(
            [
                launcher_argv(python, str(SOURCE_ROOT), door, self._program, str(number), argv)
                for number, argv in enumerate(self._argvs)
            ]
        )
        while any(command.status is Status.STARTING for command in self._commands):
            self._take_events(LOOK_INTERVAL_S * 25)
            self._check_deadline("the commands did not start")

    @property
    def all_ended(self) -> bool:
        """Whether there is nothing left to schedule."""
        return all(command.status is Status.ENDED for command in self._commands)

    def enabled(self) -> tuple[int, ...]:
        """The commands that can go on; waits for those that may come to a point by themselves.

        That everybody sleeps in a lock is a grave thing to say, so it is looked at for a while.
        """
        sure_at = time.monotonic() + DEADLOCK_S
        while True:
            found = tuple(c.number for c in self._commands if c.status is Status.AT_POINT)
            if found or self.all_ended or time.monotonic() > self._deadline:
                return found
            if self.only_locks and time.monotonic() > sure_at:
                return ()
            self._take_events(LOOK_INTERVAL_S)
            self._look_again(None)
            if self.all_ended:
                return ()

    def blocked(self) -> tuple[int, ...]:
        """The commands that sleep in a lock."""
        return tuple(c.number for c in self._commands if c.status is Status.LOCKED)

    @property
    def only_locks(self) -> bool:
        """Whether everybody who has not ended sleeps in a lock: a deadlock."""
        left = [c for c in self._commands if c.status is not Status.ENDED]
        return bool(left) and all(c.status is Status.LOCKED for c in left)

    def next_of(self, number: int) -> tuple[str, Call | None]:
        """What a held command is about to do."""
        command = self._commands[number]
        if command.started is not None:
            return "start", None
        call = command.held[0][1]
        return f"{call.name} {' -> '.join(call.paths)}", call

    def go_on(self, number: int) -> None:
        """Let one command do its operation, and wait until all that can stop have stopped."""
        command = self._commands[number]
        command.status = Status.RUNNING
        if command.started is not None:
            command.released = command.pid
            self._listeners.go(command.started)
            command.started = None
        else:
            trapped, _ = command.held.popleft()
            self._release(command, trapped)
        self._advance(command)
        self._look_again(command)

    # --- events

    def _take_events(self, timeout_s: float) -> bool:
        stopping.check()
        seen = False
        for event in self._listeners.receive(timeout_s):
            seen = True
            self._take(event)
        return seen

    def _take(self, event: Event) -> None:
        if isinstance(event, NotStarted):
            raise CommandNotStarted(event.reason)
        command = self._commands[int(event.listener.tag)]
        if isinstance(event, Started):
            command.started, command.pid = event, event.listener.pid
            command.handle = os.pidfd_open(command.pid)
            command.status = Status.AT_POINT
        elif isinstance(event, Ended):
            # Newer kernels let the filter go early in an exit, before files and locks.
            if not handle_ended(command.handle, max(0.0, self._deadline - time.monotonic())):
                raise MutinyError(f"command {command.number} does not finish its exit")
            command.status = Status.ENDED
        elif isinstance(event, Trapped):
            self._trap(command, event)

    def _trap(self, command: _Command, trapped: Trapped) -> None:
        command.lock_waits.pop(trapped.task, None)
        try:
            call = self._reader.read(trapped, self._count)
        except Gone:
            call = None
        if call is None or command.status is Status.ENDED:
            self._release(command, trapped)
            return
        self._count += 1
        command.held.append((trapped, call))

    def _release(self, command: _Command, trapped: Trapped) -> None:
        command.released = trapped.task
        if _may_sleep(trapped):
            number = self._machine.number(trapped.kind)
            assert number is not None
            command.lock_waits[trapped.task] = number
        self._listeners.answer(trapped, go_on=True)

    # --- waiting for a command to stop

    def _advance(self, command: _Command) -> None:
        """Wait until a command that was let go has come to rest."""
        quiet_since = time.monotonic()
        while True:
            if self._take_events(LOOK_INTERVAL_S if not command.lock_waits else 0.0005):
                quiet_since = time.monotonic()
            if command.status is Status.ENDED:
                return
            if handle_ended(command.handle):
                # What it leaves in the background is no longer part of the race.
                self._take_events(0)
                command.status = Status.ENDED
                self._let_all_go(command)
                return
            if command.held and self._at_rest(command):
                command.status = Status.AT_POINT
                return
            # A task that is trapped at its next lock call looks the same, but then there is an event.
            # And a call that is about to get its lock may sleep for a moment on the way (whoever
            # reads /proc/locks stops all lockers), so it has to be there twice.
            asleep = self._in_lock(command) and not self._take_events(LOOK_INTERVAL_S)
            if asleep and self._in_lock(command):
                command.status = Status.LOCKED
                return
            long_quiet = time.monotonic() - quiet_since > QUIET_LIMIT_S
            if long_quiet and (command.held or _all_asleep(command.pid)):
                command.status = Status.AT_POINT if command.held else Status.WAITING
                return
            self._check_deadline(f"command {command.number} does not come to rest")

    def _at_rest(self, command: _Command) -> bool:
        """A held command rests when the task that was let go is held again, gone or asleep."""
        if any(trapped.task == command.released for trapped, _ in command.held):
            return True
        return _sleeping_call(command.released) != _RUNNING

    def _in_lock(self, command: _Command) -> bool:
        if command.held or not command.lock_waits:
            return False
        return any(_sleeping_call(task) == number for task, number in command.lock_waits.items())

    def _look_again(self, just_ran: _Command | None) -> None:
        """Somebody may have got the lock or the data that it was waiting for."""
        for command in self._commands:
            if command is just_ran:
                continue
            woken = command.status is Status.LOCKED and not self._in_lock(command)
            if command.status is Status.WAITING:
                woken = bool(command.held) or not _all_asleep(command.pid)
                woken = woken or handle_ended(command.handle)
            if woken:
                command.status = Status.RUNNING
                self._advance(command)

    def _let_all_go(self, command: _Command) -> None:
        while command.held:
            self._release(command, command.held.popleft()[0])

    def _check_deadline(self, what: str) -> None:
        if time.monotonic() > self._deadline:
            raise MutinyError(f"schedule not finished in time: {what}")


_RUNNING, _GONE = -1, -2


def _sleeping_call(task: int) -> int:
    """The number of the call in which a task sleeps; ``_RUNNING``, or ``_GONE``."""
    try:
        with open(f"/proc/{task}/syscall", "rb") as file:
            word = file.read().split()[0]
    except (OSError, IndexError):
        return _GONE
    return _RUNNING if word == b"running" else int(word)


def _may_sleep(trapped: Trapped) -> bool:
    if trapped.kind.name == "flock":
        return not trapped.arguments[1] & tables.LOCK_NB
    return trapped.kind.name == "fcntl" and trapped.arguments[1] in tables.WAITING_LOCK_COMMANDS


def _all_asleep(pid: int) -> bool:
    for each in (pid, *procfs.descendants_of(pid)):
        found = procfs.read_stat(each)
        if found is not None and found[0][0] in "RD":
            return False
    return True
