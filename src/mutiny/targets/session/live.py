"""A program of long sessions live in one box: the session, the model's API, and the clock of both."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.knobs import NAMES
from mutiny.contracts.session.observation import ENDED, SessionSeen, SessionView
from mutiny.faults.clock import DEFAULT_PAGE, ClockPage
from mutiny.faults.process import view_of
from mutiny.faults.settings import wrong_setting
from mutiny.foreign import parse
from mutiny.kit import faults
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.kit.combinations import unable
from mutiny.targets.kit.commands import DaemonlessTarget
from mutiny.targets.kit.live import Handler
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.waits import Wait, until
from mutiny.targets.session import troubles
from mutiny.targets.session.file_observer import FileObserver
from mutiny.targets.session.model_api import ModelApi
from mutiny.targets.session.notes import Notes
from mutiny.targets.session.observer import Observer
from mutiny.targets.session.recorder import FILE, Recorder, last_line, with_all_fields
from mutiny.targets.session.spec import SessionSpec

NEEDS_API = (op.StartSession, op.Recover, op.Continue)
LOOK_S = 0.1
NOWHERE = "http://127.0.0.1:9"
"""An address for commands that ask no model: some programs refuse to start without one."""
WRITTEN = "{home}/written.json"
"""Where a command writes its answer that is to be in a file, too."""


class SessionLive(DaemonlessTarget):
    """One program of sessions in one box."""

    spec: SessionSpec

    def __init__(self, spec: SessionSpec, directory: Path, options: LiveOptions) -> None:
        super().__init__(spec, directory, options)
        self.built: Mapping[str, Any] | None = None
        self.heedless_s = 0.0
        """For so long it had too little memory, just now, and did nothing about it."""
        self.api = ModelApi(self.box.files / "model-api", keeps_requests=spec.keeps_requests)
        self.notes = Notes(self.box.files / "model-api" / "notes.json")
        self.observer, self.sampling = (
            (Observer(self) if spec.form is None else FileObserver(self)) for _ in range(2)
        )
        """For the thread that records: it reads for itself."""
        self.recorder: Recorder | None = None
        self.jumped_s = 0.0
        """How far the wall clock was moved by faults."""
        self._rate = 1.0
        self._directory_of_run = directory.parent

    # --- time ----------------------------------------------------------------------------------------

    @property
    def page(self) -> ClockPage | None:
        """The clock of the box, where it can be bent."""
        clocks = self.fault_runner.clocks if self.injured else None
        return None if clocks is None else clocks[DEFAULT_PAGE]

    @property
    def rate(self) -> float:
        """How many seconds of session time pass in a real one."""
        return self._rate

    def events(self) -> tuple[Mapping[str, Any], ...]:
        """What the newest session has written down."""
        names = self.observer.names()
        return self.observer.events(names[-1]) if names else ()

    def session_now(self) -> float:
        """What time it is in the box, had no fault moved its clock."""
        bent = 0.0 if self.page is None else self.page.offset_s - self.jumped_s
        return time.time() + bent

    # --- the engine's side ---------------------------------------------------------------------------

    def prepare(self, operations: Sequence[Operation]) -> None:
        """Clocks and disks must be there before anybody lives by them."""
        parts = [part for one in operations for part in walk(one)]
        bent = any(
            isinstance(part, op.ClockJump)
            or (isinstance(part, op.StartSession | op.Record) and part.rate != 1)
            for part in parts
        )
        # Whatever is planned for a clock makes the runner prepare one.
        skews = (faults.SkewClock(offset_s=1.0, lasting=True),) if bent else ()
        super().prepare((*operations, *skews))
        if any(isinstance(part, op.DiskFull) or _fills_the_disk(part) for part in parts):
            self.outside(self.state_directory()).mkdir(parents=True, exist_ok=True)
            self.fault_runner.own_disk("state")

    def close(self) -> None:
        """Kill everything in the box; its files stay."""
        if self.recorder is not None:
            self.recorder.close()
            self.recorder = None
        super().close()

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        self.api.died()
        super().reopen()

    def observe(self) -> SessionSeen:
        """One complete look."""
        return self.observer.observe()

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get: the place of the model's API, too."""
        self.values["api"] = self.api.url or NOWHERE
        return super().environment(worker)

    def roots(self) -> tuple[BoxPath, ...]:
        """The directory whose changes count."""
        return (self.outside(self.state_directory()),)

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        logs = [*self._session_files("supervisor.log"), *self._session_files("events.jsonl")]
        return self.told("\n".join(one.read_said() for one in logs), self.kept(self.spec.logs))

    def _session_files(self, name: str) -> list[BoxPath]:
        place = self.observer.place()
        return [place / one / name for one in self.observer.names()]

    # --- commands ------------------------------------------------------------------------------------

    def command(self, operation: Operation, context: StepContext) -> OperationResult:
        """Say one command and hear its answer."""
        if isinstance(operation, NEEDS_API):
            self.built = None
        if isinstance(operation, op.StartSession):
            self._hurry(max(self._rate, operation.rate))
        if isinstance(operation, NEEDS_API):
            self._serve(getattr(operation, "project", self.notes.project))
        if not getattr(operation, "written", False):
            return super().command(operation, context)
        place = self.outside(self.filled(WRITTEN))
        place.unlink(missing_ok=True)
        result = super().command(operation, context)
        return replace(result, details={**result.details, "written": self._written(place)})

    def given(self, operation: Operation, context: StepContext) -> dict[str, Any]:
        """The values of a command's placeholders."""
        given = super().given(operation, context)
        if given.get("checkpoint") == op.NEWEST:
            given["checkpoint"] = None
        wanted = given.get("written")
        given["written"] = self.filled(WRITTEN) if wanted else None
        if given.get("decide") in ("first", "none"):
            vote = self._open_vote(context.before)
            none = f"{vote.partition('=')[0]}=none-of-these"
            given["decide"] = vote if given["decide"] == "first" else none
        if isinstance(operation, NEEDS_API) and not self.api.url:
            self._serve(getattr(operation, "project", self.notes.project))
        return given

    def _written(self, place: BoxPath) -> object:
        """What a command has written there; None: nothing that can be read."""
        try:
            return parse(place.read_text())
        except (OSError, ValueError):
            return None

    def _open_vote(self, seen: SessionSeen) -> str:
        """The first vote that waits for somebody, with the first of its options."""
        one = seen.session
        for row in () if one is None else reversed(list(one.of("vote.escalated"))):
            vote = str(row.get("vote"))
            options = [] if one is None else one.plan.votes.get(vote, {}).get("options", [])
            if options:
                return f"{vote}={options[0]}"
        return "nothing=nothing"

    def _serve(self, project: str) -> None:
        """The model's API runs, and knows the answers of a project."""
        known = project == self.notes.project and self.api.knows_answers
        if project and not known and self.spec.answers:
            argv = [self.filled(word).replace("{project}", project) for word in self.spec.answers]
            said = self.box.run(argv, timeout_s=self.spec.profile.limits.command_s)
            try:
                script = dict(parse(said.stdout))
                self.api.answer_by(script)
                self.notes.project = project
                self.notes.tasks = script.get("tasks", {})
            except (ValueError, KeyError, TypeError):
                pass  # a project that is not there: the command itself will say so
        if not self.api.knows_answers:
            self.api.answer_by({"rules": []})
        self.api.serve(self.box)

    # --- processes -----------------------------------------------------------------------------------

    def processes_of(self, role: str, worker: str | None) -> tuple[ProcessView, ...]:
        """What drives the session (`daemon`), or its agents."""
        found = [one for one in self.box.processes() if one.state != "Z" and not one.asked_for]
        return tuple(map(view_of, self.observer.of_role(found, role)))

    def everybody(self) -> tuple[ProcessView, ...]:
        """All processes of the session, and whatever they have started."""
        found = (one for one in self.box.processes() if one.state != "Z" and not one.asked_for)
        return tuple(map(view_of, found))

    def bystanders(self, operation: Operation) -> tuple[ProcessView, ...]:
        """What drives a session is not needed by a command that restores it."""
        return self.everybody()

    @property
    def patience_s(self) -> float:
        """How long an agent that is just being restarted is waited for."""
        return self.limit(10.0)

    def signalled(self, views: Sequence[ProcessView], number: signal.Signals) -> int:
        """How many processes a signal has reached."""
        return sum(self.box.signal(one.pid, one.start, number).delivered for one in views)

    # --- control -------------------------------------------------------------------------------------

    def configure(self, name: str, value: str) -> bool:
        """From now on a setting is this; False: the target has no word for it."""
        if name not in self.spec.knobs or name not in NAMES:
            return False
        self.notes.set(self.spec.knobs[name], value)
        path = self.outside(self.filled(self.spec.settings))
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{key} = {_toml(text)}" for key, text in sorted(self.notes.settings.items())]
        path.replace_bytes(("\n".join(lines) + "\n").encode())
        return True

    def _configure(self, operation: op.Configure, context: StepContext) -> OperationResult:
        if not self.configure(operation.name, operation.value):
            return self.lacking(operation)
        return OperationResult()

    def _hurry(self, rate: float) -> None:
        """Time in the box passes so fast from now on."""
        self._rate = rate
        if self.page is not None:
            self.page.set(rate=rate)

    def _record(self, operation: op.Record, context: StepContext) -> OperationResult:
        """Begin to record; behind earlier lines time goes on where the last of them was due."""
        if operation.rate != 1:
            if self.page is None:
                return unable("the clock of this machine cannot be sped up")
            last = last_line(self._directory_of_run / FILE)
            if last is not None:
                reached = float(last["began"]) + float(last["session_seconds"]) + operation.every_s
                self.page.set(offset_s=reached - time.time())
        self._hurry(operation.rate)
        self.recorder = Recorder(
            self._directory_of_run,
            operation.every_s,
            self.session_now,
            lambda: self.rate,
            self._sample,
        )
        self.recorder.start()
        return OperationResult(details={"began": self.recorder.began})

    def _sample(self) -> Mapping[str, Any]:
        """The figures that the session told last, and whether it is driven."""
        names = self.sampling.names()
        if not names:
            return with_all_fields(None)
        rows = self.sampling.metrics(names[-1])
        return with_all_fields(rows[-1] if rows else None)

    def _run_until(self, operation: op.RunUntil, context: StepContext) -> OperationResult:
        if self.recorder is None:
            return unable("nobody records: there is no time to count from")
        if self.recorder.trouble:
            return unable(f"the metrics could not be written: {self.recorder.trouble}")
        return self._running_until(self.recorder.began + operation.seconds)

    def _let_run(self, operation: op.LetRun, context: StepContext) -> OperationResult:
        if not operation.misset:
            return self._running_until(self.session_now() + operation.seconds)
        path, told = self.configuration()
        if not told.numbers:
            return unable("the target's file does not tell of any setting that is a number")
        with wrong_setting(path, told.numbers[0], "text"):
            return self._running_until(self.session_now() + operation.seconds)

    def _running_until(self, due: float) -> OperationResult:
        """Session time goes on; a session that ends ends it, too."""
        while self.session_now() < due:
            if troubles.ended(self.events()):
                break
            left_s = (due - self.session_now()) / self.rate
            self.wait_change(min(LOOK_S, max(0.0, left_s)))
        return OperationResult()

    def _build(self, operation: op.BuildProject, context: StepContext) -> OperationResult:
        names = self.observer.names()
        if not names or not self.spec.build:
            return self.lacking(operation)
        place = f"{self.filled(self.spec.sessions)}/{names[-1]}/project"
        argv = [self.filled(w).replace("{project_directory}", place) for w in self.spec.build]
        done = self.box.run(argv, cwd=place, timeout_s=self.limit(120.0))
        why = "" if done.exit_code == 0 else (done.stderr or done.stdout).strip()[-400:]
        self.built = {"ok": done.exit_code == 0, "why": why, "said": done.stdout[-400:]}
        return OperationResult(details={"built": dict(self.built)})

    handlers: ClassVar[Mapping[type[Operation], Handler]] = {
        op.Configure: _configure,
        op.LetRun: _let_run,
        op.RunUntil: _run_until,
        op.Record: _record,
        op.BuildProject: _build,
        **troubles.HANDLERS,
    }


