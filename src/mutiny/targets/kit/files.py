"""A target as one TOML file, for every contract: what all of them say, and how all of them are read.

The types of a form's fields say what each text is (`Words`, `Inside`, `Pattern`), so that one walk checks
placeholders, places and regular expressions wherever they stand, with the line and the nearest word.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from mutiny import documents
from mutiny.codec import decode
from mutiny.errors import FormatError, nearest
from mutiny.kit.contract import AnyContract
from mutiny.kit.descriptor import Lazy
from mutiny.kit.operations import WRONG_SETTINGS
from mutiny.model.operation import snake_case
from mutiny.targets.kit.checks import (
    check_excuses,
    check_inside,
    check_mounts,
    check_regex,
    with_line,
)
from mutiny.targets.kit.hints import Hint, OwnLines
from mutiny.targets.kit.marks import Inside, Pattern, Words
from mutiny.targets.kit.profiling import LANGUAGES
from mutiny.targets.kit.state import StateSource

FORMAT = 1
MOST_BASES = 8
"""A file extends another one, that a third: not for ever."""

PLACEHOLDERS = (
    *("program", "box", "home", "source", "tmp", "plant"),
    *("python", "client", "drivers", "endpoint"),
)
"""What every target file may say."""


def by_word(*operations: str) -> dict[str, str]:
    """Commands that a target file calls as their operation is called, by their words."""
    return {snake_case(name): name for name in operations}


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """What files of one contract may say."""

    contract: str
    commands: Mapping[str, str]
    """The file's name of each command, and the operation that it carries out."""
    required: tuple[str, ...]
    placeholders: tuple[str, ...]
    """Beyond those of every file."""
    typed: tuple[str, ...] = ()
    """Placeholders whose values are numbers, or lists for a tool."""
    statuses: tuple[str, ...] = ()
    refusals: Collection[str]
    operations: Collection[str]
    rules: Collection[str]
    binding: Collection[str]
    """Rules that no target is excused from."""
    hints: Mapping[str, Hint] = field(default_factory=dict)
    """How programs usually call the commands; a file is proposed by them."""
    own_lines: Lazy[Callable[[Any], OwnLines]] | None = None
    """From a `discover.program.Found` to what only this contract says in a proposed file: at its head, and
    at its end.
    """


@dataclass(frozen=True, kw_only=True)
class CommandSpec:
    """How one command is spoken: a command line, or a tool of an MCP server."""

    argv: tuple[Words, ...] = ()
    optional: Mapping[str, tuple[Words, ...]] = field(default_factory=dict)
    """Words that are only said when there is a value of this name; once for each of several."""
    tool: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    """The tool's argument -> our value."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """What the program takes where it is told nothing: such a value is left unsaid, and must come true."""
    answer: Pattern = ""
    """Regular expression of what it prints; its named groups are the fields of the answer."""
    refusal: Pattern = ""
    """Regular expression of a refusal that exits like a success."""
    stdin: Words = ""
    timeout_s: float | None = None
    then: tuple[tuple[Words, ...], ...] = ()
    """Commands that follow a success, for example to set intervals for the test."""

    def says(self, value: str) -> bool:
        """Is this value said?"""
        words = (*self.argv, *(word for group in self.optional.values() for word in group))
        return value in self.arguments.values() or any(f"{{{value}}}" in word for word in words)

    def template(self, client: tuple[str, ...] = ()) -> dict[str, object]:
        """The form that `doubles/speech.py` speaks."""
        return {
            "argv": list(client if self.tool else self.argv),
            "optional": {name: list(group) for name, group in self.optional.items()},
            "tool": self.tool,
            "arguments": dict(self.arguments),
            **({"defaults": dict(self.defaults)} if self.defaults else {}),
            **{word: text for word in ("answer", "refusal") if (text := getattr(self, word))},
        }


@dataclass(frozen=True)
class ConfigurationSpec:
    """Where the target's own settings stand; wrong ones are tried where the file tells of them."""

    file: Inside = ""
    """A TOML or JSON file, by its ending; it need not be there."""
    numbers: tuple[str, ...] = ()
    """Settings that are numbers above 0, each by its path: `defaults.patrol_interval_secs`."""
    names: str = "setting"
    """What a refusal names: the `setting`, or at least the `file` that it stands in."""
    refuses: tuple[str, ...] = WRONG_SETTINGS
    """What may be wrong about one that the target promises to refuse."""


