"""Named moments of a long command on a live target: seen in its own log, in its files, or held by a double.

A double that comes to a place at which it shall wait says so and waits: the moment lasts until something
was done at it. For git, a small program in front of the real one waits before or after a command; at a file
the command stands still before one of its system calls.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from typing import Any

from mutiny import stopping
from mutiny.box.errors import BoxDied
from mutiny.faults.process import TECHNIQUE, views
from mutiny.kit.contract import StepContext
from mutiny.kit.moments import At, InterruptOrchestrator, KillOrchestrator
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.syscalls import policies
from mutiny.syscalls.calls import Call
from mutiny.syscalls.policies import is_below
from mutiny.syscalls.supervisor import Supervisor
from mutiny.system.files import BoxPath
from mutiny.targets.kit.combinations import as_result, unable
from mutiny.targets.kit.marks import Inside, Pattern

HELD_S = 60.0
"""Nobody is held for longer."""
POLL_S = 0.004
"""Between two looks for a moment that nobody holds."""
_GIT = """\
#!/bin/sh
# In front of git: waits where somebody wants it, and is git otherwise.
wait_at() {{
    if [ -s "$1" ] && [ -e "$1.reached" ]; then return; fi
    : > "$1.reached"
    n=0
    while [ -e "$1" ] && [ $n -lt 6000 ]; do sleep 0.01; n=$((n + 1)); done
}}
{before}{after}exec {git} "$@"
"""
_BEFORE = """\
case "$*" in {pattern}) [ -e {hold} ] && wait_at {hold};; esac
"""
_AFTER = """\
case "$*" in {pattern}) if [ -e {hold} ]; then
    {git} "$@"; code=$?
    wait_at {hold}
    exit $code
fi;; esac
"""


@dataclass(frozen=True, kw_only=True)
class MomentSpec:
    """How one moment is told."""

    event: Pattern = ""
    """A line of the target's event log."""
    file: Inside = ""
    """A file that is being written (`*`: anything): the command waits at its next call about it."""
    hold: str = ""
    """A double waits there."""
    git: str = ""
    """A git command waits before it does anything: a pattern of its arguments, as `sh` reads it."""
    after: bool = False
    """It waits when it has done its work, and has not answered."""

    @property
    def told(self) -> bool:
        """Can it be told at all?"""
        return bool(self.event or self.file or self.hold or self.git)


def ready_for_moments(live: Any, operations: Sequence[Operation]) -> None:
    """Put what waits in front of git, where a planned moment needs it."""
    wanted = {part.moment for one in operations for part in walk(one) if isinstance(part, At)}
    specs = {name: live.moments[name] for name in sorted(wanted) if name in live.moments}
    if not any(spec.git for spec in specs.values()):
        return
    git, parts = shutil.which("git") or "/usr/bin/git", {"before": "", "after": ""}
    for name, spec in specs.items():
        if spec.git:
            text = _AFTER if spec.after else _BEFORE
            hold = shlex.quote(live.box.inside(live.holds / name))
            parts["after" if spec.after else "before"] += text.format(
                pattern=spec.git, hold=hold, git=git
            )
    place = live.box.files / "bin"
    place.mkdir(exist_ok=True)
    (place / "git").replace_bytes(_GIT.format(git=git, **parts).encode(), 0o755)


def at_moment(live: Any, operation: At, context: StepContext) -> OperationResult:
    """Start a command, do something at one of its moments, let it go on, and hear its answer."""
    spec = live.moments.get(operation.moment)
    if spec is None:
        return unable(f"the target's file does not say how {operation.moment} is told")
    said = _Said(live.logs())
    hold = live.holds / (spec.hold or operation.moment)
    reached = live.holds / f"{hold.name}.reached"
    reached.unlink(missing_ok=True)
    if spec.hold or spec.git:
        # Another command may come to the same moment: it is not to wait for itself.
        other = any(part.asks for part in walk(operation.then))
        hold.replace_bytes(b"one" if other else b"")
    answers: list[OperationResult] = []
    writing = None
    if spec.file:
        due = partial(_came, live, spec, reached, said)
        writing = _AtFile(live, live.filled(spec.file), due)
    given = (live, operation.operation, context, answers, writing)
    thread = threading.Thread(target=_given, args=given)
    thread.start()
    try:
        deadline = time.monotonic() + live.limit(live.spec.profile.limits.command_s)
        came = False
        while thread.is_alive() and time.monotonic() < deadline and not came:
            came = _came(live, spec, reached, said) if writing is None else writing.reached.is_set()
            if not came:
                thread.join(POLL_S)
        done = _then(live, operation, context) if came else None
    finally:
        hold.unlink(missing_ok=True)
        if writing is not None:
            writing.over.set()
    stopping.join(thread)
    if not answers:
        return unable(f"{operation.operation} could not be given")
    fired = done is not None and (done.fired is not False)
    why = "" if fired else (done.stderr if done else f"{operation.moment} never came")
    inner = (answers[0], done or OperationResult(1, stderr=why, fired=False))
    return OperationResult(0 if fired else 1, stderr=why, fired=fired, inner=inner)


def _given(
    live: Any,
    operation: Operation,
    context: StepContext,
    answers: list[OperationResult],
    writing: _AtFile | None,
) -> None:
    try:
        if writing is None:
            answers.append(live.execute(operation, context))
        else:
            answers.append(writing.run(operation, context))
    except Exception as error:  # noqa: BLE001  a thread must hand every failure back
        answers.append(unable(f"{operation}: {error!r}"))


