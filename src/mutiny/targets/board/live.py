"""A live board in its box: operations in, plain results out.

This is the only place where a board operation touches the world. It judges nothing. What a worker was
told (its epoch, a leader's token) is remembered here, as the worker would, and said again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mutiny import stopping
from mutiny.box.box import Box
from mutiny.box.results import Command
from mutiny.box.startup import create_box
from mutiny.contracts.board import operations as op
from mutiny.contracts.board.judge import UNDER_ENGINE
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.outcomes import output_of
from mutiny.contracts.board.profile import BoardProfile, Figures
from mutiny.contracts.board.supported import supported
from mutiny.contracts.board.tasks import number_used
from mutiny.doubles.boards import speech as board_speech
from mutiny.errors import TargetMissing
from mutiny.faults import process as process_faults
from mutiny.kit import faults
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer, answer_of
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.system.files import KEPT_LIMIT, BoxPath
from mutiny.system.keepsakes import Keepsake, last_words
from mutiny.targets.board import drivers
from mutiny.targets.board.agents import Agents
from mutiny.targets.board.history import Begun, History
from mutiny.targets.board.load import Loads
from mutiny.targets.board.observer import BoardObserver
from mutiny.targets.board.server import Server
from mutiny.targets.board.spawned import SpawnedWorkers
from mutiny.targets.board.spec import COMMANDS, BoardSpec
from mutiny.targets.board.waits import WAITS
from mutiny.targets.kit.files import fill
from mutiny.targets.kit.live import LiveTarget, as_result, unable
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.pacing import Pacing
from mutiny.targets.kit.starting import Starting, trees_of
from mutiny.targets.kit.version import program_version

_COMMAND_OF = {operation: name for name, operation in COMMANDS.items()}
LONG_TEXT = 1000
"""Longer texts go through a file."""
LONG_ARGUMENT = 100_000
"""The kernel takes no argument of more than 128 KiB."""


class BoardLive(LiveTarget):
    """One board in one box, from Reset to Reset."""

    def __init__(self, spec: BoardSpec, directory: Path, options: LiveOptions) -> None:
        self.spec = spec
        self.options = options
        self.limits = spec.profile.limits
        self.pacing = Pacing()
        if not os.access(options.program, os.R_OK if spec.script else os.X_OK):
            raise TargetMissing(f"target {spec.name}: {options.program} is no executable program")
        self._directory = directory
        self.box = self._raise_walls()
        self.starting = Starting()
        inside = self.box.inside_root
        self._values: dict[str, Any] = {
            "program": str(options.program),
            "box": inside,
            "home": f"{inside}/home",
            "source": f"{inside}/source",
            "tmp": f"{inside}/tmp",
            "plant": options.plant,
            "python": str(Path(sys.executable).resolve()),
            "client": str(Path(board_speech.__file__).with_name("mcp_client.py")),
            "drivers": str(Path(drivers.__file__).parent),
            "endpoint": "",
        }
        self._figures: dict[str, Any] = dict(asdict(spec.profile.figures))
        self._leases: set[float] = set()
        self._epochs: dict[tuple[str, str], tuple[int, ...]] = {}
        self._tokens: dict[str, tuple[int, ...]] = {}
        self._names: dict[str, str] = {}
        """Our name of a task -> the board's own, where it gives its own."""
        self._texts = 0
        self.history = History(directory.parent / "history.jsonl")
        self.server = Server(self)
        self.crew = SpawnedWorkers(self)
        self.loads = Loads(self)
        doubles = self.box.files / "doubles"
        self.agents = None if spec.agents is None else Agents(spec.agents, doubles)
        self.observer = BoardObserver(spec, self._state_file, self.ask)

    def _raise_walls(self) -> Box:
        options = self.options
        return create_box(
            self._directory,
            technique=options.technique,
            network=options.network,
            read_only=trees_of(options.program, self.spec.mounts),
            doubles=self.spec.agents is not None,
        )

    def outside(self, inside: str) -> BoxPath:
        """A file of the box as it is reached from outside."""
        return self.fault_runner.outside(inside) if self.injured else self.box.outside(inside)

    def filled(self, text: str, quoted: Callable[[str], str] = str) -> str:
        """A text of the target's file with its placeholders replaced; `quoted` by what it goes into."""
        return fill(text, {key: quoted(str(value)) for key, value in self._values.items()})

    def _state_file(self) -> BoxPath:
        return self.outside(self.filled(self.spec.state.file))

    @property
    def has_board(self) -> bool:
        """Whether there are any files of a board."""
        place = self.outside(self.filled(self.spec.state.directory))
        return place.is_dir() and bool(place.names())

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get."""
        own = {key: self.filled(value) for key, value in self.spec.environment.items()}
        figures = {
            variable: f"{self._figures[name]:g}" for name, variable in self.spec.configure.items()
        }
        more = dict(self.fault_runner.environment) if self.injured else {}
        name = {"MUTINY_WORKER": worker} if worker and more else {}
        return {**own, **figures, **more, **name}

    @property
    def values(self) -> Mapping[str, Any]:
        """Placeholders that are the same for all commands."""
        return self._values

    def figure(self, name: str) -> float:
        """What the board is configured to do, as `Configure` left it."""
        return float(self._figures[name])

    def found_at(self, endpoint: str) -> None:
        """Clients find the server there from now on."""
        self._values["endpoint"] = endpoint

    # --- the engine's side -----------------------------------------------------------------------

    def prepare(self, operations: Any) -> None:
        """Before anything runs: a board that is older than the run has an incomplete history."""
        skewed = [
            skew
            for item in operations
            for part in walk(item)
            if isinstance(part, op.SpawnWorker)
            for skew in self.crew.skews(part)
        ]
        stale = [
            faults.DamageFile(how=part.how, file="state")
            for item in operations
            for part in walk(item)
            if isinstance(part, op.CorruptBoard) and part.how == "stale"
        ]
        # A clock must be there before it can be bent, and old copies before one comes back.
        super().prepare((*operations, *skewed, *stale))
        first = operations[0] if operations else None
        fresh = isinstance(first, common.Reset) or not self._state_there()
        self.history.complete = fresh and self.agents is None  # what they do, the board notes alone

    def _state_there(self) -> bool:
        return self.outside(self.filled(self.spec.state.directory)).exists()

    def observe(self) -> BoardObservation:
        """One complete look."""
        servers = self.server.count() if self.spec.server is not None else None
        living = self.crew.living()
        runs = () if self.agents is None else self.agents.runs(process_faults.views(self.box))
        living |= {run.worker for run in runs if run.alive}
        seen = self.observer.observe(
            servers=servers, living=living, serving=servers is None or servers > 0
        )
        if self.injured and self.spec.state.file:
            self.fault_runner.keep_copy("state", self._state_file())
        return replace(seen, agents=runs, pace=self.pacing.now())

    def wait_change(self, timeout_s: float) -> None:
        """Return when the time is over; at most every 50 ms somebody looks."""
        stopping.sleep(min(timeout_s, 0.05))

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        """Carry out one operation."""
        started = time.perf_counter()
        result = self.starting.judged(operation, self._dispatch(operation, context))
        elapsed_ms = (time.perf_counter() - started) * 1000
        return replace(result, duration_ms=elapsed_ms)

    def facts(self) -> dict[str, object]:
        """What plan.json says about the box."""
        return self.box.facts()

    def evidence(self) -> Evidence:
        """What is kept of the target when something went wrong."""
        files = {
            "target_logs/" + path.name: Keepsake(path)
            for path in (self.outside(self.filled(text)) for text in self.spec.logs)
        }
        files |= self.server.logs()
        state = ""
        if self.spec.state.probe == "file":
            state = last_words(self._state_file(), KEPT_LIMIT)
        version = program_version(self.box, self.options.program)
        return Evidence(state, self.server.log_text(), {}, files, version)

    def close(self) -> None:
        """Kill everything in the box; its files stay."""
        try:
            self.history.write(self.crew.histories())
            if self.injured:
                self.fault_runner.close()
        finally:
            self.box.close()

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        self.crew.all_died()
        self.box.close()
        self.box = self._raise_walls()
        self.begin_again()

    # --- operations ------------------------------------------------------------------------------

    def _dispatch(self, operation: Operation, context: StepContext) -> OperationResult:
        if isinstance(operation, UNDER_ENGINE):
            return self._under_engine(operation, context)
        if isinstance(operation, op.CorruptBoard):
            operation = faults.DamageFile(how=operation.how, file="state", seed=operation.seed)
        if isinstance(operation, faults.DamageFile):
            self.history.cut()
            if operation.file == "state":
                self.observer.trusts_file = False
        if isinstance(operation, op.HoldBoardLock):
            operation = faults.HoldLock(during=operation.during, seconds=operation.seconds)
        combined = self.combined(operation, context)
        if combined is not None:
            return combined
        if isinstance(operation, op.Settle):
            healed = self.healed()
            if not healed.succeeded:
                return healed
        wait = WAITS.get(type(operation))
        if wait is not None:
            return wait(self, operation, context)
        handler = _HANDLERS.get(type(operation))
        if handler is not None:
            return handler(self, operation)
        return self._command(operation)

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
        told = []
        for index, part in enumerate(parts):
            answer = inner[index] if inner else None
            told.append(self._finish(part, begun[index], answer))
        ended = (
            isinstance(operation, common.SweepPoint | faults.KillDuring) and operation.ends_world
        )
        if serving and not ended and self.server.count() == 0:
            self.server.start()
        return replace(result, inner=tuple(one for one in told if one is not None))

    def _command(self, operation: Operation) -> OperationResult:
        """Say one command and hear its answer."""
        spoken = self._spoken(operation)
        if isinstance(spoken, OperationResult):
            return spoken
        begun = self._begin(operation)
        if self.injured:
            result = as_result(self.fault_runner.run(spoken), tuple(spoken.argv))
        else:
            result = as_result(self.box.run_many([spoken])[0], tuple(spoken.argv))
            self.pacing.took(result.target_ms / 1000)
        finished = self._finish(operation, begun, result)
        assert finished is not None
        said = finished.details.get("answer")
        if isinstance(said, Mapping) and "unable" in said:  # the driver has no words for it
            return unable(f"target {self.spec.name}: {said['unable']}")
        return finished

    def profile(self) -> BoardProfile:
        """The profile with the figures that commands of this run were given; of leases the shortest."""
        lease_s = min(self._leases, default=self._figures["lease_s"])
        figures = Figures(**{**self._figures, "lease_s": lease_s})
        return replace(self.spec.profile, figures=figures)

    def limit(self, given_s: float) -> float:
        """A limit of the target's file at the pace of this run."""
        return self.pacing.now().limit(given_s)

    @property
    def time_to_pass_s(self) -> float:
        """What the board's own figures may make everybody wait for; of leases the longest."""
        lease_s = max(self._leases, default=self._figures["lease_s"])
        figures = Figures(**{**self._figures, "lease_s": lease_s})
        return replace(self.spec.profile, figures=figures).time_to_pass_s

    def _begin(self, operation: Operation) -> Begun:
        self._leases.add(self._figures["lease_s"])
        process = op.worker_of(operation) or getattr(operation, "node", None) or "mutiny"
        word = _COMMAND_OF.get(operation.type, operation.type).replace("_", "-")
        return self.history.begin(process, word, self._arguments(operation))

    def _finish(
        self, operation: Operation, begun: Begun, result: OperationResult | None
    ) -> OperationResult | None:
        """Note the answer in the history, and remember what the worker was told."""
        if result is None or result.exit_code is None or result.timed_out:
            self.history.end(begun, {}, heard="unknown")
            return result
        answer = answer_of(result, self.spec.words)
        said: dict[str, object] = {**answer.said, "ok": answer.ok}
        if answer.error:
            said["error"] = answer.error
        self._translate(operation, said)
        returned = self.history.end(begun, said, heard=_heard(answer))
        if answer.ok:
            self._remember(operation, said)
        details = {**result.details, "invoked": begun.invoked, "returned": returned}
        if answer.said or answer.error:
            details["answer"] = said
        return replace(result, details=details)

    def _translate(self, operation: Operation, said: dict[str, object]) -> None:
        """A board that names its tasks itself: its names become ours."""
        own = said.get("task")
        if isinstance(operation, op.AddTask) and own not in (None, operation.task):
            self._names[operation.task] = str(own)
        ours = {theirs: mine for mine, theirs in self._names.items()}
        if ours and isinstance(said.get("task"), str):
            said["task"] = ours.get(str(said["task"]), said["task"])

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
            return {
                "tasks": [
                    {"id": name, "depends": list(depends)}
                    for name, depends in operation.named.items()
                ]
            }
        given: dict[str, object] = {}
        for name in ("worker", "task", "node", "name"):
            value = getattr(operation, name, None)
            if isinstance(value, str):
                given[name] = value
        if isinstance(operation, op.OwnerCommand):
            epoch = self._epoch(operation)
            given |= {} if epoch is None else {"epoch": epoch}
        return given

    def _epoch(self, operation: op.OwnerCommand) -> int | None:
        known = self._epochs.get((operation.worker, operation.task), ())
        return number_used(known, stale=operation.stale)

    def _operation_values(self, operation: Operation) -> dict[str, Any]:
        values = {**self._values, **self._arguments(operation)}
        if isinstance(operation, op.AddTask):
            values |= {
                "task": operation.task,
                "description": f"task {operation.task}",
                "priority": operation.priority,
                "depends": [self._names.get(one, one) for one in operation.depends],
                "max_attempts": operation.max_attempts,
                "payload": self._text_file("." * operation.size) if operation.size else None,
            }
        if isinstance(operation, op.AddBatch):
            tasks = [
                {"id": name, "description": f"task {name}", "depends": list(depends)}
                for name, depends in (op.split_new_task(text) for text in operation.tasks)
            ]
            values["tasks"] = tasks
            values["batch"] = self._text_file(json.dumps({"tasks": tasks}))
        if isinstance(operation, op.Complete):
            text = output_of(operation)
            short = len(text) <= LONG_TEXT or self._uses_tools
            values["output"] = text if short else None
            values["output_file"] = None if short else self._text_file(text)
        if isinstance(operation, op.LeaderCommand):
            known = self._tokens.get(operation.node, ())
            values["token"] = number_used(known, stale=operation.stale) or 0
        if isinstance(operation, op.WriteAsLeader):
            values["text"] = operation.text
        if isinstance(values.get("task"), str):
            values["task"] = self._names.get(values["task"], values["task"])
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
            return unable(f"target {self.spec.name} has no command for {operation}")
        argv = board_speech.spoken(template, self._operation_values(operation))
        if self._uses_tools and len(argv[-1]) > LONG_ARGUMENT:
            argv[-1] = f"@{self._filed(argv[-1])}"
        limit_s = self.limit(self.spec.commands[name].timeout_s or self.limits.command_s)
        worker = op.worker_of(operation)
        return Command(argv, limit_s, self._values["source"], self.environment(worker))

    def ask(self, name: str) -> OperationResult:
        """A look by the board's own means; not part of the history."""
        template = self.spec.template(name)
        if template is None:
            return unable(f"target {self.spec.name} has no command {name!r}")
        argv = board_speech.spoken(template, self._values)
        limit_s = self.limit(self.limits.command_s)
        spoken = Command(argv, limit_s, self._values["source"], self.environment())
        result = as_result(self.box.run_many([spoken])[0], tuple(argv))
        self.pacing.took(result.target_ms / 1000)
        return result

    # --- what sweeps and the faults of the library ask for ----------------------------------------

    def sweepable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means, ready for the system-call engine."""
        if self.spec.server is not None:
            self.found_at("{endpoint}")  # the server that the command brings is not there yet
        spoken = self._spoken(operation)
        if isinstance(spoken, OperationResult):
            return spoken if not spoken.succeeded else unable(f"{operation.type} is no command")
        if self.spec.server is not None:
            spoken = replace(spoken, argv=self.server.once(tuple(spoken.argv)))
        return spoken, ()

    def roots(self) -> tuple[BoxPath, ...]:
        """The directory whose changes count."""
        return (self.outside(self.filled(self.spec.state.directory)),)

    def bystanders(self, operation: Operation) -> tuple[ProcessView, ...]:
        """Nobody: a server is stopped while its commands are swept."""
        return ()

    @property
    def program_path(self) -> Path:
        """The target's program."""
        return self.options.program

    def place(self, word: str) -> str:
        """A directory or file by its word, as the box sees it."""
        known = {
            "state": self.filled(self.spec.state.directory),
            "home": str(self._values["home"]),
            "source": str(self._values["source"]),
            **{name: self.filled(text) for name, text in self.spec.places.items()},
        }
        if word not in known:
            raise ValueError(
                f"target {self.spec.name} names no place {word!r} ([places] of its file); "
                f"known: {', '.join(known)}"
            )
        return known[word]

    def file(self, word: str) -> str:
        """One file by its word, as the box sees it."""
        return self.filled(self.spec.state.file) if word == "state" else self.place(word)

    def party(self, word: str) -> tuple[str, int | None]:
        """Somebody on the network: `network` is everybody in the box, others are in [parties]."""
        text = {"network": "127.0.0.1", **self.spec.parties}.get(word)
        if text is None:
            raise ValueError(f"target {self.spec.name} names no party {word!r} ([parties])")
        address, _, port = text.partition(":")
        return address, int(port) if port else None

    def processes_of(self, role: str, worker: str | None) -> tuple[ProcessView, ...]:
        """The server's processes (`daemon`), or those of a spawned worker (`agent`)."""
        return self.server.processes() if role == "daemon" else self.crew.processes(worker or "")

    def look_again(self) -> None:
        """Every look is a new one."""

    # --- control ---------------------------------------------------------------------------------

    def _sleep(self, operation: Any) -> OperationResult:
        stopping.sleep(operation.seconds)
        return OperationResult()

    def _behave(self, operation: Any) -> OperationResult:
        if self.agents is None:
            return unable(f"target {self.spec.name} has no agents of its own")
        self.agents.behave(operation.turn)
        return OperationResult()

    def _kill_agent(self, operation: Any) -> OperationResult:
        views = process_faults.views(self.box)
        runs = () if self.agents is None else self.agents.runs(views)
        busy = {run.identity for run in runs if run.busy and run.task == operation.task}
        role = f"agent of task {operation.task}"
        return process_faults.kill(self.box, [one for one in views if one.identity in busy], role)

    def _kill_server(self, operation: Any) -> OperationResult:
        """Kill it, at once after a command if one is given: nobody looks in between."""
        if operation.after is None:
            return self.server.kill()
        inner = self._command(operation.after)
        return replace(self.server.kill(), inner=(inner,))

    def _configure(self, operation: Any) -> OperationResult:
        if operation.name not in self.spec.configure:
            return unable(f"target {self.spec.name} cannot set {operation.name} ([configure])")
        self._figures[operation.name] = operation.value
        return OperationResult(stdout=f"{operation.name} = {operation.value:g}")


