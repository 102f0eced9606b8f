"""Clock faults: offset, jump, drift and rate, for a whole box or for one worker alone.

Insight: the shim (`clock_shim.c`) takes its orders from a shared page of memory, so that a clock can
be bent while the processes run, without a signal and without a system call. A change is written
into the unused half of the page while the readers wait for a few microseconds; so it happens at one
instant for all of them, and no clock that must not go back ever does.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import mmap
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from mutiny.box.box import Box
from mutiny.faults.base import Fault, FaultUnavailable
from mutiny.model.result import OperationResult
from mutiny.system.files import BoxPath

PAGE_VARIABLE = "MUTINY_CLOCK"
DEFAULT_PAGE = "default"
SLOWEST, FASTEST = 0.001, 100_000.0
_SOURCE = Path(__file__).with_name("clock_shim.c")
_MAGIC = 0x31304B4C4359544D
_PAGE_BYTES = 4096
_BUILD_LIMIT_S = 60.0
_PROBE_LIMIT_S = 20.0
_LOOK_AT_CLOCK = 'date +%s.%N && grep -qF -- "$(readlink -f "$1")" /proc/self/maps'
_SECOND = 1_000_000_000


class _Mapping(ctypes.Structure):
    _fields_ = (
        ("rate", ctypes.c_double),
        ("real_mono", ctypes.c_int64),
        ("faked_mono", ctypes.c_int64),
        ("real_wall", ctypes.c_int64),
        ("faked_wall", ctypes.c_int64),
        ("reserved", ctypes.c_int64 * 3),
    )


class _Page(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint64),
        ("generation", ctypes.c_uint64),
        ("reserved", ctypes.c_uint64 * 6),
        ("mappings", _Mapping * 2),
    )


# --- the shim
# --------------------------------------------------------------------------------------


@functools.cache
def why_no_shim() -> str | None:
    """Why clocks cannot be bent on this machine; None when they can."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return f"the shim is for 64-bit Linux, this is {sys.platform} on {platform.machine()}"
    try:
        build_shim()
    except FaultUnavailable as error:
        return str(error)
    return None


def build_shim(directory: Path | None = None) -> Path:
    """Compile the shim once; afterwards the copy in the cache directory is used.

    The name holds a hash of the source, so that a new version never meets an old library.
    """
    source = _SOURCE.read_bytes()
    name = f"clock-shim-{hashlib.sha256(source).hexdigest()[:16]}-{platform.machine()}.so"
    place = directory or _cache_directory()
    library = place / name
    if library.exists():
        return library
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise FaultUnavailable("there is no C compiler (cc) to build the clock shim with")
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as workshop:
        made = Path(workshop) / name
        argv = [compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(_SOURCE), "-ldl"]
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_BUILD_LIMIT_S, check=False
        )
        if done.returncode != 0:
            raise FaultUnavailable(f"the clock shim could not be built: {done.stderr.strip()}")
        made.replace(library)
    return library


def _cache_directory() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError, OSError):  # no home at all, or not one to write in
        place = (Path(named) if named else Path.home() / ".cache") / "mutiny"
        place.mkdir(parents=True, exist_ok=True)
        if os.access(place, os.W_OK):
            return place
    return Path(tempfile.gettempdir()) / f"mutiny-cache-{os.geteuid()}"


# --- the page
# --------------------------------------------------------------------------------------


