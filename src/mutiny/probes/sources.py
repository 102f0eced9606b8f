"""Where a target's records can be read without asking it: a JSON file, many of them, a SQLite database.

Nothing is locked, written or waited for: a database is read from a copy of its bytes, so that looking
cannot disturb whoever writes it.
"""

from __future__ import annotations

import fnmatch
import json
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from mutiny.probes.records import Raw
from mutiny.system.files import BoxPath, UnsafeFile

MOST_FILES = 10_000
FRONT_MATTER = re.compile(r"---\r?\n(?P<table>.*?)^---\s*$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^# +(?P<text>.*?)\s*$", re.MULTILINE)
QUERY_LIMIT_S = 5.0
TORN_READS = 20
TORN_PAUSE_S = 0.01
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
        lines = path.name.endswith(".jsonl")  # a record a line
        data = [json.loads(one) for one in text.splitlines() if one] if lines else json.loads(text)
        return Raw(data=data, text=text)
    except (ValueError, RecursionError) as error:
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
    try:
        data = YAML(typ="safe", pure=True).load(found["table"])
    except YAMLError:
        return Raw(exists=False, text=text)
    table = data if isinstance(data, dict) else {}
    title = HEADING.search(text, found.end())
    return Raw(data=table if title is None else {"heading": title["text"], **table}, text=text)


def record_files(root: BoxPath, pattern: str) -> Raw:
    """Every file below a directory whose relative name fits a pattern; each is a record, named by its
    own file unless it says otherwise: JSON, or the front matter of Markdown. What has none is no record:
    programs pass over it, too.
    """
    if not root.is_dir():
        return Raw(exists=False)
    rows = []
    for count, path in enumerate(root.files()):
        if count >= MOST_FILES:
            return Raw(error=f"more than {MOST_FILES} files below {root.name}")
        if fnmatch.fnmatch("/".join(path.parts[len(root.parts) :]), pattern):
            raw = front_matter(path) if path.name.endswith(".md") else json_file(path)
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
            for suffix in ("", "-wal"):
                beside = path.parent / f"{path.name}{suffix}"
                there = copy.with_name(f"copy.db{suffix}")
                there.unlink(missing_ok=True)
                found = beside.read_bytes() if suffix == "" else _log_of(path)
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
    return (known.st_size, known.st_mtime_ns, (_log_of(path) or b"")[:WAL_HEADER])


def _log_of(path: BoxPath) -> bytes | None:
    """The log beside a database; whoever closes the database last takes it away at any moment."""
    try:
        return (path.parent / f"{path.name}-wal").read_bytes()
    except FileNotFoundError:
        return None


def _asked(
    copy: Path, queries: Mapping[str, str], *, whole: bool
) -> dict[str, list[dict[str, object]]]:
    connection = sqlite3.connect(copy)
    try:
        if whole:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
                raise sqlite3.DatabaseError(str(verdict))
        deadline = time.monotonic() + QUERY_LIMIT_S
        connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY
        )
        return {name: _rows(connection, query) for name, query in queries.items()}
    finally:
        connection.close()


def _rows(connection: sqlite3.Connection, query: str) -> list[dict[str, object]]:
    found = connection.execute(query)
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found]


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
