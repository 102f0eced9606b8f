"""Whole trees of a box: taken away, or copied, by descriptors only and without ever following a link."""

from __future__ import annotations

import os
import stat as modes

from mutiny.system.files import BoxPath, write_all

DEEPEST = 200
"""What lies deeper is not copied: its path would be longer than the kernel takes."""
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


def copy(source: BoxPath, target: BoxPath, *, with_links: bool, most: int | None) -> list[str]:
    """Copy a file or a tree; return what was left out, one text each.

    Links stay links, or are left out: nobody may find something else behind them later. Of a file that
    is larger than `most` only the end is copied. Pipes, sockets and devices are nothing without whoever
    serves them.
    """
    left_out: list[str] = []
    pending = [(source, target)]
    made: list[tuple[BoxPath, int]] = []
    while pending:
        here, there = pending.pop()
        found = here.stat()
        if modes.S_ISDIR(found.st_mode):
            if len(here.parts) - len(source.parts) > DEEPEST:
                left_out.append(f"{here}: too deep")
                continue
            there.mkdir(parents=True, exist_ok=True)
            made.append((there, modes.S_IMODE(found.st_mode)))
            pending += [(here / name, there / name) for name in here.names()]
        elif modes.S_ISREG(found.st_mode):
            left_out += _copy_file(here, there, most)
        elif modes.S_ISLNK(found.st_mode) and with_links:
            _copy_link(here, there)
        elif not modes.S_ISSOCK(found.st_mode):
            left_out.append(f"{here}: no regular file")
    for directory, mode in reversed(made):
        directory.chmod(mode)
    return left_out


def _copy_file(source: BoxPath, target: BoxPath, most: int | None) -> list[str]:
    from_there = source.open_regular(os.O_RDONLY)
    try:
        found = os.fstat(from_there)
        start = 0 if most is None else max(0, found.st_size - most)
        target.create(b"", modes.S_IMODE(found.st_mode) | 0o600)
        to_here = target.open_regular(os.O_WRONLY | os.O_TRUNC)
        try:
            place, end = start, start + most if most is not None else None
            while part := os.pread(from_there, _CHUNK, place):
                part = part if end is None else part[: end - place]
                if not part:
                    break
                write_all(to_here, part)
                place += len(part)
            os.fchmod(to_here, modes.S_IMODE(found.st_mode))
            os.utime(to_here, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(to_here)
    finally:
        os.close(from_there)
    return [] if start == 0 else [f"{source}: its first {start} bytes"]


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
