"""A live workers target in its box: operations in, plain results out.

This is the only place where a workers operation touches the world. It judges nothing.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from mutiny import stopping
from mutiny.box.box import Box
from mutiny.box.results import Command, Spawned
from mutiny.box.startup import create_box
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Limits
from mutiny.doubles.install import write_script
from mutiny.errors import TargetMissing
from mutiny.faults import files as file_faults
from mutiny.faults import process as process_faults
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.system.files import KEPT_LIMIT, BoxPath
from mutiny.system.keepsakes import Keepsake, last_words
from mutiny.targets.kit.files import fill
from mutiny.targets.kit.live import LiveTarget, as_result, unable
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.pacing import Pacing
from mutiny.targets.kit.starting import Starting, trees_of
from mutiny.targets.kit.version import program_version
from mutiny.targets.workers.daemons import MARK, Daemons
from mutiny.targets.workers.observer import Observer
from mutiny.targets.workers.spec import TargetSpec, WorkersCommand
from mutiny.targets.workers.waits import WAITS

PROMPT_REFERENCE = "{text} (ref {token})"
DYING_S = 1.0


class WorkersLive(LiveTarget):
    """One target in one box, from Reset to Reset."""

    def __init__(self, spec: TargetSpec, directory: Path, options: LiveOptions) -> None:
        self.spec = spec
        self.options = options
        self.limits: Limits = spec.profile.limits
        program = options.program
        if not os.access(program, os.X_OK):
            raise TargetMissing(f"target {spec.name}: {program} is not an executable program")
        self._directory = directory
        self.box = self._raise_walls()
        self.starting = Starting()
        self._values = {
            "program": str(program),
            "box": self.box.inside_root,
            "home": f"{self.box.inside_root}/home",
            "source": f"{self.box.inside_root}/source",
            "tmp": f"{self.box.inside_root}/tmp",
            "plant": options.plant,
        }
        self._known_daemons = Daemons(spec.daemon.argv)
        self._pacing = Pacing()
        self.observer = self._look_into(self.box)
        self._own_environment = {
            **MARK,
            **{key: fill(value, self._values) for key, value in spec.environment.items()},
        }
        self._script: dict[str, list[str]] = {}
        self._sessions: dict[str, str] = {}
        self._background: list[Spawned] = []

    def _raise_walls(self) -> Box:
        options = self.options
        return create_box(
            self._directory,
            technique=options.technique,
            network=options.network,
            read_only=trees_of(options.program, self.spec.mounts),
            environment=self._environment(options),
            doubles=options.agents == "double",
        )

    def _look_into(self, box: Box) -> Observer:
        double = self.options.agents == "double"
        return Observer(
            box,
            self.spec,
            self._values,
            double_agents=double,
            outside=self.outside,
            known_daemons=self._known_daemons,
            pacing=self._pacing,
        )

    def outside(self, inside: str) -> BoxPath:
        """A file of the box as it is reached from outside."""
        return self.fault_runner.outside(inside) if self.injured else self.box.outside(inside)

    @property
    def _environment_values(self) -> dict[str, str]:
        more = self.fault_runner.environment if self.injured else {}
        return {**self._own_environment, **more}

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        marker = self.observer.edit_marker
        self.observer.close()
        self.box.close()
        self.box = self._raise_walls()
        self.begin_again()
        self.observer = self._look_into(self.box)
        self.observer.edit_marker = marker

    def _environment(self, options: LiveOptions) -> dict[str, str]:
        if options.agents == "double":
            return {}
        return {key: os.environ[key] for key in ("ANTHROPIC_API_KEY",) if key in os.environ}

    # --- the engine's side -----------------------------------------------------------------------

    def observe(self) -> Observation:
        """One complete look."""
        seen = self.observer.observe()
        if self.injured:
            self.fault_runner.keep_copy("state", self.observer.state_path)
        return seen

    def wait_change(self, timeout_s: float) -> None:
        """Return when something visible changed, or when the time is over."""
        self.observer.wait_change(timeout_s)

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        """Carry out one operation."""
        started = time.perf_counter()
        result = self.starting.judged(operation, self._dispatch(operation, context))
        self._learn_daemon(operation, result)
        elapsed_ms = (time.perf_counter() - started) * 1000
        return replace(result, duration_ms=elapsed_ms)

    def _learn_daemon(self, operation: Operation, result: OperationResult) -> None:
        """What a successful `up` has left running is the daemon, also when it was one of several."""
        went_well = result.succeeded or any(part.succeeded for part in result.inner)
        if (
            went_well
            and self.box.alive
            and any(isinstance(part, op.Up) for part in walk(operation))
        ):
            self.observer.learn_daemon()

    def facts(self) -> dict[str, object]:
        """What plan.json says about the box."""
        return self.box.facts()

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        try:
            sessions = self.observe().sessions or frozenset()
        except OSError:  # what cannot be looked at has stopped the run already, and is told there
            sessions = frozenset()
        files = {"target_logs/" + path.name: Keepsake(path) for path in self._log_files()}
        daemon_log = ""
        if self.spec.logs.daemon:
            path = self.outside(fill(self.spec.logs.daemon, self._values))
            files["daemon.log"] = Keepsake(path)
            daemon_log = last_words(path)
        state = last_words(self.observer.state_path, KEPT_LIMIT)
        version = program_version(self.box, self.options.program)
        return Evidence(state, daemon_log, self._capture(sessions), files, version)

    def _log_files(self) -> list[BoxPath]:
        return [self.outside(fill(text, self._values)) for text in self.spec.logs.files]

    def _capture(self, sessions: frozenset[str]) -> dict[str, str]:
        """The last 100 lines of each session's pane."""
        captures = {}
        for session in sorted(sessions):
            argv = ("tmux", "capture-pane", "-p", "-S", "-100", "-t", f"={session}:")
            answer = self.box.run(argv, timeout_s=5)
            captures[session] = answer.stdout if answer.exit_code == 0 else answer.stderr
        return captures

    def close(self) -> None:
        """Kill everything in the box; its files stay."""
        self.observer.close()
        try:
            if self.injured:
                self.fault_runner.close()
        finally:
            self.box.close()

    # --- operations ----------------------------------------------------------------------------

    def _dispatch(self, operation: Operation, context: StepContext) -> OperationResult:
        combined = self.combined(operation, context)
        if combined is not None:
            return combined
        if isinstance(operation, op.Settle):
            healed = self.healed()
            if not healed.succeeded:
                return healed
        wait = WAITS.get(type(operation))
        if wait is not None:
            return wait(self.observer, self.limits, operation, context)
        handler = _HANDLERS.get(type(operation))
        if handler is not None:
            return handler(self, operation, context)
        return self._command(operation, context)

    def _command(self, operation: Operation, context: StepContext) -> OperationResult:
        command = self.spec.commands.get(_command_name(operation))
        if command is None and isinstance(operation, op.Init):
            return OperationResult(stdout="the target needs no command to be made")
        if command is None:
            return unable(f"target {self.spec.name} has no command for {operation.type}")
        values, tokens = self._operation_values(operation, context)
        if command.stop_daemon:
            process_faults.stop_daemon(self.box, self.observer.daemons(), command.stop_daemon)
        if command.background:
            return self._start_background(command, values)
        result = self._run(command, values)
        for argv in command.then if result.succeeded else ():
            follow_up = self._run(replace(command, argv=argv, then=()), values)
            if not follow_up.succeeded:
                return unable(
                    f"preparing the target failed: {' '.join(argv)}: {follow_up.stderr.strip()}"
                )
        return replace(result, tokens=tokens, details=self._details(operation, result))

    def _operation_values(
        self, operation: Operation, context: StepContext
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        values = {
            **self._values,
            "worker": op.worker_of(operation) or "",
            "model": "",
            "prompt": "",
            "message": "",
        }
        tokens: tuple[str, ...] = ()
        for argument in ("prompt", "message"):
            text = getattr(operation, argument, None)
            if isinstance(text, str):
                tokens = (context.token(),)
                values[argument] = PROMPT_REFERENCE.format(text=text, token=tokens[0])
        if isinstance(operation, op.Add):
            values["model"] = operation.model
        return values, tokens

    def _run(self, command: WorkersCommand, values: Mapping[str, str]) -> OperationResult:
        argv = tuple(fill(word, values) for word in command.argv)
        spoken = Command(
            argv,
            self._time_limit(command),
            self._values["source"],
            self._environment_values,
            command.stdin.encode(),
        )
        ended = self.fault_runner.run(spoken) if self.injured else self.box.run_many([spoken])[0]
        if not ended.timed_out:
            self._pacing.took(ended.duration_s)
        return as_result(ended, argv)

    def _time_limit(self, command: WorkersCommand) -> float:
        return self._pacing.now().lag(command.timeout_s or self.limits.command_s)

    def _start_background(
        self, command: WorkersCommand, values: Mapping[str, str]
    ) -> OperationResult:
        """Start a command that stays in the foreground, and wait until it says that it is ready."""
        argv = tuple(fill(word, values) for word in command.argv)
        log = self.box.files / "tmp" / f"background-{len(self._background)}.log"
        log.unlink(missing_ok=True)  # a kept state has the log of a former daemon
        started = time.perf_counter()
        spawned = self.box.spawn(
            self.fault_runner.wrapped(argv) if self.injured else argv,
            cwd=self._values["source"],
            env=self._environment_values,
            output=self.box.inside(log),
        )
        self._background.append(spawned)
        self._known_daemons.started((spawned.pid, spawned.start))
        deadline = time.monotonic() + self._time_limit(command)
        ready = re.compile(command.ready)
        while time.monotonic() < deadline:
            text = log.read_said()
            if ready.search(text):
                return OperationResult(
                    0, text, "", argv=argv, target_ms=(time.perf_counter() - started) * 1000
                )
            ended = self.box.wait_ended(spawned, 0)
            if ended is not None:
                text = log.read_said()
                return OperationResult(
                    ended.exit_code,
                    text,
                    text,
                    signal=ended.signal,
                    argv=argv,
                    target_ms=(time.perf_counter() - started) * 1000,
                )
            self.wait_change(0.05)
        return OperationResult(
            None, log.read_said(), "never said that it is ready", timed_out=True, argv=argv
        )

    def _details(self, operation: Operation, result: OperationResult) -> dict[str, object]:
        if not isinstance(operation, op.Status) or not self.spec.status_daemon:
            return {}
        try:
            start = result.stdout.index("{")
            return {"daemon_running": json.loads(result.stdout[start:])[self.spec.status_daemon]}
        except (ValueError, KeyError):
            return {"unparsed": True}

    def sweepable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means, ready for the system-call engine."""
        spoken = self.spec.commands.get(_command_name(operation))
        if spoken is None or spoken.background:
            return unable(f"{operation.type} is no command of {self.spec.name} that can be swept")
        values, tokens = self._operation_values(operation, context)
        command = Command(
            tuple(fill(word, values) for word in spoken.argv),
            self._time_limit(spoken),
            self._values["source"],
            self._environment_values,
            spoken.stdin.encode(),
        )
        return command, tokens

    def roots(self) -> tuple[BoxPath, ...]:
        """The directories whose changes count: the target's state and the user's repository."""
        return (self.observer.state_path.parent, self.box.files / "source")

    # --- what the faults of the library ask for ---------------------------------------------------

    @property
    def program_path(self) -> Path:
        """The target's program."""
        return self.options.program

    def places(self) -> dict[str, str]:
        """Directories and files by their words, as the box sees them."""
        state = str(PurePosixPath(fill(self.spec.state.file, self._values)).parent)
        own = {name: fill(text, self._values) for name, text in self.spec.places.items()}
        return {"state": state, **super().places(), **own}

    def parties(self) -> dict[str, str]:
        """Addresses by their words: those of the target's file, and the whole network."""
        return {**super().parties(), **self.spec.parties}

    def file(self, word: str) -> str:
        """One file by its word, as the box sees it."""
        return fill(self.spec.state.file, self._values) if word == "state" else self.place(word)

    def processes_of(self, role: str, worker: str | None) -> tuple[ProcessView, ...]:
        """The processes of a role; one that is just being restarted is waited for."""
        return self._await(lambda: self._role(role, worker))

    def look_again(self) -> None:
        """Files are elsewhere from now on, or Mutiny itself has just damaged one."""
        self.observer.forgive_writes()
        self.observer.close()

    def damaged(self, word: str, left: bytes | None) -> None:
        """Mutiny itself has just made this of a file."""
        if word == "state":
            self.observer.left_damaged(left)

    def bystanders(self, operation: Operation) -> tuple[ProcessView, ...]:
        """The target's daemon, unless the command waits for the daemon's answer."""
        return () if isinstance(operation, op.Down | op.Doctor) else self.observer.daemons()

    # --- control and faults ----------------------------------------------------------------------

    def _sleep(self, operation: Any, context: StepContext) -> OperationResult:
        stopping.sleep(operation.seconds)
        return OperationResult()

    def _behave(self, operation: Any, context: StepContext) -> OperationResult:
        self.observer.received.refresh()
        done = self.observer.received.turns(operation.worker)
        self._script[operation.worker] = ["obey"] * done + list(operation.turns)
        write_script(self.box.files / "doubles", self._script)
        return OperationResult()

    def _await(self, find: Callable[[], tuple[ProcessView, ...]]) -> tuple[ProcessView, ...]:
        """Processes of a role; a role that is just being restarted is waited for."""
        deadline = time.monotonic() + self.limits.recover_s
        while True:
            found = find()
            if found or time.monotonic() >= deadline:
                return found
            self.wait_change(0.05)

    def _kill_daemon(self, operation: Operation, context: StepContext) -> OperationResult:
        return process_faults.kill(self.box, self.observer.daemons(), "daemon")

    def _session_of(self, worker: str) -> str:
        """The worker's session; when the state is unreadable just now, the one it had."""
        view = self.observer.state().workers.get(worker)
        if view is not None:
            self._sessions[worker] = view.session
        return self._sessions.get(worker, "")

    def _kill_session(self, operation: Any, context: StepContext) -> OperationResult:
        """End a session and see its agent go; one that is just being restarted is waited for."""
        before = context.before.workers.get(operation.worker)
        if before is not None:
            self._sessions.setdefault(operation.worker, before.session)
        deadline = time.monotonic() + self.limits.recover_s
        while True:
            agents = self._agents_of(operation.worker)
            result = process_faults.kill_session(
                self.box, self._session_of(operation.worker), operation.worker
            )
            if result.fired or time.monotonic() >= deadline:
                break
            self.wait_change(0.05)
        self._let_die(agents)
        return result

    def _kill_server(self, operation: Operation, context: StepContext) -> OperationResult:
        agents = process_faults.alive_among(self.box, self.observe().agents or ())
        result = process_faults.kill(self.box, self._await(self._tmux_servers), "tmux server")
        self._let_die(agents)
        return result

    def _let_die(self, agents: tuple[ProcessView, ...]) -> None:
        """An agent whose terminal is gone ends by itself; give it a moment, so that the fault is
        complete.
        """
        for agent in agents:
            self.box.wait_gone(agent.pid, agent.start, DYING_S)

    def _tmux_servers(self) -> tuple[ProcessView, ...]:
        return process_faults.tmux_servers(self.box)

    def _agents_of(self, worker: str) -> tuple[ProcessView, ...]:
        agents = [agent for agent in self.observe().agents or () if agent.worker == worker]
        return process_faults.alive_among(self.box, agents)

    def _kill_agent(self, operation: Any, context: StepContext) -> OperationResult:
        agents = self._await(lambda: self._agents_of(operation.worker))
        return process_faults.kill(self.box, agents, "agent")

    def _pause(self, operation: Any, context: StepContext) -> OperationResult:
        found = self._await(lambda: self._role(operation.role, operation.worker))
        with process_faults.paused(self.box, found) as pause:
            if not pause.fired:
                return OperationResult(1, stderr=f"no {operation.role} to pause", fired=False)
            if operation.during is None:
                stopping.sleep(operation.seconds)
                return OperationResult(technique=process_faults.PAUSE, fired=True)
            # A command that hangs on the stopped process must not hang for ever.
            release = threading.Timer(operation.seconds, pause.end)
            release.start()
            try:
                inner = self.execute(operation.during, context)
                stopping.join(release)
            finally:
                release.cancel()  # the pause ends here in any case
        return replace(inner, inner=(inner,), technique=process_faults.PAUSE, fired=True)

    def _role(self, role: str, worker: str | None) -> tuple[ProcessView, ...]:
        if role == "daemon":
            return self.observer.daemons()
        return self._tmux_servers() if role == "tmux" else self._agents_of(worker or "")

    def _corrupt(self, operation: Any, context: StepContext) -> OperationResult:
        deadline = time.monotonic() + self.limits.recover_s
        while True:
            result, left = file_faults.corrupt(self.observer.state_path, operation.how)
            self.observer.forgive_writes()
            if result.fired:
                self.observer.left_damaged(left)
            if result.fired or time.monotonic() >= deadline:
                return result
            self.wait_change(0.05)  # an earlier fault took it away; the target is putting it back

    def _dirty_source(self, operation: Any, context: StepContext) -> OperationResult:
        source = self.box.files / "source"
        if operation.undo:
            self.observer.edit_marker = None
            return file_faults.clean_source(self.box, self._values["source"])
        result, marker = file_faults.dirty_source(source)
        self.observer.edit_marker = marker
        return result

    def _move_source(self, operation: Any, context: StepContext) -> OperationResult:
        return file_faults.move_source(self.box, self._values["source"], operation.path)


Handler = Callable[[WorkersLive, Any, StepContext], OperationResult]

_HANDLERS: dict[type[Operation], Handler] = {
    op.Sleep: WorkersLive._sleep,
    op.Behave: WorkersLive._behave,
    op.KillDaemon: WorkersLive._kill_daemon,
    op.KillTmuxSession: WorkersLive._kill_session,
    op.KillTmuxServer: WorkersLive._kill_server,
    op.KillAgent: WorkersLive._kill_agent,
    op.PauseProcess: WorkersLive._pause,
    op.CorruptState: WorkersLive._corrupt,
    op.DirtySource: WorkersLive._dirty_source,
    op.MoveSource: WorkersLive._move_source,
}

_COMMAND_NAMES: dict[type[Operation], str] = {
    op.Init: "init",
    op.Up: "up",
    op.Down: "down",
    op.Add: "add",
    op.Nuke: "nuke",
    op.Start: "start",
    op.Message: "message",
    op.Attach: "attach",
    op.Review: "review",
    op.Accept: "accept",
    op.Reject: "reject",
    op.Rebase: "rebase",
    op.ResetWorker: "reset",
    op.Doctor: "doctor",
    op.Status: "status",
}


def _command_name(operation: Operation) -> str:
    """The target file's name for a command; nothing for what is no command."""
    if isinstance(operation, op.Doctor) and operation.repair:
        return "repair"
    return _COMMAND_NAMES.get(type(operation), "")