@dataclass(frozen=True, kw_only=True)
class TargetFile:
    """What the files of all contracts say; a contract's own form adds its fields."""

    format: int
    name: str
    contract: str
    program: str
    commands: Mapping[str, CommandSpec]
    state: StateSource
    about: str = ""
    script: bool = False
    """The program is read by an interpreter, and need not be executable itself."""
    environment: Mapping[str, Words] = field(default_factory=dict)
    client: tuple[Words, ...] = ()
    """The command line before a tool's name and its arguments."""
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The target's word -> the contract's word, where they differ."""
    spellings: Mapping[str, str] = field(default_factory=dict)
    """An option -> another word for it: half of the commands that have it say the other one."""
    rejections: Mapping[str, tuple[Pattern, ...]] = field(default_factory=dict)
    """Class of refusals -> regular expressions of the target's texts."""
    configuration: ConfigurationSpec = field(default_factory=ConfigurationSpec)
    places: Mapping[str, Inside] = field(default_factory=dict)
    """Files and directories that faults may name, beyond `state`, `source` and `home`."""
    parties: Mapping[str, str] = field(default_factory=dict)
    """Addresses (`127.0.0.1:8080`) that network faults may name, beyond `network`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that lie in the box before anything begins, such as a configuration: path -> content."""
    mounts: tuple[str, ...] = ()
    """Directories of this machine that the program must see, beyond those that are found from it."""
    needs: tuple[str, ...] = ("git",)
    """Programs that must be installed; `python:NAME` is a package."""
    coverage: str = ""
    """The language whose profiles tell which of its code was reached, a word of `profiling.LANGUAGES`."""

    vocabulary: ClassVar[Vocabulary]
    profile: Any

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read and check a file; all mistakes are reported at once, each with its line."""
        data, text = _read(path)
        newer = data.get("format")
        if isinstance(newer, int) and newer > FORMAT:
            problem = f"format {newer} is newer than this Mutiny reads ({FORMAT})"
            raise FormatError(str(path), [problem])
        try:
            made = decode(cls, data, where=str(path))
            problems = [*_check(made), *made.own_problems()]
        except FormatError as error:
            problems = list(error.problems)
        if problems:
            raise FormatError(str(path), [with_line(text, problem) for problem in problems])
        told = made.configuration
        own = {"number_settings": told.numbers, "refused_settings": told.refuses}
        return replace(made, profile=replace(made.make_profile(), **own))

    def make_profile(self) -> Any:
        """The contract's profile of this target, with what only the rest of the file tells."""
        return replace(self.profile, lacks=self.lacks)

    def own_problems(self) -> Iterator[str]:
        """What is wrong beyond what files of all contracts are checked for."""
        return iter(())

    def make_contract(self, agents: str) -> AnyContract:
        """The contract with this target's profile and words; `agents` is `double` or `real`."""
        raise NotImplementedError

    def template(self, command: str) -> dict[str, object] | None:
        """How a command is spoken; None when the target has none."""
        spec = self.commands.get(command)
        return None if spec is None else spec.template(self.client)

    @property
    def lacks(self) -> tuple[str, ...]:
        """Operations that no command carries out; a target that needs no `init` has one all the same."""
        spoken = {self.vocabulary.commands[name] for name in self.commands}
        lacking = (one for one in self.vocabulary.commands.values() if one not in (*spoken, "Init"))
        mute: tuple[str, ...] = () if self._says_it_itself() else ("Misuse",)
        mute += () if self.configuration.numbers else ("WrongSetting",)
        return tuple(dict.fromkeys((*self.profile.lacks, *lacking, *mute)))

    @property
    def typed(self) -> tuple[str, ...]:
        """Operations whose commands say a number."""
        numbers = self.vocabulary.typed
        return tuple(
            self.vocabulary.commands[name]
            for name, spec in self.commands.items()
            if any(spec.says(one) for one in numbers)
        )

    def _says_it_itself(self) -> bool:
        """Does the program itself hear the words, and not a driver of ours?"""
        words = [word for one in self.commands.values() for word in one.argv]
        return not any("{client}" in word or "{drivers}" in word for word in words)

    @property
    def missing(self) -> tuple[str, ...]:
        """Commands of the contract that the target lacks."""
        return tuple(name for name in self.vocabulary.commands if name not in self.commands)


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """The tables of a file, laid over those of the file that it extends."""
    data, text = documents.read_toml(path, "target file")
    layers, place = [data], path
    while isinstance(layers[-1].get("extends"), str):
        if len(layers) > MOST_BASES:
            raise FormatError(str(path), ["extends: goes in a circle"])
        place = base_file(place, layers[-1].pop("extends"))
        layers.append(documents.read_toml(place, "target file")[0])
    merged: dict[str, Any] = {}
    for layer in reversed(layers):
        merged = _merged(merged, layer)
    return merged, text


def base_file(path: Path, name: str) -> Path:
    """The file that another one extends: beside it, or one that ships with Mutiny."""
    beside = path.with_name(f"{name}.toml")
    shipped = Path(str(resources.files("mutiny.targets.files"))) / beside.name
    there = os.path.exists(beside)  # noqa: PTH110  that of a path fails for a name that is too long
    return shipped if not there and os.path.exists(shipped) else beside  # noqa: PTH110


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """A target that differs from another one in a few words: tables are merged, the rest is replaced."""
    both = dict(base)
    for name, value in changes.items():
        mine = both.get(name)
        tables = isinstance(mine, dict) and isinstance(value, dict)
        both[name] = _merged(mine, value) if tables else value  # type: ignore[arg-type]
    return both


# --- checks ---------------------------------------------------------------------------------------


