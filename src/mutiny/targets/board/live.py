"""A live board in its box: operations in, plain results out.

This is the only place where a board operation touches the world. It judges nothing. What a worker was
told (its epoch, a leader's token) is remembered here, as the worker would, and said again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from mutiny import stopping
from mutiny.box.results import Command
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.profile import BoardProfile, Figures
from mutiny.contracts.board.supported import UNDER_ENGINE, supported
from mutiny.contracts.board.tasks import number_used
from mutiny.contracts.board.texts import UNNAMED, description_of, output_of, payload_of
from mutiny.doubles import speech
from mutiny.faults import process as process_faults
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.answer import answer_of
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.board.agents import Agents
from mutiny.targets.board.heard import heard, nothing_free
from mutiny.targets.board.history import Begun, History
from mutiny.targets.board.load import Loads
from mutiny.targets.board.naming import named_in
from mutiny.targets.board.observer import BoardObserver
from mutiny.targets.board.server import Server
from mutiny.targets.board.spawned import SpawnedWorkers
from mutiny.targets.board.spec import COMMANDS, BoardSpec
from mutiny.targets.board.waits import WAITS
from mutiny.targets.kit.combinations import unable
from mutiny.targets.kit.live import Handler, LiveTarget
from mutiny.targets.kit.naming import Names
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.pacing import at_pace
from mutiny.targets.kit.watching import Changes

_COMMAND_OF = {operation: name for name, operation in COMMANDS.items()}
_NAMES = ("worker", "task", "node", "name")
"""Arguments that the history tells."""
LONG_TEXT = 1000
"""Longer texts go through a file."""
LOOKS_REST = 2.0
"""After a look that needs a command, the next one waits for so many times what commands take."""
MOST_LOOKS = 8
"""So often a claim looks for a task, when others are always faster."""
LONG_ARGUMENT = 100_000
"""The kernel takes no argument of more than 128 KiB."""


class BoardLive(LiveTarget):
    """One board in one box, from Reset to Reset."""

    waits = WAITS
    settling = op.Settle

    def __init__(self, spec: BoardSpec, directory: Path, options: LiveOptions) -> None:
        self.spec = spec
        self.limits = spec.profile.limits
        super().__init__(spec, directory, options, doubles=spec.agents is not None)
        self._figures: dict[str, Any] = dict(asdict(spec.profile.figures))
        self._leases: set[float] = set()
        self._epochs: dict[tuple[str, str], tuple[int, ...]] = {}
        self._tokens: dict[str, tuple[int, ...]] = {}
        self._names = Names(spec.nobody)
        self._picked: dict[str, str] = {}
        """What a worker was shown before a claim that the system-call engine runs."""
        self._texts = 0
        self.changes = Changes(self.roots)
        self.history = History(directory.parent / "history.jsonl")
        self.server = Server(self)
        self.spawned = SpawnedWorkers(self)
        self.loads = Loads(self)
        doubles = self.box.files / "doubles"
        self.agents = None if spec.agents is None else Agents(spec.agents, doubles)
        self.observer = BoardObserver(spec, self)

    @property
    def has_board(self) -> bool:
        """Whether there are any files of a board."""
        place = self.outside(self.state_directory())
        return place.is_dir() and bool(place.names())

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get: its figures, too."""
        figures = {
            variable: f"{self._figures[name]:g}" for name, variable in self.spec.configure.items()
        }
        return {**figures, **super().environment(worker)}

    def figure(self, name: str) -> float:
        """What the board is configured to do, as `Configure` left it."""
        return float(self._figures[name])

    def found_at(self, endpoint: str) -> None:
        """Clients find the server there from now on."""
        self.values["endpoint"] = endpoint

    # --- the engine's side -----------------------------------------------------------------------

    def prepare(self, operations: Sequence[Operation]) -> None:
        """Before anything runs: a board that is older than the run has an incomplete history."""
        parts = [part for item in operations for part in walk(item)]
        spawns = [part for part in parts if isinstance(part, op.SpawnWorker)]
        skewed = [skew for part in spawns for skew in self.spawned.skews(part)]
        stale = [
            faults.DamageFile(how=part.how, file="state")
            for part in parts
            if isinstance(part, op.CorruptBoard) and part.how == "stale"
        ]
        # A clock must be there before it can be bent, and old copies before one comes back.
        super().prepare((*operations, *skewed, *stale))
        first = operations[0] if operations else None
        fresh = isinstance(first, common.Reset) or not self.outside(self.state_directory()).exists()
        self.history.complete = fresh and self.agents is None  # what they do, the board notes alone

    def observe(self) -> BoardObservation:
        """One complete look."""
        servers = self.server.count() if self.spec.server is not None else None
        living = self.spawned.living()
        runs = () if self.agents is None else self.agents.runs(process_faults.views(self.box))
        living |= {run.worker for run in runs if run.alive}
        seen = self.observer.observe(
            servers=servers, living=living, serving=servers is None or servers > 0
        )
        for view in (seen.tasks or {}).values():
            if view.own is not None:
                self._names.learn(view.id, view.own)
        self.history.names = self._names.by_own()
        if self.injured and self.spec.state.file:
            self.fault_runner.keep_copy("state", self.state_file())
        return replace(seen, agents=runs, pace=self.pacing.now())

    def wait_change(self, timeout_s: float) -> None:
        """A look that is a command of the board's own may keep others out: they get their turn, too."""
        if self.spec.state.source == "command":
            stopping.sleep(min(timeout_s, LOOKS_REST * self.pacing.now().command_s))
        super().wait_change(timeout_s)

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        return self.told(
            self.server.log_text(), {**self.kept(self.spec.logs), **self.server.logs()}
        )

    def close(self) -> None:
        """Kill everything in the box; its files stay."""
        try:
            self.history.write(self.spawned.histories())
        finally:
            super().close()

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        self.spawned.all_died()
        super().reopen()

    # --- operations ------------------------------------------------------------------------------

    def carry_out(self, operation: Operation, context: StepContext) -> OperationResult:
        """One operation; what is written into the board's files ends the history that can be checked."""
        if isinstance(operation, UNDER_ENGINE):
            return self._under_engine(operation, context)
        if isinstance(operation, op.CorruptBoard):
            operation = faults.DamageFile(how=operation.how, file="state", seed=operation.seed)
        if isinstance(operation, faults.DamageFile):
            self.history.cut()
            if operation.file == "state":
                self.observer.trusts_file = False
        if isinstance(operation, common.Misuse):
            return self._misheard(operation, context)
        if isinstance(operation, op.HoldBoardLock):
            operation = faults.HoldLock(during=operation.during, seconds=operation.seconds)
        return super().carry_out(operation, context)

    def _misheard(self, operation: common.Misuse, context: StepContext) -> OperationResult:
        """A command that is said wrongly may be taken as it was meant: then it belongs to the history."""
        begun = self._begin(operation.operation)
        result = self.combined(operation, context)
        assert result is not None
        self._finish(operation.operation, begun, result if result.succeeded else None)
        return result

    def sayable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command for the server that runs, if the board has one."""
        if self.spec.server is None:
            return self.sweepable(operation, context)
        spoken = self._spoken(operation)
        return spoken if isinstance(spoken, OperationResult) else (spoken, ())

    def misspoken(self, operation: common.Misuse, argv: tuple[str, ...]) -> tuple[str, ...]:
        """A tool gets its arguments in one JSON object, which is the last word."""
        if not self.spec.commands[_COMMAND_OF[operation.operation.type]].tool:
            return super().misspoken(operation, argv)
        return (*argv[:-1], json.dumps(operation.told(json.loads(argv[-1]))))

    def _under_engine(self, operation: Operation, context: StepContext) -> OperationResult:
        """Commands of a server's board bring their own server, so that its calls are seen, too."""
        parts = operation.children()
        serving = self.server.count() > 0 if self.spec.server is not None else False
        if serving:
            self.server.stop()
        begun = [self._begin(part) for part in parts]
        if isinstance(operation, common.TearAt) and operation.mode == "lie":
            self.history.cut()
        result = self.combined(operation, context)
        assert result is not None
        inner = result.inner if len(result.inner) == len(parts) else ()
        answers = inner or (None,) * len(parts)
        told = [self._finish(*each) for each in zip(parts, begun, answers, strict=True)]
        if serving and not operation.ends_world and self.server.count() == 0:
            self.server.start()
        return replace(result, inner=tuple(one for one in told if one is not None))

    def command(self, operation: Operation, context: StepContext) -> OperationResult:
        """Say one command and hear its answer."""
        if self._must_look(operation):
            assert isinstance(operation, op.Claim)
            return self._claim_shown(operation, context)
        if isinstance(operation, op.AddBatch) and "add_batch" not in self.spec.commands:
            return self._one_by_one(operation, context)
        spoken = self._spoken(operation)
        if isinstance(spoken, OperationResult):
            return spoken
        begun = self._begin(operation)
        finished = self._finish(operation, begun, self.run(spoken))
        assert finished is not None
        said = finished.details.get("answer")
        if isinstance(said, Mapping) and "unable" in said:  # the driver has no words for it
            return unable(f"target {self.spec.name}: {said['unable']}")
        if isinstance(operation, op.AddTask) and answer_of(finished, self.spec.words).ok:
            return self._made_waiting(operation, finished)
        return finished

    def _must_look(self, operation: Operation) -> bool:
        """Does a claim have to name a task that it does not name?"""
        pick = self.spec.pick
        free = isinstance(operation, op.Claim) and operation.task is None
        return free and pick is not None and not pick.claims

    def _claim_shown(self, operation: op.Claim, context: StepContext) -> OperationResult:
        """Claim the first of what is shown that can be had, and look again when others were faster."""
        before: tuple[str, ...] = ()
        refused: OperationResult | None = None
        for _ in range(MOST_LOOKS):
            looked = self._look_for_tasks(operation.worker)
            if isinstance(looked, OperationResult):
                return looked
            left = list(looked[: speech.MOST_TRIED])
            while left:
                refused = self.command(replace(operation, task=left.pop(0)), context)
                answer = answer_of(refused, self.spec.words)
                if refused.exit_code is None or answer.ok:
                    return refused
                if not speech.about_task(answer.error):
                    break
            else:
                if looked == before and len(looked) > speech.MOST_TRIED:
                    return unable(f"none of the first {speech.MOST_TRIED} tasks of [pick] is free")
                if looked == before:  # nobody was faster: what it shows is not free, and it says so
                    return nothing_free(refused)
            before = looked
        assert refused is not None
        return refused

    def _look_for_tasks(self, worker: str) -> tuple[str, ...] | OperationResult:
        """Our names of the tasks that the board shows as free; or that there is none."""
        template = self.spec.template("claim")
        assert template is not None
        argv = speech.spoken(speech.unnamed(template), {**self.values, "worker": worker})
        result = self.look_by(argv)
        said = speech.shown(template, result.exit_code, result.stdout, result.stderr)
        if said is None:  # it died of the question, or says something that nobody knows
            return result
        if said["ok"]:
            shown = speech.all_shown(template, result.stdout)
            return tuple(self._names.ours(one) for one in shown)
        unread = self._unread(result.stdout) if result.succeeded else None
        if unread is not None:
            return unable(f"[pick] answer finds no task in what was shown, which names {unread}")
        return replace(result, details={**result.details, "answer": said})

    def _unread(self, text: str) -> str | None:
        """A free task that a look names, though the file's words for it find none there."""
        tasks = (self.observer.read().tasks or {}) if text.strip() else {}
        free = (one for one, view in tasks.items() if view.status == "available")
        return named_in(text, (self._names.own(one) for one in free))

    def _one_by_one(self, operation: op.AddBatch, context: StepContext) -> OperationResult:
        """A board without batches is told one task after the other, up to the first that is refused."""
        result = OperationResult()
        for name, depends in (op.split_new_task(text) for text in operation.tasks):
            result = self.command(op.AddTask(name, depends=depends), context)
            if result.exit_code is None or not answer_of(result, self.spec.words).ok:
                break
        return result

    def _made_waiting(self, operation: op.AddTask, added: OperationResult) -> OperationResult:
        """A new task waits for others by commands of its own, where `add` cannot say it."""
        for one in operation.depends if self.spec.depend else ():
            named = {"task": self._names.own(operation.task), "depends": self._names.own(one)}
            argv = [speech.fill(word, {**self.values, **named}) for word in self.spec.depend]
            result = self.run(self.spoken(argv, None))
            if not result.succeeded:
                said = (result.stderr or result.stdout).strip()[:200]
                return unable(f"{operation.task} could not be made to wait for {one}: {said}")
        return added

    def profile(self) -> BoardProfile:
        """The profile with the figures that commands of this run were given; of leases the shortest."""
        return self._with_lease(min(self._leases, default=self._figures["lease_s"]))

    @property
    def time_to_pass_s(self) -> float:
        """What the board's own figures may make everybody wait for; of leases the longest."""
        return self._with_lease(max(self._leases, default=self._figures["lease_s"])).time_to_pass_s

    def _with_lease(self, lease_s: float) -> BoardProfile:
        return replace(self.spec.profile, figures=Figures(**{**self._figures, "lease_s": lease_s}))

    def _begin(self, operation: Operation) -> Begun:
        self._leases.add(self._figures["lease_s"])
        process = common.worker_of(operation) or getattr(operation, "node", None) or "mutiny"
        word = _COMMAND_OF.get(operation.type, operation.type).replace("_", "-")
        word = "add" if isinstance(operation, op.AddUnnamed) else word
        return self.history.begin(process, word, self._arguments(operation))

    def _finish(
        self, operation: Operation, begun: Begun, result: OperationResult | None
    ) -> OperationResult | None:
        """Note the answer in the history, and remember what the worker was told."""
        unnamed = isinstance(operation, op.AddUnnamed)
        if result is None or result.exit_code is None or result.timed_out:
            if unnamed:  # a task may be there of which nobody can say anything
                self.history.cut()
            self.history.end(begun, {}, heard="nothing" if unnamed else "unknown")
            return result
        result = self._understood(operation, result)
        answer = answer_of(result, self.spec.words)
        said: dict[str, object] = {**answer.said, "ok": answer.ok}
        if answer.error:
            said["error"] = answer.error
        self._translate(operation, said)
        if unnamed:
            begun = replace(begun, arguments={"id": str(said.get("task")), "depends": []})
        told = "nothing" if unnamed and not answer.ok else heard(answer)
        returned = self.history.end(begun, said, heard=told)
        if answer.ok:
            self._remember(operation, said)
        own = self._names.mentioned(common.named_by(operation, "task"))
        details = {**result.details, "invoked": begun.invoked, "returned": returned, **own}
        if isinstance(operation, op.List) and answer.ok:
            details["listed"] = self.observer.listed(answer)
        if answer.said or answer.error:
            details["answer"] = said
        return replace(result, details=details)

    def _understood(self, operation: Operation, result: OperationResult) -> OperationResult:
        """What a board has answered in texts, as one says it that answers in JSON."""
        template = self.spec.template(_COMMAND_OF.get(operation.type, ""))
        told = "answer" in result.details
        if not self.spec.texts or template is None or told:
            return result
        heard = result.exit_code, result.stdout, result.stderr
        free = isinstance(operation, op.Claim) and operation.task is None
        by_itself = free and self.spec.pick is not None and self.spec.pick.claims
        said = speech.shown(template, *heard) if by_itself else speech.answered(template, *heard)
        if isinstance(operation, op.Claim) and said is not None and said["ok"]:
            ours = operation.task or self._picked.get(operation.worker)
            said |= {} if ours is None or "task" in said else {"task": self._names.own(ours)}
        details = result.details if said is None else {**result.details, "answer": said}
        return replace(result, details=details)

    def _translate(self, operation: Operation, said: dict[str, object]) -> None:
        """A board that names its tasks itself: its names become ours."""
        own = said.get("task")
        if isinstance(operation, op.AddTask) and own is not None:
            self._names.learn(operation.task, str(own))
        if isinstance(own, str):
            said["task"] = self._names.ours(own)

    def _remember(self, operation: Operation, said: Mapping[str, object]) -> None:
        epoch, token = said.get("epoch"), said.get("token")
        if isinstance(operation, op.Claim) and isinstance(epoch, int):
            key = (operation.worker, str(said.get("task")))
            self._epochs[key] = (*self._epochs.get(key, ()), epoch)
        if isinstance(operation, op.Elect) and isinstance(token, int):
            self._tokens[operation.node] = (*self._tokens.get(operation.node, ()), token)

    # --- words -----------------------------------------------------------------------------------

    def _arguments(self, operation: Operation) -> dict[str, object]:
        """What the history says about a command."""
        if isinstance(operation, op.AddTask):
            most = operation.max_attempts
            limit = {} if most is None else {"max_attempts": most}
            return {"id": operation.task, "depends": list(operation.depends), **limit}
        if isinstance(operation, op.AddBatch):
            named = operation.named.items()
            return {"tasks": [{"id": name, "depends": list(depends)} for name, depends in named]}
        words = {word: common.named_by(operation, word) for word in _NAMES}
        given: dict[str, object] = {word: name for word, name in words.items() if name is not None}
        if isinstance(operation, op.OwnerCommand):
            epoch = self._epoch(operation)
            given |= {} if epoch is None else {"epoch": epoch}
        return given

    def _epoch(self, operation: op.OwnerCommand) -> int | None:
        known = self._epochs.get((operation.worker, operation.task), ())
        return number_used(known, stale=operation.stale)

    def _operation_values(self, operation: Operation) -> dict[str, Any]:
        values = {**self.values, **self._arguments(operation)}
        if isinstance(operation, op.AddTask):
            values |= {
                "task": operation.task,
                "description": description_of(operation.task),
                "priority": self.spec.priority(operation.priority),
                "depends": [self._names.own(one) for one in operation.depends],
                "max_attempts": operation.max_attempts,
                "payload": self._text_file(payload_of(operation.size)) if operation.size else None,
            }
        if isinstance(operation, op.AddUnnamed):
            values["description"] = description_of(UNNAMED)
        if isinstance(operation, op.AddBatch):
            tasks = [
                {"id": name, "description": description_of(name), "depends": list(depends)}
                for name, depends in (op.split_new_task(text) for text in operation.tasks)
            ]
            values["tasks"] = tasks
            values["batch"] = self._text_file(json.dumps({"tasks": tasks}))
        if isinstance(operation, op.Complete):
            text = output_of(operation)
            short = len(text) <= LONG_TEXT or self._uses_tools
            values["output"] = text if short else None
            values["output_file"] = None if short else self._text_file(text)
        if isinstance(operation, op.Fail | op.Cancel):
            values["reason"] = op.reason_of(operation)
        if isinstance(operation, op.LeaderCommand):
            known = self._tokens.get(operation.node, ())
            values["token"] = number_used(known, stale=operation.stale) or 0
            if operation.borrowed:
                values["token"] = max(map(max, filter(None, self._tokens.values())), default=0)
        if isinstance(operation, op.WriteAsLeader):
            values["text"] = operation.text
        if isinstance(values.get("task"), str):
            values["task"] = self._names.own(values["task"])
        return values

    @property
    def _uses_tools(self) -> bool:
        return bool(self.spec.client)

    def _text_file(self, text: str) -> str:
        """A text in a file of the box; a tool gets the text itself."""
        return text if self._uses_tools else self._filed(text)

    def _filed(self, text: str) -> str:
        self._texts += 1
        path = self.box.files / "tmp" / f"text-{self._texts}"
        path.write_text(text)
        return self.box.inside(path)

    def _spoken(self, operation: Operation) -> Command | OperationResult:
        name = _COMMAND_OF.get(operation.type, "")
        template = self.spec.template(name)
        if isinstance(operation, op.Init) and (self.spec.server is not None or template is None):
            return OperationResult(stdout="the board needs no command to be made")
        if template is None or not supported(self.spec.profile, operation):
            return self.lacking(operation)
        free = isinstance(operation, op.Claim) and operation.task is None
        words = speech.unnamed(template) if free else template
        argv = speech.spoken(words, self._operation_values(operation))
        if self._uses_tools and len(argv[-1]) > LONG_ARGUMENT:
            argv[-1] = f"@{self._filed(argv[-1])}"
        return self.spoken(argv, self.spec.commands[name].timeout_s, common.worker_of(operation))

    def ask(self, name: str) -> OperationResult:
        """A look by the board's own means; not part of the history."""
        template = self.spec.template(name)
        if template is None:
            return unable(f"target {self.spec.name} has no command {name!r}")
        return self.look_by(speech.spoken(template, self.values))

    def look_by(self, argv: Sequence[str]) -> OperationResult:
        """A command that only looks: no fault of single commands is meant for it."""
        return self.run(self.spoken(argv, None), unharmed=True)

    # --- what sweeps and the faults of the library ask for ----------------------------------------

    def sweepable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means, ready for the system-call engine."""
        if self.spec.server is not None:
            self.found_at("{endpoint}")  # the server that the command brings is not there yet
        if isinstance(operation, op.AddTask) and operation.depends and self.spec.depend:
            return unable("a new task that waits for others takes several commands")
        if self._must_look(operation):
            assert isinstance(operation, op.Claim)
            looked = self._look_for_tasks(operation.worker)
            if isinstance(looked, OperationResult):
                return looked
            tasks = self.observer.read().tasks or {}
            waits = [one for one in looked if one in tasks and tasks[one].status == "blocked"]
            chosen = next((one for one in looked if one not in waits), looked[0])
            self._picked[operation.worker] = chosen
            operation = replace(operation, task=chosen)
        spoken = self._spoken(operation)
        if isinstance(spoken, OperationResult):
            return spoken if not spoken.succeeded else unable(f"{operation.type} is no command")
        if self.spec.server is not None:
            spoken = replace(spoken, argv=self.server.once(tuple(spoken.argv)))
        return spoken, ()

    def roots(self) -> tuple[BoxPath, ...]:
        """The directory whose changes count."""
        return (self.outside(self.state_directory()),)

    def bystanders(self, operation: Operation) -> tuple[ProcessView, ...]:
        """No process: a server is stopped while its commands are swept."""
        return ()

    def processes_of(self, role: str, worker: str | None) -> tuple[ProcessView, ...]:
        """The server's processes (`daemon`), or those of a spawned worker (`agent`)."""
        return self.server.processes() if role == "daemon" else self.spawned.processes(worker or "")

    def look_again(self) -> None:
        """Files are to be found elsewhere from now on."""
        self.changes.close()

    # --- control ---------------------------------------------------------------------------------

    def _behave(self, operation: op.Behave, context: StepContext) -> OperationResult:
        if self.agents is None:
            return unable(f"target {self.spec.name} has no agents of its own")
        self.agents.behave(at_pace(operation.turn, self.pacing.now()))
        return OperationResult()

    def _kill_agent(self, operation: op.KillAgent, context: StepContext) -> OperationResult:
        views = process_faults.views(self.box)
        runs = () if self.agents is None else self.agents.runs(views)
        busy = {run.identity for run in runs if run.busy and run.task == operation.task}
        role = f"agent of task {operation.task}"
        return process_faults.kill(self.box, [one for one in views if one.identity in busy], role)

    def _kill_server(self, operation: op.KillServer, context: StepContext) -> OperationResult:
        """Kill it, at once after a command if one is given: nobody looks in between."""
        if operation.after is None:
            return self.server.kill()
        inner = self.command(operation.after, context)
        return replace(self.server.kill(), inner=(inner,))

    def _configure(self, operation: op.Configure, context: StepContext) -> OperationResult:
        if operation.name not in self.spec.configure:
            return unable(f"target {self.spec.name} cannot set {operation.name} ([configure])")
        self._figures[operation.name] = operation.value
        return OperationResult(stdout=f"{operation.name} = {operation.value:g}")

    handlers: ClassVar[Mapping[type[Operation], Handler]] = {
        op.Configure: _configure,
        op.SpawnWorker: lambda live, operation, _: live.spawned.spawn(operation),
        op.StopWorker: lambda live, operation, _: live.spawned.stop(operation.worker),
        op.KillWorker: lambda live, operation, _: live.spawned.kill(operation.worker),
        op.PauseWorker: lambda live, asked, _: live.spawned.pause(asked.worker, asked.seconds),
        op.Up: lambda live, *_: live.server.start(),
        op.Down: lambda live, *_: live.server.stop(),
        op.RestartServer: lambda live, *_: live.server.restart(),
        op.StartSecondServer: lambda live, *_: live.server.start(),
        op.KillServer: _kill_server,
        op.Behave: _behave,
        op.KillAgent: _kill_agent,
        op.AddMany: lambda live, operation, _: live.loads.add(operation),
        op.Drive: lambda live, operation, _: live.loads.drive(operation),
    }
