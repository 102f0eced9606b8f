"""Backups: earlier boards under their numbers, and the one rule which of them a repair takes.

A backup is only ever made of what was just read and found whole. Otherwise a damaged board would
push its own rescue out of the directory, one copy at a time.
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


def newest_whole(directory: str) -> tuple[str, Board] | None:
    """The newest backup that is whole, else the newest checkpoint; with its name."""
    for number in numbers(directory):
        try:
            with open(path_of(directory, number), "rb") as file:
                return f"backups/board.{number}.json", codec.read_board(file.read())
        except (ValueError, OSError):  # a bad one: there may be an older one
            continue
    return checkpoints.newest(directory)
