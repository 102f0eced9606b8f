"""Where a target's records can be read without asking it: a JSON file, many of them, a SQLite database.

Nothing is locked, written or waited for: a database is read from a copy of its bytes, so that looking
cannot disturb whoever writes it.
"""

from __future__ import annotations

import fnmatch
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ruamel.yaml import YAML

from mutiny.foreign import DEEPEST, lines, parse
from mutiny.probes.records import Raw
from mutiny.system.files import READ_LIMIT, BoxPath, UnsafeFile

MOST_FILES = 10_000
FRONT_MATTER = re.compile(r"---\r?\n(?P<table>.*?)^---\s*$", re.DOTALL | re.MULTILINE)
MOST_TABLE = 16 << 10
"""Of a front matter: its characters, and its parts."""
MOST_BRACKETS = 300
"""A reader of YAML takes minutes for some thousand of them in each other."""
HEADING = re.compile(r"^# +(?P<text>.*?)\s*$", re.MULTILINE)
LOOK_LIMIT_S = 10.0
QUERY_LIMIT_S = 5.0
MOST_VALUE = 16 << 20
"""A text in a database that is longer is not read."""
ROW_COST = 300
"""What a row of a database takes, besides its texts."""
TORN_READS = 20
TORN_PAUSE_S = 0.01
LOGS = ("-wal", "-journal")
"""What belongs to a database: changes that are not in it yet, and what takes back those that are in it and
were never committed.
"""
WAL_HEADER = 32
"""A log that is begun anew has another one."""
_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION)


