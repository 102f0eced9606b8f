"""Damage to the content of one file: truncated, junk at the end or in the middle, a flipped bit, an old
copy, deleted.

Insight: a file that is replaced by rename and a file that is changed in place are two different
faults, because a process that holds the file open sees only the second one. Where the damage falls
is computed from the content and the arguments alone, so that a replay damages the same byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Literal

from mutiny.faults.base import Fault
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath

Way = Literal["rename", "in place"]


def truncated(content: bytes, part: float) -> bytes:
    """The first part of the content: 0 empties the file, 0.5 keeps the first half."""
    if not 0 <= part < 1:
        raise ValueError(f"part {part} is not between 0 and 1")
    return content[: int(len(content) * part)]


def with_junk(content: bytes, size: int, seed: int) -> bytes:
    """The content with `size` bytes of rubbish behind it, the same ones for the same seed."""
    return content + _rubbish(size, seed)


def with_flipped_bit(content: bytes, seed: int) -> bytes:
    """The content with one bit changed; the seed says which. An empty file has none."""
    if not content:
        return content
    place = int.from_bytes(_rubbish(8, seed), "big") % (len(content) * 8)
    damaged = bytearray(content)
    damaged[place // 8] ^= 1 << (place % 8)
    return bytes(damaged)


def garbage(content: bytes, seed: int) -> bytes:
    """Rubbish of the same length (at least 16 bytes) instead of the content."""
    return _rubbish(max(16, len(content)), seed)


def bad_middle(content: bytes, seed: int) -> bytes:
    """A stretch in the middle (a sixteenth, at least 16 bytes) is rubbish: what comes after it is whole."""
    size = min(len(content), max(16, len(content) // 16))
    start = (len(content) - size) // 2
    return content[:start] + _rubbish(size, seed) + content[start + size :]


def _rubbish(size: int, seed: int) -> bytes:
    return hashlib.shake_256(f"mutiny-{seed}".encode()).digest(size)


class DamageContent(Fault):
    """Damage a file. `heal` puts the original back, but only where the damage is still there
    untouched.
    """

    def __init__(
        self,
        path: BoxPath,
        damage: Callable[[bytes], bytes],
        name: str,
        *,
        way: Way = "rename",
    ) -> None:
        self._path = path
        self._damage = damage
        self._name = name
        self._way = way
        self._original: bytes | None = None
        self._damaged: bytes | None = None
        self.technique = f"{name}, {'replaced by rename' if way == 'rename' else 'in place'}"

    def inject(self) -> OperationResult:
        """Damage it; fired means that the content on disk is now another one."""
        try:
            original = self._path.read_bytes()
        except FileNotFoundError:
            return self.not_done(f"{self._path.name} does not exist")
        damaged = self._damage(original)
        if damaged == original:
            return self.not_done(f"{self._path.name} has nothing that {self._name} could change")
        _write(self._path, damaged, self._way)
        if self._path.read_bytes() == original:
            return self.not_done(f"{self._path.name} was written again at once")
        self._original, self._damaged = original, damaged
        return self.done(
            f"{self._path.name}: {self._name}, {len(original)} to {len(damaged)} bytes"
        )

    @property
    def left(self) -> bytes | None:
        """What the fault made of the file."""
        return self._damaged

    def heal(self) -> OperationResult:
        """Put the original back unless somebody has written the file meanwhile."""
        if self._original is None:
            return self.not_done("nothing was damaged")
        original, self._original = self._original, None
        try:
            found = self._path.read_bytes()
        except FileNotFoundError:
            return self.not_done(f"{self._path.name} was removed meanwhile")
        if found != self._damaged:
            return self.not_done(f"{self._path.name} was written meanwhile")
        _write(self._path, original, self._way)
        return self.done(f"{self._path.name}: restored")


class DeleteFile(Fault):
    """Remove a file. `heal` puts it back if nobody has made a new one."""

    technique = "unlink"
    left: bytes | None = None

    def __init__(self, path: BoxPath) -> None:
        self._path = path
        self._original: tuple[bytes, int] | None = None

    def inject(self) -> OperationResult:
        """Remove it."""
        try:
            kept = self._path.read_bytes(), self._path.stat().st_mode & 0o7777
            self._path.unlink()
        except FileNotFoundError:
            return self.not_done(f"{self._path.name} does not exist")
        self._original = kept
        return self.done(f"{self._path.name}: deleted")

    def heal(self) -> OperationResult:
        """Put it back."""
        if self._original is None:
            return self.not_done("nothing was deleted")
        (content, mode), self._original = self._original, None
        if self._path.exists():
            return self.not_done(f"{self._path.name} was made again meanwhile")
        self._path.replace_bytes(content, mode)
        return self.done(f"{self._path.name}: restored")


class StaleCopy(Fault):
    """Bring back an older version of a file: `prepare` keeps it, `inject` puts it in place."""

    def __init__(self, path: BoxPath, *, way: Way = "rename") -> None:
        self._path = path
        self._way: Way = way
        self._old: bytes | None = None
        self._damage: DamageContent | None = None
        self.technique = f"stale copy, {'replaced by rename' if way == 'rename' else 'in place'}"

    def prepare(self) -> None:
        """Keep the content of this moment."""
        if self._old is None and self._path.exists():
            self._old = self._path.read_bytes()

    def inject(self) -> OperationResult:
        """Put the kept content back; fired only if the file had changed since."""
        if self._old is None:
            return self.not_done(f"no old copy of {self._path.name} was kept")
        old = self._old
        self._damage = DamageContent(self._path, lambda _: old, "stale copy", way=self._way)
        return self._damage.inject()

    def heal(self) -> OperationResult:
        """Bring the newer version back unless somebody has written the file meanwhile."""
        if self._damage is None:
            return self.not_done("nothing was replaced")
        return self._damage.heal()


def truncate(path: BoxPath, part: float = 0.5, *, way: Way = "rename") -> DamageContent:
    """A file of which the end is missing."""
    return DamageContent(path, lambda content: truncated(content, part), "truncate", way=way)


def append_junk(
    path: BoxPath, size: int = 64, *, seed: int = 1, way: Way = "rename"
) -> DamageContent:
    """A file with rubbish behind its end."""
    return DamageContent(path, lambda content: with_junk(content, size, seed), "junk", way=way)


def flip_bit(path: BoxPath, *, seed: int = 1, way: Way = "rename") -> DamageContent:
    """A file with one wrong bit."""
    return DamageContent(path, lambda content: with_flipped_bit(content, seed), "bit flip", way=way)


def damage(path: BoxPath, how: str, seed: int = 1, *, way: Way = "rename") -> DamageContent:
    """A damage by its word: truncate, empty, append, flip, garbage or middle."""
    changes: dict[str, Callable[[bytes], bytes]] = {
        "truncate": lambda content: truncated(content, 0.5),
        "empty": lambda content: truncated(content, 0),
        "append": lambda content: with_junk(content, 64, seed),
        "flip": lambda content: with_flipped_bit(content, seed),
        "garbage": lambda content: garbage(content, seed),
        "middle": lambda content: bad_middle(content, seed),
    }
    return DamageContent(path, changes[how], how, way=way)


def corrupt(path: BoxPath, *, seed: int = 1, way: Way = "rename") -> DamageContent:
    """A file full of rubbish."""
    return DamageContent(path, lambda content: garbage(content, seed), "garbage", way=way)


def _write(path: BoxPath, content: bytes, way: Way) -> None:
    if way == "in place":
        path.overwrite(content)
    else:
        path.replace_bytes(content, path.stat().st_mode & 0o7777)
