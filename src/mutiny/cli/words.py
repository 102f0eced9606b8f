"""What commands take, declared once: read at once when it is plain, by click when it is not.

Insight: loading click costs more than many a command does, and a well-formed line of words needs none of
it. So the declarations are plain data; `read` understands the usual forms, and whatever it does not
understand (help, mistakes, rare forms) is left to click, built from the same declarations: only one of
the two ever tells a mistake.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import click

    F = TypeVar("F", bound=Callable[..., Any])

_UNDERSTOOD = frozenset(
    (
        *("default", "show_default", "help", "metavar", "is_flag", "type", "required", "multiple"),
        *("callback", "nargs", "complete"),
    )
)


class BadParameter(Exception):
    """A callback's word about a value that cannot be."""


class NotPlain(Exception):
    """The line is left to click."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print and flush: a reader at the other end of a pipe sees it now. A target's words are only shown."""
    from mutiny.report.escape import plain

    stream = sys.stderr if err else sys.stdout
    shown = plain(text)
    stream.write(f"{shown}\n" if nl else shown)
    stream.flush()


class Documents:
    """How many of them were printed: a program that listens gets one, whatever happens."""

    printed = 0


def echo_json(value: object) -> None:
    """Print one JSON document."""
    import json

    Documents.printed += 1
    echo(json.dumps(value, indent=2))


# --- kinds of values --------------------------------------------------------------------------------


class Choice:
    """One of some words."""

    def __init__(self, options: Sequence[str]) -> None:
        self.options = options

    def read(self, word: str) -> str:
        if word not in self.options:
            raise NotPlain
        return word

    def built(self) -> Any:
        import click

        return click.Choice(self.options)


class IntRange:
    """A whole number between two others."""

    def __init__(self, least: int, most: int) -> None:
        self.least, self.most = least, most

    def read(self, word: str) -> int:
        number = _number(int, word)
        if not self.least <= number <= self.most:
            raise NotPlain
        return int(number)

    def built(self) -> Any:
        import click

        return click.IntRange(self.least, self.most)


class FloatRange:
    """A number between two others; `nan` lies between none."""

    def __init__(self, least: float, most: float) -> None:
        self.least, self.most = least, most

    def read(self, word: str) -> float:
        number = _number(float, word)
        if not self.least <= number <= self.most:
            raise NotPlain
        return number

    def built(self) -> Any:
        import click

        class Range(click.FloatRange):
            def convert(self, value: Any, param: Any, ctx: Any) -> Any:
                number = super().convert(value, param, ctx)
                if (
                    number != number
                ):  # click lets `nan` through: it is neither too small nor too big
                    self.fail(f"{value!r} is not a number.", param, ctx)
                return number

        return Range(self.least, self.most)


COUNT = IntRange(1, 1_000_000)
"""How many of something: none of it is never what was meant."""
JOBS = IntRange(1, 256)
"""How much goes side by side."""
SEED = IntRange(0, 2**63 - 1)
SECONDS = FloatRange(0.001, 31_536_000.0)
"""At most a year."""
MINUTES = FloatRange(0.001, 525_600.0)


class Path:
    """A path; what stands there already must be of the right sort."""

    def __init__(
        self, *, path_type: type = _Path, file_okay: bool = True, dir_okay: bool = True
    ) -> None:
        self.given = {"path_type": path_type, "file_okay": file_okay, "dir_okay": dir_okay}

    def read(self, word: str) -> _Path:
        path = _Path(word)
        if word == "-" or (path.is_file() and not self.given["file_okay"]):
            raise NotPlain
        if path.exists() and not os.access(path, os.R_OK):
            raise NotPlain
        if path.is_dir() and not self.given["dir_okay"]:
            raise NotPlain
        return path

    def built(self) -> Any:
        import click

        given: dict[str, Any] = self.given
        return click.Path(**given)


def _number(kind: type[int] | type[float], word: str) -> int | float:
    try:
        return kind(word)
    except ValueError:
        raise NotPlain from None


# --- declarations -----------------------------------------------------------------------------------


