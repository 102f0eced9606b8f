"""A program from a target file, live in one box, from Reset to Reset: what all contracts share of it.

A contract's own live class says how an operation is spoken, what is seen of the target, and which
operations are more than a command; the box, its environment, faults, waits, evidence and the end are here.
It judges nothing.
"""

from __future__ import annotations

import os
import re
import sys
import time
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from mutiny import stopping
from mutiny.box.box import Box
from mutiny.box.results import Command, Spawned
from mutiny.box.startup import create_box
from mutiny.doubles import speech
from mutiny.errors import TargetMissing
from mutiny.kit.contract import Evidence, StepContext
from mutiny.kit.operations import Sleep
from mutiny.kit.surroundings import SURROUNDINGS
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Operation
from mutiny.model.pace import Patience
from mutiny.model.result import OperationResult
from mutiny.probes.git import TOKEN
from mutiny.system.files import KEPT_LIMIT, BoxPath
from mutiny.system.keepsakes import Keepsake, last_words
from mutiny.targets import drivers
from mutiny.targets.kit.combinations import Combinations, as_result, unable
from mutiny.targets.kit.files import CommandSpec, ConfigurationSpec, TargetFile
from mutiny.targets.kit.options import LiveOptions
from mutiny.targets.kit.pacing import Pacing
from mutiny.targets.kit.profiling import profile_environment, profile_files
from mutiny.targets.kit.starting import Starting, trees_of
from mutiny.targets.kit.version import program_version
from mutiny.targets.kit.waits import Wait
from mutiny.targets.kit.watching import Changes

Tried = TypeVar("Tried")
Handler = Callable[[Any, Any, StepContext], OperationResult]
"""How an operation that is no command is carried out: live target, operation, context."""

LOOK_EVERY_S = 0.5
"""How often a start that takes long is looked at."""
MOVED_TICKS = 20
"""So many hundredths of a second of computing are a sign that it goes on."""


def spelled(argv: Sequence[str], other: Mapping[str, str]) -> tuple[str, ...]:
    """A command line with other words for its options, or as it is: what else it says decides, so that it
    is said again in the same words.
    """
    said = TOKEN.sub("", " ".join(argv[1:]))
    if zlib.crc32(said.encode("utf-8", "surrogateescape")) % 2:
        return tuple(argv)
    return tuple(other.get(word, word) for word in argv)