def _heard(answer: Answer) -> str:
    """What an answer says to the history: `answer`, `unknown` what happened, or `nothing` did."""
    if "unable" in answer.said:  # the driver never asked
        return "nothing"
    if answer.ok:
        return "answer"
    if not answer.said or answer.said.get("happened") == "unknown":
        return "unknown"  # whatever it was, nobody told
    about_nothing = ("system", "server_down", "no_space", "server_running")
    return "nothing" if answer.error in about_nothing else "answer"


Handler = Callable[[BoardLive, Any], OperationResult]
_HANDLERS: dict[type[Operation], Handler] = {
    common.Sleep: BoardLive._sleep,
    op.Configure: BoardLive._configure,
    op.SpawnWorker: lambda live, operation: live.crew.spawn(operation),
    op.StopWorker: lambda live, operation: live.crew.stop(operation.worker),
    op.KillWorker: lambda live, operation: live.crew.kill(operation.worker),
    op.PauseWorker: lambda live, operation: live.crew.pause(operation.worker, operation.seconds),
    op.Up: lambda live, operation: live.server.start(),
    op.Down: lambda live, operation: live.server.stop(),
    op.RestartServer: lambda live, operation: live.server.restart(),
    op.StartSecondServer: lambda live, operation: live.server.start(),
    op.KillServer: BoardLive._kill_server,
    op.Behave: BoardLive._behave,
    op.KillAgent: BoardLive._kill_agent,
    op.AddMany: lambda live, operation: live.loads.add(operation),
    op.Drive: lambda live, operation: live.loads.drive(operation),
}