SHORT_WAIT_S = 15.0
"""So long nothing moves at most between two steps of the shortest session, on a quiet machine."""
PAUSES = (
    *("backoff_cap_s", "gate_wait_s", "vote_wait_s"),
    *("model_timeout_s", "tool_timeout_s", "test_time_s"),
)
"""Settings that say how long a session may wait for something."""

# --- waits ------------------------------------------------------------------------------------------------


def _wait_for(missing: Callable[[Any, SessionSeen], str | OperationResult]) -> Wait:
    def wait(live: SessionLive, operation: Operation, context: StepContext) -> OperationResult:
        def look(seen: SessionSeen) -> str | OperationResult:
            if seen.error is not None:
                return seen.error
            if seen.session is None:
                return unable("there is no session to wait for")
            return missing(operation, seen)

        return until(live, _patience_s(live, context), look)

    return wait


def _patience_s(live: SessionLive, context: StepContext) -> float:
    """How long nothing may move: of a session that is short as a whole, and that waits for nothing longer
    by its settings, less is waited for.
    """
    most: float = live.spec.profile.limits.wait_s
    one: SessionView | None = context.before.session
    if one is None or not one.hours or context.model is None:
        return most
    pauses = [
        float(getattr(knobs, name))
        for model in context.model.alternatives
        for knobs in model.settings
        for name in PAUSES
    ]
    rate: float = live.rate
    return min(most, SHORT_WAIT_S + one.hours * 3600 / max(1.0, rate) + max(pauses, default=most))


