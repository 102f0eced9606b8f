"""The verbs as tools with named arguments: their schemas, and a call back to a command.

No server is needed to read this: the table is the same whatever transports it.
"""

from __future__ import annotations

from typing import NamedTuple

from longboat.board import codec
from longboat.board.values import Command, NewTask, Refused

_TEXT: dict[str, object] = {"type": "string"}
_NUMBER: dict[str, object] = {"type": "integer"}
_TEXTS: dict[str, object] = {"type": "array", "items": _TEXT}
_KINDS: dict[str, dict[str, object]] = {
    **dict.fromkeys(("worker", "task", "id", "description", "payload", "output"), _TEXT),
    **dict.fromkeys(("reason", "name", "node", "text"), _TEXT),
    **dict.fromkeys(("epoch", "token", "priority", "max_attempts"), _NUMBER),
    "depends": _TEXTS,
    "tasks": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "id": _TEXT,
                "description": _TEXT,
                "priority": _NUMBER,
                "depends": _TEXTS,
                "max_attempts": _NUMBER,
                "payload": _TEXT,
            },
            "required": ["description"],
        },
    },
}


class Tool(NamedTuple):
    """One verb: what it does, the arguments that it needs, and those that it takes."""

    does: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()

    def schema(self) -> dict[str, object]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: _KINDS[name] for name in (*self.needs, *self.takes)},
            "required": list(self.needs),
            "additionalProperties": False,
        }


TOOLS = {
    "init": Tool("Makes the board."),
    "add": Tool(
        "Adds a task.",
        ("description",),
        ("id", "priority", "depends", "max_attempts", "payload"),
    ),
    "add_batch": Tool("Adds tasks, all or none.", ("tasks",)),
    "claim": Tool("Takes the best task, or the one named.", ("worker",), ("task",)),
    "start": Tool("The owner begins.", ("worker", "task"), ("epoch",)),
    "complete": Tool("The owner has done it.", ("worker", "task"), ("epoch", "output")),
    "fail": Tool("The owner could not do it.", ("worker", "task"), ("epoch", "reason")),
    "heartbeat": Tool("The worker lives.", ("worker",)),
    "release": Tool("The owner gives it back.", ("worker", "task"), ("epoch",)),
    "cancel": Tool("Nobody needs the task any more.", ("task",), ("reason",)),
    "retry": Tool("A failed task gets all its attempts again.", ("task",)),
    "recover": Tool("Returns what dead workers hold, promotes due retries."),
    "checkpoint": Tool("Keeps a copy of the board.", ("name",)),
    "restore": Tool("Brings a copy back.", ("name",)),
    "elect": Tool("Becomes the leader when there is none.", ("node",)),
    "renew": Tool("The leader lives.", ("node", "token")),
    "step_down": Tool("The leader goes.", ("node", "token")),
    "write_as_leader": Tool("A write that needs leadership.", ("node", "token", "text")),
    "status": Tool("How things are."),
    "list": Tool("All tasks with every field."),
    "repair": Tool("Mends an unreadable board from its newest whole copy."),
}


def to_command(name: str, arguments: dict[str, object]) -> Command:
    """The command that a call asks for; a refusal says what is wrong with the call."""
    tool = TOOLS.get(name)
    if tool is None:
        raise Refused("bad_input", f"There is no tool {name!r}")
    given = {key: value for key, value in arguments.items() if value is not None}
    missing = [key for key in tool.needs if key not in given]
    unknown = sorted(set(given) - {*tool.needs, *tool.takes})
    if missing or unknown:
        problem = f"needs {missing[0]!r}" if missing else f"knows no {unknown[0]!r}"
        raise Refused("bad_input", f"{name} {problem}")
    for key, value in given.items():
        _check(name, key, value)
    new: tuple[NewTask, ...] = ()
    if name == "add":
        new = codec.read_batch({"tasks": [given]})
    elif name == "add_batch":
        new = codec.read_batch(given)
    return Command(
        name.replace("_", "-"),
        worker=_text(given, "worker"),
        task=_text(given, "task"),
        epoch=_number(given, "epoch"),
        new=new,
        text=next(
            (_text(given, key) for key in ("output", "reason", "text") if key in given), None
        ),
        name=_text(given, "node") or _text(given, "name"),
        token=_number(given, "token") or 0,
    )


def _check(tool: str, key: str, value: object) -> None:
    kind = _KINDS[key]["type"]
    fits = {
        "string": isinstance(value, str),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "array": isinstance(value, list),
    }[str(kind)]
    if not fits:
        raise Refused("bad_input", f"{tool}: {key} must be of type {kind}, not {value!r:.60}")


def _text(given: dict[str, object], key: str) -> str:
    value = given.get(key, "")
    assert isinstance(value, str)
    return value


def _number(given: dict[str, object], key: str) -> int | None:
    value = given.get(key)
    assert value is None or isinstance(value, int)
    return value
