"""The words of a command line, understood by a table.

The standard parser costs more to load than most commands cost to run. What the options mean stands
in `longboat --help`.
"""

from __future__ import annotations

from typing import NamedTuple

from longboat.errors import UsageError


class Shape(NamedTuple):
    """What may follow a command: positional words, options with a value, and flags.

    A last word ``...`` stands for any number of further words.
    """

    words: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    needed: int = 0


SHAPES = {
    "init": Shape(options=("--source", "--set"), flags=("--force",)),
    "up": Shape(flags=("--foreground",)),
    "down": Shape(),
    "add": Shape(words=("NAME",), options=("--model", "--command"), needed=1),
    "nuke": Shape(words=("NAME",), flags=("--yes",), needed=1),
    "start": Shape(options=("--worker", "--prompt", "--prompt-file")),
    "message": Shape(words=("NAME", "TEXT"), needed=2),
    "attach": Shape(words=("NAME",), flags=("--print",), needed=1),
    "peek": Shape(words=("NAME",), options=("-l",), needed=1),
    "review": Shape(words=("NAME",), flags=("--name-only",)),
    "accept": Shape(words=("NAME",)),
    "reject": Shape(words=("TEXT",), needed=1),
    "rebase": Shape(words=("NAME",), needed=1),
    "reset": Shape(words=("NAME",), flags=("--yes",), needed=1),
    "doctor": Shape(flags=("--repair", "--yes")),
    "status": Shape(),
}


class Parsed(NamedTuple):
    """A command line that makes sense."""

    command: str
    words: tuple[str, ...]
    options: dict[str, list[str]]
    flags: frozenset[str]

    def word(self, index: int) -> str:
        """A positional word, or nothing."""
        return self.words[index] if index < len(self.words) else ""

    def option(self, name: str) -> str:
        """The last value of an option, or nothing."""
        return self.options.get(name, [""])[-1]


def parse(arguments: list[str], shapes: dict[str, Shape] = SHAPES) -> Parsed:
    """Understand a command line, or say what is wrong with it."""
    command = ""
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
            if not command:
                command, shape = word, _shape(word, shapes)
            else:
                words.append(word)
        elif word == "--":
            literal = True
        elif name == "--home" or name in shape.options:
            if not equals and not left:
                raise UsageError(f"{name} needs a value")
            options.setdefault(name, []).append(value if equals else left.pop(0))
        elif word in ("--json", "--help", "-h", "--version") or word in shape.flags:
            flags.add(word)
        else:
            raise UsageError(f"unknown option {word}{f' of {command}' if command else ''}")
    if not command and not flags & {"--help", "-h", "--version"}:
        raise UsageError("no command")
    if len(words) > len(shape.words) and shape.words[-1:] != ("...",):
        raise UsageError(f"{command}: too many words: {' '.join(words[len(shape.words) :])}")
    if len(words) < shape.needed and not flags & {"--help", "-h"}:
        raise UsageError(f"{command} needs {' '.join(shape.words[len(words) : shape.needed])}")
    return Parsed(command, tuple(words), options, frozenset(flags))


def _shape(command: str, shapes: dict[str, Shape]) -> Shape:
    if command not in shapes:
        raise UsageError(f"unknown command '{command}' (known: {' '.join(shapes)})")
    return shapes[command]