class Parameter:
    """An option or an argument."""

    def __init__(self, words: tuple[str, ...], attributes: dict[str, Any]) -> None:
        self.words = words
        self.attributes = attributes
        self.is_option = words[0].startswith("-")
        self.on, _, self.off = next((word for word in words if "/" in word), "").partition("/")
        flags = [word for word in words if word.startswith("-") and "/" not in word]
        self.flags = [*flags, self.on, self.off] if self.on else flags
        plain = [word for word in words if not word.startswith("-")]
        longest = max([*flags, self.on], key=len)
        self.name = plain[0] if plain else longest.lstrip("-").replace("-", "_")
        self.is_flag = bool(attributes.get("is_flag") or self.on)
        self.is_plain = _UNDERSTOOD.issuperset(attributes)

    def default(self) -> Any:
        """The value when nothing was said."""
        if self.attributes.get("required"):
            raise NotPlain
        if self.attributes.get("multiple") or self.attributes.get("nargs") == -1:
            return ()
        if "default" not in self.attributes:
            if not self.is_option:
                raise NotPlain
            return False if self.is_flag else None
        return self.attributes["default"]

    def read(self, word: str) -> Any:
        kind = self.attributes.get("type")
        if kind is None:
            kind = type(self.attributes.get("default", ""))
        if kind in (int, float):
            return _number(kind, word)
        return word if kind in (str, type(None)) else kind.read(word)

    def called_back(self, value: Any) -> Any:
        callback = self.attributes.get("callback")
        return value if callback is None else callback(value)

    def built(self) -> Callable[[Any], Any]:
        """The same for click."""
        import click

        attributes = dict(self.attributes)
        kind: Any = attributes.get("type")
        if hasattr(kind, "built"):
            attributes["type"] = kind.built()
        complete = attributes.pop("complete", None)
        if complete is not None:
            from mutiny.cli.completion import completer

            attributes["shell_complete"] = completer(complete)
        callback = attributes.get("callback")
        if callback is not None:

            def told(context: object, parameter: object, value: object) -> object:
                try:
                    return callback(value)
                except BadParameter as error:
                    raise click.BadParameter(str(error)) from None

            attributes["callback"] = told
        return (click.option if self.is_option else click.argument)(*self.words, **attributes)


class Command:
    """A function with what it takes; or a group of them, with a function that only tells about it."""

    def __init__(self, name: str, function: Callable[..., Any], *, is_group: bool) -> None:
        self.name = name
        self.function = function
        self.parameters: list[Parameter] = getattr(function, "__words__", [])
        self.commands: dict[str, Command] = {}
        self.is_group = is_group

    def command(self, name: str) -> Callable[[Callable[..., Any]], Command]:
        """Add a command to the group."""

        def add(function: Callable[..., Any]) -> Command:
            self.commands[name] = Command(name, function, is_group=False)
            return self.commands[name]

        return add

    def call(self, words: list[str]) -> Any:
        """Read the words and do it; `NotPlain` before anything is done when click must read them."""
        if self.is_group:
            if not words or words[0] not in self.commands:
                raise NotPlain
            return self.commands[words[0]].call(words[1:])
        return self.function(**self.read(words))

    def read(self, words: list[str]) -> dict[str, Any]:
        """The values of all parameters."""
        if not all(parameter.is_plain for parameter in self.parameters):
            raise NotPlain
        options = {flag: item for item in self.parameters for flag in item.flags}
        values: dict[str, Any] = {}
        loose: list[str] = []
        rest = iter(words)
        for word in rest:
            flag, equals, value = word.partition("=")
            if not word.startswith("-"):
                loose.append(word)
            elif flag not in options:
                raise NotPlain
            elif options[flag].is_flag:
                if equals:
                    raise NotPlain
                values[options[flag].name] = flag != options[flag].off
            else:
                item = options[flag]
                read = item.read(value if equals else _next(rest))
                many = item.attributes.get("multiple")
                values[item.name] = (*values.get(item.name, ()), read) if many else read
        self._read_arguments(loose, values)
        try:
            return {
                item.name: item.called_back(
                    values[item.name] if item.name in values else item.default()
                )
                for item in self.parameters
            }
        except BadParameter:
            raise NotPlain from None

    def _read_arguments(self, loose: list[str], values: dict[str, Any]) -> None:
        for item in (item for item in self.parameters if not item.is_option):
            if item.attributes.get("nargs") == -1:
                if loose:
                    values[item.name] = tuple(item.read(word) for word in loose)
                loose = []
            elif loose:
                values[item.name] = item.read(loose[0])
                loose = loose[1:]
        if loose:
            raise NotPlain

    def built(self) -> click.Command:
        """The same for click."""
        import click

        def run(**values: Any) -> Any:
            return self.function(**values)

        run.__doc__ = self.function.__doc__
        decorated: Any = run
        for parameter in reversed(self.parameters):
            decorated = parameter.built()(decorated)
        if not self.is_group:
            return click.command(self.name)(decorated)
        group = click.group(self.name)(decorated)
        for command in self.commands.values():
            group.add_command(command.built())
        return group


def _next(words: Any) -> str:
    word = next(words, "-")
    if word.startswith("-"):
        raise NotPlain
    return str(word)


def option(*words: str, **attributes: Any) -> Callable[[F], F]:
    """As `click.option`, with a callback that takes the value alone."""

    def declare(function: F) -> F:
        declared: list[Parameter] = function.__dict__.setdefault("__words__", [])
        declared.insert(0, Parameter(words, attributes))
        return function

    return declare


argument = option
"""As `click.argument`."""


def command(name: str) -> Callable[[Callable[..., Any]], Command]:
    """As `click.command`."""
    return lambda function: Command(name, function, is_group=False)


def group(name: str) -> Callable[[Callable[..., Any]], Command]:
    """As `click.group`."""
    return lambda function: Command(name, function, is_group=True)
