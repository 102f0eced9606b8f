"""Combinations of operations, and commands under the system-call engine, for every live target.

A live class says what an operation's command line is and which directories count; how it is
run at once, in one exact order, or broken at one call, is the same for everybody.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mutiny import stopping
from mutiny.box.box import Box
from mutiny.box.results import Command, CommandResult
from mutiny.faults import process as process_faults
from mutiny.kit import operations as op
from mutiny.kit.contract import StepContext
from mutiny.kit.views import ProcessView
from mutiny.model.operation import Kind, Operation, walk
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath
from mutiny.targets.kit.pacing import Pacing

if TYPE_CHECKING:
    from mutiny.targets.kit.fault_runner import FaultRunner
    from mutiny.targets.kit.files import ConfigurationSpec


class Combinations(ABC):
    """A live target whose commands can be combined, injured and swept."""

    box: Box
    pacing: Pacing
    _planned: tuple[Operation, ...] = ()

    @cached_property
    def fault_runner(self) -> FaultRunner:
        """The faults of the library, on this target."""
        from mutiny.targets.kit.fault_runner import FaultRunner

        return FaultRunner(self)

    @property
    def injured(self) -> bool:
        """Has a fault of the library been asked for at all? Until then nothing of it is loaded."""
        return "fault_runner" in self.__dict__

    def prepare(self, operations: Sequence[Operation]) -> None:
        """Make what must be there from the beginning, for what is planned."""
        self._planned = tuple(operations)
        if any(isinstance(part, op.LibraryFault) for item in operations for part in walk(item)):
            self.fault_runner.prepare(operations)

    def begin_again(self) -> None:
        """The box is a new one: nothing is wrong with it, and what was prepared is prepared anew."""
        if self.injured:
            self.fault_runner.forget()
            self.fault_runner.prepare(self._planned)

    # What the faults of the library ask for; a contract's own live class knows more words.

    @property
    def program_path(self) -> Path | None:
        """The target's program; None when there is not one alone."""
        return None

    def places(self) -> dict[str, str]:
        """Directories and files by their words, as the box sees them."""
        root = self.box.inside_root
        return {"source": f"{root}/source", "home": f"{root}/home"}

    def parties(self) -> dict[str, str]:
        """Addresses on the network by their words; `network` is everybody in the box."""
        return {"network": "127.0.0.1"}

    def file(self, word: str) -> str:
        """One file by its word, as the box sees it."""
        return self.place(word)

    def processes_of(self, role: str, worker: str | None) -> Sequence[ProcessView]:
        """The processes of a role; one that is just being restarted is waited for."""
        return ()

    def look_again(self) -> None:  # noqa: B027  (not every target is watched)
        """Files are to be found elsewhere from now on, or Mutiny itself has just written one."""

    def damaged(self, word: str, left: bytes | None) -> None:  # noqa: B027  (nor remembered)
        """Mutiny itself has just made this of a file; None: it is gone."""

    @abstractmethod
    def configuration(self) -> tuple[BoxPath, ConfigurationSpec]:
        """The file with the target's settings, and what is told of them."""

    def place(self, word: str) -> str:
        """A directory or file by its word; ValueError when the target file does not know the word."""
        return _known(self.places(), word, "place")

    def party(self, word: str) -> tuple[str, int | None]:
        """Somebody on the network by a word: address and port."""
        address, _, port = _known(self.parties(), word, "party").partition(":")
        return address, int(port) if port else None

    @abstractmethod
    def execute(self, operation: Operation, context: StepContext) -> OperationResult:
        """Carry out one operation."""

    @abstractmethod
    def sweepable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means, ready for the system-call engine, and its tokens."""

    @abstractmethod
    def roots(self) -> tuple[BoxPath, ...]:
        """The directories whose changes count."""

    @abstractmethod
    def bystanders(self, operation: Operation) -> Sequence[ProcessView]:
        """Long-running processes that an operation does not need: they hold still while a power loss is
        prepared, because nobody follows what they write.
        """

    @abstractmethod
    def reopen(self) -> None:
        """The world has ended; a new box goes on from the files that it left."""

    def combined(self, operation: Operation, context: StepContext) -> OperationResult | None:
        """Carry out what all contracts share; None for everything else."""
        if isinstance(operation, op.ExpectError):
            inner = self.execute(operation.inner, context)
            return replace(inner, inner=(inner,))
        if isinstance(operation, op.Misuse):
            return self._misused(operation, context)
        if isinstance(operation, op.WrongSetting):
            return self._misset(operation, context)
        if isinstance(operation, op.Parallel):
            return self._parallel(operation, context)
        if isinstance(operation, op.LibraryFault):
            return self.fault_runner.carry_out(operation, context)
        if isinstance(operation, op.Heal):
            return self.healed()
        if isinstance(operation, op.SweepPoint | op.Trace | op.Interleave | op.KillDuring):
            reason = self.fault_runner.why_no_crash() if self.injured else None
            if reason is not None:
                return unable(f"{operation.type}: {reason}")
        if isinstance(operation, op.KillDuring):
            return self._kill_during(operation, context)
        if isinstance(operation, op.SweepPoint):
            return self._sweep_point(operation, context)
        if isinstance(operation, op.Trace):
            return self._trace(operation, context)
        if isinstance(operation, op.Interleave):
            return self._interleave(operation, context)
        return None

    def healed(self) -> OperationResult:
        """No lasting fault is on any more."""
        return (
            self.fault_runner.heal() if self.injured else OperationResult(stdout="nothing to heal")
        )

    def _misused(self, operation: op.Misuse, context: StepContext) -> OperationResult:
        """Say a command wrongly."""
        ready = self.sayable(operation.operation, context)
        if isinstance(ready, OperationResult):
            return ready
        command, tokens = ready
        argv = self.misspoken(operation, tuple(command.argv))
        ended = self.box.run_many([replace(command, argv=argv)])[0]
        answer = replace(as_result(ended, argv), tokens=tokens)
        return replace(answer, inner=(answer,))

    def sayable(
        self, operation: Operation, context: StepContext
    ) -> tuple[Command, tuple[str, ...]] | OperationResult:
        """The command that an operation means, as it is said to the target as it is now."""
        return self.sweepable(operation, context)

    def misspoken(self, operation: op.Misuse, argv: tuple[str, ...]) -> tuple[str, ...]:
        """The words of a command, said wrongly."""
        return operation.said(argv)

    def _misset(self, operation: op.WrongSetting, context: StepContext) -> OperationResult:
        """Give a command while one setting is wrong."""
        from mutiny.faults.settings import wrong_setting

        path, told = self.configuration()
        if operation.place >= len(told.numbers):
            return unable(f"the target's file does not tell of {operation.place + 1} settings")
        with wrong_setting(path, told.numbers[operation.place], operation.how) as name:
            answer = self.execute(operation.operation, context)
        due = path.name if told.names == "file" else name
        return replace(answer, inner=(answer,), details={**answer.details, "due_name": due})

    def _kill_during(self, operation: op.KillDuring, context: StepContext) -> OperationResult:
        """Run a command and kill it, or the whole box, after some time."""
        from mutiny.targets.kit import fault_runner

        ready = self.sweepable(operation.operation, context)
        if isinstance(ready, OperationResult):
            return ready
        command, tokens = ready
        after_s = operation.after_ms / 1000
        if operation.anywhere:
            after_s = self.pacing.now().within(after_s)
        answer, text = fault_runner.kill_during(self.box, command, after_s, whole=operation.whole)
        if not self.box.alive:
            self.reopen()
        fired = operation.whole or answer.signal is not None
        return OperationResult(
            stdout=text if fired else "",
            stderr="" if fired else text,
            fired=fired,
            technique=fault_runner.KILL_ALL if operation.whole else fault_runner.KILL_COMMAND,
            inner=(replace(answer, tokens=tokens),),
            tokens=tokens,
        )

    def _parallel(self, operation: op.Parallel, context: StepContext) -> OperationResult:
        """Start all parts at one barrier, each in its own thread."""
        results: list[OperationResult | None] = [None] * len(operation.operations)
        barrier = threading.Barrier(len(operation.operations))
        failures: list[str] = []

        def run(index: int, part: Operation) -> None:
            try:
                barrier.wait(timeout=10)
                results[index] = self.execute(part, context)
            except Exception as error:  # noqa: BLE001  a thread must hand every failure back
                failures.append(f"{part}: {error!r}")

        threads = [
            threading.Thread(target=run, args=(index, part))
            for index, part in enumerate(operation.operations)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            stopping.join(thread)  # when it is not waited for, it ends with the box
        if failures:
            return unable("; ".join(failures))
        parts = tuple(result for result in results if result is not None)
        return OperationResult(
            inner=parts,
            tokens=tuple(token for part in parts for token in part.tokens),
            target_ms=max(part.target_ms for part in parts),
        )

    def _own_roots(self) -> tuple[BoxPath, ...]:
        """The same, after a look that none of them leads out of the box."""
        found = self.roots()
        for root in found:
            root.require_own()
        return found

    def _sweep_point(self, operation: op.SweepPoint, context: StepContext) -> OperationResult:
        """Run a command under the system-call engine and break it at one call."""
        from mutiny.targets.kit.points import break_at

        ready = self.sweepable(operation.operation, context)
        if isinstance(ready, OperationResult):
            return ready
        command, tokens = ready
        quiet = (
            self.bystanders(operation.operation) if isinstance(operation, op.PowerLossAt) else ()
        )
        with process_faults.quiesced(self.box, quiet):
            broken = break_at(operation, self.box, self._own_roots(), command)
        if not self.box.alive:
            self.reopen()
        argv = tuple(command.argv)
        answer = OperationResult(None, signal=9, argv=argv)
        if broken.answer is not None:
            answer = as_result(broken.answer, argv)
        return OperationResult(
            0 if broken.fired else 1,
            stdout=broken.where,
            stderr="" if broken.fired else broken.where,
            fired=broken.fired,
            technique=broken.technique,
            inner=(replace(answer, tokens=tokens),),
            tokens=tokens,
        )

    def _trace(self, operation: op.Trace, context: StepContext) -> OperationResult:
        """Run a command under the system-call engine, unharmed."""
        from mutiny.targets.kit.points import trace

        ready = self.sweepable(operation.operation, context)
        if isinstance(ready, OperationResult):
            return ready
        command, tokens = ready
        quiet = self.bystanders(operation.operation) if operation.keep == "synced" else ()
        with process_faults.quiesced(self.box, quiet):
            traced = trace(operation, self.box, self._own_roots(), command)
        answer = replace(as_result(traced.answer, tuple(command.argv)), tokens=tokens)
        return replace(
            answer,
            inner=(answer,),
            technique=traced.technique,
            details={"calls": traced.calls, "blind_spots": list(traced.blind_spots)},
            kept=traced.kept,
        )

    def _interleave(self, operation: op.Interleave, context: StepContext) -> OperationResult:
        """Run commands at once in one exact order of their file operations."""
        from mutiny.targets.kit.points import interleave

        commands: list[Command] = []
        tokens: list[tuple[str, ...]] = []
        for part in operation.operations:
            ready = self.sweepable(part, context)
            if isinstance(ready, OperationResult):
                return ready
            commands.append(ready[0])
            tokens.append(ready[1])
        needed = [self.bystanders(part) for part in operation.operations]
        # A daemon that takes a lock now and then would make every run another one.
        quiet = needed[0] if all(needed) else ()
        with process_faults.quiesced(self.box, quiet):
            done = interleave(commands, operation.choices(), self.box, self._own_roots())
        if not self.box.alive:
            self.reopen()
        details: dict[str, object] = {
            "schedule": list(done.schedule),
            "alternatives": [[cost, list(other)] for cost, other in done.alternatives],
            "equivalence": done.equivalence,
            "turns": list(done.turns),
        }
        if done.ending == "diverged":
            return replace(unable("the commands did not follow the schedule"), details=details)
        if done.ending != "done":
            return OperationResult(None, stderr=done.problem, timed_out=True, details=details)
        parts = tuple(
            OperationResult(
                end.exit_code,
                end.stdout,
                end.stderr,
                signal=end.signal,
                argv=tuple(command.argv),
                tokens=carried,
                fired=end.exit_code == 0 if part.kind is Kind.FAULT else None,
            )
            for part, end, command, carried in zip(
                operation.operations, done.ends, commands, tokens, strict=True
            )
        )
        for part, answer in zip(operation.operations, parts, strict=True):
            if (
                answer.fired is False
            ):  # the other one was in the way: it shows nothing of the target
                said = answer.stderr.strip() or f"exit {answer.exit_code}"
                return replace(unable(f"{part} could not be done: {said}"), details=details)
        return OperationResult(
            inner=parts,
            tokens=tuple(token for carried in tokens for token in carried),
            technique=done.technique,
            details=details,
        )


def _known(words: dict[str, str], word: str, what: str) -> str:
    if word not in words:
        raise ValueError(f"the target names no {what} {word!r}; known: {', '.join(words)}")
    return words[word]


def as_result(answer: CommandResult, argv: tuple[str, ...]) -> OperationResult:
    """A command's answer as a result."""
    return OperationResult(
        exit_code=answer.exit_code,
        stdout=answer.stdout,
        stderr=answer.stderr,
        signal=answer.signal,
        timed_out=answer.timed_out,
        argv=argv,
        target_ms=answer.duration_s * 1000,
    )


def unable(why: str) -> OperationResult:
    """Mutiny could not carry an operation out: inconclusive."""
    return OperationResult(1, stderr=why, harness_error=why)
