"""What this machine can do, found out by trying it: the probes behind ``mutiny doctor``.

Insight: a program that is installed proves nothing (kernels, containers and security modules say no
in many ways), so each probe does the real thing in miniature and keeps the complaint. A probe never
raises: a probe that fails in a new way is itself an answer, "not available", with the reason.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutiny.box.isolation import Bubblewrap, ControlGroup, own_cgroup
from mutiny.system.inotify import DirectoryWatch
from mutiny.system.machine import cores

COMMAND_LIMIT_S = 5.0
DOCKER_LIMIT_S = 0.04
_PR_GET_CHILD_SUBREAPER = 37
_SECCOMP_CALL = {"x86_64": 317, "aarch64": 277, "riscv64": 277}
_SECCOMP_GET_ACTION_AVAIL, _SECCOMP_GET_NOTIF_SIZES = 2, 3
_SECCOMP_RET_USER_NOTIF = 0x7FC0_0000
_LIBRARY_ROOTS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib")


@dataclass(frozen=True, slots=True)
class Probe:
    """The answer of one probe."""

    name: str
    available: bool
    detail: str
    """The version or the way it was proved when available; otherwise why not."""
    duration_ms: float
    what_for: str


class _Missing(Exception):
    """Raised inside a probe: the ability is not there, for this reason."""


def _run(argv: list[str], cwd: str | None = None) -> str:
    """Run a command of a probe and return its output; raise _Missing with its complaint."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise _Missing(f"the program {argv[0]} is not installed") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "backslashreplace").strip()
        raise _Missing(said.splitlines()[-1] if said else f"exit code {done.returncode}")
    return done.stdout.decode("utf-8", "backslashreplace").strip()


def _need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise _Missing(f"the program {program} is not installed (package {package})")


def _in_user_namespace(script: str, *options: str, cwd: str | None = None) -> str:
    _need("unshare", "util-linux")
    return _run(["unshare", "--map-root-user", *options, "sh", "-c", script], cwd)


def _bubblewrap() -> str:
    reason = Bubblewrap().probe()
    if reason is not None:
        raise _Missing(reason)
    return _run(["bwrap", "--version"])


def _user_namespace() -> str:
    _in_user_namespace("exit 0")
    return "made one with unshare"


def _network_namespace() -> str:
    look = "grep -q 127.0.0.1 /proc/self/net/fib_trie"
    if Bubblewrap().probe() is None:
        _run(["bwrap", "--unshare-net", "--ro-bind", "/", "/", "sh", "-c", look])
        return "own loopback address with bwrap"
    _need("ip", "iproute2")
    _in_user_namespace(f"ip link set lo up && {look}", "--net")
    return "own loopback address with unshare"


def _cgroup_kill() -> str:
    reason = ControlGroup().probe()
    parent = own_cgroup()
    if reason is not None or parent is None:
        raise _Missing(reason or "no cgroup version 2 hierarchy is mounted")
    group = parent / f"mutiny-doctor-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        with subprocess.Popen(["sleep", "60"]) as sleeper:
            try:
                (group / "cgroup.procs").write_text(str(sleeper.pid))
                (group / "cgroup.kill").write_text("1")
                ended = sleeper.wait(COMMAND_LIMIT_S)
            finally:
                sleeper.kill()
    finally:
        group.rmdir()
    if ended != -signal.SIGKILL:
        raise _Missing(f"cgroup.kill ended a process with {ended} instead of SIGKILL")
    return f"killed a process in {parent}"


def _subreaper() -> str:
    answer = ctypes.c_int(-1)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) != 0:
        raise _Missing(f"prctl: {os.strerror(ctypes.get_errno())}")
    return "prctl answers"