def _phase(operation: op.WaitForPhase, seen: SessionSeen) -> str:
    assert seen.session is not None
    reached = seen.session.phase
    return "" if reached >= operation.phase else f"it is in phase {reached}"


def _checkpoints(operation: op.WaitForCheckpoints, seen: SessionSeen) -> str:
    assert seen.session is not None
    count = sum(point.valid for point in seen.session.points)
    return "" if count >= operation.count else f"there are {count} checkpoints"


def _tasks(operation: op.WaitForTasks, seen: SessionSeen) -> str:
    assert seen.session is not None
    count = len(seen.session.done | seen.session.told_done)
    at_end = seen.session.told in ENDED
    return "" if count >= operation.count or at_end else f"{count} tasks are done"


def _status(operation: op.WaitForStatus, seen: SessionSeen) -> str | OperationResult:
    if seen.status == operation.status:
        return ""
    if seen.status != "running":
        return OperationResult(1, stderr=f"it is {seen.status}, and stays so by itself")
    return f"it is {seen.status}"


SessionLive.waits = {
    **DaemonlessTarget.waits,
    op.WaitForPhase: _wait_for(_phase),
    op.WaitForCheckpoints: _wait_for(_checkpoints),
    op.WaitForTasks: _wait_for(_tasks),
    op.WaitForStatus: _wait_for(_status),
}


def _toml(text: str) -> str:
    """A value as TOML says it: a number, or a text."""
    try:
        float(text)
    except ValueError:
        return json.dumps(text)
    return text


def _fills_the_disk(part: Operation) -> bool:
    """Is the disk on which sessions live to be full while commands come?"""
    return isinstance(part, faults.FillDisk) and part.place == "state"
