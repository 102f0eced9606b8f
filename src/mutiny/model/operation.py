"""An operation: one step of a run, as plain data.

Operations are frozen dataclasses with plain arguments, so that a scenario, an explored sequence, a
journal line and a minimised replay are all the same thing: a list of `{type, args}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mutiny.model.forms import OperationForm


class Kind(Enum):
    """What sort of step an operation is; decides how its result is classified."""

    CONTROL = "control"
    COMMAND = "command"
    WAIT = "wait"
    ASSERTION = "assertion"
    FAULT = "fault"
    COMBINATION = "combination"


@dataclass(frozen=True)
class Operation:
    """Base of all operations of all contracts."""

    kind: ClassVar[Kind] = Kind.COMMAND
    quiet_arguments: ClassVar[frozenset[str]] = frozenset()
    """Arguments shown as `...` in the one-line form: long texts."""
    positional: ClassVar[bool] = False
    """Show the first argument without its name: `WaitForIdle("alpha")`."""

    @property
    def type(self) -> str:
        """Name under which the operation is written down."""
        return type(self).__name__

    @property
    def looks(self) -> bool:
        """Does it only look? Without it everything else is as it was."""
        return False

    @property
    def asks(self) -> bool:
        """Is it answered by the target or a foreign program, not by Mutiny itself?"""
        return self.kind is Kind.COMMAND

    @property
    def needs(self) -> tuple[str, ...]:
        """What of the catalogue of faults the machine must be able to do for it."""
        return ()

    @property
    def ends_world(self) -> bool:
        """Does every process of the box die in it, so that the target has to come back from its files?"""
        return False

    def arguments(self) -> dict[str, object]:
        """All arguments that differ from their defaults, in the order of declaration."""
        given = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.default is not MISSING and value == item.default:
                continue
            given[item.name] = value
        return given

    def as_json(self) -> OperationForm:
        """`{type, args}`, the form of journals and replays."""
        return {"type": self.type, "args": {k: _plain(v) for k, v in self.arguments().items()}}

    def children(self) -> tuple[Operation, ...]:
        """Operations inside this one; empty for all but combinations."""
        return ()

    def __str__(self) -> str:
        """Complete, runnable form: `Start(worker="alpha", prompt="Create a.txt")`."""
        return self._render(short=False)

    def short(self) -> str:
        """One-line form of the terminal, long texts left out."""
        return self._render(short=True)

    def _render(self, *, short: bool) -> str:
        parts: list[str] = []
        elided = False
        for index, (name, value) in enumerate(self.arguments().items()):
            if short and name in self.quiet_arguments:
                elided = True
                continue
            text = _show(value, short=short)
            parts.append(text if self.positional and index == 0 else f"{name}={text}")
        if elided:
            parts.append("...")
        return f"{self.type}({', '.join(parts)})" if parts or not short else self.type


def _plain(value: object) -> object:
    if isinstance(value, Operation):
        return value.as_json()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _show(value: object, *, short: bool) -> str:
    if isinstance(value, Operation):
        return value.short() if short else str(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_show(item, short=short) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return repr(value)


def snake_case(name: str) -> str:
    """An operation's name as files say it: `KillTmuxServer` is `kill_tmux_server`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def walk(operation: Operation) -> Iterator[Operation]:
    """The operation itself and everything inside it."""
    yield operation
    for child in operation.children():
        yield from walk(child)
