"""A target's settings with one mistake in them, for as long as one command runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from mutiny.foreign import parse
from mutiny.system.files import BoxPath

UNKNOWN = "no_such_setting"
_VALUES: dict[str, object] = {"text": "soon", "quoted": "3", "boolean": True, "negative": -1}


@contextmanager
def wrong_setting(path: BoxPath, name: str, how: str) -> Iterator[str]:
    """The file with a mistake, put back as it was afterwards; yields the name that a refusal must give."""
    before = path.read_bytes() if path.exists() else None
    table, _, key = name.rpartition(".")
    key, value = (UNKNOWN, 1) if how == "unknown" else (key, _VALUES[how])
    make = in_json if path.name.endswith(".json") else in_toml
    path.replace_bytes(make((before or b"").decode(), table, key, value).encode())
    try:
        yield key
    finally:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.replace_bytes(before)


def in_json(text: str, table: str, key: str, value: object) -> str:
    """The document with this value in the object at a path."""
    whole = parse(text or "{}")
    place = whole
    for word in table.split(".") if table else ():
        place = place.setdefault(word, {})
    place[key] = value
    return json.dumps(whole, indent=1)


def in_toml(text: str, table: str, key: str, value: object) -> str:
    """The document with this value in a table: instead of its line, or as the table's first."""
    line = f"{key} = {json.dumps(value)}"
    lines = text.splitlines()
    first = next((n for n, one in enumerate(lines) if one.strip() == f"[{table}]"), None)
    if table and first is None:
        return "\n".join((*lines, f"[{table}]", line, ""))
    begin = 0 if first is None else first + 1
    tables = (n for n in range(begin, len(lines)) if lines[n].lstrip().startswith("["))
    end = next(tables, len(lines))
    said = re.compile(rf"\s*{re.escape(key)}\s*=")
    found = next((n for n in range(begin, end) if said.match(lines[n])), None)
    kept = lines[begin:end] if found is None else (*lines[begin:found], *lines[found + 1 : end])
    return "\n".join((*lines[:begin], line, *kept, *lines[end:], ""))