class ClockPage:
    """One clock: the file that a process under the shim looks at whenever it asks for the time.

    What it says is known here and only written there: who shortens the file under a mapping of ours
    would end us with it.
    """

    def __init__(self, path: BoxPath, page: _Page) -> None:
        self.path = path
        self._page = page
        self._file = path.open_regular(os.O_RDWR)

    @classmethod
    def create(cls, path: BoxPath) -> Self:
        """Make a page on which time is as it really is; an existing file is replaced."""
        fresh = _Page(magic=_MAGIC)
        wall, mono = time.time_ns(), time.monotonic_ns()
        for half in fresh.mappings:
            half.rate = 1.0
            half.real_mono = half.faked_mono = mono
            half.real_wall = half.faked_wall = wall
        path.parent.mkdir(parents=True, exist_ok=True)
        path.replace_bytes(bytes(fresh).ljust(_PAGE_BYTES, b"\0"))
        return cls(path, fresh)

    @property
    def rate(self) -> float:
        """How many seconds pass here in one real second."""
        return float(self._newest.rate)

    @property
    def offset_s(self) -> float:
        """How far the wall clock is ahead of the real one now."""
        now = time.time_ns()
        return (self._wall_at(now) - now) / _SECOND

    def set(self, *, rate: float | None = None, offset_s: float | None = None) -> None:
        """Let time run at `rate` from now on, and put the wall clock `offset_s` ahead of the real
        one.

        What is not given stays. Without `offset_s` the wall clock goes on where it is; the
        monotonic clock always does.
        """
        new_rate = self.rate if rate is None else rate
        if not SLOWEST <= new_rate <= FASTEST:
            raise ValueError(f"rate {new_rate} is not between {SLOWEST} and {FASTEST}")
        self._switch(new_rate, offset_s=offset_s)

    def jump(self, seconds: float, *, monotonic: bool = False) -> None:
        """Move the wall clock, forwards or (negative) back.

        With `monotonic` the monotonic clock goes the same way, as after a suspended machine wakes;
        only forwards.
        """
        if monotonic and seconds < 0:
            raise ValueError("the monotonic clock never goes back")
        self._switch(self.rate, jump_s=seconds, monotonic=monotonic)

    def drift(self, parts_per_million: float) -> None:
        """Let this clock gain (or, negative, lose) so many microseconds in each second."""
        self.set(rate=1 + parts_per_million / 1e6)

    def heal(self) -> None:
        """Normal speed and the real wall clock again; the monotonic clock keeps what it has gained."""
        self._switch(1.0, offset_s=0.0)

    def close(self) -> None:
        """Let go of the page; the processes that use it are not affected."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _show(self, field: str) -> None:
        """Let the processes of the box see one field of the page."""
        place = getattr(_Page, field)
        data = bytes(self._page)[place.offset : place.offset + place.size]
        os.pwrite(self._file, data, place.offset)

    @property
    def _newest(self) -> _Mapping:
        found: _Mapping = self._page.mappings[self._page.generation >> 1 & 1]
        return found

    def _wall_at(self, real_ns: int) -> int:
        used = self._newest
        # The product alone is rounded: a float cannot hold a whole date in nanoseconds.
        return int(used.faked_wall) + int((real_ns - used.real_wall) * used.rate)

    def _switch(
        self,
        rate: float,
        *,
        offset_s: float | None = None,
        jump_s: float = 0.0,
        monotonic: bool = False,
    ) -> None:
        used = self._newest
        spare: _Mapping = self._page.mappings[~(self._page.generation >> 1) & 1]
        # Odd: from here on every reader waits, so that no one is ahead of the instant read below.
        self._page.generation += 1
        self._show("generation")
        try:
            mono, wall = time.monotonic_ns(), time.time_ns()
            gained = round(jump_s * _SECOND)
            spare.rate = rate
            spare.real_mono = mono
            spare.faked_mono = used.faked_mono + int((mono - used.real_mono) * used.rate)
            spare.faked_mono += gained if monotonic else 0
            spare.real_wall = wall
            if offset_s is None:
                spare.faked_wall = self._wall_at(wall) + gained
            else:
                spare.faked_wall = wall + round(offset_s * _SECOND)
            self._show("mappings")
        except BaseException:
            self._page.generation -= 1  # as if nothing had been
            self._show("generation")
            raise
        self._page.generation += 1
        self._show("generation")


# --- programs that do not listen
# -------------------------------------------------------------------


def why_not_affected(program: Path) -> str | None:
    """Why the shim has no power over a program; None when it has.

    A script is as its interpreter. A static binary and a Go program ask the kernel without the C
    library.
    """
    head = b""
    for _ in range(4):  # a script may name a script
        with program.open("rb") as file:
            head = file.read(256)
        if not head.startswith(b"#!"):
            break
        words = head[2:].split(b"\n")[0].decode("utf-8", "replace").split()
        named = words[0] if words else ""
        if Path(named).name == "env" and len(words) > 1:
            named = shutil.which(next((w for w in words[1:] if not w.startswith("-")), "")) or named
        if not Path(named).is_file():
            return f"{program} names an interpreter that is not there: {named!r}"
        program = Path(named)
    if not head.startswith(b"\x7fELF"):
        return None  # run by a shell
    if not _has_interpreter(program):
        return f"{program} is a static binary: it takes no preloaded library"
    with (
        program.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        if data.find(b"\xff Go buildinf:") >= 0:
            return f"{program} is a Go program: it asks the kernel for the time by itself"
    if program.stat().st_mode & 0o6000:
        return f"{program} is set-uid or set-gid: the loader ignores preloaded libraries"
    return None


def _has_interpreter(program: Path) -> bool:
    with program.open("rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[4] != 2:
            return True  # not 64-bit: nothing is known about it
        order = "little" if head[5] == 1 else "big"

        def number(data: bytes, at: int, size: int) -> int:
            return int.from_bytes(data[at : at + size], "little" if order == "little" else "big")

        file.seek(number(head, 32, 8))
        size, count = number(head, 54, 2), number(head, 56, 2)
        table = file.read(size * count)
    interpreter_segment = 3
    return any(number(table, i * size, 4) == interpreter_segment for i in range(count))


# --- in a box
# --------------------------------------------------------------------------------------


class BoxClocks:
    """The clocks of one box: a default one, and one for each worker that is named.

    A process takes the page of its worker (`MUTINY_WORKER`, else the name of the directory in which
    it was started) if there is one when it starts, otherwise the default. So `environment` is the
    same for everybody.
    """

    def __init__(self, box: Box, workers: Sequence[str] = ()) -> None:
        reason = why_no_shim()
        if reason is not None:
            raise FaultUnavailable(reason)
        self._box = box
        self._directory = box.files / "clocks"
        self._directory.mkdir(exist_ok=True)
        self._shim = self._directory / "shim.so"
        self._shim.replace_bytes(build_shim().read_bytes())
        self._pages = {
            name: ClockPage.create(self._directory / f"{name}.page")
            for name in (DEFAULT_PAGE, *workers)
        }

    def __getitem__(self, worker: str) -> ClockPage:
        """The page of a worker; of `default` for everybody else."""
        return self._pages[worker]

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process of the box needs in its environment to live by these clocks, and all that
        it starts.
        """
        earlier = self._box.environment.get("LD_PRELOAD")
        library = self._box.inside(self._shim, plain=True)
        return {
            "LD_PRELOAD": f"{library}:{earlier}" if earlier else library,
            PAGE_VARIABLE: self._box.inside(self._directory, plain=True),
        }

    def seen_s(self, worker: str = DEFAULT_PAGE) -> float:
        """What time it is for a process of the box (Unix seconds); raises unless it really looks at
        this page.
        """
        page = self._box.inside(self._pages[worker].path, plain=True)
        done = self._box.run(
            ["sh", "-c", _LOOK_AT_CLOCK, "sh", page],
            env={**self.environment, "MUTINY_WORKER": worker},
            timeout_s=_PROBE_LIMIT_S,
        )
        if done.exit_code != 0:
            raise FaultUnavailable(
                f"programs of the box do not load the clock shim ({page} is not mapped): "
                f"{done.stderr.strip() or done}"
            )
        return float(done.stdout)

    def close(self) -> None:
        """Let go of the pages."""
        for page in self._pages.values():
            page.close()


