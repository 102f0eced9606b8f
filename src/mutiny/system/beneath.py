"""Open a file below a directory, and nothing else: no link is followed, no step leads out.

Insight: a path is a question that the owner of its directories may answer differently each time. So
the whole way is gone in one call of the kernel (`openat2`), or, where the kernel has none, step by step
with every directory held open: who swaps a directory for a link meanwhile changes nothing any more.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

_OPENAT2 = 437  # the same number on every architecture that has it
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_HOW = struct.Struct("QQQ")
_LIBC = ctypes.CDLL(None, use_errno=True)
_NOT_HERE = frozenset({errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EINVAL, errno.EAGAIN})
"""No such call, one that a sandbox forbids, or one that gave up: then step by step."""
_STEP = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_beneath(
    root: int, names: tuple[str, ...], flags: int, mode: int = 0, *, at_once: bool = True
) -> int:
    """A descriptor of the file at `names` below the directory `root`.

    Raises OSError: ELOOP (or ENOTDIR) where a link is on the way, also as the last step.
    """
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise OSError(errno.EINVAL, "no plain name", name)
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    path = "/".join(names) or "."
    if at_once:
        try:
            return _at_once(root, path, flags, mode)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    return _step_by_step(root, names, flags, mode)


def _at_once(root: int, path: str, flags: int, mode: int) -> int:
    resolve = _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH
    how = _HOW.pack(flags, mode if flags & (os.O_CREAT | os.O_TMPFILE) else 0, resolve)
    found = int(
        _LIBC.syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(root),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.c_char_p(how),
            ctypes.c_size_t(_HOW.size),
        )
    )
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return found


def _step_by_step(root: int, names: tuple[str, ...], flags: int, mode: int) -> int:
    here = os.open(".", _STEP, dir_fd=root)
    try:
        for name in names[:-1]:
            below = os.open(name, _STEP, dir_fd=here)
            os.close(here)
            here = below
        return os.open(names[-1] if names else ".", flags, mode, dir_fd=here)
    finally:
        os.close(here)
