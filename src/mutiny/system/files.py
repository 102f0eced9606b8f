"""A file of a box as Mutiny's own hands may touch it, and the only way in which they do.

Insight: what lies in a box belongs to the target, so every name in it may be a link to somewhere else,
a pipe that never answers, a device or a file without end. A `BoxPath` is no path that `open` would take:
it can only be used by the functions below, which go beneath the root and never over a link, touch
regular files only, never wait, and read no more than they were asked for. What they will not touch they
name (`UnsafeFile`), and whoever asked has then seen nothing.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat as modes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from mutiny.system.beneath import open_beneath

if TYPE_CHECKING:
    from pathlib import Path

READ_LIMIT = 32 << 20
"""What is larger is not read: the state of no orchestrator, and memory that Mutiny needs."""
KEPT_LIMIT = 16 << 20
"""So much of the end of a log is kept."""
SAID_LIMIT = 256 << 10
"""So much of what a program has printed is looked through."""
DEEPEST = 64
"""Trees that are deeper are not gone into."""
MOST_FILES = 20_000
"""Trees with more files are not gone through: nobody could look at them after every step."""
LOOKED_THROUGH = 64 << 20
"""Of a whole tree so much is read at one look."""
_CHUNK = 1 << 20
_CAREFUL = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    modes.S_IFLNK: "a link",
    modes.S_IFIFO: "a pipe",
    modes.S_IFSOCK: "a socket",
    modes.S_IFCHR: "a device",
    modes.S_IFBLK: "a device",
    modes.S_IFDIR: "a directory",
}


class UnsafeFile(OSError):
    """A file of the box that Mutiny does not touch: what is at the other end is not the box's own."""


