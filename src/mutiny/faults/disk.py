"""Disk faults around a directory of a box: full (bytes or inodes), read-only, forbidden.

Insight: the mounts of a box belong to a namespace that its maker may change from outside, also as a
plain user. A directory becomes a small file system of its own before the target starts (`prepare`);
filling it is then no more than shrinking it to what it holds, with no balloon file that a target
could see, and healing is making it large again. What changes while processes already stand in the
directory would not reach them, so that is refused.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Literal

from mutiny.box.box import Box
from mutiny.faults import namespaces
from mutiny.faults.base import Fault, FaultUnavailable
from mutiny.faults.namespaces import MountRefused, MountStep
from mutiny.model.result import OperationResult
from mutiny.system import trees
from mutiny.system.files import BoxPath

ENGINE_INSTEAD = "the system-call engine can refuse the writes one by one instead"
_MS_REMOUNT, _MS_BIND = 0x20, 0x1000
_READ_ONLY_ATTRIBUTE = 0x1
_PAGE = 4096
_ATTEMPTS = 20


class SmallDisk:
    """A directory of a box that is a file system of its own (tmpfs), with a size of its own.

    Make it before the target starts. `view` is where the host sees its files: the directory on the
    host below is covered inside the box and keeps its old content until `collect`.
    """

    def __init__(
        self, box: Box, inside: str, *, size_bytes: int = 64 << 20, inodes: int = 65536
    ) -> None:
        self._box = box
        self.inside = inside
        self.size_bytes = size_bytes
        self.inodes = inodes
        self._mounted = False

    def why_not(self) -> str | None:
        """No mount namespace of its own, or processes that already stand in the directory."""
        reason = namespaces.why_no_namespace(self._box, "mnt")
        if reason is not None:
            return f"{reason}; {ENGINE_INSTEAD}"
        return None if self._mounted else _why_in_use(self._box, self.inside)

    def mount(self) -> None:
        """Put the file system in place, with the files that the directory has now. Safe to call
        twice.
        """
        if self._mounted:
            return
        reason = self.why_not()
        if reason is not None:
            raise FaultUnavailable(reason)
        covered = self._box.outside(self.inside)
        covered.mkdir(parents=True, exist_ok=True)
        mode = covered.stat().st_mode & 0o7777
        options = f"size={self.size_bytes},nr_inodes={self.inodes},mode={mode:o}"
        step = MountStep("mount", self.inside, source="tmpfs", kind="tmpfs", data=options)
        namespaces.change_mounts(self._box, [step])
        self._mounted = True
        trees.copy(covered, self.view, with_links=True, most=None)

    @property
    def view(self) -> BoxPath:
        """The files as the box sees them; valid as long as the box lives."""
        return namespaces.seen_by_box(self._box, self.inside)

    def limit(self, *, size_bytes: int | None = None, inodes: int | None = None) -> None:
        """Change what it can hold, while it is in use."""
        wanted = []
        if size_bytes is not None:
            wanted.append(f"size={size_bytes}")
        if inodes is not None:
            wanted.append(f"nr_inodes={inodes}")
        step = MountStep("mount", self.inside, flags=_MS_REMOUNT, data=",".join(wanted))
        namespaces.change_mounts(self._box, [step])

    def collect(self) -> None:
        """Copy the files to the host's directory, so that they stay when the box is gone."""
        covered = self._box.outside(self.inside)
        trees.empty(covered)
        trees.copy(self.view, covered, with_links=True, most=None)


def _why_in_use(box: Box, inside: str) -> str | None:
    """A process whose working directory or open file is below the place would not see a new mount."""
    inside = namespaces.without_links(box, inside)
    for process in box.processes():
        pid = namespaces.host_pid(box, process.pid, process.start)
        links = [] if pid is None else [Path(f"/proc/{pid}/cwd"), *_descriptors(pid)]
        for link in links:
            try:
                where = os.readlink(link)  # noqa: PTH115
            except OSError:
                continue  # ended or closed while we looked
            if where == inside or where.startswith(inside.rstrip("/") + "/"):
                return (
                    f"pid {process.pid} ({process.name}) already uses {where}: "
                    "make the disk before the target starts"
                )
    return None


