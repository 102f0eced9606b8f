"""Board B's memory: one row a task, one transaction a verb, synced before the answer.

Every question that a claim asks is answered by an index, so a claim costs the same among ten tasks
and among a hundred thousand.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
from collections.abc import Iterable

from longboat.board import backups, checkpoints, codec, engine, files
from longboat.board.config import Config
from longboat.board.ledger import Counters, Guards
from longboat.board.scheduling import too_far_s
from longboat.board.service import Service
from longboat.board.values import (
    STATUSES,
    Answer,
    Board,
    Command,
    Leader,
    Refused,
    SystemRefused,
    Task,
    Unreadable,
)
from longboat.plants import planted

# Columns stand in the order of their key: quick_check of SQLite 3.40 finds damage otherwise.
_SCHEMA = """
create table tasks (id text primary key, status text not null, priority integer not null,
  place integer not null, not_before real not null, document text not null) without rowid;
create index by_claim on tasks (status, priority, place);
create index by_place on tasks (place);
create table needs (needed text not null, task text not null, primary key (needed, task))
  without rowid;
create table facts (name text primary key, document text not null) without rowid;
"""
_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class SqliteLedger:
    """A ledger on an open transaction."""

    def __init__(self, database: sqlite3.Connection, config: Config, guards: Guards) -> None:
        self.config = config
        self.guards = guards
        self._database = database

    def _tasks(self, condition: str, *values: object) -> list[Task]:
        rows = self._database.execute(f"select document from tasks {condition}", values)
        return [codec.decode_task(json.loads(row[0])) for row in rows]

    def get(self, task: str) -> Task | None:
        """One task."""
        return next(iter(self._tasks("where id = ?", task)), None)

    def put(self, task: Task) -> None:
        """Add or replace one task."""
        self._database.execute(
            "insert or replace into tasks values (?, ?, ?, ?, ?, ?)",
            (
                *(task.id, task.status, task.priority, task.order, task.not_before),
                codec.to_json(task._asdict()),
            ),
        )
        self._database.executemany(
            "insert or ignore into needs values (?, ?)", [(one, task.id) for one in task.depends]
        )

    def best(self, now: float) -> Task | None:
        """The task that is to be claimed next."""
        order = "place desc" if planted("newest-first") else "priority, place"
        found = self._tasks(
            "where status = 'available' and (not_before <= ? or not_before > ?) "
            f"order by {order} limit 1",
            now,
            now + too_far_s(self.config),
        )
        return next(iter(found), None)

    def held(self) -> list[Task]:
        """Claimed and in progress."""
        return self._tasks("where status in ('claimed', 'in_progress') order by place")

    def waiting_on(self, task: str) -> list[Task]:
        """Blocked tasks that depend on this one."""
        return self._tasks(
            "where status = 'blocked' and id in (select task from needs where needed = ?) "
            "order by place",
            task,
        )

    def resting(self) -> list[Task]:
        """Available tasks that wait for the end of a backoff."""
        return self._tasks("where status = 'available' and not_before != 0 order by place")

    def blocked(self) -> list[Task]:
        """Tasks with open dependencies."""
        return self._tasks("where status = 'blocked' order by place")

    def tasks(self) -> list[Task]:
        """All, in the order in which they were added."""
        return self._tasks("order by place")

    def counts(self) -> dict[str, int]:
        """How many are in each status."""
        rows = self._database.execute("select status, count(*) from tasks group by status")
        return {**dict.fromkeys(STATUSES, 0), **dict(rows)}

    def replace_all(self, tasks: Iterable[Task]) -> None:
        """Forget all tasks and keep these."""
        self._database.execute("delete from tasks")
        self._database.execute("delete from needs")
        for task in tasks:
            self.put(task)

    def _fact(self, name: str) -> object:
        row = self._database.execute(
            "select document from facts where name = ?", (name,)
        ).fetchone()
        return json.loads(row[0]) if row else None

    def _set_fact(self, name: str, value: object) -> None:
        row = (name, codec.to_json(value))
        self._database.execute("insert or replace into facts values (?, ?)", row)

    @property
    def counters(self) -> Counters:
        """What never goes down."""
        found = self._fact("counters")
        return Counters(*found) if isinstance(found, list) else Counters(0, 0)

    def set_counters(self, counters: Counters) -> None:
        """Let them grow."""
        self._set_fact("counters", list(counters))

    @property
    def leader(self) -> Leader:
        """The leader, past or present."""
        found = self._fact("leader")
        return codec.decode_leader(found) if isinstance(found, dict) else Leader()

    def set_leader(self, leader: Leader) -> None:
        """Another leader, or another write of it."""
        self._set_fact("leader", codec.encode_leader(leader))

    def board(self, generation: int) -> Board:
        """Everything as one value, for a checkpoint."""
        tasks = {task.id: task for task in self.tasks()}
        return Board(generation, *self.counters, tasks, self.leader)


class SqliteStore(Service):
    """Board B: verbs on a database that this process alone has open."""

    def __init__(self, directory: str, config: Config) -> None:
        super().__init__(directory, config)
        self.path = self.file("broker.db")
        for name in ("backups", "checkpoints"):
            files.make_directory(self.file(name))
        files.sweep(self.file("backups"))
        self._commits = 0
        self._changes = 0
        self._problem: Refused | None = None
        self._database: sqlite3.Connection | None = None
        self._open()

    def _open(self) -> None:
        """Open the database, or remember why that is impossible: every verb will say it."""
        self._problem = None
        if not os.path.exists(self.path):
            text = f"There is no board in {self.directory}: run `init` first"
            self._problem = Refused("not_initialised", text)
            if backups.numbers(self.directory):
                self._problem = Unreadable(self._advice("broker.db is missing"))
            return
        try:
            self._connect()
            database = self._ready()
            if database.execute("pragma quick_check(1)").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("the database is damaged")
            row = database.execute("select document from facts where name = 'ready'").fetchone()
            if row is None:
                raise sqlite3.DatabaseError("the database has no board in it")
            self._back_up()
        except sqlite3.Error as error:
            self.close()
            self._problem = Unreadable(self._advice(f"broker.db cannot be read ({error})"))
            if planted("silent-empty-start"):
                os.unlink(self.path)
                self._create()
            return
        if planted("token-reused-after-restart"):
            SqliteLedger(database, self.config, self.guards).set_leader(Leader())

    def _advice(self, problem: str) -> str:
        return f"The board in {self.directory} is unreadable: {problem}. `repair` mends it"

    def _connect(self) -> None:
        database = sqlite3.connect(self.path, isolation_level=None)
        self._database = database
        # One process alone: no shared memory file. Every commit is synced.
        for setting in ("locking_mode=exclusive", "journal_mode=wal", "synchronous=full"):
            database.execute(f"pragma {setting}")

    def _ready(self) -> sqlite3.Connection:
        if self._problem is not None:
            raise self._problem
        assert self._database is not None
        return self._database

    def close(self) -> None:
        """Let go of the database."""
        if self._database is not None:
            self._database.close()
            self._database = None

    # ---------------------------------------------------------------- verbs

    def execute(self, command: Command) -> Answer:
        """Run one verb; the answer is true and on the disk when it is given."""
        try:
            return self._execute(command)
        except Refused as refusal:
            return refusal.answer()
        except files.Doubtful as doubt:
            return files.refusal_of(doubt.error, "unknown").answer()
        except OSError as error:
            return files.refusal_of(error, "no").answer()
        except sqlite3.Error as error:
            if planted("disk-full-acknowledged"):
                return {"ok": True, "task": command.task}
            return _refusal_of(error, "no").answer()

    def _execute(self, command: Command) -> Answer:
        self.before(command)
        if command.verb == "init":
            return self._init()
        if command.verb == "repair":
            return self._repair()
        database = self._ready()
        if database.in_transaction:
            database.execute("commit")  # only with a plant: see below
        ledger = SqliteLedger(database, self.config, self.guards)
        if command.verb == "checkpoint":
            board = ledger.board(self._commits)
            checkpoints.write(self.directory, command.name, board)
            return {"ok": True, "checkpoint": command.name, "tasks": len(board.tasks)}
        database.execute("begin immediate")
        try:
            if command.verb == "restore":
                saved = checkpoints.read(self.directory, command.name)
                answer = engine.restore(ledger, saved)
            else:
                answer = engine.run(ledger, command, self.moment())
        except BaseException:
            if database.in_transaction:  # a full disk has rolled it back already
                database.execute("rollback")
            raise
        if not planted("answer-before-commit"):
            self._commit(database)
        self.after(command, answer)
        return answer

    def _commit(self, database: sqlite3.Connection) -> None:
        try:
            database.execute("commit")
        except sqlite3.Error as error:
            if database.in_transaction:
                database.execute("rollback")
            raise _refusal_of(error, "unknown") from error
        if database.total_changes != self._changes:
            self._changes = database.total_changes
            self._commits += 1
            if self._commits % self.config.compact_after == 0:
                self._back_up()

    # ---------------------------------------------------------------- making and mending

    def _init(self) -> Answer:
        if self._problem is None:
            return {"ok": True, "created": False, "dir": self.directory}
        if self._problem.error != "not_initialised":
            raise self._problem
        self._create()
        return {"ok": True, "created": True, "dir": self.directory}

    def _create(self, board: Board | None = None) -> None:
        """A new database becomes the database by one rename, so there is never half of one."""
        temporary = self.file("broker.db.tmp")
        for leftover in (temporary, f"{temporary}-journal"):
            files.discard(leftover)
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as database:
            database.execute("pragma synchronous=full")
            database.executescript(f"begin; {_SCHEMA}")
            ledger = SqliteLedger(database, self.config, self.guards)
            if board is not None:
                ledger.replace_all(board.tasks.values())
                ledger.set_counters(Counters(board.sequence, board.epoch_floor))
                ledger.set_leader(board.leader)
            database.execute("insert into facts values ('ready', 'true')")
            database.execute("commit")
        for stale in (f"{self.path}-wal", f"{self.path}-shm", f"{self.path}-journal"):
            files.discard(stale)
        files.put_in_place(temporary, self.path)
        self._open()

    def _back_up(self) -> None:
        """A whole copy beside the database. It failing must not fail what has happened already."""
        number = max(backups.numbers(self.directory), default=0) + 1
        ledger = SqliteLedger(self._ready(), self.config, self.guards)
        path = backups.path_of(self.directory, number)
        try:
            files.replace(path, f"{path}.tmp", codec.write_board(ledger.board(number)))
            backups.prune(self.directory, self.config.backups)
        except (OSError, files.Doubtful) as error:
            sys.stderr.write(f"longboat broker: no backup was made: {error}\n")

    def _repair(self) -> Answer:
        if self._problem is None:
            return {"ok": True, "repaired": False}
        if self._problem.error != "unreadable":
            raise self._problem
        found = backups.newest_whole(self.directory)
        if found is None:
            text = f"{self._problem.message}, but there is no whole backup or checkpoint"
            raise Unreadable(text)
        aside = files.set_aside(self.directory, "broker.db")
        files.set_aside(self.directory, "broker.db-wal")
        self._create(engine.after_repair(found[1], 0))
        return {"ok": True, "repaired": True, "from": found[0], "aside": aside}


def _refusal_of(error: sqlite3.Error, happened: str) -> Refused:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _CORRUPT:
        return Unreadable(f"The database is damaged: {error}; end the broker and `repair`")
    kind = "no_space" if code == sqlite3.SQLITE_FULL else "system"
    known = "nothing was changed" if happened == "no" else "it is unknown whether it happened"
    return SystemRefused(kind, f"The database refused: {error} ({known})", happened)
