"""Backups: whole boards under their generations, and the one rule which of them a repair takes.

A backup is only ever made of a board in memory that is whole. Otherwise a damaged file would push
its own rescue out of the directory, one copy at a time. No backup is ever newer than the board
itself was at that moment, so one that is newer than the board proves that the board is an old one.
"""

from __future__ import annotations

import os

from longboat.board import checkpoints, codec
from longboat.board.values import Board


def path_of(directory: str, number: int) -> str:
    """Where a backup is."""
    return os.path.join(directory, "backups", f"board.{number}.json")


def numbers(directory: str) -> list[int]:
    """The backups that there are, newest first."""
    try:
        names = os.listdir(os.path.join(directory, "backups"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    parts = [name.split(".") for name in names if name.endswith(".json")]
    return sorted((int(one[1]) for one in parts if one[1].isdigit()), reverse=True)


def prune(directory: str, keep: int) -> None:
    """Remove all but the newest."""
    for number in numbers(directory)[keep:]:
        os.unlink(path_of(directory, number))


def read(directory: str, number: int) -> Board | None:
    """One backup; None when it is not whole."""
    try:
        with open(path_of(directory, number), "rb") as file:
            return codec.read_board(file.read())
    except (ValueError, OSError):  # a bad one: there may be an older one
        return None


def newest(directory: str) -> tuple[str, Board] | None:
    """The newest backup that is whole, with its name."""
    for number in numbers(directory):
        board = read(directory, number)
        if board is not None:
            return f"backups/board.{number}.json", board
    return None


def newest_whole(directory: str) -> tuple[str, Board] | None:
    """The newest backup that is whole, else the newest checkpoint; with its name."""
    return newest(directory) or checkpoints.newest(directory)


def is_behind(directory: str, known: list[int], generation: int) -> bool:
    """True when one of these backups is whole and newer than a board of this generation.

    Only a whole one is evidence: a bad file with a high number must not accuse a good board.
    """
    found = [read(directory, number) for number in known if number > generation]
    return any(board is not None and board.generation > generation for board in found)