def _descriptors(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return []  # ended while we looked


class FillDisk(Fault):
    """No space left (or no inode left) in a small disk, but for `spare` bytes or inodes."""

    def __init__(
        self, disk: SmallDisk, what: Literal["bytes", "inodes"] = "bytes", *, spare: int = 0
    ) -> None:
        self._disk = disk
        self._what = what
        self._spare = spare
        self.technique = f"tmpfs of the box shrunk to what it holds ({what})"

    def why_not(self) -> str | None:
        """As for the small disk."""
        return self._disk.why_not()

    def prepare(self) -> None:
        """Put the small disk in place if it is not yet."""
        self._disk.mount()

    def inject(self) -> OperationResult:
        """Shrink it, then try to write into it."""
        for _ in range(_ATTEMPTS):  # a writer may be faster than we are
            found = _statvfs(self._disk.view)
            used_pages = found.f_blocks - found.f_bfree
            try:
                if self._what == "bytes":
                    size = max(1, used_pages * found.f_frsize // _PAGE) * _PAGE + self._spare
                    self._disk.limit(size_bytes=size)
                else:
                    self._disk.limit(inodes=found.f_files - found.f_ffree + self._spare)
                break
            except MountRefused as error:
                if error.errno != errno.EINVAL:
                    raise
        else:
            return self.not_done("the target writes faster than the disk can be shrunk")
        seen = _try_to_write(self._disk.view, self._spare + 2 * _PAGE, self._spare + 1, self._what)
        if seen != errno.ENOSPC:
            said = "a write succeeded" if seen is None else os.strerror(seen)
            return self.not_done(f"{self._disk.inside} is not full: {said}")
        return self.done(f"{self._disk.inside}: no {self._what} left (ENOSPC)")

    def heal(self) -> OperationResult:
        """Give it its first size again."""
        self._disk.limit(size_bytes=self._disk.size_bytes, inodes=self._disk.inodes)
        seen = _try_to_write(self._disk.view, 1, 1, self._what)
        if seen is not None:
            return self.not_done(f"{self._disk.inside} still refuses: {os.strerror(seen)}")
        return self.done(f"{self._disk.inside}: space again")


class ReadOnly(Fault):
    """A directory of a box that can no longer be written (EROFS)."""

    technique = "mount of the box made read-only"

    def __init__(self, box: Box, inside: str) -> None:
        self._box = box
        self._inside = inside
        self._prepared = False

    def why_not(self) -> str | None:
        """No mount namespace of its own, or processes that already stand in the directory."""
        reason = namespaces.why_no_namespace(self._box, "mnt")
        if reason is not None:
            return f"{reason}; {ENGINE_INSTEAD}"
        if self._prepared or self._is_mount():
            return None
        return _why_in_use(self._box, self._inside)

    def _is_mount(self) -> bool:
        text = Path(f"/proc/{namespaces.agent_pid(self._box)}/mountinfo").read_text()
        place = namespaces.without_links(self._box, self._inside)
        return any(line.split()[4] == place for line in text.splitlines())

    def prepare(self) -> None:
        """Give the directory a mount of its own, over the same files. Safe to call twice."""
        if self._prepared or self._is_mount():
            return
        step = MountStep("mount", self._inside, source=self._inside, flags=_MS_BIND)
        namespaces.change_mounts(self._box, [step])
        self._prepared = True

    def inject(self) -> OperationResult:
        """Make it read-only, then try to write into it."""
        step = MountStep("attributes", self._inside, set=_READ_ONLY_ATTRIBUTE)
        try:
            namespaces.change_mounts(self._box, [step])
        except MountRefused as error:
            if error.errno != errno.EBUSY:
                raise
            return self.not_done(
                f"a file below {self._inside} is open for writing, so the kernel refuses; "
                + ENGINE_INSTEAD
            )
        view = namespaces.seen_by_box(self._box, self._inside)
        if _try_to_write(view, 1, 1, "bytes") != errno.EROFS:
            return self.not_done(f"{self._inside} can still be written")
        return self.done(f"{self._inside}: read-only (EROFS)")

    def heal(self) -> OperationResult:
        """Writable again."""
        step = MountStep("attributes", self._inside, clear=_READ_ONLY_ATTRIBUTE)
        namespaces.change_mounts(self._box, [step])
        seen = _try_to_write(namespaces.seen_by_box(self._box, self._inside), 1, 1, "bytes")
        if seen is not None:
            return self.not_done(f"{self._inside} still refuses: {os.strerror(seen)}")
        return self.done(f"{self._inside}: writable again")


def _statvfs(directory: BoxPath) -> os.statvfs_result:
    held = directory.open_directory()
    try:
        return os.statvfs(held)
    finally:
        os.close(held)


def _try_to_write(directory: BoxPath, size: int, files: int, what: str) -> int | None:
    """Write for a moment into the directory; return the error number, None when it worked.

    The files have no name (O_TMPFILE), so that the target never sees them.
    """
    flags = os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC
    held = directory.open_directory()
    made: list[int] = []
    try:
        for _ in range(files if what == "inodes" else 1):
            made.append(os.open(".", flags, 0o600, dir_fd=held))
        left = size if what == "bytes" else 0
        while left > 0:  # a short write is not a refusal yet
            left -= os.write(made[0], b"\0" * min(left, 1 << 20))
    except OSError as error:
        return error.errno
    finally:
        for descriptor in (*made, held):
            os.close(descriptor)
    return None


# --- permissions and locks -------------------------------------------------------------------------


class Forbid(Fault):
    """A file or directory that the target may not use any more (EACCES)."""

    technique = "mode bits"

    def __init__(self, box: Box, inside: str, mode: int = 0) -> None:
        self._box = box
        self._inside = inside
        self._mode = mode
        self._before: int | None = None

    def why_not(self) -> str | None:
        """Mode bits mean nothing to a root that has its capabilities."""
        if os.geteuid() == 0 and self._box.technique != "bwrap":
            return f"root in a box of {self._box.technique} may do everything; {ENGINE_INSTEAD}"
        return None

    def inject(self) -> OperationResult:
        """Change the mode, then ask a process of the box what it may do."""
        place = namespaces.seen_by_box(self._box, self._inside)
        try:
            self._before = place.stat().st_mode & 0o7777
        except FileNotFoundError:
            return self.not_done(f"{self._inside} does not exist")
        place.chmod(self._mode)
        refused = [letter for letter in "rwx" if not self._allowed(letter)]
        lost = {
            letter
            for bit, letter in ((0o400, "r"), (0o200, "w"), (0o100, "x"))
            if self._before & bit and not self._mode & bit
        }
        if not lost or not lost <= set(refused):
            return self.not_done(f"the box may still use {self._inside} (refused: {refused})")
        return self.done(f"{self._inside}: no {''.join(sorted(lost))} for the box (EACCES)")

    def _allowed(self, letter: str) -> bool:
        return self._box.run(["test", f"-{letter}", self._inside], timeout_s=10).exit_code == 0

    def heal(self) -> OperationResult:
        """The mode that it had."""
        if self._before is None:
            return self.not_done("nothing was changed")
        before, self._before = self._before, None
        try:
            namespaces.seen_by_box(self._box, self._inside).chmod(before)
        except FileNotFoundError:
            return self.not_done(f"{self._inside} was removed meanwhile")
        return self.done(f"{self._inside}: mode {before:o} again")
