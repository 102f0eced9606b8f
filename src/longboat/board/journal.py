"""An append-only journal of a board: one sealed line a change, synced before anybody hears of it.

A line carries what the tasks **are** after the change, not what was asked for, and its generation.
So reading needs no clock, two journals of one board can be merged line by line, and what neither of
them has is known by its number.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from longboat.board import codec, files
from longboat.board.values import Board, Leader, Task, Unreadable
from longboat.planting import planted


class Changed(Protocol):
    """What a ledger remembers of its changes."""

    touched: dict[str, Task]
    replaced: bool


class Change(NamedTuple):
    """One line: what a change has touched, as it is afterwards."""

    generation: int
    sequence: int
    epoch_floor: int
    leader: Leader
    tasks: tuple[Task, ...]
    whole: bool
    """These are all tasks that there are."""

    def after(self, board: Board) -> Board:
        """The board after this change."""
        kept = {} if self.whole else board.tasks
        return board._replace(
            generation=self.generation,
            sequence=self.sequence,
            epoch_floor=self.epoch_floor,
            leader=self.leader,
            tasks={**kept, **{one.id: one for one in self.tasks}},
        )


class Scan(NamedTuple):
    """The good lines of one file, and where it is bad: in the middle, or at its end."""

    lines: tuple[Board | Change, ...] = ()
    damaged: tuple[int, ...] = ()
    torn: bool = False

    @property
    def newest(self) -> int:
        """The last generation that it knows."""
        return max((line.generation for line in self.lines), default=0)


class Merged(NamedTuple):
    """What several files say together, and the generations that none of them has."""

    board: Board | None
    missing: tuple[int, ...]


def line_of(board: Board, changed: Changed) -> bytes:
    """The line for what a ledger changed; ``board`` is the board after it (its tasks are unused)."""
    return codec.seal(
        {
            "kind": "whole" if changed.replaced else "change",
            "generation": board.generation,
            "sequence": board.sequence,
            "epoch_floor": board.epoch_floor,
            "leader": codec.encode_leader(board.leader),
            "tasks": [task._asdict() for task in changed.touched.values()],
        }
    )


def first_line(board: Board) -> bytes:
    """The line that a journal begins with."""
    return codec.seal({"kind": "board", **codec.encode_board(board)})


def _decode(raw: bytes) -> Board | Change:
    """One line; ValueError says what is wrong with it."""
    document = codec.unseal(raw)
    kind = document.pop("kind", None)
    if kind == "board":
        return codec.decode_board(document)
    if kind not in ("change", "whole"):
        raise ValueError(f"there are no lines of kind {kind!r}")
    try:
        listed, leader = document["tasks"], document["leader"]
        if not isinstance(listed, list) or not isinstance(leader, dict):
            raise ValueError("a field is of another kind")
        return Change(
            generation=int(str(document["generation"])),
            sequence=int(str(document["sequence"])),
            epoch_floor=int(str(document["epoch_floor"])),
            leader=codec.decode_leader(leader),
            tasks=tuple(codec.decode_task(one) for one in listed),
            whole=kind == "whole",
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a field is missing or unknown: {error}") from None


def scan(raw: bytes) -> Scan:
    """Read one file. A bad end after a good line is torn; a bad line before a good one is damage."""
    lines: list[Board | Change] = []
    damaged: list[int] = []
    bad: list[int] = []
    for number, line in enumerate(raw.splitlines(keepends=True), 1):
        try:
            lines.append(_decode(line))
        except ValueError:
            bad.append(number)
            continue
        damaged += bad
        bad = []
    if bad and not lines:
        return Scan((), tuple(bad))
    return Scan(tuple(lines), tuple(damaged), bool(bad))


def scan_file(path: str) -> Scan:
    """Read a file that may be missing."""
    try:
        with open(path, "rb") as file:
            return scan(file.read())
    except FileNotFoundError:
        return Scan()


def merge(scans: Iterable[Scan], base: Board | None = None) -> Merged:
    """All changes after the newest whole board, each from the first file that has it."""
    lines = [line for one in scans for line in one.lines]
    wholes = [line for line in lines if isinstance(line, Board)]
    if base is not None:
        wholes.append(base)
    board = max(wholes, key=lambda one: one.generation, default=None)
    if board is None:
        return Merged(None, ())
    changes: dict[int, Change] = {}
    for line in lines:
        if isinstance(line, Change) and line.generation > board.generation:
            changes.setdefault(line.generation, line)
    missing: list[int] = []
    for generation in sorted(changes):
        missing += range(board.generation + 1, generation)
        board = changes[generation].after(board)
    return Merged(board, tuple(missing))


class Fenced(Exception):
    """The file is not ours any more: taken over, or shorter than we left it. Nothing is confirmed."""


class AppendedFile:
    """One open file that only grows, line by synced line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = 0
        self._descriptor = -1
        self._length = 0

    def begin(self, data: bytes, lines: int) -> None:
        """Replace the file as a whole, and append to the new one from now on."""
        files.replace(self.path, f"{self.path}.tmp", data)
        self.close()
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND)
        self._length, self.lines = len(data), lines

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, line: bytes) -> None:
        """One line, on the disk. OSError: it is surely not there; Doubtful: nobody knows."""
        self._cut()  # half a line of an append that failed, and could not be cut at once
        try:
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            os.fsync(self._descriptor)
        except OSError as error:
            self._cut_after(error)
            raise
        self._length += len(line)
        self.lines += 1

    def take_back(self, line: bytes, reason: OSError) -> None:
        """The last line has not happened after all; Doubtful when it cannot be removed."""
        self._length -= len(line)
        self.lines -= 1
        self._cut_after(reason)

    def _cut_after(self, reason: OSError) -> None:
        try:
            self._cut()
        except OSError:
            raise files.Doubtful(reason) from reason

    def _cut(self) -> None:
        size = os.fstat(self._descriptor).st_size
        if size < self._length:
            raise Fenced(f"{self.path} has lost its end")
        if size > self._length:
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)

    def check(self) -> None:
        """Raise when the path leads to another file: somebody has taken over."""
        here = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            raise Fenced(f"{self.path} is gone") from None
        if here.st_ino != there.st_ino and not planted("second-crew-allowed"):
            raise Fenced(f"{self.path} was taken over by another crew")


