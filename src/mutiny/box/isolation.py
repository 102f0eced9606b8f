"""The ways to put walls around a run, from the strongest to the weakest.

Insight: what matters about a wall is how it falls. With a pid namespace the kernel itself kills
every process of the box when its first process ends, whatever tricks they play; a cgroup can be
killed as a whole; a subreaper can only hunt. Each technique says in one sentence what it
guarantees, and the one that was used is part of the record of a run, so that nobody takes a weak
wall for a strong one.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from mutiny.box.errors import SurvivorsLeft, TechniqueUnavailable
from mutiny.box.mounts import INSIDE, NAMED, mount_arguments
from mutiny.system import procfs
from mutiny.system.processes import handle_ended

if TYPE_CHECKING:
    from collections.abc import Sequence


Network = Literal["host", "none"]

PROBE_LIMIT_S = 5.0
_CGROUP_PREFIX = "mutiny-"


@dataclass(frozen=True, slots=True)
class Walls:
    """What a box asks of a technique."""

    box_id: str
    directory: Path
    network: Network = "none"
    root: str = ""
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Running:
    """Handles of a box that runs: the process that Mutiny started, and the agent (None before its
    hello).
    """

    box_id: str
    outer_pid: int
    outer_handle: int
    agent_pid: int | None = None
    agent_handle: int | None = None


class Technique(Protocol):
    """One way to put walls around a run."""

    @property
    def name(self) -> str:
        """The name under which it is chosen and recorded."""

    @property
    def guarantee(self) -> str:
        """What it promises, in one sentence."""

    @property
    def walls_off_files(self) -> bool:
        """Whether nothing outside the box can be written."""

    @property
    def walls_off_network(self) -> bool:
        """Whether the box can have a network of its own."""

    def probe(self) -> str | None:
        """Try it. Return why this machine cannot do it, or None when it can."""

    def inside_root(self, walls: Walls) -> str:
        """The path of the box directory as the processes inside see it."""

    def prepare(self, walls: Walls) -> None:
        """Make on the host what the walls need before the start."""

    def argv(self, walls: Walls, command: Sequence[str]) -> list[str]:
        """The command line that starts ``command`` behind the walls."""

    def agent_options(self, walls: Walls) -> dict[str, object]:
        """What the in-box agent must know and do for this technique."""

    def kill(self, running: Running, timeout_s: float) -> None:
        """Kill everything behind the walls and prove it; raise SurvivorsLeft otherwise."""

    def clean_up(self, walls: Walls) -> None:
        """Take away what ``prepare`` made. Safe to call twice."""


# --- techniques with a pid namespace --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """An own file system view, own processes, IPC, host name and (by default) network."""

    name: str = "bwrap"
    guarantee: str = (
        "When the box is killed or Mutiny dies, the kernel kills every process of the box; "
        "nothing outside the box can be written."
    )
    walls_off_files: bool = True
    walls_off_network: bool = True

    def probe(self) -> str | None:
        if shutil.which("bwrap") is None:
            return "the program bwrap is not installed (package bubblewrap)"
        arguments = ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
        arguments += ["--unshare-net", "--as-pid-1", "--ro-bind", "/", "/", "--proc", "/proc", "--"]
        return _try_out(["bwrap", *arguments, _true()])

    def inside_root(self, walls: Walls) -> str:
        return f"{NAMED}/{walls.root}" if walls.root else INSIDE

    def prepare(self, walls: Walls) -> None:
        """Nothing to do: the mounts belong to the box and go with it."""

    def argv(self, walls: Walls, command: Sequence[str]) -> list[str]:
        arguments = ["bwrap", "--die-with-parent", "--unshare-pid", "--as-pid-1"]
        arguments += ["--unshare-ipc", "--unshare-uts", "--hostname", "box"]
        if walls.network == "none":
            arguments.append("--unshare-net")
        if os.geteuid() == 0:
            arguments += ["--cap-drop", "ALL"]  # root inside must not be able to open the walls
        mounts = mount_arguments(
            walls.directory,
            inside=self.inside_root(walls),
            read_only=walls.read_only,
            hidden=walls.hidden,
        )
        return [*arguments, *mounts, "--", *command]

    def agent_options(self, walls: Walls) -> dict[str, object]:
        return {"scope": "namespace"}

    def kill(self, running: Running, timeout_s: float) -> None:
        _kill_namespace(running, timeout_s)

    def clean_up(self, walls: Walls) -> None:
        """Nothing to do: the mounts belong to the box and went with it."""


@dataclass(frozen=True, slots=True)
class Unshare:
    """Own processes, IPC, host name and (by default) network, but the host's file system."""

    name: str = "unshare"
    guarantee: str = (
        "When the box is killed or Mutiny dies, the kernel kills every process of the box; "
        "files outside are protected only by the environment and the usual permissions."
    )
    walls_off_files: bool = False
    walls_off_network: bool = True

    def probe(self) -> str | None:
        for program in ("unshare", "setpriv"):
            if shutil.which(program) is None:
                return f"the program {program} is not installed (package util-linux)"
        return _try_out([*_unshare_argv("none"), _true()])

    def inside_root(self, walls: Walls) -> str:
        return str(_short_link(walls.box_id))

    def prepare(self, walls: Walls) -> None:
        _short_link(walls.box_id).symlink_to(walls.directory)

    def argv(self, walls: Walls, command: Sequence[str]) -> list[str]:
        return [*_unshare_argv(walls.network), *command]

    def agent_options(self, walls: Walls) -> dict[str, object]:
        own_network = walls.network == "none"
        return {
            "scope": "namespace",
            "finish_namespaces": True,
            "own_network": own_network,
            "link": str(_short_link(walls.box_id)),
        }

    def kill(self, running: Running, timeout_s: float) -> None:
        _kill_namespace(running, timeout_s)

    def clean_up(self, walls: Walls) -> None:
        _short_link(walls.box_id).unlink(missing_ok=True)


