"""Board A: one file, replaced as a whole, under one lock; and a second copy of it.

The one insight: between the synced temporary file and the rename nothing has happened, after the
rename everything has; so there is no crash that needs a repair. The same bytes then become
`backups/board.N.json` (another file, not a second name), and only then the answer is given: whatever
happens to board.json later, a repair has exactly what was last acknowledged.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator

from longboat.board import backups, checkpoints, codec, engine, files
from longboat.board.config import Config
from longboat.board.ledger import Guards, MemoryLedger, Moment
from longboat.board.values import (
    HELD,
    Answer,
    Board,
    Command,
    Refused,
    Unreadable,
)
from longboat.planting import planted

_UNREADABLE = (errno.EIO, errno.EACCES, errno.EISDIR, errno.ELOOP, errno.EPERM)
_READING = frozenset({"status", "list", "heartbeat"})


class FileStore:
    """The board in one directory."""

    def __init__(self, directory: str, config: Config) -> None:
        self.directory = directory
        self.config = config
        self.path = self._file("board.json")

    def _file(self, *names: str) -> str:
        return os.path.join(self.directory, *names)

    def execute(self, command: Command) -> Answer:
        """Run one verb; the answer is true and on the disk when it is given."""
        try:
            engine.check(command)
            if command.verb == "init":
                return self._init()
            if command.verb in _READING:
                return self._look(command)
            with self._locked():
                return self._change(command)
        except files.Doubtful as doubt:
            return files.refusal_of(doubt.error, "unknown").answer()
        except OSError as error:
            return files.refusal_of(error, "no").answer()
        except Refused as refusal:
            return refusal.answer()

    # ---------------------------------------------------------------- reading

    def _load(self) -> Board:
        """The newest board. Copies are listed first: then none is newer than what is read."""
        copies = backups.numbers(self.directory)
        try:
            with open(self.path, "rb") as file:
                board = codec.read_board(file.read())
            behind = backups.is_behind(self.directory, copies, board.generation)
            if behind and not planted("old-copy-served"):
                raise ValueError(f"generation {board.generation} is not the newest: an old file")
            return board
        except FileNotFoundError:
            if copies:
                if planted("silent-empty-start"):
                    return Board()
                raise Unreadable(self._advice("board.json is missing")) from None
            text = f"There is no board in {self.directory}: run `init` first"
            raise Refused("not_initialised", text) from None
        except ValueError as error:
            if planted("silent-empty-start"):
                return Board()
            raise Unreadable(self._advice(f"board.json is corrupt ({error})")) from None
        except OSError as error:
            if error.errno in _UNREADABLE:
                raise Unreadable(self._advice(f"board.json cannot be read ({error})")) from None
            raise

    def _advice(self, problem: str) -> str:
        return f"The board in {self.directory} is unreadable: {problem}. `repair` mends it"

    def _now(self) -> float:
        if planted("wall-clock-leases"):
            return time.time()
        return files.touch(self._file("clock"))

    def _beat_of(self, name: str) -> float | None:
        try:
            return os.stat(self._file("heartbeats", name)).st_mtime_ns / 1e9
        except FileNotFoundError:
            return None

    def _look(self, command: Command) -> Answer:
        """Verbs that change no board: a whole file is read, so no lock is needed."""
        board = self._load()
        if engine.beats(command):
            self._beat(command.worker)
        beats: dict[str, float] = {}
        moment = Moment(0.0, beats)
        if command.verb == "status":
            for name in os.listdir(self._file("heartbeats")):
                beat = self._beat_of(name)
                if beat is not None:
                    beats[name] = beat
            leader_beat = beats.pop(".leader", float("-inf"))
            moment = Moment(self._now(), beats, leader_beat)
        ledger = MemoryLedger(board, self.config, Guards(with_breaker=False))
        return {**engine.run(ledger, command, moment), "generation": board.generation}

    # ---------------------------------------------------------------- changing

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        if not os.path.isdir(self.directory):
            text = f"There is no board in {self.directory}: run `init` first"
            raise Refused("not_initialised", text)
        if planted("board-without-lock"):
            yield
            return
        self._lock = files.Lock(self._file("board.lock"), self.config.lock_timeout_s)
        try:
            files.sweep(self.directory)
            yield
        finally:
            self._lock.release()

    def _beat(self, worker: str) -> None:
        """No sync: after a power cut nobody lives, and a missing file means a new lease."""
        files.touch(self._file("heartbeats", worker))

    def _moment(self, board: Board) -> Moment:
        beats: dict[str, float] = {}
        owners = {task.owner for task in board.tasks.values() if task.status in HELD and task.owner}
        for owner in sorted(owners):
            beat = self._beat_of(owner)
            if beat is None:  # the file was lost: that is no reason to rob anybody
                beat = files.touch(self._file("heartbeats", owner))
            beats[owner] = beat
        leader_beat = self._beat_of(".leader")
        if leader_beat is None and board.leader.node is not None:
            leader_beat = files.touch(self._file("heartbeats", ".leader"))
        return Moment(self._now(), beats, float("-inf") if leader_beat is None else leader_beat)

    def _change(self, command: Command) -> Answer:
        if command.verb == "repair":
            return self._repair()
        try:
            board = self._load()
        except Unreadable:
            if planted("backup-of-corrupt"):
                self._back_up_corrupt()
            raise
        self._make_up(board)
        if planted("lock-dropped-before-write"):
            self._lock.drop()
        if command.verb == "checkpoint":
            checkpoints.write(self.directory, command.name, board)
            return {"ok": True, "checkpoint": command.name, "tasks": len(board.tasks)}
        if engine.beats(command):
            self._beat(command.worker)
        guards = Guards(with_breaker=False, buckets=board.buckets)
        ledger = MemoryLedger(board, self.config, guards)
        if command.verb == "restore":
            answer = engine.restore(ledger, checkpoints.read(self.directory, command.name))
        else:
            answer = engine.run(ledger, command, self._moment(board))
        after = ledger.board()
        if after is not board:
            self._save(after._replace(generation=board.generation + 1, buckets=guards.buckets))
        if answer["ok"] and engine.renews(command):
            try:
                files.touch(self._file("heartbeats", ".leader"))
            except OSError as error:
                raise files.Doubtful(error) from error
        return answer

    def _save(self, board: Board) -> None:
        """The board, then its second copy; both are on the disk before either has a name.

        So a full disk is found while nothing has happened. The board goes first: a crash between
        the two leaves a copy that is one behind, which `_make_up` makes good, and never a copy that
        is ahead, which would look like an old board.json.
        """
        data = codec.write_board(board)
        temporary = f"{self.path}.{os.getpid()}.tmp"
        second = self._file(f"copy.{os.getpid()}.tmp")
        try:
            if not planted("board-in-place"):
                sync = not planted("board-renamed-unsynced")
                files.write_temporary(temporary, data, sync=sync)
            files.write_temporary(second, data)
        except OSError as error:
            files.discard(temporary)
            if error.errno == errno.ENOSPC and planted("disk-full-acknowledged"):
                return
            raise
        try:
            if planted("board-in-place"):
                files.write_temporary(self.path, data)
            else:
                files.put_in_place(temporary, self.path)
        except BaseException:
            files.discard(second)
            raise
        if planted("second-copy-skipped"):
            files.discard(second)
            return
        # From here on it has happened, but a repair could still lose it. So an error is told as
        # "unknown": `ok` would promise what one copy alone cannot keep, and "no" would be a lie.
        files.put_in_place(second, backups.path_of(self.directory, board.generation))
        try:
            backups.prune(self.directory, self.config.backups)
        except OSError:  # one old copy too many harms nobody; the next change removes it
            return

    def _make_up(self, board: Board) -> None:
        """Write the second copy that a crash or an error kept an earlier command from writing."""
        if os.path.exists(backups.path_of(self.directory, board.generation)):
            return
        path = backups.path_of(self.directory, board.generation)
        files.make_directory(self._file("backups"))
        try:
            files.replace(path, self._file(f"copy.{os.getpid()}.tmp"), codec.write_board(board))
        except files.Doubtful as doubt:  # of this command nothing has happened yet
            raise doubt.error from doubt

    def _back_up_corrupt(self) -> None:
        """Plants only: a copy of whatever board.json is now."""
        number = max(backups.numbers(self.directory), default=0) + 1
        os.link(self.path, backups.path_of(self.directory, number))
        backups.prune(self.directory, self.config.backups)

    def _init(self) -> Answer:
        files.make_directory(self.directory)
        for name in ("backups", "checkpoints", "heartbeats"):
            files.make_directory(self._file(name))
        with self._locked():
            try:
                self._make_up(self._load())
            except Refused as refusal:
                if refusal.error != "not_initialised":
                    raise
            else:
                return {"ok": True, "created": False, "dir": self.directory}
            self._save(Board(generation=1))
        return {"ok": True, "created": True, "dir": self.directory}

    # ---------------------------------------------------------------- repair

    def _repair(self) -> Answer:
        try:
            self._make_up(self._load())
        except Unreadable as problem:
            found = backups.newest_whole(self.directory)
            if found is None:
                text = f"{problem.message}, but there is no whole backup or checkpoint"
                raise Unreadable(text) from None
            source, board = found
            aside = files.set_aside(self.directory, "board.json")
            generation = max([board.generation, *backups.numbers(self.directory)]) + 1
            self._save(engine.after_repair(board, generation))
            return {"ok": True, "repaired": True, "from": source, "aside": aside}
        return {"ok": True, "repaired": False}