def json_file(path: BoxPath) -> Raw:
    """One JSON file. One that cannot be looked at safely is not wrong but unknown: UnsafeFile."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return Raw(exists=False)
    except UnsafeFile:
        raise
    except OSError as error:
        return Raw(error=str(error), refused=not isinstance(error, NotADirectoryError))
    except UnicodeDecodeError as error:
        return Raw(error=str(error))
    try:
        by_line = path.name.endswith(".jsonl")  # a record a line
        data = [parse(one) for one in lines(text) if one] if by_line else parse(text)
        return Raw(data=data, text=text)
    except ValueError as error:
        return Raw(error=f"not valid JSON: {error}", text=text)


def front_matter(path: BoxPath) -> Raw:
    """The table between lines of dashes with which a Markdown file begins; without one it is no record.

    A title that only stands below it is the field `heading`.
    """
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return Raw(exists=False)
    found = FRONT_MATTER.match(text)
    if found is None:
        return Raw(exists=False, text=text)
    brackets = found["table"].count("[") + found["table"].count("{")
    if len(found["table"]) > MOST_TABLE or brackets > MOST_BRACKETS:
        raise UnsafeFile(f"{path} begins with a table that is too large to be read")
    try:
        data = YAML(typ="safe", pure=True).load(found["table"])
    except Exception:  # noqa: BLE001  a date that cannot be, dashes without end: no table either
        return Raw(exists=False, text=text)
    if not _small(data):
        raise UnsafeFile(f"{path} begins with a table that unfolds to more than can be read")
    table = data if isinstance(data, dict) else {}
    title = HEADING.search(text, found.end())
    return Raw(data=table if title is None else {"heading": title["text"], **table}, text=text)


def _small(data: Any) -> bool:
    """Does a table stay of its size when every name for a part of it is replaced by that part?"""
    pending, parts = [(data, 0)], 0
    while pending:
        value, depth = pending.pop()
        parts += 1
        if parts > MOST_TABLE or depth > DEEPEST:
            return False
        if isinstance(value, dict | list | set):
            below = [*value, *value.values()] if isinstance(value, dict) else value
            pending += [(one, depth + 1) for one in below]
    return True


def record_files(root: BoxPath, pattern: str) -> Raw:
    """Every file below a directory whose relative name fits a pattern; each is a record, named by its
    own file unless it says otherwise: JSON, or the front matter of Markdown. What has none is no record:
    programs pass over it, too.
    """
    if not root.is_dir():
        return Raw(exists=False)
    rows = []
    total, deadline = 0, time.monotonic() + LOOK_LIMIT_S
    for count, path in enumerate(root.files()):
        if count >= MOST_FILES:
            return Raw(error=f"more than {MOST_FILES} files below {root.name}")
        if fnmatch.fnmatch("/".join(path.parts[len(root.parts) :]), pattern):
            raw = front_matter(path) if path.name.endswith(".md") else json_file(path)
            total += len(raw.text)
            if total > READ_LIMIT or time.monotonic() > deadline:
                raise UnsafeFile(f"{root} holds more records than can be read after every step")
            if not raw.exists:
                continue
            if raw.error is not None or not isinstance(raw.data, dict):
                return Raw(error=f"{path.name}: {raw.error or 'no JSON object'}", text=raw.text)
            rows.append({"name": path.name.rpartition(".")[0], **raw.data})
    return Raw(data=rows)


def sqlite_rows(path: BoxPath, query: str) -> Raw:
    """The rows of a query, each by the names of its columns."""
    raw = sqlite_tables(path, {"": query}, whole=False)
    return replace(raw, data=raw.data[""]) if raw.data is not None else raw


def sqlite_tables(path: BoxPath, queries: Mapping[str, str], *, whole: bool = True) -> Raw:
    """The rows of several queries at one moment, by the queries' names; `whole`: and a look at whether the
    database is intact.
    """
    if not path.exists():
        return Raw(exists=False)
    with TemporaryDirectory(prefix="mutiny-look-") as place:
        copy = Path(place, "copy.db")
        for _ in range(TORN_READS):
            before = _stamp(path)
            for suffix in ("", *LOGS):
                there = copy.with_name(f"copy.db{suffix}")
                there.unlink(missing_ok=True)
                found = path.read_bytes() if suffix == "" else _log_of(path, suffix)
                if found is not None:
                    there.write_bytes(found)
            if _stamp(path) == before:
                break
        try:
            return Raw(data=_asked(copy, queries, whole=whole))
        except sqlite3.Error as error:
            return Raw(error=f"the database cannot be read: {error}")


def _stamp(path: BoxPath) -> object:
    """What changes when the log is written back into the database, or begun anew: then the two that were
    copied one after the other do not belong together.
    """
    known = path.stat()
    logs = ((_log_of(path, suffix) or b"")[:WAL_HEADER] for suffix in LOGS)
    return (known.st_size, known.st_mtime_ns, *logs)


def _log_of(path: BoxPath, suffix: str) -> bytes | None:
    """A log beside a database; whoever closes the database last takes it away at any moment."""
    try:
        return (path.parent / f"{path.name}{suffix}").read_bytes()
    except FileNotFoundError:
        return None


def _asked(
    copy: Path, queries: Mapping[str, str], *, whole: bool
) -> dict[str, list[dict[str, object]]]:
    """The answers. A table may be a view, which is a program of the target's: it gets so much time, and
    so much room, and what it does not answer then is unknown, not damaged.
    """
    connection = sqlite3.connect(copy)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE)
        deadline = time.monotonic() + QUERY_LIMIT_S
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        if whole:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(str(verdict))
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
        )
        return {name: _rows(connection, query) for name, query in queries.items()}
    except sqlite3.DataError as error:
        raise UnsafeFile(f"the database holds a value that is too large: {error}") from error
    except sqlite3.OperationalError as error:
        if time.monotonic() <= deadline:
            raise
        raise UnsafeFile(f"the database gave no answer within {QUERY_LIMIT_S:g} s") from error
    finally:
        connection.close()


def _rows(connection: sqlite3.Connection, query: str) -> list[dict[str, object]]:
    found = connection.execute(query)
    names = [column[0] for column in found.description or ()]
    rows, total = [], 0
    for row in found:
        total += ROW_COST + sum(len(one) for one in row if isinstance(one, str | bytes))
        if total > READ_LIMIT:
            raise UnsafeFile(f"{query.strip()[:80]!r} gives more than can be read after every step")
        rows.append(dict(zip(names, row, strict=True)))
    return rows


def settled(read: Callable[[], Raw]) -> Raw:
    """A reading that is no snapshot of somebody's writing: what cannot be understood counts only when it
    stays the same.
    """
    reading = read()
    for _ in range(TORN_READS):
        if reading.error is None:
            break
        time.sleep(TORN_PAUSE_S)
        before, reading = reading, read()
        if reading == before:
            break
    return reading
