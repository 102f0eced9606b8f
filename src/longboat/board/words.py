"""The words of a board's command line: to a command, and from an answer back to words.

Boards A and C share them. Understood by a table, because the standard parser costs more to load
than most commands cost to run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NamedTuple

from longboat.board.values import Answer, Command, NewTask
from longboat.errors import UsageError


class Shape(NamedTuple):
    """What may follow a verb: words (all needed), and options with a value."""

    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    does: str = ""


_OF_OWNER = ("WORKER", "TASK")
SHAPES = {
    "init": Shape(does="makes the board"),
    "add": Shape(
        ("DESCRIPTION",),
        ("--id", "-p", "--priority", "-d", "--depends", "--max-attempts", "--payload-file"),
        "adds a task",
    ),
    "add-batch": Shape(("FILE",), (), 'adds {"tasks": [...]}, all or nothing'),
    "claim": Shape(("WORKER",), ("--task",), "takes the best task, or this one"),
    "start": Shape(_OF_OWNER, ("--epoch",), "the owner begins"),
    "complete": Shape(_OF_OWNER, ("--epoch", "--output", "--output-file"), "it is done"),
    "fail": Shape(_OF_OWNER, ("--epoch", "--reason"), "again after a rest, or never"),
    "heartbeat": Shape(("WORKER",), (), "the worker lives"),
    "release": Shape(_OF_OWNER, ("--epoch",), "gives it back"),
    "cancel": Shape(("TASK",), ("--reason",), "nobody needs it any more"),
    "retry": Shape(("TASK",), (), "a failed task gets all its attempts again"),
    "recover": Shape((), (), "returns what dead workers hold, promotes due retries"),
    "checkpoint": Shape(("NAME",), (), "keeps a copy"),
    "restore": Shape(("NAME",), (), "brings a copy back"),
    "elect": Shape(("NODE",), (), "becomes the leader when there is none"),
    "renew": Shape(("NODE", "TOKEN"), (), "the leader lives"),
    "step-down": Shape(("NODE", "TOKEN"), (), "the leader goes"),
    "write-as-leader": Shape(("NODE", "TOKEN", "TEXT"), (), "a write that needs leadership"),
    "status": Shape((), (), "how things are"),
    "list": Shape((), (), "all tasks with every field"),
    "repair": Shape((), (), "mends an unreadable board from its newest whole copy"),
}


class Line(NamedTuple):
    """A command line that makes sense."""

    verb: str
    words: tuple[str, ...]
    options: dict[str, list[str]]
    flags: frozenset[str]

    def option(self, *names: str) -> str | None:
        """The last value of an option, by any of its names."""
        values = [value for name in names for value in self.options.get(name, [])]
        return values[-1] if values else None


def split(
    arguments: list[str], shapes: dict[str, Shape], everywhere: tuple[str, ...] = ("--dir",)
) -> Line:
    """Understand a command line, or say what is wrong with it."""
    verb = ""
    words: list[str] = []
    options: dict[str, list[str]] = {}
    flags: set[str] = set()
    shape = Shape()
    left = list(arguments)
    literal = False
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if literal or not word.startswith("-") or word == "-":
            if verb:
                words.append(word)
            elif word in shapes:
                verb, shape = word, shapes[word]
            else:
                raise UsageError(f"unknown command '{word}' (known: {' '.join(shapes)})")
        elif word == "--":
            literal = True
        elif name in everywhere or name in shape.options:
            if not equals and not left:
                raise UsageError(f"{name} needs a value")
            options.setdefault(name, []).append(value if equals else left.pop(0))
        elif word in ("--json", "--help", "-h") or f"{word}!" in shape.options:
            flags.add(word)
        else:
            raise UsageError(f"unknown option {word}{f' of {verb}' if verb else ''}")
    if not flags & {"--help", "-h"}:
        if not verb:
            raise UsageError("no command")
        if len(words) > len(shape.words):
            raise UsageError(f"{verb}: too many words: {' '.join(words[len(shape.words) :])}")
        if len(words) < len(shape.words):
            raise UsageError(f"{verb} needs {' '.join(shape.words[len(words) :])}")
    return Line(verb, tuple(words), options, frozenset(flags))


def to_command(line: Line) -> Command:
    """The command that a line asks for; files that it names are read here."""
    given = dict(zip(SHAPES[line.verb].words, line.words, strict=True))
    epoch = line.option("--epoch")
    command = Command(
        line.verb,
        worker=given.get("WORKER", ""),
        task=given.get("TASK") or line.option("--task") or "",
        epoch=None if epoch is None else _number("--epoch", epoch),
        name=given.get("NODE") or given.get("NAME", ""),
        token=_number("TOKEN", given["TOKEN"]) if "TOKEN" in given else 0,
        text=given.get("TEXT") or line.option("--reason"),
    )
    if line.verb == "add":
        return command._replace(new=(_new_task(line),))
    if line.verb == "add-batch":
        return command._replace(new=_batch(line.words[0]))
    if line.verb == "complete":
        path = line.option("--output-file")
        return command._replace(text=line.option("--output") if path is None else _read(path))
    return command


def _number(what: str, text: str) -> int:
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        raise UsageError(f"{what} needs a number, not {text!r}")
    return int(text)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def _new_task(line: Line) -> NewTask:
    priority, limit = line.option("-p", "--priority"), line.option("--max-attempts")
    path = line.option("--payload-file")
    depends = [*line.options.get("-d", []), *line.options.get("--depends", [])]
    return NewTask(
        line.words[0],
        line.option("--id"),
        5 if priority is None else _number("--priority", priority),
        tuple(depends),
        None if limit is None else _number("--max-attempts", limit),
        None if path is None else _read(path),
    )


def _batch(path: str) -> tuple[NewTask, ...]:
    import json

    from longboat.board.codec import read_batch

    try:
        document = json.loads(_read(path))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    return read_batch(document)


def help_text(program: str, shapes: dict[str, Shape], before: str) -> str:
    """The help of a board, from the same table that understands it."""
    lines = [before.rstrip("\n"), ""]
    for verb, shape in shapes.items():
        options = "".join(
            f" [{name.rstrip('!')}]" if name.endswith("!") else f" [{name} V]"
            for name in shape.options
        )
        lines.append(f"  {program} {' '.join((verb, *shape.words))}{options}")
        lines.append(f"      {shape.does}")
    lines.append("")
    lines.append("Exit: 0 done, 1 refused, 2 wrong usage, 3 the state is unreadable.")
    return "\n".join(lines)


def exit_code(answer: Answer) -> int:
    """0 done, 1 refused, 3 unreadable."""
    if answer["ok"]:
        return 0
    return 3 if answer.get("error") == "unreadable" else 1


def show(
    verb: str, answer: Answer, *, as_json: bool, people: Callable[[str, Answer], str] | None = None
) -> int:
    """Print an answer, for people in the words of ``people``; the exit code goes with it."""
    code = exit_code(answer)
    if not answer["ok"]:
        sys.stderr.write(f"{answer.get('message') or answer.get('error')}\n")
    if as_json:
        from longboat.board.codec import to_json

        text = to_json(answer)
    elif answer["ok"]:
        text = (people or _for_people)(verb, answer)
    else:
        return code
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
        sys.stdout.flush()
    except OSError as error:
        import os

        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)  # or the interpreter tries again at its end
        sys.stderr.write(
            f"longboat: the answer could not be printed ({error}); it may have happened\n"
        )
        return 1
    return code


def _for_people(verb: str, answer: Answer) -> str:
    if verb == "list":
        tasks = answer["tasks"]
        assert isinstance(tasks, list)
        return "\n".join(
            one_line(
                f"{task['id']:<12} {task['status']:<12} p{task['priority']} "
                f"{task['owner'] or '-'} #{task['epoch']} {task['description']}"
            )
            for task in tasks
        )
    return "\n".join(f"{name}: {value}" for name, value in answer.items() if name != "ok") or "ok"


def one_line(text: str) -> str:
    """A text without line breaks."""
    return text.replace("\n", "\\n").replace("\r", "\\r")


def directory_of(line: Line) -> str:
    """Where the board is."""
    return os.path.abspath(line.option("--dir") or os.environ.get("LONGBOAT_BOARD") or ".board")
