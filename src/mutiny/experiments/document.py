"""An experiment file as a tree whose every node knows its line.

YAML 1.2 by ruamel.yaml, so `on`, `NO` and `22:30` stay the words that they are. Duplicate keys are refused.
A JSON file is first read without lines, which is quick; only when something is wrong with it is it read
again for its lines.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutiny import documents
from mutiny.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LARGEST_BYTES = 2 * 1024 * 1024
DEEPEST = 60
MOST_BRACKETS = 500
"""Open at once, those in texts included."""


@dataclass(frozen=True)
class Node:
    """A value and its place."""

    line: int
    scalar: str | int | float | bool | None = None
    entries: tuple[tuple[str, int, Node], ...] | None = None
    """Of a mapping: key, line of the key, value."""
    elements: tuple[Node, ...] | None = None

    @property
    def is_mapping(self) -> bool:
        return self.entries is not None

    @property
    def is_list(self) -> bool:
        return self.elements is not None

    def get(self, key: str) -> Node | None:
        """The value of a key; None when it is not there."""
        for name, _, value in self.entries or ():
            if name == key:
                return value
        return None

    def line_of(self, key: str) -> int:
        """The line of a key; of the whole when it is not there."""
        return next((line for name, line, _ in self.entries or () if name == key), self.line)

    def plain(self) -> Any:
        """The same without places."""
        if self.entries is not None:
            return {name: value.plain() for name, _, value in self.entries}
        if self.elements is not None:
            return [value.plain() for value in self.elements]
        return self.scalar

    def shown(self) -> str:
        """For a message."""
        if self.is_mapping:
            return "a mapping"
        return "a list" if self.is_list else repr(self.scalar)


@dataclass(frozen=True)
class Mistake:
    """Something wrong at a place."""

    line: int
    text: str


class Mistakes(UsageError):
    """A file that cannot be run; one line for each mistake, `file:line: what`."""

    def __init__(self, path: str, found: Sequence[Mistake]) -> None:
        self.path = path
        self.found = tuple(found)
        super().__init__("\n".join(f"{path}:{item.line}: {item.text}" for item in found))


@dataclass(frozen=True)
class Document:
    """A file that was read."""

    path: str
    root: Node
    precise: bool
    """The lines are known."""


def read(path: Path, *, precise: bool = True) -> Document:
    """Read YAML or JSON; without `precise` a JSON file is read quickly and has no lines."""
    text = _text(path)
    if path.suffix == ".json" and not precise:
        quick = _quick_json(text)
        if quick is not None:
            return Document(str(path), quick, precise=False)
    return Document(str(path), _yaml(str(path), text), precise=True)


def is_foreign(root: Node) -> bool:
    """Is it one of Chaos Toolkit's experiments?"""
    keys = {key for key, _, _ in root.entries or ()}
    return "experiment" not in keys and bool(keys & {"title", "method", "steady-state-hypothesis"})


def _text(path: Path) -> str:
    data = documents.read_bytes(path, "experiment", largest=LARGEST_BYTES)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Mistakes(str(path), [Mistake(line, "not UTF-8 text")]) from error


# --- JSON without lines ---------------------------------------------------------------------------


class _Duplicate(Exception):
    pass


def _pairs(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _Duplicate
    return dict(pairs)


def _quick_json(text: str) -> Node | None:
    """None: something is wrong with it, and the careful reader will say what and where."""
    try:
        return _from_plain(json.loads(text, object_pairs_hook=_pairs), 0)
    except (ValueError, RecursionError, _Duplicate):
        return None


def _from_plain(value: object, depth: int) -> Node:
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        entries = tuple((key, 0, _from_plain(item, depth + 1)) for key, item in value.items())
        return Node(0, entries=entries)
    if isinstance(value, list):
        return Node(0, elements=tuple(_from_plain(item, depth + 1) for item in value))
    assert value is None or isinstance(value, str | int | float | bool)
    return Node(0, value)


# --- YAML with lines ------------------------------------------------------------------------------


def _yaml(path: str, text: str) -> Node:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    deep = _too_deep(text)
    if deep is not None:
        raise Mistakes(path, [Mistake(deep, "not valid YAML: nested too deeply")])
    try:
        composed = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark else 1
        raise Mistakes(path, [Mistake(line, f"not valid YAML: {what}")]) from error
    except (YAMLError, ValueError, RecursionError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Mistakes(path, [Mistake(1, f"not valid YAML: {first}")]) from error
    if composed is None:
        raise Mistakes(path, [Mistake(1, "the file is empty")])
    reader = _Composed()
    root = reader.node(composed, 0)
    if reader.mistakes:
        raise Mistakes(path, reader.mistakes)
    return root


def _too_deep(text: str) -> int | None:
    """The line in which so many brackets are open that the reader would need seconds to give up."""
    level = 0
    for match in re.finditer(r"[\[{\]}]", text):
        level = level + 1 if match[0] in "[{" else max(level - 1, 0)
        if level > MOST_BRACKETS:
            return text.count("\n", 0, match.start()) + 1
    return None


class _Composed:
    """From ruamel's nodes to ours; a node that several aliases share is made once."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self._made: dict[int, Node] = {}
        self._open: set[int] = set()

    def node(self, source: Any, depth: int) -> Node:
        key = id(source)
        line = source.start_mark.line + 1
        if key in self._made:
            return self._made[key]
        if key in self._open or depth > DEEPEST:
            self.mistakes.append(Mistake(line, "the value contains itself or is nested too deeply"))
            return Node(line)
        self._open.add(key)
        made = self._make(source, line, depth)
        self._open.discard(key)
        self._made[key] = made
        return made

    def _make(self, source: Any, line: int, depth: int) -> Node:
        if source.id == "mapping":
            return Node(line, entries=tuple(self._entries(source, depth)))
        if source.id == "sequence":
            return Node(line, elements=tuple(self.node(item, depth + 1) for item in source.value))
        try:
            return Node(line, _scalar(str(source.tag), source.value))
        except ValueError as error:
            self.mistakes.append(Mistake(line, str(error)))
            return Node(line)

    def _entries(self, source: Any, depth: int) -> Iterator[tuple[str, int, Node]]:
        first: dict[str, int] = {}
        for key, value in source.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                self.mistakes.append(Mistake(line, "a key must be a word"))
                continue
            if key.value in first:
                text = f"duplicate key {key.value!r}; it stands in line {first[key.value]} already"
                self.mistakes.append(Mistake(line, text))
                continue
            first[key.value] = line
            yield key.value, line, self.node(value, depth + 1)


_INT = r"[-+]?(0o[0-7]+|0x[0-9a-fA-F]+|[0-9]+)"


def _scalar(tag: str, text: str) -> str | int | float | bool | None:
    kind = tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int" and re.fullmatch(_INT, text) and len(text) < 40:
        return int(text, 0) if text.lstrip("+-")[:2] in ("0o", "0x") else int(text)
    if kind == "float":
        value = float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(value):
            raise ValueError(f"{text} is no usable number")
        return value
    if kind in ("str", "int", "timestamp", "value", "binary"):
        return text  # a date stays the word that it is
    raise ValueError(f"the tag {tag!r} is not understood")