def _unshare_argv(network: Network) -> list[str]:
    # --kill-child covers only the death of unshare itself; setpriv makes it die with Mutiny.
    # The user keeps its number inside: programs that refuse to be root must not be refused here.
    arguments = ["setpriv", "--pdeathsig", "KILL", "unshare", "--map-current-user", "--keep-caps"]
    arguments += ["--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "--uts"]
    return [*arguments, *(["--net"] if network == "none" else []), "--"]


def _kill_namespace(running: Running, timeout_s: float) -> None:
    """Kill the first process of the namespace; the kernel ends all others before that one counts as
    ended.
    """
    # Before the hello the first process is known only by its parent.
    below = _handles_below(running.outer_pid) if running.agent_handle is None else []
    known = [] if running.agent_handle is None else [running.agent_handle]
    handles = [*known, running.outer_handle, *below]
    try:
        deadline = time.monotonic() + timeout_s
        for handle in handles:
            _send_kill(handle)
        for handle in handles:
            if not handle_ended(handle, max(0.0, deadline - time.monotonic())):
                pid = running.agent_pid or running.outer_pid
                raise SurvivorsLeft(
                    f"box {running.box_id}: its first process (host pid {pid}) did not end within "
                    f"{timeout_s} s after SIGKILL; look at /proc/{pid}/stack"
                )
    finally:
        for handle in below:
            os.close(handle)


def _handles_below(pid: int) -> list[int]:
    handles = []
    for each in procfs.descendants_of(pid):
        try:
            handles.append(os.pidfd_open(each))
        except ProcessLookupError:
            continue  # ended meanwhile
    return handles


# --- techniques without a pid namespace -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One cgroup (version 2) for the whole box; the host's file system, network and process
    numbers.
    """

    name: str = "cgroup"
    guarantee: str = (
        "When the box is killed, the kernel kills every process of its cgroup; if Mutiny dies, the "
        "in-box agent asks for the same; the host's files, network and processes are in reach."
    )
    walls_off_files: bool = False
    walls_off_network: bool = False

    def probe(self) -> str | None:
        parent = own_cgroup()
        if parent is None:
            return "no cgroup version 2 hierarchy is mounted"
        trial = parent / f"{_CGROUP_PREFIX}probe-{os.getpid()}-{time.monotonic_ns()}"
        try:
            trial.mkdir()
        except OSError as error:
            return f"no cgroup can be made in {parent}: {error.strerror}"
        try:
            if not (trial / "cgroup.kill").exists():
                return "this kernel has no cgroup.kill (Linux 5.14 and later have it)"
        finally:
            trial.rmdir()
        return None

    def inside_root(self, walls: Walls) -> str:
        return str(_short_link(walls.box_id))

    def prepare(self, walls: Walls) -> None:
        _box_cgroup(walls.box_id).mkdir()
        _short_link(walls.box_id).symlink_to(walls.directory)

    def argv(self, walls: Walls, command: Sequence[str]) -> list[str]:
        return list(command)

    def agent_options(self, walls: Walls) -> dict[str, object]:
        group, link = _box_cgroup(walls.box_id), _short_link(walls.box_id)
        return {"scope": "cgroup", "cgroup": str(group), "link": str(link)}

    def kill(self, running: Running, timeout_s: float) -> None:
        group = _box_cgroup(running.box_id)
        deadline = time.monotonic() + timeout_s
        if group.exists():
            (group / "cgroup.kill").write_text("1")
        # The process that Mutiny started may have been stopped before it joined the group.
        _send_kill(running.outer_handle)
        while group.exists() and "populated 1" in (group / "cgroup.events").read_text():
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                left = (group / "cgroup.procs").read_text().split()
                raise SurvivorsLeft(f"box {running.box_id}: still in its cgroup: pids {left}")
            _wait_for_cgroup_event(group, min(0.05, remaining_s))
        if not handle_ended(running.outer_handle, max(0.0, deadline - time.monotonic())):
            raise SurvivorsLeft(f"box {running.box_id}: the agent did not end after SIGKILL")

    def clean_up(self, walls: Walls) -> None:
        _short_link(walls.box_id).unlink(missing_ok=True)
        group = _box_cgroup(walls.box_id)
        if group.exists():
            group.rmdir()


@dataclass(frozen=True, slots=True)
class Subreaper:
    """The agent adopts every orphan of the box; the host's file system, network and process
    numbers.
    """

    name: str = "subreaper"
    guarantee: str = (
        "When the box is killed or Mutiny dies, its process tree is hunted down; what drops its "
        "environment while the agent is dead can escape; the host's files, network and processes "
        "are in reach."
    )
    walls_off_files: bool = False
    walls_off_network: bool = False

    def probe(self) -> str | None:
        own = os.getpid()
        if not Path(f"/proc/{own}/task/{own}/children").exists():
            return "the kernel does not list children in /proc (CONFIG_PROC_CHILDREN)"
        return None

    def inside_root(self, walls: Walls) -> str:
        return str(_short_link(walls.box_id))

    def prepare(self, walls: Walls) -> None:
        _short_link(walls.box_id).symlink_to(walls.directory)

    def argv(self, walls: Walls, command: Sequence[str]) -> list[str]:
        return list(command)

    def agent_options(self, walls: Walls) -> dict[str, object]:
        return {"scope": "subreaper", "link": str(_short_link(walls.box_id))}

    def kill(self, running: Running, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        # The agent stays until its tree is empty: as long as it lives, orphans come back to it.
        procfs.kill_descendants(running.outer_pid, deadline, reap=lambda: None)
        _send_kill(running.outer_handle)
        handle_ended(running.outer_handle, max(0.0, deadline - time.monotonic()))
        # What is left had lost the agent before. Without a common parent one look can miss a
        # process that moves, so that only two empty looks in a row end the hunt.
        empty_looks = 0
        while empty_looks < 2:
            living = [pid for pid in procfs.tagged_with(running.box_id) if procfs.start_ticks(pid)]
            empty_looks = 0 if living else empty_looks + 1
            if living and time.monotonic() > deadline:
                raise SurvivorsLeft(f"box {running.box_id}: still alive: pids {living}")
            for pid in living:
                procfs.kill_by_handle(pid, lambda pid: procfs.has_tag(pid, running.box_id))

    def clean_up(self, walls: Walls) -> None:
        _short_link(walls.box_id).unlink(missing_ok=True)


def own_cgroup() -> Path | None:
    """Return the directory of this process's cgroup in the version 2 hierarchy; None when there is
    none.
    """
    mount_point = None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            mount_point = before.split()[4]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        if mount_point is not None and line.startswith("0::"):
            return Path(mount_point) / line[3:].lstrip("/")
    return None


def _box_cgroup(box_id: str) -> Path:
    parent = own_cgroup()
    if parent is None:
        raise TechniqueUnavailable("no cgroup version 2 hierarchy is mounted")
    return parent / f"{_CGROUP_PREFIX}{box_id}"


def _wait_for_cgroup_event(group: Path, timeout_s: float) -> None:
    with (group / "cgroup.events").open("rb") as file:
        if b"populated 0" in file.read():
            return
        poller = select.poll()
        poller.register(file, select.POLLPRI)
        poller.poll(timeout_s * 1000)


# --- shared ---------------------------------------------------------------------------------------


def _short_link(box_id: str) -> Path:
    """A short path for a box without its own file system: socket names have about 100 bytes."""
    import tempfile

    places = [Path(tempfile.gettempdir()), Path("/tmp")]
    usable = [place for place in places if os.access(place, os.W_OK)]
    return min(usable, key=lambda place: len(str(place))) / f"mutiny-{box_id}"


def _send_kill(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has already ended, which is what we want
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _true() -> str:
    return shutil.which("true") or "/bin/true"


def _try_out(argv: Sequence[str]) -> str | None:
    """Run a command that must succeed; return what it complained about otherwise."""
    import subprocess  # no box needs it: only a trial

    try:
        done = subprocess.run(
            argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=PROBE_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{argv[0]} did not end within {PROBE_LIMIT_S} s"
    except OSError as error:
        return f"{argv[0]} could not be started: {error.strerror}"
    if done.returncode == 0:
        return None
    complaint = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    return complaint[-1] if complaint else f"{argv[0]} ended with {done.returncode}"


TECHNIQUES: tuple[Technique, ...] = (Bubblewrap(), Unshare(), ControlGroup(), Subreaper())


@functools.cache
def why_not(name: str) -> str | None:
    """Probe a technique once per process; return why it is not available, or None."""
    found = next((each for each in TECHNIQUES if each.name == name), None)
    if found is None:
        return f"there is none of that name; known: {', '.join(each.name for each in TECHNIQUES)}"
    return found.probe()


def proved_by_start(preferred: str | None = None) -> Technique | None:
    """The technique that would be chosen, untried, where its start proves all that a trial would.

    Bubblewrap builds a box's walls before it starts anything, or says why it cannot: to try it out first
    costs every box as much as its walls. None: choose by trial.
    """
    strongest = TECHNIQUES[0]
    asked = preferred in (None, strongest.name)
    return strongest if asked and shutil.which(strongest.name) is not None else None


def choose(preferred: str | None = None) -> Technique:
    """Return the strongest technique of this machine, or the preferred one if the machine can do
    it.
    """
    if preferred is not None:
        wanted = next((each for each in TECHNIQUES if each.name == preferred), None)
        if wanted is None:
            known = ", ".join(each.name for each in TECHNIQUES)
            raise TechniqueUnavailable(f"unknown box technique {preferred!r}; known: {known}")
        reason = why_not(wanted.name)
        if reason is not None:
            raise TechniqueUnavailable(
                f"the box technique {preferred!r} was asked for, but this machine cannot do it: "
                f"{reason}"
            )
        return wanted
    for technique in TECHNIQUES:
        if why_not(technique.name) is None:
            return technique
    reasons = "; ".join(f"{each.name}: {why_not(each.name)}" for each in TECHNIQUES)
    raise TechniqueUnavailable(
        f"this machine cannot build any box ({reasons}); apt install bubblewrap"
    )
