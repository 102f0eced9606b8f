"""Board B's memory: one transaction a verb, synced before the answer, and a second copy of it.

The second copy is a whole backup and a journal of the changes since, so that it costs a claim one
line, however many tasks there are. The commit comes first: a copy that knows more than the database
proves that the database is an old one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import sys

from longboat.board import backups, checkpoints, codec, engine, files, journal
from longboat.board.config import Config
from longboat.board.ledger import Counters
from longboat.board.service import Service
from longboat.board.sqlite_ledger import SCHEMA, SqliteLedger
from longboat.board.values import (
    Answer,
    Board,
    Command,
    Leader,
    Refused,
    SystemRefused,
    Unreadable,
)
from longboat.planting import planted

_CORRUPT = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_READING = frozenset({"status", "list", "heartbeat"})


class SqliteStore(Service):
    """Board B: verbs on a database that this process alone has open."""

    def __init__(self, directory: str, config: Config) -> None:
        super().__init__(directory, config)
        self.path = self.file("broker.db")
        for name in ("backups", "checkpoints"):
            files.make_directory(self.file(name))
        files.sweep(self.file("backups"))
        self._log = journal.AppendedFile(self.file("broker.journal"))
        self._generation = 0
        self._behind = True
        self._late = b""
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
            self._examine()
        except sqlite3.Error as error:
            self.close()
            if _code(error) == sqlite3.SQLITE_FULL:
                self._problem = _refusal_of(error, "no")  # tried again at the next verb
                return
            self._problem = Unreadable(self._advice(f"broker.db cannot be read ({error})"))
            if planted("silent-empty-start"):
                os.unlink(self.path)
                self._create()
            return
        if planted("token-reused-after-restart"):
            self._ledger().set_leader(Leader())
        try:
            self._back_up()
        except (OSError, files.Doubtful) as error:  # no change is made before one succeeds
            sys.stderr.write(f"longboat broker: no backup was made: {error}\n")

    def _examine(self) -> None:
        """Is the database whole, and is it the newest? DatabaseError says what is wrong."""
        database = self._ready()
        if database.execute("pragma integrity_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("the database is damaged")
        row = database.execute("select document from facts where name = 'ready'").fetchone()
        if row is None:
            raise sqlite3.DatabaseError("the database has no board in it")
        ledger = self._ledger()
        self._generation = ledger.generation
        if planted("silent-empty-start"):
            return
        copy, sure = self._copy()
        if copy is not None and copy.generation > self._generation:
            raise sqlite3.DatabaseError("it is older than its second copy")
        same = copy is not None and sure and copy.generation == self._generation
        ledger.check(copy if same else None)

    def _ledger(self) -> SqliteLedger:
        return SqliteLedger(self._ready(), self.config, self.guards)

    def _copy(self) -> tuple[Board | None, bool]:
        """What the second copy says, and whether nothing of it is damaged or missing."""
        backup = backups.newest(self.directory)
        changes = journal.scan_file(self._log.path)
        merged = journal.merge([changes], backup[1] if backup else None)
        return merged.board, not (changes.damaged or changes.torn or merged.missing)

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
        self._log.close()

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
        if isinstance(self._problem, SystemRefused):
            self._open()
        if command.verb == "init":
            return self._init()
        if command.verb == "repair":
            return self._repair()
        database = self._ready()
        if database.in_transaction:
            self._finish(database, self._late)  # only with a plant: see below
        ledger = self._ledger()
        if command.verb == "checkpoint":
            board = ledger.board()
            checkpoints.write(self.directory, command.name, board)
            return {"ok": True, "checkpoint": command.name, "tasks": len(board.tasks)}
        if self._behind and command.verb not in _READING:
            self._catch_up()
        database.execute("begin immediate")
        before = database.total_changes
        line = b""
        try:
            if command.verb == "restore":
                saved = checkpoints.read(self.directory, command.name)
                answer = engine.restore(ledger, saved)
            else:
                answer = engine.run(ledger, command, self.moment())
            if database.total_changes != before:
                ledger.set_generation(self._generation + 1)
                line = journal.line_of(ledger.facts(), ledger)
        except BaseException:
            if database.in_transaction:  # a full disk has rolled it back already
                database.execute("rollback")
            raise
        if planted("answer-before-commit"):
            self._late = line
        else:
            self._finish(database, line)
        self.after(command, answer)
        return answer

    def _finish(self, database: sqlite3.Connection, line: bytes) -> None:
        """Commit, and write the line of the change (none: there was none) to the second copy."""
        try:
            database.execute("commit")
        except sqlite3.Error as error:
            if database.in_transaction:
                database.execute("rollback")
            if planted("disk-full-acknowledged"):
                return
            raise _refusal_of(error, "unknown") from error
        if not line:
            return
        self._generation += 1
        try:
            self._log.append(line)
        except (OSError, files.Doubtful, journal.Fenced) as error:
            sys.stderr.write(f"longboat broker: a change was not written to the journal: {error}\n")
            self._behind = True
            self._save_at_once()
            return
        if self._log.lines % self.config.compact_after == 0:
            try:
                self._back_up()
            except (OSError, files.Doubtful) as error:  # the long journal is as good as a short one
                sys.stderr.write(f"longboat broker: no backup was made: {error}\n")

    def _save_at_once(self) -> None:
        """The change has happened, but in one place only: a whole copy makes up for its line.

        When that fails too it is told as "unknown": a repair could still lose it.
        """
        try:
            self._back_up()
        except OSError as error:
            if planted("disk-full-acknowledged"):
                return
            raise files.Doubtful(error) from error

    def _catch_up(self) -> None:
        """Nothing more is changed before the second copy has everything."""
        try:
            self._back_up()
        except files.Doubtful as doubt:  # of this verb nothing has happened yet
            raise doubt.error from doubt

    # ---------------------------------------------------------------- making and mending

    def _init(self) -> Answer:
        if self._problem is None:
            return {"ok": True, "created": False, "dir": self.directory}
        if self._problem.error != "not_initialised":
            raise self._problem
        self._create()
        if self._problem is not None:
            raise self._problem
        if self._behind:
            self._save_at_once()
        return {"ok": True, "created": True, "dir": self.directory}

    def _create(self, board: Board | None = None) -> None:
        """A new database becomes the database by one rename, so there is never half of one."""
        temporary = self.file("broker.db.tmp")
        for leftover in (temporary, f"{temporary}-journal"):
            files.discard(leftover)
        with contextlib.closing(sqlite3.connect(temporary, isolation_level=None)) as database:
            database.execute("pragma synchronous=full")
            database.executescript(f"begin; {SCHEMA}")
            ledger = SqliteLedger(database, self.config, self.guards)
            if board is not None:
                ledger.replace_all(board.tasks.values())
                ledger.set_counters(Counters(board.sequence, board.epoch_floor))
                ledger.set_leader(board.leader)
            ledger.set_generation(1 if board is None else board.generation)
            database.execute("insert into facts values ('ready', 'true')")
            database.execute("commit")
        for stale in (f"{self.path}-wal", f"{self.path}-shm", f"{self.path}-journal"):
            files.discard(stale)
        files.put_in_place(temporary, self.path)
        self._open()

    def _back_up(self) -> None:
        """A whole copy, and then a new journal for what comes after it.

        A crash between the two is harmless: lines that the backup has already are passed over.
        """
        self._behind = True
        path = backups.path_of(self.directory, self._generation)
        pieces = codec.seal_pieces(self._ledger().pieces())
        try:
            files.replace(path, f"{path}.tmp", pieces)
        except sqlite3.Error as error:  # not of the verb: that one has happened, or not begun
            raise OSError(errno.EIO, f"the database cannot be read: {error}") from error
        self._log.begin(b"", 0)
        self._behind = False
        backups.prune(self.directory, self.config.backups)

    def _repair(self) -> Answer:
        if self._problem is None:
            return {"ok": True, "repaired": False}
        if self._problem.error != "unreadable":
            raise self._problem
        found = backups.newest_whole(self.directory)
        if found is None:
            text = f"{self._problem.message}, but there is no whole backup or checkpoint"
            raise Unreadable(text)
        source, board = found
        changes = journal.scan_file(self._log.path)
        merged = journal.merge([] if planted("repair-to-last-start") else [changes], board)
        board = merged.board or board
        if changes.lines:
            source = f"{source}, broker.journal"
        aside = files.set_aside(self.directory, "broker.db")
        files.set_aside(self.directory, "broker.db-wal")
        known = [board.generation, changes.newest, *backups.numbers(self.directory)]
        self._create(engine.after_repair(board, max(known) + 1))
        answer: Answer = {"ok": True, "repaired": True, "from": source, "aside": aside}
        if merged.missing:  # the copy was damaged, too: say what that cost
            answer["lost_changes"] = len(merged.missing)
        return answer


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _refusal_of(error: sqlite3.Error, happened: str) -> Refused:
    code = _code(error)
    if code in _CORRUPT:
        return Unreadable(f"The database is damaged: {error}; end the broker and `repair`")
    kind = "no_space" if code == sqlite3.SQLITE_FULL else "system"
    known = "nothing was changed" if happened == "no" else "it is unknown whether it happened"
    return SystemRefused(kind, f"The database refused: {error} ({known})", happened)
