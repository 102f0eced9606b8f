"""Whole trees of a box: taken away, or copied, by descriptors only and without ever following a link."""

from __future__ import annotations

import errno
import os
import stat as modes
import sys
from dataclasses import dataclass

from mutiny.system.files import KEPT_LIMIT, BoxPath, write_all

DEEPEST = 200
"""What lies deeper is not copied: its path would be longer than the kernel takes."""
KEPT_FILES = 10_000
KEPT_TOTAL = 256 << 20
"""So much is kept of a tree: of more nobody reads anything, and it may be more than there is room."""
_CHUNK = 1 << 20
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(place: BoxPath) -> None:
    """Take a file or a tree away, if it is there."""
    if place.exists():
        parent = place.parent.open_directory()
        try:
            _remove_below(parent, place.name)
        finally:
            os.close(parent)


def empty(place: BoxPath) -> None:
    """Take everything away that is in a directory."""
    held = place.open_directory()
    try:
        for name in os.listdir(held):  # noqa: PTH208
            _remove_below(held, name)
    finally:
        os.close(held)


def _remove_below(parent: int, name: str) -> None:
    """A directory in a directory is first moved up: so no tree is too deep, for the stack or for names."""
    pending = [name]
    while pending:
        name = pending.pop()
        try:
            os.unlink(name, dir_fd=parent)
            continue
        except IsADirectoryError:
            held = _opened(parent, name)
        try:
            for below in os.listdir(held):  # noqa: PTH208
                try:
                    os.unlink(below, dir_fd=held)
                except IsADirectoryError:
                    fresh = f".mutiny-{os.urandom(8).hex()}"
                    os.close(_opened(held, below))  # only who may write to it may move it
                    os.rename(below, fresh, src_dir_fd=held, dst_dir_fd=parent)
                    pending.append(fresh)
        finally:
            os.close(held)
        os.rmdir(name, dir_fd=parent)


def _opened(parent: int, name: str) -> int:
    """A directory, made accessible where its mode forbids it."""
    held = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(held).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{held}", 0o700)  # noqa: PTH101
        return os.open(".", _DIRECTORY, dir_fd=held)
    finally:
        os.close(held)


@dataclass(frozen=True)
class Most:
    """How much of a tree is copied at most."""

    of_each: int = KEPT_LIMIT
    """Of a file that is larger only the end."""
    of_all: int = KEPT_TOTAL
    files: int = KEPT_FILES


def copy(source: BoxPath, target: BoxPath, *, with_links: bool, most: Most | None) -> list[str]:
    """Copy a file or a tree; return what was left out, one text each.

    Links stay links, or are left out: nobody may find something else behind them later. Pipes, sockets
    and devices are nothing without whoever serves them.
    """
    left_out: list[str] = []
    pending = [(source, target)]
    made: list[tuple[BoxPath, int]] = []
    files = total = 0
    while pending:
        here, there = pending.pop()
        if most is not None and (files >= most.files or total >= most.of_all):
            left_out.append(f"{here} and the rest: {files} files, {total} bytes are enough")
            break
        found = here.stat()
        files += 1
        if modes.S_ISDIR(found.st_mode):
            if len(here.parts) - len(source.parts) > DEEPEST:
                left_out.append(f"{here}: too deep")
                continue
            there.mkdir(parents=True, exist_ok=True)
            made.append((there, modes.S_IMODE(found.st_mode)))
            pending += [(here / name, there / name) for name in here.names(sys.maxsize)]
        elif modes.S_ISREG(found.st_mode):
            copied, start = _copy_file(here, there, None if most is None else most.of_each)
            total += copied
            left_out += [f"{here}: its first {start} bytes"] if start else []
        elif modes.S_ISLNK(found.st_mode) and with_links:
            _copy_link(here, there)
        elif not modes.S_ISSOCK(found.st_mode):
            left_out.append(f"{here}: no regular file")
    for directory, mode in reversed(made):
        directory.chmod(mode)
    return left_out


def _copy_file(source: BoxPath, target: BoxPath, most: int | None) -> tuple[int, int]:
    """Copy a file, or its end; return how many bytes were there to be copied, and where the end begins."""
    from_there = source.open_regular(os.O_RDONLY)
    try:
        found = os.fstat(from_there)
        start = 0 if most is None else max(0, found.st_size - most)
        target.create(b"", modes.S_IMODE(found.st_mode) | 0o600)
        to_here = target.open_regular(os.O_WRONLY | os.O_TRUNC)
        try:
            copied = _copy_data(from_there, to_here, start, found.st_size)
            os.ftruncate(to_here, found.st_size - start)
            os.fchmod(to_here, modes.S_IMODE(found.st_mode))
            os.utime(to_here, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(to_here)
    finally:
        os.close(from_there)
    return copied, start


def _copy_data(from_there: int, to_here: int, start: int, end: int) -> int:
    """Copy what was written; a hole stays one: it may be larger than the disk to which it is copied."""
    copied, place = 0, start
    while place < end:
        try:
            place = os.lseek(from_there, place, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            break  # nothing but a hole up to the end
        hole = min(os.lseek(from_there, place, os.SEEK_HOLE), end)
        os.lseek(to_here, place - start, os.SEEK_SET)
        while place < hole and (part := os.pread(from_there, min(_CHUNK, hole - place), place)):
            write_all(to_here, part)
            place += len(part)
            copied += len(part)
        if place < hole:
            break  # somebody has cut it off
    return copied


def _copy_link(source: BoxPath, target: BoxPath) -> None:
    parent = source.parent.open_directory()
    try:
        leads_to = os.readlink(source.name, dir_fd=parent)
    finally:
        os.close(parent)
    parent = target.parent.open_directory()
    try:
        os.symlink(leads_to, target.name, dir_fd=parent)
    finally:
        os.close(parent)
