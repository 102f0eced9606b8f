"""Every fault of the library, and whether this machine can do it: what ``mutiny doctor`` prints.

Insight: what can be done depends on the box as much as on the machine (a box without a network of
its own cannot be partitioned), so the survey asks each fault itself, in a real box, instead of
keeping a second list of conditions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mutiny.box.box import Box
from mutiny.box.startup import create_box
from mutiny.doubles.model_api.script import FAULTS as MODEL_API_FAULTS
from mutiny.faults import (
    clients,
    clock,
    containers,
    content,
    disk,
    locks,
    network,
    process,
    resources,
)
from mutiny.faults.base import Availability, Fault
from mutiny.syscalls.supervisor import why_not as why_no_engine

ENGINE = "seccomp user notification"
_WORDS_OF_THE_BOX = frozenset({"cgroup", "nftables", "tc", "tmpfs", "mount", "mode", "prlimit"})
"""Techniques with one of these words can only be asked for in a box."""
_HERE = network.Party("api", "127.0.0.1", 8080)

_IN_A_BOX: dict[str, Callable[[Box], Fault]] = {
    "containers: private engine": containers.PrivateEngine,
    "disk: full, bytes": lambda box: disk.FillDisk(disk.SmallDisk(box, _home(box))),
    "disk: full, inodes": lambda box: disk.FillDisk(disk.SmallDisk(box, _home(box)), "inodes"),
    "disk: read-only": lambda box: disk.ReadOnly(box, _home(box)),
    "disk: permission": lambda box: disk.Forbid(box, _home(box)),
    "disk: lock held (flock)": lambda box: locks.HoldLock(box, _home(box), "flock"),
    "disk: lock held (POSIX)": lambda box: locks.HoldLock(box, _home(box), "posix"),
    "disk: lock held (sqlite)": lambda box: locks.HoldLock(box, _home(box), "sqlite"),
    "file: truncated": lambda box: content.truncate(box.files),
    "file: junk appended": lambda box: content.append_junk(box.files),
    "file: bit flipped": lambda box: content.flip_bit(box.files),
    "file: corrupt": lambda box: content.corrupt(box.files),
    "file: stale copy": lambda box: content.StaleCopy(box.files),
    "file: deleted": lambda box: content.DeleteFile(box.files),
    "network: partition": lambda box: network.Partition(box, _HERE),
    "network: one-way": lambda box: network.Partition(box, _HERE, direction="to"),
    "network: rejected": lambda box: network.Partition(box, _HERE, how="reject"),
    "network: loss": lambda box: network.Partition(box, _HERE, loss=0.1),
    "network: slow link": lambda box: network.SlowLink(box, kilobits_per_s=100),
    "network: delay by the kernel": lambda box: network.SlowLink(box, delay_ms=10),
    "network: silent client": lambda box: clients.SilentClient(box, (), _home(box)),
    "resources: file descriptors": lambda box: resources.LowerLimit(box, 1, 0, "descriptors"),
    "resources: memory": lambda box: resources.LowerLimit(box, 1, 0, "memory"),
    "resources: file size": lambda box: resources.LowerLimit(box, 1, 0, "file_size"),
    "resources: processes": lambda box: resources.LimitProcesses(box),
    "resources: processor quota": lambda box: resources.StarveCpu(box, 0.1, way="cgroup"),
    "resources: processor in turns": lambda box: resources.StarveCpu(box, 0.1, way="signals"),
}
_CALLS = (
    *("crash before a call", "kill one process", "error of a call", "torn write"),
    *("power loss", "one exact interleaving", "full disk", "read-only disk", "slow files"),
)
_ROLES = ("daemon", "agent", "tmux server", "whole box", "one command")
_CLOCK = ("offset", "jump", "drift", "rate", "one worker alone")
_PROXY = ("latency", "slow link", "stall", "one-way stall", "refused", "reset after bytes")


def survey(box: Box, only: Sequence[str] | None = None) -> tuple[Availability, ...]:
    """What can be done to this box; `only` leaves out other faults that must be asked in the box."""
    found = []
    for name, make in _IN_A_BOX.items():
        if only is None or name in only:
            fault = make(box)
            found.append(Availability(name, fault.technique, fault.why_not()))
    return (*found, *survey_without_box())


def in_a_box() -> tuple[str, ...]:
    """The faults that must be asked in a box whether they can be done."""
    return tuple(_IN_A_BOX)


def survey_without_box() -> tuple[Availability, ...]:
    """What can be done to any box."""
    shim, engine = clock.why_no_shim(), why_no_engine()
    found = [Availability(f"clock: {name}", clock.SkewClock.technique, shim) for name in _CLOCK]
    found += [Availability(f"calls: {name}", ENGINE, engine) for name in _CALLS]
    found += [Availability(f"process: kill {role}", process.TECHNIQUE, None) for role in _ROLES]
    found += [Availability(f"process: stop {role}", process.PAUSE, None) for role in _ROLES[:3]]
    found.append(Availability("process: kill tmux session", "tmux kill-session", None))
    found += [Availability(f"link: {name}", "TCP fault proxy", None) for name in _PROXY]
    found += [
        Availability(f"model API: {name}", "fake model API", None) for name in MODEL_API_FAULTS
    ]
    return tuple(found)


def survey_machine(
    only: Sequence[str] | None = None,
    techniques: Sequence[str] = (),
    isolation: str | None = None,
) -> tuple[Availability, ...]:
    """What can be done to a box of the strongest technique that this machine has.

    `only` and `techniques`: what is asked for; without both, everything. `isolation`: in this kind
    of box instead.
    """
    if only is not None:
        words = {word for text in techniques for word in text.split()}
        boxed = bool(words & _WORDS_OF_THE_BOX)
        only = tuple(_IN_A_BOX) if boxed else tuple(name for name in only if name in _IN_A_BOX)
        if not only:
            return survey_without_box()
    with (
        tempfile.TemporaryDirectory(prefix="mutiny-doctor-") as directory,
        create_box(Path(directory) / "boxes" / "box", technique=isolation, doubles=False) as box,
    ):
        return survey(box, only)


def by_family(found: Iterable[Availability]) -> dict[str, list[Availability]]:
    """Grouped by the word before the colon, both in the order of the alphabet."""
    families: dict[str, list[Availability]] = {}
    for item in sorted(found, key=lambda one: one.fault):
        families.setdefault(item.fault.partition(":")[0], []).append(item)
    return families


def _home(box: Box) -> str:
    return f"{box.inside_root}/home"
