"""A batch orchestrator live in one box: its plan, its settings, and the doubles that it works with."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from mutiny.box.engine import EngineUnavailable
from mutiny.box.results import Command
from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.fixtures import commit_of
from mutiny.contracts.batch.observation import BatchSeen
from mutiny.contracts.batch.tasks import rows_of
from mutiny.doubles import speech
from mutiny.faults import content
from mutiny.faults import files as file_faults
from mutiny.faults import process as process_faults
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.batch.containers import Containers
from mutiny.targets.batch.desk import SECRET, Desk
from mutiny.targets.batch.observer import Observer
from mutiny.targets.batch.spec import BatchSpec
from mutiny.targets.kit.combinations import unable
from mutiny.targets.kit.commands import DaemonlessTarget
from mutiny.targets.kit.live import Handler
from mutiny.targets.kit.moments import at_moment, matching, ready_for_moments
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.starting import trees_of

PATIENCE_S = 10.0
FIXTURE_S = 30.0
ELSEWHERE = "a run in another home"
CONTAINERS_SLOWER = 3.0
"""So much longer a command may take whose agents work in containers: each is made, started and removed."""


class BatchLive(DaemonlessTarget):
    """One batch orchestrator in one box."""

    spec: BatchSpec

    def __init__(self, spec: BatchSpec, directory: Path, options: LiveOptions) -> None:
        super().__init__(spec, directory, options)
        self._plans = 0
        self._kept_state: tuple[BoxPath, bytes] | None = None
        self._elsewhere = 0
        """So many homes of others there are."""
        self.values["desk"] = shlex.quote(f"{self.box.inside_root}/desk")  # in command lines only
        self.desk = Desk(self.box.files / "desk")
        self.containers: Containers | None = None
        if self._wants_containers:  # the files of a box in which agents worked in containers
            try:
                self._begin_containers()
            except BaseException:
                super().close()
                raise
        self.observer = Observer(self)

    @property
    def moments(self) -> Mapping[str, Any]:
        """The moments that the target's file names."""
        return self.spec.moments

    @property
    def holds(self) -> BoxPath:
        """Where the doubles are told to wait."""
        return self.desk.holds

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get: its settings, and a secret."""
        known = self.spec.knobs
        set_to = {known[name]: value for name, value in self.desk.knobs.items() if name in known}
        return {
            self.spec.secret: SECRET,
            **super().environment(worker),
            **set_to,
            **self._contained(),
        }

    def _contained(self) -> dict[str, str]:
        """What the target must know to put its agents into containers, where that is wanted."""
        if self.containers is None or not self._wants_containers:
            return {}
        words = self.spec.containers
        assert words is not None
        values = {**self.values, **self.containers.values(self.box.inside(self.desk.place))}
        return {key: speech.fill(text, values) for key, text in words.environment.items()}

    def logs(self) -> list[BoxPath]:
        """The event logs that there are."""
        patterns = [one for one in (self.spec.events, self.spec.task_events) if one]
        return [log for one in patterns for log in matching(self, self.filled(one))]

    # --- the engine's side -----------------------------------------------------------------------

    def prepare(self, operations: Sequence[Operation]) -> None:
        """Make what must be there from the beginning, for what is planned."""
        super().prepare(operations)
        ready_for_moments(self, operations)

    def carry_out(self, operation: Operation, context: StepContext) -> OperationResult:
        """Whatever is done at a moment: the containers of that moment are seen before it."""
        if self.containers is not None and not isinstance(operation, op.LONG):
            self.containers.look()
        return super().carry_out(operation, context)

    def healed(self) -> OperationResult:
        """No fault is on any more, and the engine answers."""
        if self.containers is not None:
            self.containers.back()
        return super().healed()

    def close(self) -> None:
        """Kill everything in the box and beside it."""
        self._end_containers()
        super().close()

    def reopen(self) -> None:
        """The world has ended, and its containers with it."""
        self._end_containers()
        super().reopen()
        if self._wants_containers:
            self._begin_containers()

    def limit(self, given_s: float) -> float:
        """A limit at the pace of this run; whoever waits for containers may take longer."""
        return super().limit(given_s) * (CONTAINERS_SLOWER if self._contained() else 1.0)

    def spoken(
        self, argv: Sequence[str], limit_s: float | None, worker: str | None = None, stdin: str = ""
    ) -> Command:
        """A command line, ready to be run in the user's checkout."""
        made = super().spoken(argv, limit_s, worker, stdin)
        slower = CONTAINERS_SLOWER if self._contained() else 1.0
        return replace(made, timeout_s=made.timeout_s * slower)

    @property
    def _wants_containers(self) -> bool:
        """Was the target told to put its agents into containers?"""
        return self.desk.knobs.get("workers") == "container"

    def _end_containers(self) -> None:
        if self.containers is not None:
            self.containers.close()
            self.containers = None

    def _begin_containers(self) -> None:
        words = self.spec.containers
        assert words is not None
        own = [f"{self.filled(one).partition('*')[0]}" for one in self.spec.workspaces]
        desk = f"{self.box.inside(self.desk.place)}/"
        trees = trees_of(self.options.program, self.spec.mounts)
        self.containers = Containers(self.box, words, trees, (*own, desk))

    def observe(self) -> BatchSeen:
        """One complete look."""
        return self.observer.observe()

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        logs = [*self.logs(), self.desk.record]
        log = "\n".join(one.read_said() for one in logs if one.exists())
        return self.told(log, self.kept(self.spec.logs))

    def roots(self) -> tuple[BoxPath, ...]:
        """The directories whose changes count: the target's state and the user's repository."""
        return (self.outside(self.state_directory()), self.box.files / "source")

    @property
    def patience_s(self) -> float:
        """How long an agent that is just being started is waited for."""
        return PATIENCE_S

    # --- commands ----------------------------------------------------------------------------------

    def given(self, operation: Operation, context: StepContext) -> dict[str, Any]:
        """The values of a command's placeholders."""
        given = super().given(operation, context)
        if isinstance(operation, op.Plan):
            given["plan"] = self._write_plan(operation)
        if isinstance(operation, op.Clean):
            run = self.observer.newest(context.before)
            given["force"] = "yes" if operation.force else ""
            given["run"] = operation.name or run
        if isinstance(operation, op.Run):
            given["run"] = operation.name
        return given

    def _write_plan(self, operation: op.Plan) -> str:
        """The plan as a file."""
        self._plans += 1
        place = self.box.files / "tmp" / f"plan-{self._plans}.json"
        place.replace_bytes(json.dumps({"tasks": rows_of(operation.parsed())}).encode())
        return self.box.inside(place)

    # --- the user's side, and faults ---------------------------------------------------------------

    def _configure(self, operation: Any, context: StepContext) -> OperationResult:
        if operation.name == "workers":
            return self._put_into_containers(operation)
        if operation.name not in self.spec.knobs:
            return self.lacking(operation)
        value = {"on": "true", "off": "false"}.get(operation.value, operation.value)
        self.desk.configure(
            operation.name, value if operation.name == "rescope" else operation.value
        )
        return OperationResult()

    def _put_into_containers(self, operation: Any) -> OperationResult:
        """From now on agents work in containers, or no longer; the first time an engine is started."""
        if self.spec.containers is None:
            return self.lacking(operation)
        if operation.value == "container" and self.containers is None:
            try:
                self._begin_containers()
            except EngineUnavailable as error:
                return unable(f"no container engine can run here: {error}")
        self.desk.configure(operation.name, operation.value)
        kept = self.containers
        return OperationResult(stdout="" if kept is None else f"containers by {kept.engine}")

    def _stop_container(self, operation: Any, context: StepContext) -> OperationResult:
        return self._of_container(operation, "stop", "-t", "0")

    def _remove_container(self, operation: Any, context: StepContext) -> OperationResult:
        return self._of_container(operation, "rm", "-f")

    def _of_container(self, operation: Any, *words: str) -> OperationResult:
        if self.containers is None:
            return OperationResult(1, stderr="nobody works in a container", fired=False)
        return self.containers.end(operation.task, *words)

    def _engine_outage(self, operation: Any, context: StepContext) -> OperationResult:
        if self.containers is None:
            return OperationResult(1, stderr="there is no container engine", fired=False)
        return self.containers.back() if operation.back else self.containers.outage()

    def _gate_says(self, operation: Any, context: StepContext) -> OperationResult:
        self.desk.gate_says(operation.gate, operation.verdict)
        return OperationResult()

    def _use_fixture(self, operation: Any, context: StepContext) -> OperationResult:
        source, branch = self.values["source"], self.spec.branch
        made = self.box.run(
            ("git", "fast-import", "--quiet"),
            cwd=source,
            stdin=commit_of(operation.name, branch),
            timeout_s=self.limit(FIXTURE_S),
        )
        if made.exit_code == 0:
            made = self.box.run(
                ("git", "reset", "-q", "--hard"), cwd=source, timeout_s=self.limit(FIXTURE_S)
            )
        self.observer.note_foreign()
        return OperationResult(made.exit_code, stderr=made.stderr)

    def _edit_source(self, operation: Any, context: StepContext) -> OperationResult:
        if operation.undo:
            self.desk.note_edit(is_there=False)
            return file_faults.clean_source(self.box, self.values["source"])
        self.desk.note_edit(is_there=True)
        return file_faults.dirty_source(self.box.files / "source")[0]

    def _kill_worker(self, operation: Any, context: StepContext) -> OperationResult:
        if self._contained():
            return self._of_container(operation, "kill", "-s", "KILL")
        found = self.awaited(lambda: self._agents_of(operation.task))
        return process_faults.kill(self.box, found, f"agent of {operation.task}")

    def _agents_of(self, task: str) -> tuple[ProcessView, ...]:
        pids = self.desk.agents_of(task)
        return tuple(one for one in process_faults.views(self.box) if one.pid in pids)

    def _move_main(self, operation: Any, context: StepContext) -> OperationResult:
        result = file_faults.move_source(self.box, self.values["source"], operation.path)
        self.observer.note_foreign()
        return result

    def _run_elsewhere(self, operation: Any, context: StepContext) -> OperationResult:
        """A run from its home to its end, by the same program, with doubles that are its own."""
        self._elsewhere += 1
        place = self.box.files / "tmp" / f"elsewhere-{self._elsewhere}"
        for folder in (place, place / "source"):
            folder.mkdir(exist_ok=True)
        there, desk = self.box.inside(place), Desk(place / "desk")
        name = operation.task
        prompt = f"Do task {name}. [does=works tokens=0]"
        plan = {"tasks": [{"id": name, "name": name, "prompt": prompt}]}
        (place / "plan.json").replace_bytes(json.dumps(plan).encode())
        values = {**self.values, "home": there, "source": f"{there}/source", "run": ""}
        values |= {"plan": f"{there}/plan.json", "desk": shlex.quote(self.box.inside(desk.place))}
        own = {key: speech.fill(text, values) for key, text in self.spec.environment.items()}
        known = [self.spec.template(one) for one in ("init", "plan", "run")]
        begun = (
            ("git", "init", "-q", "-b", self.spec.branch),
            file_faults.commit_argv("README.md"),
        )
        for argv in (*begun, *(speech.spoken(one, values) for one in known if one is not None)):
            limit_s = self.limit(FIXTURE_S)
            made = self.box.run(argv, cwd=f"{there}/source", env=own, timeout_s=limit_s)
            if made.exit_code != 0:
                return OperationResult(made.exit_code, stderr=made.stderr, fired=False)
        return OperationResult(fired=True, technique=ELSEWHERE)

    def _truncate_state(self, operation: Any, context: StepContext) -> OperationResult:
        if operation.back:
            if self._kept_state is None:
                return OperationResult(1, stderr="no state was cut off", fired=False)
            path, whole = self._kept_state
            path.replace_bytes(whole)
            return OperationResult(fired=True, technique="file put back")
        found = self.observer.state_path(context.before)
        if found is None or not found.exists():
            return OperationResult(1, stderr="there is no state to cut off", fired=False)
        self._kept_state = (found, found.read_bytes())
        return content.damage(found, "truncate").inject()

    handlers: ClassVar[Mapping[type[Operation], Handler]] = {
        op.At: at_moment,
        op.Configure: _configure,
        op.GateSays: _gate_says,
        op.UseFixture: _use_fixture,
        op.EditSource: _edit_source,
        op.KillWorker: _kill_worker,
        op.StopContainer: _stop_container,
        op.RemoveContainer: _remove_container,
        op.EngineOutage: _engine_outage,
        op.MoveMain: _move_main,
        op.RunElsewhere: _run_elsewhere,
        op.TruncateState: _truncate_state,
    }