class BoxPath:
    """A name below a directory that is trusted. Links on the way there are the caller's own."""

    __slots__ = ("parts", "root")

    def __init__(self, root: Path | str, *parts: str) -> None:
        self.root = str(root)
        self.parts = parts

    # --- names -----------------------------------------------------------------------------------

    def __truediv__(self, below: str) -> BoxPath:
        parts = list(self.parts)
        for step in below.split("/"):
            if step == "..":  # where no link counts, the way back is the way that was come
                if not parts:
                    raise UnsafeFile(f"{below} leads out of the box")
                parts.pop()
            elif step not in ("", "."):
                parts.append(step)
        return BoxPath(self.root, *parts)

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1] if self.parts else ""

    @property
    def parent(self) -> BoxPath:
        """The directory that holds it; the root is its own."""
        return BoxPath(self.root, *self.parts[:-1])

    @property
    def host(self) -> Path:
        """The same place as a path of the host: to be named and compared, never to be opened."""
        from pathlib import Path

        return Path(self.root, *self.parts)

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    def __repr__(self) -> str:
        return f"BoxPath({self.root!r}, {'/'.join(self.parts)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoxPath):
            return False
        return (self.root, self.parts) == (other.root, other.parts)

    def __hash__(self) -> int:
        return hash((self.root, self.parts))

    # --- what is there ---------------------------------------------------------------------------

    def stat(self) -> os.stat_result:
        """What the name itself is; a link is a link."""
        with self._opened(os.O_PATH) as descriptor:
            return os.fstat(descriptor)

    def exists(self) -> bool:
        """Whether anything has this name, also something that nobody would touch."""
        try:
            self.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except UnsafeFile:
            return True
        return True

    def is_dir(self) -> bool:
        """Whether it is a directory of the box itself."""
        return self._is(modes.S_ISDIR)

    def is_file(self) -> bool:
        """Whether it is a regular file of the box itself."""
        return self._is(modes.S_ISREG)

    def _is(self, kind: Callable[[int], bool]) -> bool:
        try:
            return kind(self.stat().st_mode)
        except OSError:
            return False

    def require_own(self) -> None:
        """Raise UnsafeFile unless it is a directory of the box, or nothing yet."""
        with contextlib.suppress(FileNotFoundError):
            self._refuse(self.stat(), modes.S_IFDIR)

    def names(self, most: int = MOST_FILES) -> list[str]:
        """The names in a directory, sorted; more than `most` is unsafe."""
        with self._directory() as descriptor:
            found = os.listdir(descriptor)  # noqa: PTH208
        if len(found) > most:
            raise UnsafeFile(f"{self} holds more than {most} files")
        return sorted(found)

    def files(self, deepest: int = DEEPEST, most: int = MOST_FILES) -> Iterator[BoxPath]:
        """Everything below a directory that is no directory, in order; more than `most` is unsafe."""
        seen = 0
        pending = [(self, deepest)]
        while pending:
            here, left = pending.pop()
            if here is not self and not here.is_dir():
                yield here
                continue
            if left < 0:
                continue
            names = here.names(most)
            seen += len(names)
            if seen > most:
                raise UnsafeFile(f"{self} holds more than {most} files")
            pending += [(here / name, left - 1) for name in reversed(names)]

    # --- reading ---------------------------------------------------------------------------------

    def read_bytes(self, limit: int = READ_LIMIT) -> bytes:
        """The whole content; too large is unsafe."""
        with self._regular(os.O_RDONLY) as descriptor:
            return self._read(descriptor, 0, limit)

    def read_text(self, *, errors: str = "strict", limit: int = READ_LIMIT) -> str:
        """The same as text."""
        return self.read_bytes(limit).decode("utf-8", errors)

    def read_from(self, offset: int, limit: int = READ_LIMIT) -> bytes:
        """What a growing file has got since; as much as `limit` is too large."""
        with self._regular(os.O_RDONLY) as descriptor:
            return self._read(descriptor, offset, limit)

    def read_end(self, limit: int = KEPT_LIMIT) -> bytes:
        """The last bytes of a file of any size."""
        with self._regular(os.O_RDONLY) as descriptor:
            start = max(0, os.fstat(descriptor).st_size - limit)
            return os.pread(descriptor, limit, start)

    def read_said(self, limit: int = SAID_LIMIT) -> str:
        """What a program has printed into a file so far: the end, if that is long; nothing without one."""
        try:
            return self.read_end(limit).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def _read(self, descriptor: int, offset: int, limit: int) -> bytes:
        size = os.fstat(descriptor).st_size - offset
        if size > limit:
            raise UnsafeFile(f"{self} is too large to be read: {size} bytes")
        parts: list[bytes] = []
        place = offset
        while place - offset <= limit:
            part = os.pread(descriptor, min(_CHUNK, limit + 1 - (place - offset)), place)
            if not part:
                return b"".join(parts)
            parts.append(part)
            place += len(part)
        raise UnsafeFile(f"{self} grows while it is read: more than {limit} bytes")

    # --- changing --------------------------------------------------------------------------------

    def write_text(self, text: str) -> None:
        """Put a file in place, whole; what had the name before is no longer there."""
        self.replace_bytes(text.encode())

    def replace_bytes(self, content: bytes, mode: int = 0o644) -> None:
        """The same with bytes: a new file takes the name, the old one is not touched."""
        fresh = f".{self.name[:100]}.mutiny-{os.urandom(4).hex()}"
        with self.parent._directory() as parent:
            made = os.open(
                fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=parent
            )
            try:
                with open(made, "wb") as file:
                    file.write(content)
                    os.fchmod(made, mode)
                os.rename(fresh, self.name, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                os.unlink(fresh, dir_fd=parent)
                raise

    def create(self, content: bytes, mode: int = 0o644) -> bool:
        """Make a file that is not there yet; False when something has the name."""
        with self.parent._directory() as parent:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                made = os.open(self.name, flags, mode, dir_fd=parent)
            except FileExistsError:
                return False
            with open(made, "wb", buffering=0) as file:
                file.write(content)
        return True

    def overwrite(self, content: bytes) -> None:
        """Change a file in place: who has it open sees the change."""
        with self._regular(os.O_WRONLY) as descriptor:
            self._require_one_name(descriptor)
            write_all(descriptor, content)
            os.ftruncate(descriptor, len(content))

    def append_text(self, text: str) -> None:
        """Add to the end of a file that is there."""
        with self._regular(os.O_WRONLY | os.O_APPEND) as descriptor:
            self._require_one_name(descriptor)
            write_all(descriptor, text.encode())

    def _require_one_name(self, descriptor: int) -> None:
        if os.fstat(descriptor).st_nlink > 1:
            raise UnsafeFile(f"{self} has other names, and what they belong to is not known")

    def chmod(self, mode: int) -> None:
        """Change the mode of a file or directory."""
        with self._opened(os.O_PATH) as descriptor:
            self._refuse(os.fstat(descriptor), modes.S_IFREG, modes.S_IFDIR)
            # By this name also one that may not be opened.
            os.chmod(f"/proc/self/fd/{descriptor}", mode)  # noqa: PTH101

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Take the name away; a link goes, not what it leads to."""
        try:
            with self.parent._directory() as parent:
                os.unlink(self.name, dir_fd=parent)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Make a directory; one that is there must be the box's own, but for the root."""
        if not self.parts:
            os.makedirs(self.root, exist_ok=exist_ok)  # noqa: PTH103
            return
        if parents and not self.parent.is_dir():
            self.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self.parent._directory() as parent:
                os.mkdir(self.name, dir_fd=parent)
        except FileExistsError:
            self._refuse(self.stat(), modes.S_IFDIR)
            if not exist_ok:
                raise

    # --- for what needs a descriptor -------------------------------------------------------------

    def open_directory(self, flags: int = os.O_RDONLY) -> int:
        """A descriptor of a directory, to be closed by the caller."""
        return self._open(flags | os.O_DIRECTORY)

    def open_regular(self, flags: int) -> int:
        """A descriptor of a regular file, to be closed by the caller."""
        # Looked at before it is opened: to open a pipe or a device is already to do something to it.
        with self._opened(os.O_PATH) as found:
            self._refuse(os.fstat(found), modes.S_IFREG)
            return os.open(f"/proc/self/fd/{found}", flags | _CAREFUL)

    def _open(self, flags: int) -> int:
        root = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return open_beneath(root, self.parts, flags)
        except OSError as error:
            raise self._explained(error, root) from None
        finally:
            os.close(root)

    def _explained(self, error: OSError, root: int) -> OSError:
        """The error that says what stands in the way: a link is more than `not a directory`."""
        for count in range(1, len(self.parts) + 1):
            try:
                found = open_beneath(root, self.parts[:count], os.O_PATH)
            except OSError:
                break
            kind = modes.S_IFMT(os.fstat(found).st_mode)
            os.close(found)
            if kind == modes.S_IFLNK:
                return UnsafeFile(
                    f"{BoxPath(self.root, *self.parts[:count])} is a link, which Mutiny does not follow"
                )
        return OSError(error.errno, error.strerror, str(self))

    def _refuse(self, found: os.stat_result, *wanted: int) -> None:
        kind = modes.S_IFMT(found.st_mode)
        if kind == modes.S_IFDIR and kind not in wanted:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(self))
        if kind not in wanted:
            what = "directory of the box" if wanted == (modes.S_IFDIR,) else "regular file"
            raise UnsafeFile(f"{self} is {_KINDS.get(kind, 'something')} and no {what}")

    def _opened(self, flags: int) -> AbstractContextManager[int]:
        return _held(self._open(flags))

    def _directory(self) -> AbstractContextManager[int]:
        return _held(self.open_directory(os.O_RDONLY))

    def _regular(self, flags: int) -> AbstractContextManager[int]:
        return _held(self.open_regular(flags))


@contextmanager
def _held(descriptor: int) -> Iterator[int]:
    """A descriptor for the length of a block."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write, and go on after a short write."""
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
