"""A container engine of its own for one box: started, killed and brought back by Mutiny, and gone with it.

An engine serves paths and processes of the machine that it runs on, so it is given walls of its
own that show it the box at the same place, and of the rest only what can be read. Its data, sockets and
mounts lie in those walls: whatever happens to it, the kernel takes all of that away with them. It has to
be as mighty as root inside of them, which a program that asks it for a privileged container is, too: it
is for targets whose containers are known.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL

from mutiny.box.box import Box
from mutiny.box.errors import BoxError
from mutiny.box.isolation import Bubblewrap, Walls, why_not
from mutiny.box.mounts import INSIDE, SOURCE_ROOT, is_below, mount_arguments
from mutiny.box.results import CommandResult, Spawned

PLACE = "engine"
"""The directory of the box in which its socket lies."""
SOCKET = f"{INSIDE}/{PLACE}/socket"
IMAGE = "localhost/mutiny-agent:local"
START_LIMIT_S = 60.0
ASK_LIMIT_S = 30.0
POLL_S = 0.05
_CGROUPS = Path("/sys/fs/cgroup")
_OWN = (Path("/etc/docker"),)
"""Where engines keep a key or a setting of the machine: each has an empty one of its own."""
_PREFIX = "mutiny-engine-"
_TOP = ("bin", "sbin", "lib", "lib32", "lib64")


class EngineUnavailable(BoxError):
    """No container engine can run here; the text says why."""


@dataclass(frozen=True)
class Kind:
    """One sort of engine: what it needs, and how it is spoken to."""

    name: str
    programs: tuple[str, ...]
    daemon: tuple[str, ...]
    client: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Written into the directory of the socket before it starts."""
    environment: Mapping[str, str] = field(default_factory=dict)