def _came(live: Any, spec: MomentSpec, reached: BoxPath, said: _Said) -> bool:
    if (spec.hold or spec.git) and not reached.exists():
        return False
    return not spec.event or said.matches(live.logs(), spec.event)


class _AtFile:
    """A policy of the system-call engine: when it is due the command stands still at its next call about a
    file that it has begun to write, until something was done then.
    """

    def __init__(self, live: Any, pattern: str, due: Callable[[], bool]) -> None:
        self._live = live
        self._due = due
        self._parts = pattern.split("/")
        self._depth = next(index for index, part in enumerate(self._parts) if "*" in part)
        place = live.outside("/".join(self._parts[: self._depth]))
        self._place = os.path.realpath(place.host)
        self.reached, self.over = threading.Event(), threading.Event()

    def run(self, operation: Operation, context: StepContext) -> OperationResult:
        """Give the command, and hear its answer."""
        ready = self._live.sweepable(operation, context)
        if isinstance(ready, OperationResult):
            return ready
        command, tokens = ready
        with Supervisor(self, roots=[root.host for root in self._live.roots()]) as supervisor:
            answer = supervisor.run_in(
                self._live.box,
                command.argv,
                timeout_s=command.timeout_s,
                cwd=command.cwd,
                env=command.env,
                stdin=command.stdin,
            )
        if answer is None:
            raise BoxDied("the box died while a command was held")
        return replace(as_result(answer, tuple(command.argv)), tokens=tokens)

    def decide(self, call: Call, fired: int) -> policies.Action:
        """Hold it once."""
        if self.reached.is_set() or not any(map(self._meant, call.files)) or not self._due():
            return policies.CONTINUE
        return policies.Perform(self._hold)

    def _meant(self, file: str) -> bool:
        if not is_below(file, self._place) or not os.path.lexists(file):
            return False
        names = file[len(self._place) + 1 :].split("/")
        patterns = self._parts[self._depth :]
        return len(names) == len(patterns) and all(map(fnmatch, names, patterns))

    def _hold(self, call: Call) -> None:
        self.reached.set()
        self.over.wait(HELD_S)


class _Said:
    """What stands in the logs from now on."""

    def __init__(self, logs: Sequence[BoxPath]) -> None:
        self._sizes = {str(log): log.stat().st_size for log in logs}

    def matches(self, logs: Sequence[BoxPath], pattern: str) -> bool:
        """Is there a new line like this?"""
        for log in logs:
            text = log.read_from(self._sizes.get(str(log), 0)).decode(errors="replace")
            if any(re.search(pattern, line) for line in text.splitlines()):
                return True
        return False


def matching(live: Any, pattern: str) -> Iterator[BoxPath]:
    """Files of the box whose path is like this; `*` stands for a part of one name."""
    first = next(index for index, part in enumerate(pattern.split("/")) if "*" in part)
    parts = pattern.split("/")
    places = [live.outside("/".join(parts[:first]))]
    for part in parts[first:]:
        places = [
            place / name
            for place in places
            if place.is_dir()
            for name in place.names()
            if fnmatch(name, part)
        ]
    yield from places


# --- what is done at it -----------------------------------------------------------------------------------


def _then(live: Any, operation: At, context: StepContext) -> OperationResult:
    if isinstance(operation.then, KillOrchestrator | InterruptOrchestrator):
        return _end(live, operation.operation, operation.then, context)
    result: OperationResult = live.execute(operation.then, context)
    return result


def _end(
    live: Any,
    command: Operation,
    then: KillOrchestrator | InterruptOrchestrator,
    context: StepContext,
) -> OperationResult:
    """A signal to the command that runs, and where it dies, to all that it has started."""
    ready = live.sweepable(command, context)
    argv = () if isinstance(ready, OperationResult) else tuple(ready[0].argv)
    started = [one for one in live.box.processes() if one.asked_for and _same(one.argv, argv)]
    if not started:
        return OperationResult(1, stderr="the command has ended already", fired=False)
    first = started[0]
    family = {first.pid: first.start}
    if isinstance(then, InterruptOrchestrator):
        number = signal.Signals[then.signal]
        hit = live.box.signal(first.pid, first.start, number).delivered
        return OperationResult(0 if hit else 1, fired=hit, technique=f"{then.signal} by handle")
    everybody = views(live.box)
    if not then.alone:
        for process in _descendants(everybody, first.pid):
            family[process.pid] = process.start
    hit = [live.box.signal(pid, start, signal.SIGKILL).delivered for pid, start in family.items()]
    gone = all(live.box.wait_gone(pid, start, 5.0) for pid, start in family.items())
    return OperationResult(
        0 if hit[0] else 1, fired=hit[0] and gone, technique=TECHNIQUE, stderr="" if hit[0] else "?"
    )


def _same(shown: Sequence[str], argv: Sequence[str]) -> bool:
    """An interpreter may stand before a script."""
    return bool(argv) and tuple(shown[-len(argv) :]) == tuple(argv)


def _descendants(everybody: Sequence[ProcessView], pid: int) -> Iterator[ProcessView]:
    known: dict[int, list[ProcessView]] = {}
    for process in everybody:
        known.setdefault(process.parent, []).append(process)
    left = [pid]
    while left:
        for process in known.get(left.pop(), []):
            left.append(process.pid)
            yield process
