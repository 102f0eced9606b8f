"""Agents that summon agents, live in one box: the target, its providers, and what is done to them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from mutiny.contracts.spawns import operations as op
from mutiny.contracts.spawns.observation import Run, SpawnsSeen
from mutiny.doubles.providers import install
from mutiny.faults import pids
from mutiny.faults import process as process_faults
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.faults import HoldLock
from mutiny.kit.operations import Settle
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.kit.commands import DaemonlessTarget, settle
from mutiny.targets.kit.live import Handler
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.waits import Wait, until
from mutiny.targets.spawns.observer import Observer
from mutiny.targets.spawns.spec import SpawnsSpec

PATIENCE_S = 10.0
END_S = 30.0
"""Within this time a run is over at whose end somebody dies."""
NOBODY = 999_999
"""A run that there never is."""
KILL_SESSION = "SIGKILL to the session of a command right after its answer"
LOSE = "database files replaced"


def _wait_run(live: SpawnsLive, operation: op.WaitForRun, context: StepContext) -> OperationResult:
    def missing(seen: SpawnsSeen) -> str:
        run = seen.last_of(operation.agent, operation.channel)
        now = None if run is None or run.status != "running" else seen.latest(run)
        return (
            "" if now is not None and now.task is not None else f"{operation.agent} is not at work"
        )

    return until(live, live.spec.profile.limits.settle_s, missing)


def _wait_completion(
    live: SpawnsLive, operation: op.WaitForCompletion, context: StepContext
) -> OperationResult:
    def missing(seen: SpawnsSeen) -> str:
        agent, channel = operation.agent.lower(), operation.channel.lower()
        left = [
            str(run)
            for run in seen.runs.values()
            if run.agent == agent and channel in ("", run.channel) and not run.over
        ]
        return f"{left[0]} has not ended" if left else ""

    return until(live, live.spec.profile.limits.settle_s, missing)


def _wait_human(
    live: SpawnsLive, operation: op.WaitForHuman, context: StepContext
) -> OperationResult:
    def missing(seen: SpawnsSeen) -> str:
        channel = operation.channel.lower()
        called = any(one.ends and one.channel == channel for one in seen.messages.values())
        return "" if called else f"nobody has called a human in {channel}"

    return until(live, live.spec.profile.limits.settle_s, missing)


class SpawnsLive(DaemonlessTarget):
    """One target in one box."""

    spec: SpawnsSpec
    waits: ClassVar[Mapping[type[Operation], Wait]] = {
        Settle: settle,
        op.WaitForQuiet: settle,
        op.WaitForRun: _wait_run,
        op.WaitForCompletion: _wait_completion,
        op.WaitForHuman: _wait_human,
    }

    def __init__(self, spec: SpawnsSpec, directory: Path, options: LiveOptions) -> None:
        super().__init__(spec, directory, options)
        self._turns: dict[str, tuple[str, ...]] = {}
        self._set: dict[str, str] = {}
        self._kept: dict[str, bytes] = {}
        self._furnish()
        self.observer = Observer(self)

    def _furnish(self) -> None:
        """Providers in front of all others, and what they are told."""
        install.install(self.box.files / "bin", self.desk)
        self._tell()

    @property
    def desk(self) -> BoxPath:
        """What the providers read and write."""
        return self.box.files / "doubles"

    @property
    def database(self) -> BoxPath:
        """The target's database."""
        return self.outside(self.filled(self.spec.database))

    @property
    def patience_s(self) -> float:
        """How long a run that is just being started is waited for."""
        return PATIENCE_S

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get: its settings, too."""
        return {**super().environment(worker), **self._set}

    def _tell(self) -> None:
        post = [
            word if word in ("{channel}", "{text}") else self.filled(word)
            for word in self.spec.post
        ]
        install.write_script(self.desk, self._turns, send=post)

    # --- the engine's side -----------------------------------------------------------------------

    def observe(self) -> SpawnsSeen:
        """One complete look."""
        return self.observer.observe()

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        path = self.desk / install.RECEIVED_FILE
        return self.told(path.read_said() if path.exists() else "", self.kept(self.spec.logs))

    def places(self) -> dict[str, str]:
        """The database is a place of its own, which somebody may hold."""
        return {**super().places(), "database": self.filled(self.spec.database)}

    # --- commands ----------------------------------------------------------------------------------

    def given(self, operation: Operation, context: StepContext) -> dict[str, Any]:
        """The values of a command's placeholders."""
        given = super().given(operation, context)
        for name in ("detach", "follow"):
            given[name] = "yes" if given.get(name) else ""
        if isinstance(operation, op.Stop | op.Logs):
            given["run"] = self._named(operation.agent, operation.channel)
        if isinstance(operation, op.Await):
            given["runs"] = [self._named(one, operation.channel) for one in operation.agents]
        if isinstance(operation, op.Receive):
            given["most"] = operation.most or ""
        if isinstance(operation, op.Receive) and operation.again:
            given["after"] = self.observe().before_last(operation.channel, operation.again)
        return given

    def _named(self, agent: str, channel: str) -> str:
        """How the target calls the run of an agent."""
        run = self.observe().last_of(agent, channel)
        number = NOBODY if run is None else run.id
        return self.observer.names.get(number, f"s{number}")

    # --- the user's side ---------------------------------------------------------------------------

    def _behave(self, operation: op.Behave, context: StepContext) -> OperationResult:
        self._turns[operation.agent.lower()] = operation.does
        self._tell()
        return OperationResult()

    def _configure(self, operation: op.Configure, context: StepContext) -> OperationResult:
        if operation.name not in self.spec.settings:
            return self.lacking(operation)
        self._set[self.spec.settings[operation.name]] = f"{operation.value:g}"
        return OperationResult()

    # --- faults ------------------------------------------------------------------------------------

    def _run_of(self, operation: op.OfRun | op.ReusePid) -> Run | None:
        return self.observe().last_of(operation.agent, operation.channel)

    def _parts(self, operation: op.OfRun) -> tuple[ProcessView, ...]:
        """The processes of a run that lives, the supervisor first, so that it can try nothing again."""
        run = self._run_of(operation)
        if run is None or run.status != "running":
            return ()
        wanted = [run.supervisor, run.provider]
        if isinstance(operation, op.KillProvider):
            wanted = wanted[1:]
        if isinstance(operation, op.KillSupervisor):
            wanted = wanted[:1]
        known = {one.identity: one for one in process_faults.views(self.box)}
        found = tuple(known[one] for one in wanted if one is not None and one in known)
        return found if len(found) == len(wanted) else ()

    def _kill_supervisor(
        self, operation: op.KillSupervisor, context: StepContext
    ) -> OperationResult:
        """Now, or when the run is over: what he had still to do then is never done."""
        if not operation.over:
            return self._kill(operation, context)
        deadline = time.monotonic() + self.limit(END_S)
        run = self._run_of(operation)
        while run is None or not run.over:
            if time.monotonic() > deadline:
                return OperationResult(1, stderr="the run is not over", fired=False)
            self.wait_change(0.01)
            run = self._run_of(operation)
        known = {one.identity: one for one in process_faults.views(self.box)}
        there = () if run.supervisor not in known else (known[run.supervisor],)
        killed = process_faults.kill(self.box, there, f"supervisor of {run}")
        if killed.fired:
            return killed
        return replace(killed, exit_code=0, stdout="he had ended by himself", stderr="", fired=True)

    def _kill(self, operation: op.OfRun, context: StepContext) -> OperationResult:
        found = self.awaited(lambda: self._parts(operation))
        return process_faults.kill(self.box, found, f"run of {operation.agent}")

    def _kill_sender(self, operation: op.KillSender, context: StepContext) -> OperationResult:
        """Run a command; as soon as it has answered, all of its session dies."""
        ready = self.sweepable(operation.operation, context)
        if isinstance(ready, OperationResult):
            return ready
        command = ready[0]
        log = self.box.files / "tmp" / "sender.log"
        started = time.perf_counter()
        spawned, said = self.start(command.argv, r"\n", command.timeout_s, log)
        ended = self.box.wait_ended(spawned, 0.0)
        left = [
            process_faults.view_of(one)
            for one in self.box.processes()
            if one.session_id == spawned.pid and one.state != "Z"
        ]
        for one in left:
            self.box.signal(one.pid, one.start, 9)
        for one in left:
            self.box.wait_gone(one.pid, one.start, PATIENCE_S)
        answered = said if ended is None else replace(said, exit_code=ended.exit_code)
        took_ms = (time.perf_counter() - started) * 1000
        inner = replace(answered, stderr="", target_ms=took_ms)
        text = f"{len(left)} processes of the sender's session killed"
        return OperationResult(
            stdout=text, fired=not said.timed_out, technique=KILL_SESSION, inner=(inner,)
        )

    def _hold(self, operation: op.HoldDatabase, context: StepContext) -> OperationResult:
        held = HoldLock(
            place="database", how="sqlite", during=operation.operation, seconds=operation.seconds
        )
        return self.fault_runner.carry_out(held, context)

    def _provider(self, operation: op.ProviderMissing, context: StepContext) -> OperationResult:
        place = self.box.files / "bin" / operation.provider
        if operation.back:
            self._furnish()
        else:
            place.unlink(missing_ok=True)
        return OperationResult(fired=place.exists() == operation.back, technique="program removed")

    def _lose(self, operation: op.LoseDatabase, context: StepContext) -> OperationResult:
        """The database with its log; both come back as they were."""
        database = self.database
        files = {
            suffix: database.parent / f"{database.name}{suffix}" for suffix in ("", "-wal", "-shm")
        }
        if operation.back:
            for path in files.values():
                path.unlink(missing_ok=True)
            for suffix, content in self._kept.items():
                files[suffix].replace_bytes(content)
            return OperationResult(fired=bool(self._kept), technique=LOSE)
        if not database.exists():
            return OperationResult(1, stderr="there is no database", fired=False)
        self._kept = {
            suffix: path.read_bytes()
            for suffix, path in files.items()
            if path.exists() and suffix != "-shm"
        }
        for path in files.values():
            path.unlink(missing_ok=True)
        if operation.how != "delete":
            whole = self._kept[""]
            database.replace_bytes(whole[: len(whole) // 2] if operation.how == "truncate" else b"")
        return OperationResult(fired=True, technique=LOSE)

    def _reuse(self, operation: op.ReusePid, context: StepContext) -> OperationResult:
        run = self._run_of(operation)
        known = [] if run is None else [one for one in (run.supervisor, run.provider) if one]
        result = pids.use_again(self.box, [pid for pid, _ in known])
        if result.fired:
            self.observer.strangers += len(known)
        return result

    handlers: ClassVar[Mapping[type[Operation], Handler]] = {
        op.Behave: _behave,
        op.Configure: _configure,
        op.KillSupervisor: _kill_supervisor,
        op.KillProvider: _kill,
        op.KillSpawnGroup: _kill,
        op.KillSender: _kill_sender,
        op.HoldDatabase: _hold,
        op.ProviderMissing: _provider,
        op.LoseDatabase: _lose,
        op.ReusePid: _reuse,
    }
