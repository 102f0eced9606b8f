"""A record of ours in what a program has written: where it stands, which field is what; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DEEPEST = 6
_COPY = re.compile(r"(?i)(?<![a-z])(?:bak|backup|old|orig|prev|previous|tmp|temp)(?![a-z])|~$")
_LOG = re.compile(r"(?i)audit|logs?|history|events?|(?:\w+[-_])?(?:audit|events)(?:[-_]\w+)?")
_IDS = ("id", "key", "number")


@dataclass(frozen=True)
class Place:
    """Where a list or a table of records stands, and one of them."""

    path: str
    """The dotted path of the list or table; empty: it is the whole."""
    key: str
    """The field that names a record; empty in a table, whose keys do."""
    record: Mapping[str, Any]


def id_of(record: Mapping[str, Any]) -> str:
    """What the program calls a record; empty when nothing in it looks like that."""
    return next((str(record[key]) for key in _IDS if record.get(key) not in (None, "")), "")


def id_key(record: Mapping[str, Any]) -> str:
    """The field that has it."""
    return next((key for key in _IDS if record.get(key) not in (None, "")), "")


def places_of(data: Any, names: frozenset[str], path: str = "") -> Iterator[Place]:
    """Every list or table in which a record with one of these names, or texts, stands."""
    if path.count(".") > DEEPEST:
        return
    if isinstance(data, Mapping):
        for name, value in data.items():
            if name in names and isinstance(value, Mapping):
                yield Place(path, "", value)
            below = f"{path}.{name}" if path else str(name)
            yield from places_of(value, names, below)
    elif isinstance(data, list):
        for value in data:
            if isinstance(value, Mapping):
                named = [key for key, one in value.items() if isinstance(one, str) and one in names]
                yield from (Place(path, key, value) for key in named)


def fields_of(
    record: Mapping[str, Any], wanted: Mapping[str, str], facts: Mapping[str, frozenset[str]]
) -> dict[str, str]:
    """The record's own names for the fields that a contract knows, where they differ.

    `facts`: values that a field must have, because they were seen elsewhere: a session, a branch.
    """
    found = {}
    for field, usual in wanted.items():
        values = facts.get(field, frozenset())
        fitting = [key for key, one in record.items() if isinstance(one, str) and one in values]
        alike = [key for key in record if field in key.lower().split("_")]
        chosen = sorted(fitting, key=lambda key: key not in alike) if values else alike
        if chosen and (values or usual not in record):
            found[field] = chosen[0]
    return {field: key for field, key in found.items() if key != wanted[field]}


def no_log(name: str) -> bool:
    """Does a file hold more than what was done when, which is never undone in it?"""
    return not any(_LOG.fullmatch(part.partition(".")[0]) for part in name.split("/"))


def likely(name: str) -> tuple[bool, int, str]:
    """Files in the order in which they are believed: no second copy before what it is a copy of."""
    return bool(_COPY.search(name.rpartition("/")[2])), name.count("/"), name