def _seccomp_notify() -> str:
    number = _SECCOMP_CALL.get(platform.machine())
    if number is None:
        raise _Missing(f"the number of the system call is not known for {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    action = ctypes.c_uint32(_SECCOMP_RET_USER_NOTIF)
    if libc.syscall(number, _SECCOMP_GET_ACTION_AVAIL, 0, ctypes.byref(action)) != 0:
        raise _Missing(f"user notification: {os.strerror(ctypes.get_errno())}")
    sizes = (ctypes.c_uint16 * 3)()
    if libc.syscall(number, _SECCOMP_GET_NOTIF_SIZES, 0, ctypes.byref(sizes)) != 0:
        raise _Missing(f"notification sizes: {os.strerror(ctypes.get_errno())}")
    return f"the kernel offers user notification ({sizes[0]} and {sizes[1]} bytes)"


def _overlayfs() -> str:
    with tempfile.TemporaryDirectory(prefix="mutiny-doctor-") as directory:
        _in_user_namespace(
            "mkdir lower upper work merged && mount -t overlay overlay -o "
            "lowerdir=lower,upperdir=upper,workdir=work,userxattr merged && : > merged/file",
            "--mount",
            cwd=directory,
        )
        # The kernel leaves a directory without permissions in the work directory.
        for left in (Path(directory) / "work").iterdir():
            left.chmod(0o700)
    return "mounted one in a user namespace"


def _nftables() -> str:
    _need("nft", "nftables")
    _in_user_namespace("nft add table inet mutiny", "--net")
    return "added a table in a network namespace"


def _netem() -> str:
    _need("tc", "iproute2")
    _in_user_namespace("tc qdisc add dev lo root netem delay 1ms", "--net")
    return "delayed a network namespace"


def _fuse() -> str:
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        raise _Missing(f"/dev/fuse: {error.strerror}") from None
    return "opened /dev/fuse"


def _c_compiler() -> str:
    _need("cc", "gcc")
    return _run(["cc", "--version"]).partition("\n")[0]


def _pidfd() -> str:
    handle = os.pidfd_open(os.getpid())
    try:
        signal.pidfd_send_signal(handle, 0)
    finally:
        os.close(handle)
    return "reached this process through a handle"


def _inotify() -> str:
    with (
        tempfile.TemporaryDirectory(prefix="mutiny-doctor-") as directory,
        DirectoryWatch([Path(directory)]) as watch,
    ):
        if watch.polling_because is not None:
            raise _Missing(watch.polling_because)
        (Path(directory) / "file").touch()
        if not watch.wait(1.0):
            raise _Missing("a new file was not reported within 1 s")
    return "saw a file appear"


def _tmux() -> str:
    _need("tmux", "tmux")
    return _run(["tmux", "-V"])


def _git() -> str:
    _need("git", "git")
    return _run(["git", "--version"])


def _docker() -> str:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        raise _Missing(f"DOCKER_HOST is {host}; only a unix socket is tried")
    path = host.removeprefix("unix://")
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(DOCKER_LIMIT_S)
        try:
            line.connect(path)
            line.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            answer = line.recv(256)
        except OSError as error:
            raise _Missing(f"{path}: {error.strerror or error}") from None
    if b" 200 " not in answer:
        raise _Missing(f"{path} answered {answer[:40]!r}")
    return f"the daemon at {path} answers"


def _libfaketime() -> str:
    for root in _LIBRARY_ROOTS:
        for pattern in ("libfaketime*.so*", "*/libfaketime*.so*", "*/faketime/libfaketime.so*"):
            found = next(Path(root).glob(pattern), None)
            if found is not None:
                return f"{found} (only looked for, not tried)"
    raise _Missing("the library libfaketime is not installed (package libfaketime)")


_PROBES: tuple[tuple[str, Callable[[], str], str], ...] = (
    ("bwrap", _bubblewrap, "the strongest box: own processes, files and network"),
    ("user_namespace", _user_namespace, "the second strongest box, and everything below it"),
    ("network_namespace", _network_namespace, "a network of its own for each run"),
    ("cgroup_kill", _cgroup_kill, "the third strongest box"),
    ("subreaper", _subreaper, "the weakest box, where nothing else works"),
    ("seccomp_notify", _seccomp_notify, "crash points, errno, torn and slow writes, schedules"),
    ("overlayfs", _overlayfs, "branching many runs from one prepared state"),
    ("nftables", _nftables, "partitions and dropped packets"),
    ("netem", _netem, "latency and loss made by the kernel"),
    ("fuse", _fuse, "hung and failing file systems"),
    ("c_compiler", _c_compiler, "building the clock shim"),
    ("pidfd", _pidfd, "signals that can never hit the wrong process"),
    ("inotify", _inotify, "waits that wake at the change instead of polling"),
    ("tmux", _tmux, "targets that keep their agents in tmux, longboat among them"),
    ("git", _git, "every run: work is followed through git"),
    ("docker", _docker, "targets that run in containers"),
    ("libfaketime", _libfaketime, "a fallback for wall-clock offsets of short commands"),
)


def _probe(name: str, attempt: Callable[[], str], what_for: str) -> Probe:
    started = time.monotonic()
    try:
        available, detail = True, attempt()
    except _Missing as reason:
        available, detail = False, str(reason)
    except Exception as error:  # noqa: BLE001 - a probe never raises; its failure is the answer
        available, detail = False, f"the probe itself failed: {type(error).__name__}: {error}"
    return Probe(name, available, detail, (time.monotonic() - started) * 1000, what_for)


def probe_all() -> tuple[Probe, ...]:
    """Try everything and return the answers in a fixed order."""
    workers = max(2, cores())
    with ThreadPoolExecutor(workers, thread_name_prefix="probe") as pool:
        return tuple(pool.map(lambda probe: _probe(*probe), _PROBES))
