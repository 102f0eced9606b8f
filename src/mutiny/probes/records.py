"""Records (workers, tasks) in whatever a target shows of itself: found, named, and given a status.

Pure: plain data in, rows out. A target may show a list or a table of them, at any depth, or each alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mutiny.foreign import lines, parse, parse_beginning
from mutiny.system.files import UnsafeFile

Row = Mapping[str, Any]
MOST_RECORDS = 20_000
WHOLE = "."
"""The path of records that lie in no list or table with a name."""


@dataclass(frozen=True)
class Raw:
    """What a source gave, before anybody reads a contract's words in it."""

    exists: bool = True
    error: str | None = None
    """It is there but cannot be understood."""
    refused: bool = False
    """The operating system did not let anybody look."""
    data: Any = None
    text: str = ""


@dataclass(frozen=True)
class StatusRule:
    """A status, and what a record's fields look like then; without conditions it is everybody else's."""

    status: str
    where: Mapping[str, str] = field(default_factory=dict)
    """Field -> regular expression that its whole text must match; a missing field is an empty text."""

    def fits(self, row: Row) -> bool:
        """Is this the status of a record?"""
        return all(re.fullmatch(pattern, _text(row, name)) for name, pattern in self.where.items())


def parse_json(text: str) -> Any:
    """A JSON value over one line or many; or an object a line, which is a list; text around it is noise.

    ValueError when there is none.
    """
    stripped = text.strip()
    if stripped[:1] in ("{", "["):
        try:
            return parse(stripped)
        except ValueError:
            pass
    rows = [line for line in lines(stripped) if line.lstrip()[:1] in ("{", "[")]
    found = []
    for line in rows:
        try:
            found.append(parse(line))
        except ValueError:
            return _embedded(stripped)
    if not found:
        raise ValueError("there is no JSON in it")
    return found[0] if len(found) == 1 else found


def _embedded(text: str) -> Any:
    """The value that begins at the first line with a bracket."""
    start = re.search(r"(?m)^\s*[\[{]", text)
    if start is None:
        raise ValueError("there is no JSON in it")
    return parse_beginning(text[start.start() :].lstrip())


def at(data: Any, path: str) -> Any:
    """The value at a dotted path; the whole for an empty one, and for a dot.

    KeyError, TypeError: it is not there.
    """
    for key in path.split(".") if path not in ("", WHOLE) else ():
        data = data[int(key)] if isinstance(data, list) else data[key]
    return data


def rows_of(data: Any, path: str, key: str) -> dict[str, Row]:
    """The records at a path by their names: a table of them, or a list whose field `key` names each.

    KeyError, TypeError, ValueError: there are none. UnsafeFile: there are too many to be looked at.
    """
    found = at(data, path)
    if isinstance(found, Mapping):
        rows = {str(name): row for name, row in found.items()}
    elif isinstance(found, list):
        rows = {_name(_object(row)[key]): row for row in found}
    else:
        raise TypeError(f"{path or 'it'} is neither a list nor a table of records")
    if len(rows) > MOST_RECORDS:  # not wrong, but nobody could go through them after every step
        raise UnsafeFile(f"there are more than {MOST_RECORDS} records: {len(rows)}")
    return {name: _object(row) for name, row in rows.items()}


def status_of(row: Row, name: str, words: Mapping[str, str], rules: Sequence[StatusRule]) -> str:
    """A record's status: by the first rule that fits, else its own word in the contract's."""
    for rule in rules:
        if rule.fits(row):
            return rule.status
    spoken = _text(row, name)
    return words.get(spoken, spoken)


def field_of(row: Row, name: str) -> Any:
    """A field of a record; `depends.id`: of the record in it, or of each record of a list."""
    if name in row or "." not in name:
        return row.get(name)
    first, _, rest = name.partition(".")
    inner = row.get(first)
    if isinstance(inner, list):
        return [field_of(one, rest) for one in inner if isinstance(one, Mapping)]
    return field_of(inner, rest) if isinstance(inner, Mapping) else None


def listed(value: Any) -> tuple[str, ...]:
    """Several names in one field: a list, a list as JSON, or words with commas between them."""
    if isinstance(value, str):
        try:
            value = parse(value)
        except ValueError:
            value = [one.strip() for one in value.split(",") if one.strip()]
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else (str(value),)


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _name(value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise TypeError(f"the name {value!r} is neither a text nor a number")
    return str(value)


def _object(row: Any) -> Row:
    if not isinstance(row, Mapping):
        raise TypeError(f"a record is no JSON object: {row!r:.80}")
    return row
