"""What the database knows: agents, channels, messages, runs, and one order of all that happened."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from typing import NamedTuple

from longboat.board.values import Refused
from longboat.planting import planted
from longboat.spawns.database import identity_of, now
from longboat.workers.processes import Identity

PENDING, QUEUED, RUNNING = "pending", "queued", "running"
COMPLETED, FAILED, STOPPED, REFUSED = "completed", "failed", "stopped", "refused"
LIVE = (PENDING, RUNNING)
OPEN = (PENDING, QUEUED, RUNNING)


class Agent(NamedTuple):
    """Somebody who can be mentioned."""

    name: str
    provider: str
    model: str
    created_at: str


class Message(NamedTuple):
    """What somebody has said; ``spawn`` and ``attempt`` are set for what a run has posted."""

    id: int
    channel: str
    sender: str
    text: str
    at: str
    root: int
    parent: int | None
    spawn: int | None
    attempt: int | None
    ended_by: int | None

    def shown(self) -> dict[str, object]:
        """As an answer has it."""
        fields = ("id", "channel", "sender", "text", "at", "root")
        return {**{name: getattr(self, name) for name in fields}, "spawn": name_of(self.spawn)}


class Spawn(NamedTuple):
    """One run of an agent: what it is for, how it is, and who does it."""

    id: int
    agent: str
    provider: str
    channel: str
    message: int
    root: int
    parent: int | None
    depth: int
    status: str
    reason: str
    attempt: int
    stopping: int
    supervisor_pid: int | None
    supervisor_start: int | None
    pid: int | None
    start: int | None
    session: str | None
    session_file: str | None
    exit_code: int | None
    created_at: str
    started_at: str | None
    ended_at: str | None
    began: float | None
    progress: float | None

    @property
    def supervisor(self) -> Identity | None:
        """The process that looks after it."""
        return _identity(self.supervisor_pid, self.supervisor_start)

    @property
    def provider_process(self) -> Identity | None:
        """The process that works."""
        return _identity(self.pid, self.start)

    def shown(self) -> dict[str, object]:
        """As an answer has it."""
        return {**self._asdict(), "id": name_of(self.id), "parent": name_of(self.parent)}


def _identity(pid: int | None, start: int | None) -> Identity | None:
    return None if pid is None or start is None else Identity(pid, start)


def name_of(number: int | None) -> str | None:
    """How a run is called."""
    return None if number is None else f"s{number}"


class Ledger:
    """Questions to the database, and single changes; whoever changes has begun a transaction."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.identity = identity_of(database)

    # --- questions --------------------------------------------------------------------------------

    def agents(self) -> list[Agent]:
        """Everybody, by name."""
        return [Agent(*row) for row in self._all("select * from agents order by name")]

    def agent(self, name: str) -> Agent | None:
        """Who has this name."""
        rows = self._all("select * from agents where name = ?", name)
        return Agent(*rows[0]) if rows else None

    def channels(self) -> list[dict[str, object]]:
        """All channels, with how much was said in them."""
        text = """select name, created_at, (select count(*) from messages where channel = name) as messages,
            (select count(*) from messages where channel = name and ended_by is not null) as ended
            from channels order by name"""
        return [dict(row) for row in self._all(text)]

    def channel(self, name: str) -> str:
        """The channel as it was created, or a refusal."""
        rows = self._all("select name from channels where name = ?", name)
        if not rows:
            raise Refused("no_channel", f"There is no channel '{name}'")
        return str(rows[0][0])

    def message(self, number: int) -> Message:
        """One message."""
        return Message(*self._all("select * from messages where id = ?", number)[0])

    def messages(self, channel: str, after: int, limit: int) -> list[Message]:
        """What was said in a channel, in its order."""
        text = "select * from messages where channel = ? and id > ? order by id limit ?"
        return [Message(*row) for row in self._all(text, channel, after, limit)]

    def spawn(self, number: int) -> Spawn | None:
        """One run."""
        rows = self._all("select * from spawns where id = ?", number)
        return Spawn(*rows[0]) if rows else None

    def known(self, name: str) -> Spawn:
        """The run of this name, or a refusal."""
        digits = name.removeprefix("s")
        found = self.spawn(int(digits)) if digits.isascii() and digits.isdigit() else None
        if found is None:
            raise Refused("no_spawn", f"There is no run '{name}'")
        return found

    def spawns(self, *statuses: str, channel: str = "", agent: str = "") -> list[Spawn]:
        """Runs in their order: all, or those with one of these statuses, of a channel, of an agent."""
        wanted, values = ["1"], list[object]()
        if statuses:
            wanted.append(f"status in ({', '.join('?' * len(statuses))})")
            values += statuses
        for column, value in (("channel", channel), ("agent", agent)):
            if value:
                alike = "like ? || '%'" if planted("names-by-beginning") else "= ?"
                wanted.append(f"{column} {alike}")
                values.append(value)
        text = f"select * from spawns where {' and '.join(wanted)} order by id"
        return [Spawn(*row) for row in self._all(text, *values)]

    def posted(self, spawn: int) -> bool:
        """Has this run said anything?"""
        return bool(self._all("select 1 from messages where spawn = ? limit 1", spawn))

    def has_session(self, session: str) -> bool:
        """Does this session belong to a run?"""
        return bool(self._all("select 1 from spawns where session = ?", session))

    def runs_of(self, root: int) -> int:
        """How many runs a root message has led to; those that were refused do not count."""
        text = "select count(*) from spawns where root = ? and status not in (?, ?)"
        other = STOPPED if planted("stopped-not-counted") else REFUSED
        return int(self._all(text, root, REFUSED, other)[0][0])

    def events(self, spawn: int) -> list[dict[str, object]]:
        """What happened to a run."""
        text = "select seq, at, kind, detail from events where spawn = ? order by seq"
        return [dict(row) for row in self._all(text, spawn)]

    def bookmark(self, reader: str, channel: str) -> int:
        """The last message that a reader has got."""
        text = "select message from bookmarks where reader = ? and channel = ?"
        if planted("bookmark-of-all-channels"):
            text = text.replace("channel = ?", "length(?) order by message desc")
        rows = self._all(text, reader, channel)
        return int(rows[0][0]) if rows else 0

    # --- changes ----------------------------------------------------------------------------------

    def add_message(self, message: Message) -> Message:
        """Say something; its number is its place in the order. A root of 0 means: its own."""
        if planted("text-cut-short"):
            message = message._replace(text=message.text[:200])
        number = self._insert("messages", message._replace(at=now()))
        if planted("numbers-from-the-clock"):
            number = self._renumbered(number)
        if not message.root:
            self._run("update messages set root = id where id = ?", number)
        self.note("message", number, None, message.channel)
        return self.message(number)

    def add_spawn(self, spawn: Spawn) -> Spawn:
        """Write down that somebody was mentioned, and what follows from it."""
        ended = now() if spawn.status == REFUSED or planted("ended-from-the-start") else None
        number = self._insert("spawns", spawn._replace(created_at=now(), ended_at=ended))
        self.note(spawn.status, spawn.message, number, spawn.reason)
        return self.fresh(number)

    def fresh(self, number: int) -> Spawn:
        """A run that must be there, as it is now."""
        found = self.spawn(number)
        assert found is not None
        return found

    def set(self, number: int, **columns: object) -> None:
        """Change a run, without a word in the order of events."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self._run(f"update spawns set {names} where id = ?", *columns.values(), number)

    def move(self, number: int, status: str, detail: str, **columns: object) -> None:
        """A run is something else from now on."""
        if status not in OPEN:
            columns["ended_at"] = now()
        self.set(number, status=status, **columns)
        self.note(status, None, number, detail)

    def end_conversation(self, root: int, message: int) -> None:
        """Nothing of this root message begins any more."""
        self._run("update messages set ended_by = ? where id = ?", message, root)
        self.note("ended", message, None, str(root))

    def put_bookmark(self, reader: str, channel: str, message: int) -> None:
        """A reader has got everything up to here; it never goes back."""
        text = """insert into bookmarks values (?, ?, ?) on conflict (reader, channel)
            do update set message = max(message, excluded.message)"""
        self._run(text, reader, channel, message)

    def add_channel(self, name: str) -> None:
        """A new place to talk."""
        self._run("insert into channels values (?, ?)", name, now())

    def add_agent(self, name: str, provider: str, model: str) -> None:
        """Somebody new."""
        self._run("insert into agents values (?, ?, ?, ?)", name, provider, model, now())

    def note(self, kind: str, message: int | None, spawn: int | None, detail: str) -> None:
        """One more thing that happened."""
        text = "insert into events (at, kind, message, spawn, detail) values (?, ?, ?, ?, ?)"
        self._run(text, now(), kind, message, spawn, detail)

    # --- parts ------------------------------------------------------------------------------------

    def _all(self, text: str, *values: object) -> list[sqlite3.Row]:
        return self.database.execute(text, values).fetchall()

    def _run(self, text: str, *values: object) -> None:
        self.database.execute(text, values)

    def _renumbered(self, number: int) -> int:
        """Plants only: the order follows whatever the clock says."""
        other = int(time.time() * 1000)
        self._run("update messages set id = ? where id = ?", other, number)
        return other

    def _insert(self, table: str, row: Iterable[object]) -> int:
        """A new row; its first column, the number, is given by the database."""
        values = list(row)[1:]
        marks = ", ".join("?" * len(values))
        done = self.database.execute(f"insert into {table} values (null, {marks})", values)
        assert done.lastrowid is not None
        return done.lastrowid
