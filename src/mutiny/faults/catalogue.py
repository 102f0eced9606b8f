"""Every fault of the library, and whether this machine can do it: what ``mutiny doctor`` prints.

Insight: what can be done depends on the box as much as on the machine (a box without a network of
its own cannot be partitioned), so the survey asks each fault itself, in a real box, instead of
keeping a second list of conditions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from mutiny.box.box import Box
from mutiny.doubles.model_script import FAULTS as MODEL_API_FAULTS
from mutiny.faults import clock, content, disk, network, resources
from mutiny.faults.base import Availability, Fault

_HERE = network.Party("api", "127.0.0.1", 8080)

_IN_A_BOX: dict[str, Callable[[Box], Fault]] = {
    "disk: full, bytes": lambda box: disk.FillDisk(disk.SmallDisk(box, _home(box))),
    "disk: full, inodes": lambda box: disk.FillDisk(disk.SmallDisk(box, _home(box)), "inodes"),
    "disk: read-only": lambda box: disk.ReadOnly(box, _home(box)),
    "disk: permission": lambda box: disk.Forbid(box, _home(box)),
    "disk: lock held (flock)": lambda box: disk.HoldLock(box, _home(box), "flock"),
    "disk: lock held (POSIX)": lambda box: disk.HoldLock(box, _home(box), "posix"),
    "disk: lock held (sqlite)": lambda box: disk.HoldLock(box, _home(box), "sqlite"),
    "file: truncated": lambda box: content.truncate(box.directory),
    "file: junk appended": lambda box: content.append_junk(box.directory),
    "file: bit flipped": lambda box: content.flip_bit(box.directory),
    "file: corrupt": lambda box: content.corrupt(box.directory),
    "file: stale copy": lambda box: content.StaleCopy(box.directory),
    "file: deleted": lambda box: content.DeleteFile(box.directory),
    "network: partition": lambda box: network.Partition(box, _HERE),
    "network: one-way": lambda box: network.Partition(box, _HERE, direction="to"),
    "network: rejected": lambda box: network.Partition(box, _HERE, how="reject"),
    "network: loss": lambda box: network.Partition(box, _HERE, loss=0.1),
    "network: slow link": lambda box: network.SlowLink(box, kilobits_per_s=100),
    "network: delay by the kernel": lambda box: network.SlowLink(box, delay_ms=10),
    "resources: file descriptors": lambda box: resources.LowerLimit(box, 1, 0, "descriptors"),
    "resources: memory": lambda box: resources.LowerLimit(box, 1, 0, "memory"),
    "resources: file size": lambda box: resources.LowerLimit(box, 1, 0, "file_size"),
    "resources: processes": lambda box: resources.LimitProcesses(box),
    "resources: processor quota": lambda box: resources.StarveCpu(box, 0.1, way="cgroup"),
    "resources: processor in turns": lambda box: resources.StarveCpu(box, 0.1, way="signals"),
}
_CLOCK = ("offset", "jump", "drift", "rate", "one worker alone")
_PROXY = ("latency", "slow link", "stall", "one-way stall", "refused", "reset after bytes")


def survey(box: Box) -> tuple[Availability, ...]:
    """What can be done to this box."""
    found = []
    for name, make in _IN_A_BOX.items():
        fault = make(box)
        found.append(Availability(name, fault.technique, fault.why_not()))
    shim = clock.why_no_shim()
    found += [Availability(f"clock: {name}", clock.SkewClock.technique, shim) for name in _CLOCK]
    found += [Availability(f"link: {name}", "TCP fault proxy", None) for name in _PROXY]
    found += [
        Availability(f"model API: {name}", "fake model API", None) for name in MODEL_API_FAULTS
    ]
    return tuple(sorted(found, key=lambda item: item.fault))


def survey_machine() -> tuple[Availability, ...]:
    """What can be done to a box of the strongest technique that this machine has."""
    with (
        tempfile.TemporaryDirectory(prefix="mutiny-doctor-") as directory,
        Box.create(Path(directory) / "boxes" / "box", doubles=False) as box,
    ):
        return survey(box)


def _home(box: Box) -> str:
    return f"{box.inside_root}/home"