class LiveTarget(Combinations):
    """One target in one box."""

    waits: ClassVar[Mapping[type[Operation], Wait]] = {}
    handlers: ClassVar[Mapping[type[Operation], Handler]] = {}
    settling: ClassVar[type[Operation]]
    """The contract's `Settle`: no fault is on while it waits."""
    changes: Changes

    def __init__(
        self, spec: TargetFile, directory: Path, options: LiveOptions, *, doubles: bool
    ) -> None:
        if not os.access(options.program, os.R_OK if spec.script else os.X_OK):
            raise TargetMissing(f"target {spec.name}: {options.program} is no executable program")
        self._file = spec
        self.options = options
        self._directory = directory
        self._doubles = doubles
        self.pacing = Pacing()
        self.starting = Starting()
        self.box = self._make_box()
        inside = self.box.inside_root
        self.values: dict[str, Any] = {
            "program": str(options.program),
            "box": inside,
            "home": f"{inside}/home",
            "source": f"{inside}/source",
            "tmp": f"{inside}/tmp",
            "plant": options.plant,
            "python": str(Path(sys.executable).resolve()),
            "client": str(Path(speech.__file__).with_name("mcp_client.py")),
            "drivers": str(Path(drivers.__file__).parent),
            "endpoint": "",
        }
        """Placeholders that are the same for all commands."""
        for path, text in spec.files.items():
            self._lay(self.box.outside(self.filled(path)), self.filled(text))
        for path, text in profile_files(spec.coverage, inside).items() if self.profiled else ():
            self._lay(self.box.outside(path), text)

    @staticmethod
    def _lay(path: BoxPath, text: str) -> None:
        """A file of the target's own, unless a former box has left one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.create(text.encode(), 0o777 if text.startswith("#!") else 0o666)

    def _make_box(self) -> Box:
        options = self.options
        return create_box(
            self._directory,
            technique=options.technique,
            network=options.network,
            root=options.root,
            read_only=trees_of(options.program, self._file.mounts),
            environment=self.secrets(),
            doubles=self._doubles,
        )

    @property
    def profiled(self) -> bool:
        """Does the target write profiles of its own code?"""
        return self.options.profiled and bool(self._file.coverage)

    def secrets(self) -> Mapping[str, str]:
        """What real agents need of the user's own environment."""
        return {}

    # --- files, words, time ------------------------------------------------------------------------

    def outside(self, inside: str) -> BoxPath:
        """A file of the box as it is reached from outside."""
        return self.fault_runner.outside(inside) if self.injured else self.box.outside(inside)

    def filled(self, text: str, quoted: Callable[[str], str] = str) -> str:
        """A text of the target's file with its placeholders replaced; `quoted` by what it goes into."""
        return speech.fill(text, {key: quoted(str(one)) for key, one in self.values.items()})

    def environment(self, worker: str | None = None) -> dict[str, str]:
        """What the target's commands get."""
        own = {key: self.filled(value) for key, value in self._file.environment.items()}
        more = dict(self.fault_runner.environment) if self.injured else {}
        name = {"MUTINY_WORKER": worker} if worker and more else {}
        around = SURROUNDINGS.get(self.options.surroundings, {})
        found = {key: self.filled(value) for key, value in around.items()}
        given = {**found, **own, **more, **name}
        if not self.profiled:
            return given
        return {**given, **profile_environment(self._file.coverage, self.box.inside_root, given)}

    def limit(self, given_s: float) -> float:
        """A limit of the target's file at the pace of this run."""
        return self.pacing.now().limit(given_s)

    def wait_change(self, timeout_s: float) -> None:
        """Return when something visible changed, or when the time is over."""
        self.changes.wait(timeout_s)

    # --- the engine's side -------------------------------------------------------------------------

    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        """Carry out one operation."""
        started = time.perf_counter()
        result = self.starting.judged(operation, self.carry_out(operation, context))
        self.learn(operation, result)
        return replace(result, duration_ms=(time.perf_counter() - started) * 1000)

    def learn(self, operation: Operation, result: OperationResult) -> None:
        """Remember what an operation has shown."""

    def carry_out(self, operation: Operation, context: StepContext) -> OperationResult:
        """One operation, by whoever knows it."""
        combined = self.combined(operation, context)
        if combined is not None:
            return combined
        if isinstance(operation, self.settling):
            healed = self.healed()
            if not healed.succeeded:
                return healed
        if isinstance(operation, Sleep):
            stopping.sleep(operation.seconds)
            return OperationResult()
        wait = self.waits.get(type(operation)) or self.handlers.get(type(operation))
        return self.command(operation, context) if wait is None else wait(self, operation, context)

    @abstractmethod
    def command(self, operation: Operation, context: StepContext) -> OperationResult:
        """Say one command and hear its answer."""

    @abstractmethod
    def observe(self) -> Any:
        """One complete look."""

    def facts(self) -> dict[str, object]:
        """What plan.json says about the box."""
        return self.box.facts()

    def kept(self, logs: Sequence[str]) -> dict[str, Keepsake]:
        """Files of the target that are worth keeping with a bug."""
        paths = (self.outside(self.filled(text)) for text in logs)
        return {f"target_logs/{path.name}": Keepsake(path) for path in paths}

    def told(
        self, log: str, files: Mapping[str, Keepsake], panes: Mapping[str, str] | None = None
    ) -> Evidence:
        """What is kept of the target when something went wrong."""
        state = last_words(self.state_file(), KEPT_LIMIT)
        version = program_version(self.box, self.options.program)
        return Evidence(state, log, panes or {}, files, version)

    def state_file(self) -> BoxPath:
        """The file that a fault means by `state`; perhaps there is none."""
        return self.outside(self.filled(self._file.state.stored))

    def close(self) -> None:
        """Kill everything in the box; its files stay."""
        self.changes.close()
        try:
            if self.injured:
                self.fault_runner.close()
        finally:
            self.box.close()

    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""
        self.changes.close()
        self.box.close()
        self.box = self._make_box()
        self.begin_again()

    # --- commands ----------------------------------------------------------------------------------

    def worded(self, command: CommandSpec, values: Mapping[str, Any]) -> list[str]:
        """The command line of a command with these values."""
        return speech.spoken(command.template(self._file.client), values)

    def spoken(
        self, argv: Sequence[str], limit_s: float | None, worker: str | None = None, stdin: str = ""
    ) -> Command:
        """A command line, ready to be run in the user's checkout."""
        given_s = limit_s or self._file.profile.limits.command_s
        place = str(self.values["source"])
        return Command(
            spelled(argv, self._file.spellings),
            self.pacing.now().answer(given_s),
            place,
            self.environment(worker),
            stdin.encode(),
        )

    def run(self, command: Command, *, unharmed: bool = False) -> OperationResult:
        """Run a command of the target and take its time; `unharmed`: faults of single commands spare it."""
        hurt = self.injured and not unharmed
        ended = self.fault_runner.run(command) if hurt else self.box.run_many([command])[0]
        if not ended.timed_out:
            self.pacing.took(ended.duration_s)
        return as_result(ended, tuple(command.argv))

    def start(
        self, argv: Sequence[str], ready: str, limit_s: float, log: BoxPath
    ) -> tuple[Spawned, OperationResult]:
        """Start what stays in the foreground, and wait until it says that it is ready, or has ended.

        Slow is not stuck: on a crowded machine it has the more time the longer it computes.
        """
        log.unlink(missing_ok=True)  # a kept state has the log of a former one
        started = time.perf_counter()
        spawned = self.box.spawn(
            self.fault_runner.wrapped(argv) if self.injured else tuple(argv),
            cwd=str(self.values["source"]),
            env=self.environment(),
            output=self.box.inside(log),
        )
        patience = Patience(self.limit(limit_s))
        sign, looked = re.compile(ready), started
        while not patience.over:
            text = log.read_said()
            took_ms = (time.perf_counter() - started) * 1000
            if sign.search(text):
                return spawned, OperationResult(0, text, argv=tuple(argv), target_ms=took_ms)
            ended = self.box.wait_ended(spawned, 0.02)
            if ended is not None:
                text = log.read_said()
                died = OperationResult(ended.exit_code, text, text, signal=ended.signal)
                return spawned, replace(died, argv=tuple(argv), target_ms=took_ms)
            if time.perf_counter() - looked > LOOK_EVERY_S:
                looked = time.perf_counter()
                patience.saw((len(text), self._computed(spawned) // MOVED_TICKS))
        late = OperationResult(None, log.read_said(), "never said that it is ready", timed_out=True)
        return spawned, replace(late, argv=tuple(argv))

    def _computed(self, spawned: Spawned) -> int:
        """For how long the processes of a command have computed, in hundredths of a second."""
        every = self.box.processes()
        return sum(one.cpu_ticks for one in every if one.session_id == spawned.pid)

    def lacking(self, operation: Operation) -> OperationResult:
        """The target has no word for it."""
        return unable(f"target {self._file.name} has no command for {operation}")

    # --- what the faults of the library ask for ----------------------------------------------------

    @property
    def program_path(self) -> Path:
        """The target's program."""
        return self.options.program

    def places(self) -> dict[str, str]:
        """Directories and files by their words, as the box sees them."""
        own = {name: self.filled(text) for name, text in self._file.places.items()}
        return {"state": self.state_directory(), **super().places(), **own}

    def configuration(self) -> tuple[BoxPath, ConfigurationSpec]:
        """The file with the target's settings, and what is told of them."""
        told = self._file.configuration
        return self.outside(self.filled(told.file)), told

    def state_directory(self) -> str:
        """Where the target's own files lie, as the box sees it."""
        return self.filled(self._file.state.place)

    def parties(self) -> dict[str, str]:
        """Addresses by their words: those of the target's file, and the whole network."""
        return {**super().parties(), **self._file.parties}

    def file(self, word: str) -> str:
        """One file by its word, as the box sees it."""
        if word == "state":
            return self.filled(self._file.state.stored)
        inside = self.place(word)
        directory = self.outside(inside)
        if not directory.is_dir():
            return inside
        # Of a directory of copies the newest one.
        newest = max(directory.files(), key=lambda one: one.stat().st_mtime_ns, default=None)
        return inside if newest is None else f"{inside}/{newest.name}"

    def awaited(self, find: Callable[[], tuple[ProcessView, ...]]) -> tuple[ProcessView, ...]:
        """Processes of a role; a role that is just being restarted is waited for."""
        return self.retried(find, bool)

    def retried(self, attempt: Callable[[], Tried], done: Callable[[Tried], bool]) -> Tried:
        """Try until it is done, at most for as long as something is waited for that is being restarted."""
        deadline = time.monotonic() + self.patience_s
        while True:
            result = attempt()
            if done(result) or time.monotonic() >= deadline:
                return result
            self.wait_change(0.05)

    @property
    def patience_s(self) -> float:
        """How long something that is being restarted is waited for."""
        return 0.0
