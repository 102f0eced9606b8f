"""Board B's ledger: one row a task, on an open transaction.

Every question that a claim asks is answered by an index, so a claim costs the same among ten tasks
and among a hundred thousand. What a verb touched is remembered, for the second copy.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator

from longboat.board import codec
from longboat.board.config import Config
from longboat.board.ledger import Counters, Guards
from longboat.board.scheduling import too_far_s
from longboat.board.values import STATUSES, Board, Leader, Task
from longboat.planting import planted

# Columns stand in the order of their key: quick_check of SQLite 3.40 finds damage otherwise.
SCHEMA = """
create table tasks (id text primary key, status text not null, priority integer not null,
  place integer not null, not_before real not null, document text not null) without rowid;
create index by_claim on tasks (status, priority, place);
create index by_place on tasks (place);
create table needs (needed text not null, task text not null, primary key (needed, task))
  without rowid;
create table facts (name text primary key, document text not null) without rowid;
"""
Row = tuple[str, str, int, int, float, str]


def _row_of(task: Task) -> Row:
    document = codec.to_json(task._asdict())
    return (task.id, task.status, task.priority, task.order, task.not_before, document)


def _decode(document: str) -> Task:
    try:
        return codec.decode_task(json.loads(document))
    except (ValueError, TypeError, KeyError) as error:
        raise sqlite3.DatabaseError(f"a task is damaged: {error}") from None


class SqliteLedger:
    """A ledger on an open transaction."""

    def __init__(self, database: sqlite3.Connection, config: Config, guards: Guards) -> None:
        self.config = config
        self.guards = guards
        self._database = database
        self.touched: dict[str, Task] = {}
        self.replaced = False

    def _tasks(self, condition: str, *values: object) -> list[Task]:
        rows = self._database.execute(f"select document from tasks {condition}", values)
        return [_decode(row[0]) for row in rows]

    def get(self, task: str) -> Task | None:
        """One task."""
        return next(iter(self._tasks("where id = ?", task)), None)

    def put(self, task: Task) -> None:
        """Add or replace one task."""
        self.touched[task.id] = task
        self._database.execute(
            "insert or replace into tasks values (?, ?, ?, ?, ?, ?)", _row_of(task)
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
        self.touched = {}
        self.replaced = True
        self._database.execute("delete from tasks")
        self._database.execute("delete from needs")
        for task in tasks:
            self.put(task)

    def _fact(self, name: str) -> object:
        row = self._database.execute(
            "select document from facts where name = ?", (name,)
        ).fetchone()
        try:
            return json.loads(row[0]) if row else None
        except ValueError as error:
            raise sqlite3.DatabaseError(f"the fact {name!r} is damaged: {error}") from None

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

    @property
    def generation(self) -> int:
        """How many changes there were; grows in the same transaction as what it counts."""
        found = self._fact("generation")
        return found if isinstance(found, int) else 0

    def set_generation(self, generation: int) -> None:
        """One more change."""
        self._set_fact("generation", generation)

    def facts(self) -> Board:
        """Everything but the tasks."""
        try:
            return Board(self.generation, *self.counters, {}, self.leader)
        except (TypeError, KeyError, ValueError) as error:
            raise sqlite3.DatabaseError(f"a fact is damaged: {error}") from None

    def board(self) -> Board:
        """Everything as one value, for a copy."""
        return self.facts()._replace(tasks={task.id: task for task in self.tasks()})

    def pieces(self) -> Iterator[str]:
        """The text of `codec.encode_board`, task by task: a backup must not cost a board's memory.

        Every task is decoded once, because a damaged one must not get into a backup.
        """
        head, _, tail = codec.to_json(codec.encode_board(self.facts())).partition("{}")
        yield f"{head}{{"
        comma = ""
        for name, document in self._database.execute(
            "select id, document from tasks order by place"
        ):
            _decode(document)
            yield f"{comma}{codec.to_json(name)}:{document}"
            comma = ","
        yield f"}}{tail}"

    def check(self, copy: Board | None) -> None:
        """Compare every row with the task in it, and with a copy; DatabaseError: they differ.

        SQLite finds damage to its own structure only; a wrong bit in a value is for us to find.
        """
        board = self.board()
        rows = set(self._database.execute("select * from tasks"))
        if rows != {_row_of(task) for task in board.tasks.values()}:
            raise sqlite3.DatabaseError("rows of tasks are damaged")
        needs = set(self._database.execute("select needed, task from needs"))
        if not needs >= {(one, task.id) for task in board.tasks.values() for one in task.depends}:
            raise sqlite3.DatabaseError("dependencies are lost")
        if copy is not None and copy != board:
            raise sqlite3.DatabaseError("the database is not what its second copy says")