class SkewClock(Fault):
    """Bend the clock of a box, or of one worker of it."""

    technique = "clock shim (LD_PRELOAD)"
    _TOLERANCE_S = 0.01

    def __init__(
        self,
        clocks: BoxClocks,
        worker: str = DEFAULT_PAGE,
        *,
        rate: float | None = None,
        offset_s: float | None = None,
        jump_s: float | None = None,
    ) -> None:
        self._clocks = clocks
        self._worker = worker
        self._rate = rate
        self._offset_s = offset_s
        self._jump_s = jump_s

    def why_not(self) -> str | None:
        """No compiler, or another kind of machine."""
        return why_no_shim()

    def inject(self) -> OperationResult:
        """Bend the clock, then ask a process of the box what time it is."""
        page = self._clocks[self._worker]
        if self._rate is not None or self._offset_s is not None:
            page.set(rate=self._rate, offset_s=self._offset_s)
        if self._jump_s is not None:
            page.jump(self._jump_s)
        return self._look(page)

    def unfelt(self) -> str | None:
        """Another speed is noticed only when the clock has gone a measurable way."""
        gone = abs(self._clocks[self._worker].offset_s)
        if gone >= self._TOLERANCE_S:
            return None
        return f"the clock of {self._worker} was never more than {gone * 1000:.0f} ms wrong"

    def heal(self) -> OperationResult:
        """The real time again."""
        page = self._clocks[self._worker]
        page.heal()
        return self._look(page)

    def _look(self, page: ClockPage) -> OperationResult:
        before = time.time() + page.offset_s
        seen = self._clocks.seen_s(self._worker)
        after = time.time() + page.offset_s
        facts = {"rate": page.rate, "offset_s": round(page.offset_s, 3), "seen_s": seen}
        if not before - self._TOLERANCE_S <= seen <= after + self._TOLERANCE_S:
            return self.not_done(
                f"a process of the box sees {seen:.3f}, expected {before:.3f} to {after:.3f}",
                **facts,
            )
        return self.done(
            f"clock of {self._worker}: rate {page.rate:g}, wall {page.offset_s:+.3f} s", **facts
        )
