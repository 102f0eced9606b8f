"""Control groups for limits on a whole box, in version 2 or version 1, whichever this machine lets
us make.

Insight: a mounted hierarchy proves nothing; the controller may be missing, taken by the other
version, or not delegated to this user. So the probe makes a group and looks for the file that the
limit needs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from mutiny.faults.base import FaultUnavailable
from mutiny.system import procfs

Controller = Literal["cpu", "pids", "memory"]
_NEEDED = {
    "cpu": ("cpu.cfs_quota_us", "cpu.max"),
    "pids": ("pids.max", "pids.max"),
    "memory": ("memory.limit_in_bytes", "memory.max"),
}
"""The file that a group needs, in version 1 and in version 2."""
_PERIOD_US = 20_000
_PASSES = 50


def _parents(controller: Controller) -> Iterable[tuple[int, Path]]:
    """This process's own group in every hierarchy that may have the controller: version and
    directory.
    """
    places: dict[str, tuple[int, str, str]] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            places["0"] = (2, before.split()[3], before.split()[4])
        elif kind == "cgroup" and controller in options.replace(" ", ",").split(","):
            places[controller] = (1, before.split()[3], before.split()[4])
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, names, path = line.split(":", 2)
        wanted = "0" if number == "0" else controller if controller in names.split(",") else ""
        if wanted in places:
            version, root, mount_point = places[wanted]
            below = path if root == "/" else path.removeprefix(root)
            yield version, Path(mount_point) / below.lstrip("/")


def _find(controller: Controller) -> tuple[int, Path] | str:
    """Version and parent directory of groups that can be made; a reason when there is none."""
    reasons = []
    for version, parent in _parents(controller):
        trial = parent / f"mutiny-probe-{os.getpid()}-{time.monotonic_ns()}"
        try:
            trial.mkdir()
        except OSError as error:
            reasons.append(f"no group can be made in {parent}: {error.strerror}")
            continue
        try:
            wanted = trial / _NEEDED[controller][version - 1]
            # Without the controller the file is missing; with a borrowed one it cannot be written.
            if wanted.exists() and os.access(wanted, os.W_OK):
                return version, parent
            reasons.append(f"cgroup version {version} has no {controller} controller here")
        finally:
            trial.rmdir()
    return "; ".join(reasons) or f"no cgroup hierarchy with the {controller} controller is mounted"


@cache
def why_no_controller(controller: Controller) -> str | None:
    """Why a limit of this kind cannot be put on a group; None when it can."""
    found = _find(controller)
    return found if isinstance(found, str) else None


@dataclass(slots=True)
class Controlled:
    """A group with one controller; the processes that it took go back to where they were on
    `release`.
    """

    version: int
    directory: Path
    home: Path

    @classmethod
    def create(cls, controller: Controller, name: str) -> Controlled:
        """Make a group below this process's own."""
        found = _find(controller)
        if isinstance(found, str):
            raise FaultUnavailable(found)
        version, parent = found
        directory = parent / f"mutiny-{name}-{controller}-{time.monotonic_ns()}"
        directory.mkdir()
        return cls(version, directory, parent)

    def take(self, find: Callable[[], list[tuple[int, int]]]) -> int:
        """Move processes in until none is left outside; what they fork from then on is born inside."""
        for _ in range(_PASSES):
            inside = set(map(int, self.read("cgroup.procs").split()))
            outside = [item for item in find() if item[0] not in inside]
            if not outside:
                return len(inside)
            for pid, start in outside:
                if procfs.start_ticks(pid) == start:
                    _move(pid, self.directory)
        raise FaultUnavailable("the box forks faster than its processes can be put into a group")

    def set_cpu_share(self, share: float) -> None:
        """At most this part of one processor."""
        quota = max(1000, round(_PERIOD_US * share))
        if self.version == 2:
            self.write("cpu.max", f"{quota} {_PERIOD_US}")
        else:
            self.write("cpu.cfs_period_us", str(_PERIOD_US))
            self.write("cpu.cfs_quota_us", str(quota))

    def times_throttled(self) -> int:
        """How often the kernel has held the group up because its quota was used."""
        for line in self.read("cpu.stat").splitlines():
            name, value = line.split()
            if name == "nr_throttled":
                return int(value)
        return 0

    def read(self, name: str) -> str:
        """The content of a file of the group."""
        return (self.directory / name).read_text().strip()

    def write(self, name: str, value: str) -> None:
        """Set a value of the group."""
        (self.directory / name).write_text(value)

    def release(self) -> None:
        """Let everything go back and remove the group."""
        for _ in range(_PASSES):
            inside = list(map(int, self.read("cgroup.procs").split()))
            for pid in inside:
                _move(pid, self.home)
            try:
                self.directory.rmdir()
            except OSError:
                time.sleep(0.01)  # somebody has just forked, or is just ending
                continue
            return
        raise FaultUnavailable(f"{self.directory} could not be emptied: its processes keep forking")


def _move(pid: int, group: Path) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:
        return  # ended meanwhile