def _check(spec: TargetFile) -> Iterator[str]:
    """What types cannot say."""
    known = spec.vocabulary
    if spec.contract != known.contract:
        hint = nearest(spec.contract, [known.contract])
        yield f"contract: unknown contract {spec.contract!r}{hint}"
    for name, command in spec.commands.items():
        if name not in known.commands:
            yield f"commands.{name}: unknown command{nearest(name, list(known.commands))}"
        yield from _check_command(f"commands.{name}", command, spec)
    yield from (
        f"commands.{name}: is missing" for name in known.required if name not in spec.commands
    )
    yield from _check_texts(spec, "", (*PLACEHOLDERS, *known.placeholders))
    yield from check_mounts(spec.mounts)
    if spec.coverage:
        yield from unknown_names("coverage", "language", (spec.coverage,), LANGUAGES)
    for path in spec.files:
        yield from check_inside("files", path)
    yield from unknown_names(
        "configuration.refuses", "mistake", spec.configuration.refuses, WRONG_SETTINGS
    )
    yield from unknown_names(
        "configuration.names", "name", (spec.configuration.names,), ("setting", "file")
    )
    if spec.configuration.numbers and not spec.configuration.file.endswith((".toml", ".json")):
        yield "configuration.file: must end in .toml or .json"
    yield from spec.state.problems(known.statuses)
    for rule in spec.state.rules:
        for name, pattern in rule.where.items():
            yield from check_regex(f"state.rules.{name}", pattern)
    for name in spec.rejections:
        if name not in known.refusals:
            hint = nearest(name, sorted(known.refusals))
            yield f"rejections.{name}: unknown class of refusals{hint}"
    yield from unknown_words("statuses", "status", spec.statuses, known.statuses)
    yield from check_excuses(spec.profile.not_applicable, known.rules, known.binding)
    yield from unknown_names("profile.lacks", "operation", spec.profile.lacks, known.operations)
    for item in fields(spec.profile.limits):
        if getattr(spec.profile.limits, item.name) <= 0:
            yield f"profile.limits.{item.name}: must be more than 0"


def _check_command(where: str, command: CommandSpec, spec: TargetFile) -> Iterator[str]:
    if not command.argv and not command.tool:
        yield f"{where}.argv: is empty"
    if command.argv and command.tool:
        yield f"{where}: give either argv or tool"
    if command.tool and not spec.client:
        yield f"{where}: a tool needs the command line of a client: `client = [...]`"
    if command.timeout_s is not None and command.timeout_s <= 0:
        yield f"{where}.timeout_s: must be more than 0"
    known = (*PLACEHOLDERS, *spec.vocabulary.placeholders)
    yield from unknown_names(where, "value", command.optional, known)
    yield from unknown_names(where, "value", command.arguments.values(), known)
    for name in command.defaults:
        if name not in {*command.optional, *command.arguments.values()}:
            yield f"{where}.defaults: {name!r} is always said, or never: give it a group in `optional`"


def unknown_names(
    where: str, what: str, names: Collection[str], known: Collection[str]
) -> Iterator[str]:
    """Words of a list that nobody knows."""
    for name in names:
        if name not in known:
            yield f"{where}: unknown {what} {name!r}{nearest(name, list(known))}"


def unknown_words(
    where: str, what: str, table: Mapping[str, str], known: Sequence[str]
) -> Iterator[str]:
    """Values of a table that nobody knows."""
    for key, word in table.items():
        yield from unknown_names(f"{where}.{key}", what, (word,), known)


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _check_texts(value: Any, path: str, placeholders: Sequence[str]) -> Iterator[str]:
    """Every text of a form, by what its type says of it."""
    form: Any = type(value)
    for item in fields(value):
        given = getattr(value, item.name)
        where = f"{path}.{item.name}" if path else item.name
        if given != item.default:
            yield from _check_value(_hints(form)[item.name], given, where, placeholders)


def _check_value(kind: Any, given: Any, where: str, placeholders: Sequence[str]) -> Iterator[str]:
    """One value of a declared type, and everything in it."""
    if is_dataclass(given):
        yield from _check_texts(given, where, placeholders)
    elif isinstance(given, str):
        yield from _check_text(
            get_args(kind)[1:] if get_origin(kind) is Annotated else (), given, where, placeholders
        )
    elif isinstance(given, Mapping):
        for key, each in given.items():
            below = where if where.endswith(".optional") else f"{where}.{key}"
            yield from _check_value(get_args(kind)[-1], each, below, placeholders)
    elif isinstance(given, tuple):
        for each in given:
            yield from _check_value(get_args(kind)[0], each, where, placeholders)


def _check_text(
    marks: Sequence[str], text: str, where: str, placeholders: Sequence[str]
) -> Iterator[str]:
    problems = [
        f"{where}: unknown placeholder {{{name}}}{nearest(name, placeholders)}"
        for name in re.findall(r"\{([a-z_]+)\}", text)
        if "words" in marks and name not in placeholders
    ]
    if "inside" in marks and not problems:
        problems += check_inside(where, text)
    if "pattern" in marks:
        problems += check_regex(where, text)
    yield from problems


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace `{placeholder}`s; other braces stay as they are."""
    return re.sub(r"\{([a-z_]+)\}", lambda match: values.get(match[1], match[0]), text)
