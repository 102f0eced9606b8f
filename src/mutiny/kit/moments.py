"""Something done at a named moment of a long command: what every contract with long commands may take.

A moment is a word of the target's file: a line of its event log, a file that appears, or a place at which a
double waits. Nothing depends on how long anything takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.model.operation import Kind, Operation

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True)
class EndsCommand(Operation):
    """Ends the command that runs, and nothing else; it only means something inside of `At`."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class KillOrchestrator(EndsCommand):
    """The command and all that it has started die at once; `alone`: only the command itself."""

    alone: bool = False


@dataclass(frozen=True)
class InterruptOrchestrator(EndsCommand):
    """The command is asked to stop, as its user or a machine that shuts down would."""

    signal: str = "SIGTERM"

    def __post_init__(self) -> None:
        if self.signal not in SIGNALS:
            raise ValueError(f"signal {self.signal!r} is none of {', '.join(SIGNALS)}")


@dataclass(frozen=True)
class At(Operation):
    """A command, and at a named moment of it something else; then the command goes on."""

    moment: str
    operation: Operation
    then: Operation
    kind: ClassVar[Kind] = Kind.COMBINATION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.operation.kind is not Kind.COMMAND:
            raise ValueError(f"only a command has moments; {self.operation.type} is none")
        if self.then.kind not in (Kind.COMMAND, Kind.FAULT) or isinstance(self.then, At):
            raise ValueError(f"{self.then.type} is neither a command nor a fault")

    def children(self) -> tuple[Operation, ...]:
        return (self.operation, self.then)


MOMENT_OPERATIONS: tuple[type[Operation], ...] = (At, KillOrchestrator, InterruptOrchestrator)
"""For the registry of a contract with long commands."""
