"""A live workers target in its box: operations in, plain results out.

This is the only place where a workers operation touches the world. It judges nothing.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from mutiny import stopping
from mutiny.box.results import Command
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Limits
from mutiny.doubles.install import install, write_script
from mutiny.faults import files as file_faults
from mutiny.faults import process as process_faults
from mutiny.foreign import parse
from mutiny.kit import operations as common
from mutiny.kit.answer import text_answer
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.probes import git, tmux
from mutiny.system.files import BoxPath
from mutiny.system.keepsakes import Keepsake, last_words
from mutiny.targets.kit.combinations import unable
from mutiny.targets.kit.daemons import MARK, Daemons
from mutiny.targets.kit.files import fill
from mutiny.targets.kit.live import Handler, LiveTarget
from mutiny.targets.kit.naming import UNTOLD, Names
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.pacing import at_pace
from mutiny.targets.kit.watching import Stirs
from mutiny.targets.workers.observer import Observer
from mutiny.targets.workers.spec import VOCABULARY, TargetSpec, WorkersCommand
from mutiny.targets.workers.turns import Turns
from mutiny.targets.workers.waits import WAITS

REFERENCE = " (ref {token})"
AWKWARD_LAST = (";", "\\")
"""Characters that a shell or tmux takes for its own at the end of a text: there they stay."""
DYING_S = 1.0
FORK_S = 1.0
GIT_S = 10.0
"""So long a child of a killed daemon may take until it is somebody else to see."""


class WorkersLive(LiveTarget):
    """One target in one box, from Reset to Reset."""

    waits = WAITS
    settling = common.Settle

    def __init__(self, spec: TargetSpec, directory: Path, options: LiveOptions) -> None:
        self.spec = spec
        self.limits: Limits = spec.profile.limits
        super().__init__(spec, directory, options, doubles=options.agents == "double")
        if self.options.agents == "double" and spec.agents:
            install(self.box.files / "bin", self.box.files / "doubles", names=spec.agents)
        self._known_daemons = Daemons(spec.daemon.argv)
        self.names = Names(kept=self.box.files / "doubles" / "names.json")
        self._turns = Turns(self.names)
        self._sessions: dict[str, str] = {}
        self._background = 0
        self._look_into_box()

    def _look_into_box(self) -> None:
        self.observer = Observer(
            self.box,
            self.spec,
            self.values,
            double_agents=self.options.agents == "double",
            outside=self.outside,
            known_daemons=self._known_daemons,
            pacing=self.pacing,
            environment=self.environment,
            names=self.names,
        )
        self.changes = self.observer.changes

    def secrets(self) -> Mapping[str, str]:
        """The key of real agents."""
        if self.options.agents == "double":
            return {}
        return {key: os.environ[key] for key in ("ANTHROPIC_API_KEY",) if key in os.environ}

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get: a mark, too, by which what they leave running is known."""
        return {**MARK, **super().environment(worker)}

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        marker = self.observer.edit_marker
        super().reopen()
        self._look_into_box()
        self.observer.edit_marker = marker

    # --- the engine's side -----------------------------------------------------------------------

    def observe(self) -> Observation:
        """One complete look."""
        seen = self.observer.observe()
        self._script()
        if self.injured:
            self.fault_runner.keep_copy("state", self.observer.state_path)
        return seen

    def learn(self, operation: Operation, result: OperationResult) -> None:
        """What a successful `up` has left running is the daemon, also when it was one of several; and a
        program that names its workers itself has told a name.
        """
        self._hear_name(operation, result)
        went_well = result.succeeded or any(part.succeeded for part in result.inner)
        ups = any(isinstance(part, op.Up) for part in walk(operation))
        if went_well and self.box.alive and ups:
            self.observer.learn_daemon()

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        try:
            sessions = self.observe().sessions or frozenset()
        except OSError:  # what cannot be looked at has stopped the run already, and is told there
            sessions = frozenset()
        files, log = self.kept(self.spec.logs.files), ""
        if self.spec.logs.daemon:
            path = self.outside(self.filled(self.spec.logs.daemon))
            files["daemon.log"] = Keepsake(path)
            log = last_words(path)
        return self.told(log, files, self._capture(sessions))

    def _capture(self, sessions: frozenset[str]) -> dict[str, str]:
        """The last 100 lines of each session's pane."""
        captures = {}
        for session in sorted(sessions):
            argv = ("tmux", "capture-pane", "-p", "-S", "-100", "-t", tmux.pane(session))
            answer = self.box.run(argv, timeout_s=5)
            captures[session] = answer.stdout if answer.exit_code == 0 else answer.stderr
        return captures

    # --- operations ----------------------------------------------------------------------------

    def command(self, operation: Operation, context: StepContext) -> OperationResult:
        """Say one command and hear its answer."""
        command = self.spec.commands.get(_command_name(operation))
        if command is None and isinstance(operation, op.Init):
            return OperationResult(stdout="the target needs no command to be made")
        if command is None:
            return self.lacking(operation)
        told = isinstance(operation, op.Add) and bool(operation.prompt)
        if told and not self.spec.takes_prompts:
            return unable(f"{self.spec.name} takes no prompt with `add`: {operation}")
        unsaid = self._nameless(operation)
        if unsaid is not None:
            return unsaid
        values, tokens = self._operation_values(operation, context)
        if command.stop_daemon:
            process_faults.stop_daemon(self.box, self.observer.daemons(), command.stop_daemon)
        if command.background:
            return self._start_background(command, values)
        result = self.run(self._said(command, values))
        for argv in command.then if result.succeeded else ():
            follow_up = self.run(self._said(replace(command, argv=argv), values))
            if not follow_up.succeeded:
                return unable(
                    f"preparing the target failed: {' '.join(argv)}: {follow_up.stderr.strip()}"
                )
        if isinstance(operation, op.Add) and result.succeeded and self._untold(result):
            return unable(f"{UNTOLD} {operation.worker}: {result.stdout.strip()[:200]!r}")
        self._hear_name(operation, result)
        own = self.names.mentioned(common.worker_of(operation))
        return replace(result, tokens=tokens, details={**self._details(operation, result), **own})

    # --- names that the program gives ------------------------------------------------------------

    def _nameless(self, operation: Operation) -> OperationResult | None:
        """Why a command cannot be said to a program that names its workers itself; None when it can."""
        worker = common.worker_of(operation)
        if self.spec.takes_names or worker is None:
            return None
        there = self.observer.state().workers
        if not isinstance(operation, op.Add):
            # Where nobody works on by himself, who is not shown now is not there.
            unsure = worker in self.names.untold
            lost = self.observer.strangers or not self.spec.profile.daemonless
            return unable(f"{UNTOLD} {worker}") if unsure and lost else None
        if worker in there:
            return OperationResult(stdout=f"there is a {worker}: nobody else is asked for")
        if not self._turns.can_be_told(worker):
            return unable(f"two that are new at once cannot be told apart: {worker}")
        self.names.ask(worker)
        self._script()
        return None

    def _untold(self, result: OperationResult) -> bool:
        """Does an answer to `add` that should tell a name tell none?"""
        told = self.spec.commands["add"].answer
        return "(?P<worker>" in told and re.search(told, result.stdout) is None

    def _hear_name(self, operation: Operation, result: OperationResult) -> None:
        """What an answer to `add` tells, also of one that was broken or one of several."""
        for part, answer in zip(operation.children(), result.inner, strict=False):
            self._hear_name(part, answer)
        told = self.spec.commands["add"].answer
        if not isinstance(operation, op.Add) or "(?P<worker>" not in told:
            return
        match = re.search(told, result.stdout)
        if match is not None:
            self.names.learn(operation.worker, match["worker"])

    def _script(self) -> None:
        """Agents are told how to behave by the names of their directories, as soon as these are known."""
        script = self._turns.script(self.observer.places)
        if script is not None:
            write_script(self.box.files / "doubles", script)

    def _said(self, command: WorkersCommand, values: Mapping[str, str]) -> Command:
        return self.spoken(
            self.worded(command, values), command.timeout_s, stdin=fill(command.stdin, values)
        )

    def _operation_values(
        self, operation: Operation, context: StepContext
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        worker = common.worker_of(operation) or ""
        own = self.names.own(worker)
        values = {**self.values, "worker": own, "model": "", "prompt": "", "message": ""}
        tokens: tuple[str, ...] = ()
        for argument in ("prompt", "message"):
            text = getattr(operation, argument, None)
            if isinstance(text, str) and (text or not isinstance(operation, op.Add)):
                tokens = (context.token(),)
                values[argument] = _referenced(text, tokens[0])
        if isinstance(operation, op.Add):
            values["model"] = operation.model
        return values, tokens

    def _start_background(
        self, command: WorkersCommand, values: Mapping[str, str]
    ) -> OperationResult:
        """Start a daemon that stays in the foreground."""
        argv = [fill(word, values) for word in command.argv]
        log = self.box.files / "tmp" / f"background-{self._background}.log"
        self._background += 1
        limit_s = command.timeout_s or self.limits.command_s
        spawned, result = self.start(argv, command.ready, limit_s, log)
        self._known_daemons.started((spawned.pid, spawned.start))
        return result

    def _details(self, operation: Operation, result: OperationResult) -> dict[str, object]:
        if not isinstance(operation, op.Status) or not self.spec.status_daemon:
            answer = text_answer(result, {}).said
            said = answer.get("worker")
            named = {"named": self.names.ours(said)} if isinstance(said, str) else {}
            return {**named, **self._changed(operation, answer)}
        try:
            told = parse(result.stdout[result.stdout.index("{") :])
            shown: dict[str, object] = {"daemon_running": told[self.spec.status_daemon]}
        except (ValueError, KeyError):
            return {"unparsed": True}
        if self.spec.status_workers:
            shown["workers"] = self.observer.told_of(told, self.spec.status_workers)
        return shown

    def _changed(self, operation: Operation, said: Mapping[str, Any]) -> dict[str, object]:
        """What git names of a change that is shown: with files that were renamed under one name, or two."""
        commit, shown = said.get("commit_sha"), said.get("changed_files")
        review = isinstance(operation, op.Review | op.ReviewNext)
        if not review or not isinstance(shown, list) or not isinstance(commit, str) or not commit:
            return {}
        source = str(self.values["source"])
        between = f"{self.spec.git.default_branch}...{commit}"
        diff = ("git", *git.PLAIN, "-C", source, "diff", "--name-only")
        asked = [
            self.box.run((*diff, how, between), cwd=source, timeout_s=GIT_S)
            for how in ("--find-renames", "--no-renames")
        ]
        if any(one.exit_code != 0 for one in asked):
            return {}
        return {"changed": [one.stdout.splitlines() for one in asked]}

    def sweepable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means, ready for the system-call engine; others' commits and edits
        are command lines, too.
        """
        if isinstance(operation, op.MoveSource):
            return self.spoken(file_faults.commit_argv(operation.path), None), ()
        if operation == op.DirtySource():
            edited = self.box.files / "source" / file_faults.EDITED_FILE
            self.observer.edit_marker = (edited, file_faults.EDIT_MARKER)
            return self.spoken(file_faults.edit_argv(), None), ()
        spoken = self.spec.commands.get(_command_name(operation))
        if spoken is None or spoken.background:
            return unable(f"{operation.type} is no command of {self.spec.name} that can be swept")
        unsaid = self._nameless(operation)
        if unsaid is not None:
            return unsaid if not unsaid.succeeded else unable(unsaid.stdout)
        values, tokens = self._operation_values(operation, context)
        return self._said(spoken, values), tokens

    def roots(self) -> tuple[BoxPath, ...]:
        """The directories whose changes count: the target's state and the user's repository."""
        return (self.outside(self.state_directory()), self.box.files / "source")

    # --- what the faults of the library ask for ---------------------------------------------------

    @property
    def patience_s(self) -> float:
        """How long something that is being restarted is waited for."""
        return self.limits.recover_s

    def processes_of(self, role: str, worker: str | None) -> tuple[ProcessView, ...]:
        """The processes of a role; one that is just being restarted is waited for."""
        return self.awaited(lambda: self._role(role, worker))

    def look_again(self) -> None:
        """Files are elsewhere from now on, or Mutiny itself has just damaged one."""
        self.observer.forgive_writes()
        self.changes.close()

    def damaged(self, word: str, left: bytes | None) -> None:
        """Mutiny itself has just made this of a file."""
        if word == "state":
            self.observer.left_damaged(left)

    def bystanders(self, operation: Operation) -> tuple[ProcessView, ...]:
        """The target's daemon, unless the command waits for the daemon's answer."""
        return () if isinstance(operation, op.Down | op.Doctor) else self.observer.daemons()

    # --- control and faults ----------------------------------------------------------------------

    def _behave(self, operation: op.Behave, context: StepContext) -> OperationResult:
        self.observer.received.refresh()
        turns = [at_pace(turn, self.pacing.now()) for turn in operation.turns]
        places = {place for place, one in self.observer.places.items() if one == operation.worker}
        places.add(self.names.own(operation.worker))
        done = {place: self.observer.received.turns(place) for place in places}
        self._turns.set(operation.worker, turns, done)
        self._script()
        return OperationResult()

    def _type_in(self, operation: op.TypeIn, context: StepContext) -> OperationResult:
        token, pane = context.token(), tmux.pane(self._session_of(operation.worker))
        typed = ("tmux", "send-keys", "-t", pane, "-l", _referenced(operation.message, token))
        answer = self.box.run((*typed, ";", "send-keys", "-t", pane, "Enter"), timeout_s=5)
        if answer.exit_code != 0:
            return unable(f"nothing could be typed: {answer.stderr.strip()}")
        return OperationResult(tokens=(token,))

    def _neighbour(self, operation: op.Neighbour, context: StepContext) -> OperationResult:
        if self.observer.neighbour is not None:
            return OperationResult(stdout="somebody is there already")
        if re.search(self.spec.sessions, NEIGHBOUR[0]):
            return unable(f"sessions of any name are the target's: {self.spec.sessions}")
        answer = self.run(self.spoken(("sh", "-c", SETTLE_BESIDE, "sh", *NEIGHBOUR), None))
        if not answer.succeeded:
            return unable(f"nobody could settle beside the target: {answer.stderr.strip()}")
        self.observer.neighbour = (*NEIGHBOUR, answer.stdout.split()[-1])
        return OperationResult(stdout=f"session {NEIGHBOUR[0]}, branch {NEIGHBOUR[1]}")

    def _kill_daemon(self, operation: op.KillDaemon, context: StepContext) -> OperationResult:
        daemons = self.observer.daemons()
        if operation.during is None or not daemons:
            return self._daemon_gone(process_faults.kill(self.box, daemons, "daemon"))
        watched = Stirs(self.observer.state_path, self.limits.lag_s)
        with watched as stirs, ThreadPoolExecutor(1) as aside:

            def strike() -> OperationResult:
                seen = stirs.wait(operation.changes)
                killed = process_faults.kill(self.box, daemons, "daemon")
                said = f"{killed.technique}, after {len(seen)} changes"
                return replace(killed, technique=said, details={"changes": seen})

            struck = aside.submit(strike)
            try:
                inner = self.execute(operation.during, context)
            finally:
                stirs.answered()
            killed = self._daemon_gone(struck.result())
        return replace(
            inner,
            inner=(inner,),
            technique=killed.technique,
            fired=killed.fired,
            details={**inner.details, **killed.details},
        )

    def _daemon_gone(self, killed: OperationResult) -> OperationResult:
        """A child that the daemon had just forked looks like it until it starts its own program: what is
        seen next must not be taken for a daemon that runs.
        """
        deadline = time.monotonic() + FORK_S
        while killed.fired and self.observer.daemons() and time.monotonic() < deadline:
            stopping.sleep(0.01)
        return killed

    def _session_of(self, worker: str) -> str:
        """The worker's session; when the state is unreadable just now, the one it had."""
        view = self.observer.state().workers.get(worker)
        if view is not None:
            self._sessions[worker] = view.session
        return self._sessions.get(worker, "")

    def _kill_session(self, operation: op.KillTmuxSession, context: StepContext) -> OperationResult:
        """End a session and see its agent go; one that is just being restarted is waited for."""
        before = context.before.workers.get(operation.worker)
        if before is not None:
            self._sessions.setdefault(operation.worker, before.session)

        def attempt() -> tuple[OperationResult, tuple[ProcessView, ...]]:
            agents = self._agents_of(operation.worker)
            session = self._session_of(operation.worker)
            return process_faults.kill_session(self.box, session, operation.worker), agents

        result, agents = self.retried(attempt, lambda tried: bool(tried[0].fired))
        self._let_die(agents)
        return result

    def _kill_server(self, operation: op.KillTmuxServer, context: StepContext) -> OperationResult:
        agents = process_faults.alive_among(self.box, self.observe().agents or ())
        result = process_faults.kill(self.box, self.awaited(self._tmux_servers), "tmux server")
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

    def _kill_agent(self, operation: op.KillAgent, context: StepContext) -> OperationResult:
        agents = self.awaited(lambda: self._agents_of(operation.worker))
        return process_faults.kill(self.box, agents, "agent")

    def _pause(self, operation: op.PauseProcess, context: StepContext) -> OperationResult:
        found = self.awaited(lambda: self._role(operation.role, operation.worker))
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

    def _corrupt(self, operation: op.CorruptState, context: StepContext) -> OperationResult:
        def attempt() -> OperationResult:
            result, left = file_faults.corrupt(self.observer.state_path, operation.how)
            self.observer.forgive_writes()
            if result.fired:
                self.observer.left_damaged(left)
            return result

        # An earlier fault may have taken it away; then the target is putting it back.
        return self.retried(attempt, lambda result: bool(result.fired))

    def _dirty_source(self, operation: op.DirtySource, context: StepContext) -> OperationResult:
        source = self.box.files / "source"
        if operation.undo:
            self.observer.edit_marker = None
            return file_faults.clean_source(self.box, self.values["source"])
        if operation.how == "edit":
            result, self.observer.edit_marker = file_faults.dirty_source(source)
            return result
        result, marker = file_faults.begin_in_source(
            self.box, self.values["source"], operation.how, operation.path
        )
        if marker is not None:
            self.observer.edit_marker = marker
        return result

    def _move_source(self, operation: op.MoveSource, context: StepContext) -> OperationResult:
        return file_faults.move_source(self.box, self.values["source"], operation.path)

    def _assert_author(self, operation: op.AssertAuthor, context: StepContext) -> OperationResult:
        branch = f"refs/heads/{self.spec.git.default_branch}"
        place = ("-C", self.values["source"])
        argv = ("git", *git.PLAIN, *place, "log", "-1", "--format=%an", branch, "--")
        answer = self.box.run(argv, timeout_s=5)
        if answer.exit_code != 0:
            return unable(f"git does not tell of {branch}: {answer.stderr}")
        author = answer.stdout.strip()
        if author == operation.worker:
            return OperationResult(stdout=author)
        return OperationResult(1, stderr=f"its author is {author}, not {operation.worker}")

    handlers: ClassVar[Mapping[type[Operation], Handler]] = {
        op.AssertAuthor: _assert_author,
        op.Behave: _behave,
        op.TypeIn: _type_in,
        op.Neighbour: _neighbour,
        op.KillDaemon: _kill_daemon,
        op.KillTmuxSession: _kill_session,
        op.KillTmuxServer: _kill_server,
        op.KillAgent: _kill_agent,
        op.PauseProcess: _pause,
        op.CorruptState: _corrupt,
        op.DirtySource: _dirty_source,
        op.MoveSource: _move_source,
    }


NEIGHBOUR = ("notes", "somebodys-idea")
"""The session and the branch of somebody else."""
SETTLE_BESIDE = """
set -e
commit=$(git commit-tree -p HEAD -m 'Not ready yet' 'HEAD^{tree}')
git update-ref "refs/heads/$2" "$commit"
tmux new-session -d -s "$1" 'exec sleep 1000000'
echo "$commit"
"""

_COMMAND_OF = {
    operation: name for name, operation in VOCABULARY.commands.items() if name != "repair"
}


def _command_name(operation: Operation) -> str:
    """The target file's name for a command; nothing for what is no command."""
    if isinstance(operation, op.Doctor) and operation.repair:
        return "repair"
    return _COMMAND_OF.get(operation.type, "")


def _referenced(text: str, token: str) -> str:
    """A text with the token by which its work is found again."""
    last = text[-1:] if text.endswith(AWKWARD_LAST) else ""
    return text.removesuffix(last) + REFERENCE.format(token=token) + last
