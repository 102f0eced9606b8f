"""Board C's memory: the whole board at hand, and a journal in two files that is never behind it."""

from __future__ import annotations

import os
import sys

from longboat.board import backups, checkpoints, codec, dependencies, engine, files, journal
from longboat.board.config import Config
from longboat.board.ledger import MemoryLedger
from longboat.board.scheduling import Breaker
from longboat.board.service import Service
from longboat.board.values import (
    BLOCKED,
    HELD,
    Answer,
    Board,
    Command,
    Leader,
    Refused,
    SystemRefused,
    Task,
    Unreadable,
)
from longboat.planting import planted


class JournalStore(Service):
    """Verbs on a board in memory that is written ahead of every answer."""

    def __init__(self, directory: str, config: Config) -> None:
        super().__init__(directory, config)
        for name in ("backups", "checkpoints", "agents"):
            files.make_directory(self.file(name))
        self._journal = journal.Journal(self.file("crew.journal"), self.file("crew.mirror"))
        self._board = Board()
        self._problem: Refused | None = None
        self.deadlock: list[str] = []
        self._open()

    def _open(self) -> None:
        """Read the journal, or remember why not: every verb will say it."""
        self._problem = None
        try:
            self._board = self._journal.load()
            known = backups.numbers(self.directory)
            if backups.is_behind(self.directory, known, self._board.generation):
                raise Unreadable("crew.journal is older than its newest backup")
        except FileNotFoundError:
            there = backups.numbers(self.directory) or os.path.exists(self._journal.mirror)
            if there and not planted("silent-empty-start"):
                self._problem = Unreadable(self._advice("crew.journal is missing"))
                return
            self._board = Board(generation=1)
            self._journal.start_anew(self._board)
        except (Unreadable, OSError) as error:
            if isinstance(error, OSError) and files.is_full(error):
                self._problem = files.refusal_of(error, "no")  # tried again at the next verb
                return
            if not planted("silent-empty-start"):
                self._problem = Unreadable(self._advice(str(error)))
                return
            self._board = Board(generation=1)
            self._journal.start_anew(self._board)
        if self._journal.healed:
            sys.stderr.write(f"longboat crew: {self._journal.healed}\n")
        if planted("token-reused-after-restart"):
            self._board = self._board._replace(leader=Leader())
            self._journal.start_anew(self._board)
        self._back_up()

    def _advice(self, problem: str) -> str:
        return f"The board in {self.directory} is unreadable: {problem}. `repair` mends it"

    def _back_up(self) -> None:
        """A whole copy. It failing must not fail what has happened already."""
        path = backups.path_of(self.directory, self._board.generation)
        try:
            files.replace(path, f"{path}.tmp", codec.write_board(self._board))
            backups.prune(self.directory, self.config.backups)
        except (OSError, files.Doubtful) as error:
            sys.stderr.write(f"longboat crew: no backup was made: {error}\n")

    # ---------------------------------------------------------------- verbs

    def execute(self, command: Command, *, limited: bool = True) -> Answer:
        """Run one verb; the answer is true and on the disk when it is given.

        What the crew itself notes about an agent is not limited: the agent did not ask for anything.
        """
        try:
            self.before(command)
            if command.verb == "repair":
                return self._repair()
            if isinstance(self._problem, SystemRefused):
                self._open()
            if self._problem is not None:
                raise self._problem
            answer = self._execute(command, limited)
        except Refused as refusal:
            return refusal.answer()
        except files.Doubtful as doubt:
            return files.refusal_of(doubt.error, "unknown").answer()
        except OSError as error:
            if planted("disk-full-acknowledged"):
                return {"ok": True, "task": command.task}
            return files.refusal_of(error, "no").answer()
        self.after(command, answer)
        return answer

    def _execute(self, command: Command, limited: bool) -> Answer:
        if command.verb == "init":
            return {"ok": True, "created": False, "dir": self.directory}
        if command.verb == "checkpoint":
            checkpoints.write(self.directory, command.name, self._board)
            return {"ok": True, "checkpoint": command.name, "tasks": len(self._board.tasks)}
        ledger = self._ledger(limited)
        if command.verb == "restore":
            answer = engine.restore(ledger, checkpoints.read(self.directory, command.name))
        else:
            answer = engine.run(ledger, command, self.moment())
        self._keep(ledger)
        if command.verb == "status":
            answer["deadlock"] = list(self.deadlock)
            answer["generation"] = self._board.generation
        return answer

    def _ledger(self, limited: bool = True) -> MemoryLedger:
        config = self.config if limited else self.config._replace(rate_limit=0.0)
        return MemoryLedger(self._board, config, self.guards)

    def _keep(self, ledger: MemoryLedger) -> None:
        """First the disk, then the memory: a failed append has not happened."""
        after = ledger.board()
        if after is self._board:
            return
        after = after._replace(generation=self._board.generation + 1)
        self._journal.append(journal.line_of(after, ledger))
        self._board = after
        if self._journal.lines > self.config.compact_after:
            try:
                self._journal.start_anew(after)
            except files.Doubtful as doubt:
                raise journal.Fenced(f"the journal could not be compacted: {doubt}") from doubt
            except OSError as error:  # the long journal is as good as a short one
                sys.stderr.write(f"longboat crew: the journal was not compacted: {error}\n")
            self._back_up()

    # ---------------------------------------------------------------- for the crew itself

    def held_by(self, prefix: str) -> list[Task]:
        """What workers with such names hold."""
        return [
            task
            for task in self._board.tasks.values()
            if task.status in HELD and (task.owner or "").startswith(prefix)
        ]

    def first_open(self) -> str:
        """Plants only: the first task that is not settled, whatever it waits for."""
        for task in self._board.tasks.values():
            if task.status in ("available", BLOCKED):
                return task.id
        return ""

    def forget_failures(self) -> None:
        """What broke before this crew is not this crew's failure."""
        self.guards.breaker = Breaker()

    def settle_deadlock(self) -> None:
        """When nothing runs and nothing can, what is left can never: say so and settle it."""
        if self._problem is not None or any(
            task.status in (*HELD, "available") for task in self._board.tasks.values()
        ):
            return
        ledger = self._ledger()
        stuck = dependencies.settle_deadlock(ledger)
        if stuck:
            self._keep(ledger)
            self.deadlock = stuck
            sys.stderr.write(f"longboat crew: deadlock: {', '.join(stuck)}\n")

    def still_ours(self) -> None:
        """Raise when another crew has taken over."""
        if self._problem is None:
            self._journal.still_ours()

    def close(self) -> None:
        """Let go of the journal."""
        self._journal.close()

    def _repair(self) -> Answer:
        if self._problem is None:
            return {"ok": True, "repaired": False}
        if self._problem.error != "unreadable":
            raise self._problem
        scans = [journal.scan_file(self._journal.path), journal.scan_file(self._journal.mirror)]
        if planted("repair-to-last-start"):
            scans = []
        backup = backups.newest(self.directory)
        merged = journal.merge(scans, backup[1] if backup else None)
        found = backups.newest_whole(self.directory)
        board = merged.board or (found[1] if found else None)
        if board is None:
            text = f"{self._problem.message}, but there is no whole backup or checkpoint"
            raise Unreadable(text)
        source = found[0] if found else "crew.journal"
        if any(one.lines for one in scans):
            source = "crew.journal, crew.mirror"
        aside = files.set_aside(self.directory, "crew.journal")
        generation = max([board.generation, *backups.numbers(self.directory)]) + 1
        self._journal.start_anew(engine.after_repair(board, generation))
        self._open()
        answer: Answer = {"ok": True, "repaired": True, "from": source, "aside": aside}
        if merged.missing:  # several files were damaged in the same place: say what that cost
            answer["lost_changes"] = len(merged.missing)
        return answer
