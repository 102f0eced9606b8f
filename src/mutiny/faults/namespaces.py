"""Reaching into a box from outside: its network, its mounts, and the host's number of one of its
processes.

Insight: a box owns nothing inside (no capability, not even as root), but whoever made its user
namespace may enter it with full rights. The kernel names the owner of a network or mount namespace
(NS_GET_USERNS), so a small helper process enters first that owner and then the namespace. That
works for a plain user exactly as for root, and needs no cooperation and no privilege inside the
box.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mutiny.box.box import Box
from mutiny.errors import BoxError
from mutiny.faults.base import FaultUnavailable
from mutiny.system import procfs
from mutiny.system.files import BoxPath
from mutiny.system.processes import is_alive

Namespace = Literal["net", "mnt", "pid"]
HELPER_LIMIT_S = 10.0
_PROC = Path("/proc")

_ENTER = """
import ctypes, fcntl, json, os, sys
order = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)

def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        print(what + ": " + os.strerror(number), file=sys.stderr)
        sys.exit(100 + number if number < 100 else 100)

kinds = order["namespaces"]
files = [os.open("/proc/%d/ns/%s" % (order["pid"], kind), os.O_RDONLY) for kind in kinds]
owner = fcntl.ioctl(files[0], 0xB701)
if os.fstat(owner).st_ino != os.stat("/proc/self/ns/user").st_ino:
    check(libc.setns(owner, 0), "cannot enter the user namespace that owns it")
for file, kind in zip(files, kinds):
    check(libc.setns(file, 0), "cannot enter the namespace " + kind)
"""

_THEN_EXECUTE = """
argv = order["argv"]
try:
    os.execvp(argv[0], argv)
except OSError as error:
    sys.exit("cannot execute %s: %s" % (argv[0], error.strerror))
"""

_THEN_MOUNT = """
def text(value):
    return None if value is None else os.fsencode(value)

for step in order["steps"]:
    what = step["do"] + " " + step["path"]
    path = text(step["path"])
    if step["do"] == "mount":
        source, kind, data = text(step["source"]), text(step["kind"]), text(step["data"])
        check(libc.mount(source, path, kind, ctypes.c_ulong(step["flags"]), data), what)
    elif step["do"] == "unmount":
        check(libc.umount2(path, step["flags"]), what)
    else:
        wanted = (ctypes.c_uint64 * 4)(step["set"], step["clear"], 0, 0)
        check(libc.syscall(ctypes.c_long(442), ctypes.c_int(-100), path, ctypes.c_uint(0),
                           ctypes.byref(wanted), ctypes.c_size_t(32)), what)
"""


@dataclass(frozen=True, slots=True)
class MountStep:
    """One change of the mounts of a box; `path` is as the box sees it."""

    do: Literal["mount", "unmount", "attributes"]
    path: str
    source: str | None = None
    kind: str | None = None
    data: str | None = None
    flags: int = 0
    set: int = 0
    clear: int = 0


class MountRefused(BoxError):
    """The kernel refused a change of the mounts; `errno` says why."""

    def __init__(self, text: str, errno: int | None) -> None:
        super().__init__(text)
        self.errno = errno


def shared_with_host(box: Box, namespace: Namespace) -> bool:
    """Whether the box has no namespace of its own of this kind."""
    theirs = Path(f"/proc/{agent_pid(box)}/ns/{namespace}").stat()
    ours = Path(f"/proc/self/ns/{namespace}").stat()
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


def why_no_namespace(box: Box, namespace: Namespace) -> str | None:
    """Why the namespace of the box cannot be changed; None when it can."""
    name = {"net": "network", "mnt": "mount", "pid": "pid"}[namespace]
    if shared_with_host(box, namespace):
        return f"the box ({box.technique}) has no {name} namespace of its own"
    return None


def execute_in(
    box: Box, namespaces: Sequence[Namespace], argv: Sequence[str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a program of the host inside namespaces of the box, with full rights over them."""
    order = {"pid": agent_pid(box), "namespaces": list(namespaces), "argv": list(argv)}
    return _help(_ENTER + _THEN_EXECUTE, order, stdin)


def change_mounts(box: Box, steps: Iterable[MountStep]) -> None:
    """Change the mounts that the processes of the box see; raises MountRefused."""
    reason = why_no_namespace(box, "mnt")
    if reason is not None:
        raise FaultUnavailable(reason)  # otherwise the host itself would be changed
    plain = [
        {name: getattr(step, name) for name in MountStep.__dataclass_fields__} for step in steps
    ]
    order = {"pid": agent_pid(box), "namespaces": ["mnt"], "steps": plain}
    done = _help(_ENTER + _THEN_MOUNT, order, "")
    if done.returncode != 0:
        number = done.returncode - 100 if done.returncode > 100 else None
        raise MountRefused(done.stderr.strip() or f"exit code {done.returncode}", number)


def help_in(
    box: Box, namespaces: Sequence[Namespace], program: str, order: Mapping[str, object]
) -> subprocess.CompletedProcess[str]:
    """Run a few lines of Python inside namespaces of the box, with full rights over them; they find what
    they need in `order`.
    """
    whole = {**order, "pid": agent_pid(box), "namespaces": list(namespaces)}
    return _help(_ENTER + program, whole, "")


def _help(program: str, order: dict[str, object], stdin: str) -> subprocess.CompletedProcess[str]:
    python = str(Path(sys.executable).resolve())
    return subprocess.run(
        [python, "-IS", "-c", program, json.dumps(order)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=HELPER_LIMIT_S,
        check=False,
    )


def agent_pid(box: Box) -> int:
    """The host's pid of the box's first process, which lives as long as the box."""
    pid = box.agent_host_pid
    if pid is None:
        raise BoxError(f"the box {box.box_id} does not run")
    return pid


def without_links(box: Box, inside: str) -> str:
    """The same path of the box without the short link that some techniques put in front of it."""
    return str(box.outside(inside).host) if Path(box.inside_root).is_symlink() else inside


def seen_by_box(box: Box, inside: str) -> BoxPath:
    """What the box itself sees at `inside`, mounts of its own included."""
    return BoxPath(f"{_PROC}/{agent_pid(box)}/root") / without_links(box, inside)


def host_pid(box: Box, pid: int, start: int) -> int | None:
    """The host's number of a process of the box, which is named by pid and start time as the box
    sees them.
    """
    agent = agent_pid(box)
    own = _namespace_id(os.getpid())
    theirs = _namespace_id(agent)
    if own == theirs:
        return pid if is_alive(pid, start) else None
    for entry in os.listdir(_PROC):  # noqa: PTH208
        if not entry.isdigit() or procfs.start_ticks(int(entry)) != start:
            continue
        number = int(entry)
        if _number_inside(number) == pid and _namespace_id(number) == theirs:
            return number
    return None


def _namespace_id(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}/ns/pid").stat().st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None  # ended, or a stranger's


def _number_inside(pid: int) -> int | None:
    try:
        text = (_PROC / str(pid) / "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    for line in text.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None
