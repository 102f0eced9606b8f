"""An append-only journal of a board: one sealed line a change, synced before anybody hears of it.

A line carries what the tasks **are** after the change, not what was asked for. So reading needs no
clock, a damaged line costs only what it changed itself, and a line that was torn by a crash is one
that nobody was told of.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from longboat.board import codec, files
from longboat.board.ledger import MemoryLedger
from longboat.board.values import Board, Unreadable
from longboat.plants import planted


class Reading(NamedTuple):
    """What a journal says: the board, how many bytes are good, and what was wrong."""

    board: Board | None
    length: int
    lines: int
    torn: bool
    damaged: tuple[int, ...]


def line_of(board: Board, ledger: MemoryLedger) -> bytes:
    """The line for what a ledger changed; ``board`` is the board after it."""
    whole = ledger.replaced
    return codec.seal(
        {
            "kind": "whole" if whole else "change",
            "generation": board.generation,
            "sequence": board.sequence,
            "epoch_floor": board.epoch_floor,
            "leader": codec.encode_leader(board.leader),
            "tasks": [task._asdict() for task in ledger.touched.values()],
        }
    )


def first_line(board: Board) -> bytes:
    """The line that a journal begins with."""
    return codec.seal({"kind": "board", **codec.encode_board(board)})


def _apply(board: Board | None, raw: bytes) -> Board:
    """The board after one line; ValueError says what is wrong with the line."""
    document = codec.unseal(raw)
    kind = document.pop("kind", None)
    if kind == "board":
        return codec.decode_board(document)
    if board is None or kind not in ("change", "whole"):
        raise ValueError(f"a line of kind {kind!r} cannot stand here")
    listed = document["tasks"]
    leader = document["leader"]
    if not isinstance(listed, list) or not isinstance(leader, dict):
        raise ValueError("a field is of another kind")
    try:
        tasks = [codec.decode_task(one) for one in listed]
        return board._replace(
            generation=int(str(document["generation"])),
            sequence=int(str(document["sequence"])),
            epoch_floor=int(str(document["epoch_floor"])),
            leader=codec.decode_leader(leader),
            tasks={**({} if kind == "whole" else board.tasks), **{one.id: one for one in tasks}},
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a field is missing or unknown: {error}") from None


def read(raw: bytes, base: Board | None = None) -> Reading:
    """Read a journal. A bad last line is torn; a bad line before a good one is damage."""
    board = base
    good_end = position = lines = 0
    damaged: list[int] = []
    bad: list[int] = []
    for number, line in enumerate(raw.splitlines(keepends=True), 1):
        position += len(line)
        try:
            after = _apply(board, line)
        except ValueError:
            bad.append(number)
            continue
        damaged += bad
        bad = []
        if base is None or after.generation > base.generation:
            board = after
        good_end, lines = position, number
    torn = bool(bad) and lines > 0
    if bad and not torn:
        damaged += bad
    return Reading(board, good_end, lines, torn, tuple(damaged))


class Fenced(Exception):
    """Another process has taken the journal over; what was just written is worth nothing."""


class Journal:
    """The open journal of the one process that may write it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1
        self._length = 0
        self.lines = 0
        self.torn = False
        self._waiting = b""

    def load(self) -> Board:
        """Read the journal and begin a new one from it.

        Whoever still believes in the old file is fenced by that; and nothing is missed that it
        was told before: what it could still confirm was in its file before the rename.
        """
        old = os.open(self.path, os.O_RDONLY)
        try:
            reading = self._read_all(old)
            if reading.board is None or reading.damaged:
                raise Unreadable(f"lines {list(reading.damaged)[:5]} of {self.path} are damaged")
            self.torn = reading.torn
            self.start_anew(reading.board)
            again = self._read_all(old)
            if again.board is not None and again.board.generation > reading.board.generation:
                self.start_anew(again.board)
                return again.board
        finally:
            os.close(old)
        return reading.board

    @staticmethod
    def _read_all(descriptor: int) -> Reading:
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return read(file.read())

    def _open(self, length: int, lines: int) -> None:
        self.close()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._length, self.lines = length, lines
        self._cut()

    def _cut(self) -> None:
        if os.fstat(self._descriptor).st_size != self._length:
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, line: bytes) -> None:
        """One line, on the disk. OSError: it is not there; Doubtful: nobody knows."""
        if planted("acknowledged-before-journal"):
            line, self._waiting = self._waiting, line
        self._cut()  # half a line of an append that failed
        written = 0
        while written < len(line):
            written += os.write(self._descriptor, line[written:])
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise files.Doubtful(error) from error
        self._length += len(line)
        self.lines += 1
        self.still_ours()

    def still_ours(self) -> None:
        """Raise when the path leads to another file: somebody has taken over."""
        here = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            raise Fenced(f"{self.path} is gone") from None
        if here.st_ino != there.st_ino and not planted("second-crew-allowed"):
            raise Fenced(f"{self.path} was taken over by another crew")

    def start_anew(self, board: Board) -> None:
        """Replace the journal by one line that says everything."""
        files.replace(self.path, f"{self.path}.tmp", first_line(board))
        self._open(os.stat(self.path).st_size, 1)