class Journal:
    """The journal of the one process that may write it, in two files with the same lines.

    Every line is synced in the first before it is written to the second. So a crash leaves the second
    at most one line behind; whatever else they disagree in is damage, and the other file has it.
    """

    def __init__(self, path: str, mirror: str) -> None:
        self.path = path
        self.mirror = mirror
        self._first = AppendedFile(path)
        self._second = AppendedFile(mirror)
        self._waiting = b""
        self.healed = ""

    @property
    def lines(self) -> int:
        """Of the first file."""
        return self._first.lines

    def load(self) -> Board:
        """Read both files and begin new ones from them.

        Whoever still believes in the old ones is fenced by that; and nothing is missed that it was
        told before: what it could still confirm was in its first file before the rename.
        """
        old = os.open(self.path, os.O_RDONLY)
        try:
            second = scan_file(self.mirror)
            board = self._agreed(self._read_all(old), second)
            self._first.begin(first_line(board), 1)
            again = merge([self._read_all(old), second]).board
            if again is not None and again.generation > board.generation:
                board = again
                self._first.begin(first_line(board), 1)
            self._second.begin(first_line(board), 1)
        finally:
            os.close(old)
        return board

    def _agreed(self, first: Scan, second: Scan) -> Board:
        """The board that both files tell of; a bad end of one is made good from the other."""
        merged = merge([first, second])
        alone = merge([first]).board if planted("bad-lines-skipped") else None
        if alone is not None:
            return alone
        if first.damaged or not first.lines:
            raise Unreadable(f"lines {list(first.damaged)[:5]} of {self.path} are damaged")
        if first.torn and (second.torn or second.damaged):
            raise Unreadable(f"the ends of {self.path} and of its mirror are damaged")
        if merged.board is None or merged.missing:
            raise Unreadable(f"{self.path} lacks the changes {list(merged.missing)[:5]}")
        self.healed = ""
        if second.newest > first.newest:
            self.healed = "the end of the journal was lost and comes from its mirror"
        elif first.torn:
            self.healed = "a torn line at the end of the journal was cut off"
        elif second.damaged or second.newest < first.newest - 1:
            self.healed = "the mirror of the journal was damaged and is written anew"
        return merged.board

    @staticmethod
    def _read_all(descriptor: int) -> Scan:
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return scan(file.read())

    def close(self) -> None:
        """Let go of the files."""
        self._first.close()
        self._second.close()

    def append(self, line: bytes) -> None:
        """One line, on the disk twice. OSError: it is nowhere; Doubtful: nobody knows."""
        if planted("acknowledged-before-journal"):
            line, self._waiting = self._waiting, line
        self._first.append(line)
        try:
            self._second.append(line)
        except OSError as error:  # in one file only: then it had better not happen
            self._first.take_back(line, error)
            raise
        except files.Doubtful as doubt:
            self._first.take_back(line, doubt.error)
            raise
        self.still_ours()

    def still_ours(self) -> None:
        """Raise when somebody has taken over."""
        self._first.check()
        self._second.check()

    def start_anew(self, board: Board) -> None:
        """Replace the journal by one line that says everything, and then its mirror."""
        self._first.begin(first_line(board), 1)
        self._second.begin(first_line(board), 1)
