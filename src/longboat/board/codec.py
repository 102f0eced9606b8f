"""A board as bytes and back; nothing else decides what a file may contain.

The checksum is the last member and covers the bytes before it, so checking costs one pass and no
second encoding.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator

from longboat.board.values import (
    STATUSES,
    Board,
    Bucket,
    Command,
    Leader,
    NewTask,
    Refused,
    Task,
    Write,
)

VERSION = 1
_SEAL = b',"checksum":"'
_PIECE = 1 << 16


def to_json(value: object) -> str:
    """One line of ASCII."""
    return json.dumps(value, separators=(",", ":"))


def seal(document: dict[str, object]) -> bytes:
    """A JSON object with its checksum, as one line."""
    body = to_json(document).encode()[:-1]
    return body + _SEAL + f"{zlib.crc32(body):08x}".encode() + b'"}\n'


def seal_pieces(pieces: Iterable[str]) -> Iterator[bytes]:
    """The same for the text of an object that is too long to be held at once; in larger pieces."""
    checksum, waiting = 0, b""
    last = ""
    for piece in pieces:  # the closing brace belongs behind the checksum, so one piece is held back
        waiting += last.encode()
        last = piece
        if len(waiting) >= _PIECE:
            checksum = zlib.crc32(waiting, checksum)
            yield waiting
            waiting = b""
    waiting += last.encode()[:-1]
    checksum = zlib.crc32(waiting, checksum)
    yield waiting + _SEAL + f"{checksum:08x}".encode() + b'"}\n'


def unseal(raw: bytes) -> dict[str, object]:
    """The object of a sealed line; ValueError says what is wrong."""
    body, found, tail = raw.rpartition(_SEAL)
    if not found or len(tail) != 11 or not tail.endswith(b'"}\n'):
        raise ValueError("it does not end in a checksum")
    if tail[:8] != f"{zlib.crc32(body):08x}".encode():
        raise ValueError("the checksum does not match")
    document = json.loads(body + b"}")
    if not isinstance(document, dict):
        raise ValueError("it is not an object")
    return document


def sealed_anew(raw: bytes) -> bytes:
    """Plants only: the same with whatever sum fits what is there now."""
    body, found, _ = raw.rpartition(_SEAL)
    return body + _SEAL + f"{zlib.crc32(body):08x}".encode() + b'"}\n' if found else raw


def encode_board(board: Board) -> dict[str, object]:
    """The JSON form of a board."""
    return {
        "version": VERSION,
        "generation": board.generation,
        "sequence": board.sequence,
        "epoch_floor": board.epoch_floor,
        "tasks": {name: task._asdict() for name, task in board.tasks.items()},
        "leader": encode_leader(board.leader),
        "buckets": {name: list(bucket) for name, bucket in board.buckets.items()},
    }


def write_board(board: Board) -> bytes:
    """The bytes of a board."""
    return seal(encode_board(board))


def read_board(raw: bytes) -> Board:
    """The board in these bytes; ValueError says what is wrong with them."""
    return decode_board(unseal(raw))


def decode_board(document: dict[str, object]) -> Board:
    """A board from its JSON form; ValueError names what is wrong."""
    if document.get("version") != VERSION:
        raise ValueError(f"version {document.get('version')!r}, this longboat knows {VERSION}")
    try:
        tasks = _mapping(document["tasks"])
        return Board(
            generation=_number(document["generation"]),
            sequence=_number(document["sequence"]),
            epoch_floor=_number(document["epoch_floor"]),
            tasks={name: decode_task(_mapping(one)) for name, one in tasks.items()},
            leader=decode_leader(_mapping(document["leader"])),
            buckets={
                name: Bucket(*one)
                for name, one in _mapping(document["buckets"]).items()
                if isinstance(one, list)
            },
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a field is missing or unknown: {error}") from None


def decode_task(fields: dict[str, object]) -> Task:
    """A task from its JSON form; ValueError or TypeError name what is wrong."""
    plain = dict(fields)
    for name in ("depends", "history"):
        plain[name] = tuple(_texts(plain[name]))
    task = Task(**plain)  # type: ignore[arg-type]
    if task.status not in STATUSES:
        raise ValueError(f"task {task.id!r} has the unknown status {task.status!r}")
    return task


def encode_leader(leader: Leader) -> dict[str, object]:
    """The JSON form of a leader."""
    return {**leader._asdict(), "writes": [write._asdict() for write in leader.writes]}


def decode_leader(fields: dict[str, object]) -> Leader:
    """A leader from its JSON form; ValueError or TypeError name what is wrong."""
    writes = fields["writes"]
    if not isinstance(writes, list):
        raise ValueError("the leader's writes are not a list")
    plain = {**fields, "writes": tuple(Write(**one) for one in writes)}
    return Leader(**plain)  # type: ignore[arg-type]


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"an object was expected, not {value!r:.40}")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"a whole number was expected, not {value!r:.40}")
    return value


def _texts(value: object) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"a list of texts was expected, not {value!r:.40}")
    return list(value)


def encode_command(command: Command) -> dict[str, object]:
    """A command for a socket or a journal."""
    fields: dict[str, object] = dict(command._asdict())
    fields["new"] = [new._asdict() for new in command.new]
    return fields


def decode_command(fields: object) -> Command:
    """A command from outside; a refusal says what is wrong with it."""
    try:
        plain = dict(_mapping(fields))
        new = plain.pop("new", [])
        if not isinstance(new, list):
            raise ValueError("'new' is not a list")
        command = Command(**plain, new=tuple(read_new_task(one) for one in new))  # type: ignore[arg-type]
        for name in ("verb", "worker", "task", "name"):
            if not isinstance(getattr(command, name), str):
                raise ValueError(f"{name} is not a text")
        _number(command.token)
        if command.epoch is not None:
            _number(command.epoch)
    except (ValueError, TypeError) as error:
        raise Refused("bad_input", f"not a command: {error}") from None
    return command


def read_new_task(fields: object) -> NewTask:
    """A task that somebody wants to add; ValueError names what is wrong."""
    plain = _mapping(fields)
    unknown = set(plain) - set(NewTask._fields)
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r} of a task")
    description = plain.get("description")
    if not isinstance(description, str):
        raise ValueError("a task has no description")
    for name in ("id", "payload"):
        if not isinstance(plain.get(name), str | None):
            raise ValueError(f"{name} is not a text")
    limit = plain.get("max_attempts")
    return NewTask(
        description=description,
        id=plain.get("id") or None,  # type: ignore[arg-type]
        priority=_number(plain.get("priority", 5)),
        depends=tuple(_texts(plain.get("depends") or [])),
        max_attempts=None if limit is None else _number(limit),
        payload=plain.get("payload"),  # type: ignore[arg-type]
    )


def read_batch(document: object) -> tuple[NewTask, ...]:
    """The tasks of ``{"tasks": [...]}``; a refusal names what is wrong."""
    try:
        listed = _mapping(document).get("tasks")
        if not isinstance(listed, list) or not listed:
            raise ValueError("'tasks' is not a list of tasks")
        return tuple(read_new_task(one) for one in listed)
    except ValueError as error:
        raise Refused("bad_input", f"not a batch: {error}") from None
