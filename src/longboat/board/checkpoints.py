"""Checkpoints: whole copies of a board under a name, the same files for all three boards."""

from __future__ import annotations

import contextlib
import os

from longboat.board import codec, engine, files
from longboat.board.values import Board, Refused, Unreadable
from longboat.planting import planted


def path_of(directory: str, name: str) -> str:
    """Where a checkpoint is."""
    return os.path.join(directory, "checkpoints", f"{name}.json")


def write(directory: str, name: str, board: Board) -> None:
    """Keep a board under a name: the old checkpoint or the new one, never half of one."""
    path = path_of(directory, name)
    data = codec.write_board(engine.for_checkpoint(board))
    if planted("checkpoint-in-place"):
        files.write_temporary(path, data, sync=False)
        return
    files.replace(path, os.path.join(directory, f"checkpoint.{os.getpid()}.tmp"), data)


def read(directory: str, name: str) -> Board:
    """A checkpoint, whole, or a refusal."""
    try:
        with open(path_of(directory, name), "rb") as file:
            data = file.read()
            if planted("checkpoint-sum-ignored"):
                data = codec.sealed_anew(data)
            return codec.read_board(data)
    except FileNotFoundError:
        raise Refused("unknown_checkpoint", f"There is no checkpoint '{name}'") from None
    except ValueError as error:
        raise Unreadable(f"The checkpoint '{name}' is corrupt ({error})") from None


def newest(directory: str) -> tuple[str, Board] | None:
    """The whole checkpoint of the latest generation."""
    found: list[tuple[int, str, Board]] = []
    for name in sorted(os.listdir(os.path.join(directory, "checkpoints"))):
        with contextlib.suppress(Refused, OSError):  # a bad one: there may be another
            board = read(directory, name.removesuffix(".json"))
            found.append((board.generation, f"checkpoints/{name}", board))
    best = max(found, default=None, key=lambda one: one[0])
    return None if best is None else (best[1], best[2])