DOCKER = Kind(
    "docker",
    ("dockerd", "containerd", "runc", "docker"),
    (
        *("dockerd", "-H", f"unix://{SOCKET}", "-p", "/run/d.pid"),
        *("--data-root", "/run/data", "--exec-root", "/run/exec", "--storage-driver=vfs"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"),
        "--live-restore",  # containers outlive it, as they do on a machine that is taken care of
    ),
    ("docker", "-H", f"unix://{SOCKET}"),
)
PODMAN = Kind(
    "podman",
    ("podman", "conmon", "runc"),
    (
        *("podman", "--root", "/run/data", "--runroot", "/run/exec", "--tmpdir", "/run/podman"),
        *("--storage-driver=vfs", "system", "service", "--time=0", f"unix://{SOCKET}"),
    ),
    ("podman", "--remote", "--url", f"unix://{SOCKET}"),
    {
        "containers.conf": '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'
        '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        '[network]\nnetwork_config_dir = "/run/networks"\n'
    },
    {"CONTAINERS_CONF": f"{INSIDE}/{PLACE}/containers.conf", "HOME": "/run", "TMPDIR": "/run"},
)
KINDS = (DOCKER, PODMAN)


@dataclass(frozen=True, slots=True)
class EngineWalls(Bubblewrap):
    """The box's own view of the machine, with the rights to make containers."""

    name: str = "engine"
    guarantee: str = (
        "When the engine is closed or Mutiny dies, the kernel kills it and its containers."
    )

    def argv(self, walls: Walls, command: Sequence[str]) -> list[str]:
        arguments = ["bwrap", "--die-with-parent", "--unshare-pid", "--as-pid-1"]
        arguments += ["--unshare-ipc", "--unshare-uts", "--hostname", "engine", "--unshare-net"]
        mounts = mount_arguments(
            walls.directory, inside=self.inside_root(walls), read_only=walls.read_only
        )
        groups = ["--dev-bind", str(_CGROUPS), str(_CGROUPS)]
        own = [word for place in _OWN if place.is_dir() for word in ("--tmpfs", str(place))]
        return [*arguments, "--cap-add", "ALL", *mounts, *groups, *own, "--", *command]

    def clean_up(self, walls: Walls) -> None:
        """Groups of processes are the only thing that does not go with the walls."""
        for place in _groups(_group(walls.box_id)):
            _remove_groups(place)


def _group(box_id: str) -> str:
    """Who made it stands in its name: a Mutiny that was killed takes no group away."""
    return f"{_PREFIX}{os.getpid()}-{box_id}"


def _groups(pattern: str) -> Iterator[Path]:
    """The groups of this name, in every hierarchy that there is."""
    yield from _CGROUPS.glob(pattern)
    yield from _CGROUPS.glob(f"*/{pattern}")


def _remove_groups(place: Path) -> None:
    """A group and those below it; they are empty, for everybody in them is dead."""
    for below in place.glob("*/"):
        _remove_groups(below)
    place.rmdir()


def remove_stale_groups() -> None:
    """Those that a killed Mutiny has left: the kernel removes none that is still in use."""
    for place in _groups(f"{_PREFIX}*"):
        owner = place.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                _remove_groups(place)


class Engine:
    """One engine beside one box, from its start to its end."""

    def __init__(self, box: Box, read_only: Sequence[Path] = (), kind: Kind | None = None) -> None:
        if box.technique != Bubblewrap().name:
            raise EngineUnavailable(
                f"a box of the kind {box.technique} shows an engine other paths"
            )
        self.kind = kind or _found()
        remove_stale_groups()
        walls = Walls(
            os.urandom(6).hex(), box.directory, root=_root_of(box), read_only=tuple(read_only)
        )
        self.group = f"/{_group(walls.box_id)}"
        place = box.files / PLACE
        place.mkdir(exist_ok=True)
        for name, text in self.kind.files.items():
            (place / name).replace_bytes(text.encode())
        self._log = place / "log"
        self._home = Box(walls, EngineWalls(), {})
        self._daemon: Spawned | None = None
        try:
            self._home.start({"doubles": False, "source": False})
            self._home.finish({"doubles": False, "source": False})
            self.start()
            self._checked("import", "-", IMAGE, stdin=image())
        except BaseException:
            self.close()
            raise

    @property
    def client(self) -> tuple[str, ...]:
        """The command line that speaks to it, in the box."""
        return self.kind.client

    @property
    def options(self) -> tuple[str, ...]:
        """What a container needs to run the box's doubles, as words of `create`."""
        mounts = [word for path in _shown() for word in ("-v", f"{path}:{path}:ro")]
        return ("--cgroup-parent", self.group, *mounts)

    @property
    def out(self) -> bool:
        """Is it away?"""
        return self._daemon is None

    def start(self) -> None:
        """Start it, or bring it back, and wait until it answers."""
        before = self._log.read_said() if self._log.exists() else ""
        self._daemon = self._home.spawn(
            self.kind.daemon,
            output=f"{INSIDE}/{PLACE}/log",
            cwd="/run",
            env=self.kind.environment,
        )
        deadline = time.monotonic() + START_LIMIT_S
        while self.ask("version").exit_code != 0:
            ended = self._home.wait_ended(self._daemon, POLL_S)
            if ended is None and time.monotonic() < deadline:
                continue
            said = self._log.read_said()[len(before) :].strip().splitlines()
            how = "ended" if ended is not None else "does not answer"
            raise EngineUnavailable(f"{self.kind.daemon[0]} {how}: {said[-1] if said else ''}")

    def kill(self) -> bool:
        """The engine dies, and its containers live on. False: it was away already."""
        daemon, self._daemon = self._daemon, None
        if daemon is None:
            return False
        hit = self._home.signal(daemon.pid, daemon.start, SIGKILL).delivered
        self._home.wait_ended(daemon, ASK_LIMIT_S)
        return hit

    def ask(self, *words: str, stdin: bytes = b"") -> CommandResult:
        """One command of its client."""
        return self._home.run(
            (*self.client, *words),
            cwd="/run",
            env=self.kind.environment,
            stdin=stdin,
            timeout_s=ASK_LIMIT_S,
        )

    def close(self) -> None:
        """End it and all of its containers. Safe to call twice."""
        self._daemon = None
        self._home.close()

    def _checked(self, *words: str, stdin: bytes = b"") -> None:
        done = self.ask(*words, stdin=stdin)
        if done.exit_code != 0:
            raise EngineUnavailable(f"{' '.join(words)}: {done.stderr.strip()}")


def _root_of(box: Box) -> str:
    """The name that was given to the box."""
    return "" if box.inside_root == INSIDE else Path(box.inside_root).name


def _found() -> Kind:
    """The first sort of engine whose programs are there."""
    trouble = why_not(Bubblewrap().name)
    if trouble is not None:
        raise EngineUnavailable(trouble)
    if os.geteuid() != 0:
        raise EngineUnavailable("a private container engine needs root")
    missing = {kind.name: [one for one in kind.programs if not shutil.which(one)] for kind in KINDS}
    for kind in KINDS:
        if not missing[kind.name]:
            return kind
    told = "; ".join(f"{name}: {', '.join(lacks)}" for name, lacks in missing.items())
    raise EngineUnavailable(f"no container engine is installed (not found: {told})")


def image() -> bytes:
    """The image of all containers, as a tar: only the places at which the machine's own programs appear."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in ("usr", "etc", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name in _TOP:
            place = Path("/", name)
            if place.is_symlink():
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, str(place.readlink())
                tar.addfile(link)
    return made.getvalue()


def _shown() -> Iterator[Path]:
    """What a double needs to see: the system's programs, Python, and Mutiny."""
    python = Path(sys.executable).resolve()
    wanted = [Path("/usr"), *(Path("/", name) for name in _TOP), Path("/etc/ld.so.cache")]
    wanted += [Path(sys.base_prefix).resolve(), python.parent, SOURCE_ROOT]
    kept: list[Path] = []
    for path in wanted:
        known = any(is_below(path, earlier) for earlier in kept)
        if path.exists() and not known and not (path.is_symlink() and path.parent == Path("/")):
            kept.append(path)
    yield from kept


def trial(box: Box) -> str | None:
    """Start an engine beside a box and run a container in it: why that cannot be done, or None."""
    try:
        engine = Engine(box)
    except (BoxError, OSError) as error:
        return str(error)
    try:
        words = ("run", "--rm", "--network", "none", *engine.options, IMAGE, "true")
        done = engine.ask(*words)
        return None if done.exit_code == 0 else f"no container starts: {done.stderr.strip()}"
    finally:
        engine.close()
