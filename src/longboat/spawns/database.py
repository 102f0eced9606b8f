"""The database: one file that is whole or refused, never silently a new one.

SQLite in WAL mode, every commit synced. A home without a database that had one (`spawns.id` says so) is
unreadable: what was lost must be told, not replaced by nothing.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator

from longboat.board import files
from longboat.board.values import Refused, SystemRefused, Unreadable
from longboat.planting import planted
from longboat.workers.store import sync_file

SCHEMA = """
create table facts (name text primary key, value text not null);
create table agents (
    name text primary key collate nocase, provider text not null, model text not null,
    created_at text not null
);
create table channels (name text primary key collate nocase, created_at text not null);
create table messages (
    id integer primary key autoincrement, channel text not null collate nocase, sender text not null,
    text text not null, at text not null, root integer not null, parent integer, spawn integer,
    attempt integer, ended_by integer
);
create index messages_by_channel on messages (channel, id);
create index messages_by_spawn on messages (spawn);
create table spawns (
    id integer primary key autoincrement, agent text not null collate nocase, provider text not null,
    channel text not null collate nocase, message integer not null, root integer not null,
    parent integer, depth integer not null, status text not null, reason text not null default '',
    attempt integer not null default 0, stopping integer not null default 0,
    supervisor_pid integer, supervisor_start integer, pid integer, start integer,
    session text, session_file text, exit_code integer, created_at text not null,
    started_at text, ended_at text, began real, progress real, unique (message, agent)
);
create index spawns_by_status on spawns (status, id);
create index spawns_by_root on spawns (root);
create index spawns_by_session on spawns (session);
create table events (
    seq integer primary key autoincrement, at text not null, kind text not null, message integer,
    spawn integer, detail text not null default ''
);
create index events_by_spawn on events (spawn);
create table bookmarks (
    reader text not null collate nocase, channel text not null collate nocase, message integer not null,
    primary key (reader, channel)
);
"""

_NAME, _MARK = "spawns.db", "spawns.id"
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
PARENTS = ("runs", "agents")
"""The directories of a home."""


def now() -> str:
    """This moment for people, in UTC; the order of things is their number, never this."""
    seconds = time.time()
    zone = time.localtime if planted("times-of-here") else time.gmtime
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", zone(seconds))
    return f"{stamp}.{int(seconds * 1000) % 1000:03d}Z"


def refusal_of(error: sqlite3.Error, happened: str) -> Refused:
    """What to say when the database refused."""
    code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
    if code in _LOCKED:
        return SystemRefused("busy", f"The database is held by another process: {error}", "no")
    if code in _DAMAGED:
        return Unreadable(f"The database cannot be read: {error}")
    kind = "no_space" if code == sqlite3.SQLITE_FULL else "system"
    known = "nothing was changed" if happened == "no" else "it is unknown whether it happened"
    return SystemRefused(kind, f"The database refused: {error} ({known})", happened)


def create(home: str, timeout_s: float) -> bool:
    """Make a home; False when there is one already. A crash in between leaves no half of one."""
    files.make_directory(home)
    path, mark = os.path.join(home, _NAME), os.path.join(home, _MARK)
    lock = files.Lock(os.path.join(home, "lock"), timeout_s)
    try:
        for name in PARENTS:
            files.make_directory(os.path.join(home, name))
        created = not os.path.exists(path)
        if created:
            _refuse_if_lost(path, mark)
            _make(path)
        with contextlib.closing(connect(home, timeout_s)) as database:
            identity = identity_of(database)
        if not os.path.exists(mark):
            files.replace(mark, f"{mark}.tmp", identity.encode())
        return created
    except files.Doubtful as doubt:
        raise files.refusal_of(doubt.error, "unknown") from doubt
    finally:
        lock.release()


def _make(path: str) -> None:
    """A new database gets its name when it is complete."""
    temporary = path if planted("database-made-in-place") else f"{path}.tmp"
    for leftover in (temporary, f"{temporary}-journal", f"{temporary}-wal", f"{temporary}-shm"):
        files.discard(leftover)
    try:
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as database:
            database.execute("pragma journal_mode=wal")
            database.execute("pragma synchronous=full")
            database.executescript(f"begin; {SCHEMA}")
            database.execute("insert into facts values ('id', ?)", (os.urandom(4).hex(),))
            database.execute("commit")
    except sqlite3.Error as error:
        raise refusal_of(error, "no") from error
    sync_file(temporary)
    if temporary != path:
        files.put_in_place(temporary, path)


def _refuse_if_lost(path: str, mark: str) -> None:
    if os.path.exists(mark) and not planted("silent-new-database"):
        raise Unreadable(f"{path} is gone, but there was one: bring it back, or use another home")


def connect(home: str, timeout_s: float) -> sqlite3.Connection:
    """The database of a home, or a refusal that says what is wrong with it."""
    path = os.path.join(home, _NAME)
    try:
        empty = os.path.getsize(path) == 0
    except FileNotFoundError:
        _refuse_if_lost(path, os.path.join(home, _MARK))
        if planted("silent-new-database"):
            files.make_directory(home)
            _make(path)
            return connect(home, timeout_s)
        raise Refused("not_initialised", f"There is no home in {home}: `bridge init`") from None
    if empty:
        if planted("silent-new-database"):
            os.unlink(path)
            return connect(home, timeout_s)
        raise Unreadable(f"{path} is empty: bring the real one back, or use another home")
    try:
        database = sqlite3.connect(
            f"file:{_quoted(path)}?mode=rw", uri=True, isolation_level=None, timeout=timeout_s
        )
        database.row_factory = sqlite3.Row
        level = "off" if planted("spawns-unsynced") else "full"
        database.execute(f"pragma synchronous={level}")
        identity_of(database)
    except sqlite3.Error as error:
        raise refusal_of(error, "no") from error
    return database


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def identity_of(database: sqlite3.Connection) -> str:
    """The number of this database, which no other one has."""
    row = database.execute("select value from facts where name = 'id'").fetchone()
    if row is None:
        raise Unreadable("The database has no number: it is not one of ours, or is damaged")
    return str(row[0])


@contextlib.contextmanager
def change(database: sqlite3.Connection) -> Iterator[None]:
    """One change: all of it or nothing; on the disk when this is left without an error."""
    try:
        database.execute("begin immediate")
    except sqlite3.Error as error:
        raise refusal_of(error, "no") from error
    try:
        yield
    except sqlite3.Error as error:
        _roll_back(database)
        raise refusal_of(error, "no") from error
    except BaseException:
        _roll_back(database)
        raise
    try:
        database.execute("commit")
    except sqlite3.Error as error:
        _roll_back(database)
        raise refusal_of(error, "unknown") from error


def _roll_back(database: sqlite3.Connection) -> None:
    if database.in_transaction:  # a full disk has rolled it back already
        with contextlib.suppress(sqlite3.Error):  # the first error is the one to tell
            database.execute("rollback")
