"""SQL, the small part of it that is understood: text to statements."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tinybase.rows import Value

__all__ = ["Create", "Delete", "Insert", "Select", "SqlError", "Statement", "parse"]

_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|-?\d+|\w+|<=|>=|[(),=<>*;])")
_COMPARISONS = ("=", "<", ">", "<=", ">=")


class SqlError(ValueError):
    """A text that is no statement."""


@dataclass(frozen=True)
class Create:
    """A new table."""

    table: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Insert:
    """A new row."""

    table: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Select:
    """A question."""

    table: str
    columns: tuple[str, ...]
    where: tuple[str, str, Value] | None = None


@dataclass(frozen=True)
class Delete:
    """Rows go."""

    table: str
    where: tuple[str, str, Value] | None = None


Statement = Create | Insert | Select | Delete


class _Words:
    def __init__(self, text: str) -> None:
        self._left: list[str] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise SqlError(f"not understood: {text[at:][:20]!r}")
            self._left.append(match[1])
            at = match.end()

    def next(self, *wanted: str) -> str:
        """The next word; one of these, if some are wanted."""
        word = self._left.pop(0) if self._left else ""
        if not word or (wanted and word.upper() not in wanted):
            raise SqlError(f"expected {' or '.join(wanted) or 'a word'}, not {word!r}")
        return word

    def peek(self) -> str:
        """The next word in capitals, still to come."""
        return self._left[0].upper() if self._left else ""

    def value(self) -> Value:
        """A number, a text, or NULL."""
        word = self.next()
        if word.startswith("'"):
            return word[1:-1].replace("''", "'")
        if word.upper() == "NULL":
            return None
        try:
            return int(word)
        except ValueError:
            raise SqlError(f"{word!r} is no value") from None

    def listed(self, one: str) -> list[str]:
        """Names with commas between them, up to a bracket or a word."""
        names = [one]
        while self.peek() == ",":
            self.next()
            names.append(self.next())
        return names


def parse(text: str) -> Statement:
    """One statement."""
    words = _Words(text)
    verb = words.next("CREATE", "INSERT", "SELECT", "DELETE").upper()
    made = {"CREATE": _create, "INSERT": _insert, "SELECT": _select, "DELETE": _delete}[verb](words)
    if words.peek() == ";":
        words.next()
    if words.peek():
        raise SqlError(f"too much: {words.next()!r}")
    return made


def _create(words: _Words) -> Statement:
    words.next("TABLE")
    table = words.next()
    words.next("(")
    columns = []
    while True:
        columns.append((words.next(), words.next("INT", "TEXT").lower()))
        if words.next(",", ")") == ")":
            return Create(table, tuple(columns))


def _insert(words: _Words) -> Statement:
    words.next("INTO")
    table = words.next()
    words.next("VALUES")
    words.next("(")
    values = []
    while True:
        values.append(words.value())
        if words.next(",", ")") == ")":
            return Insert(table, tuple(values))


def _select(words: _Words) -> Statement:
    columns = words.listed(words.next())
    words.next("FROM")
    return Select(words.next(), tuple(columns), _where(words))


def _delete(words: _Words) -> Statement:
    words.next("FROM")
    return Delete(words.next(), _where(words))


def _where(words: _Words) -> tuple[str, str, Value] | None:
    if words.peek() != "WHERE":
        return None
    words.next()
    return words.next(), words.next(*_COMPARISONS), words.value()
