"""The in-box agent: starts commands inside the box on request and reports how they ended.

Insight: it is the first process of the box and sees every child end, so one single-threaded loop
over descriptors answers everything: no thread, no lock, no lost exit status. It runs in an isolated
interpreter (``python -IS``): standard library only, besides ``system.procfs`` and
``system.wire``, and few imports because each box pays for them. When its connection closes, Mutiny is
gone, and the agent takes the box with it.

Messages are JSON behind a 4-byte big-endian length; bytes travel as base64. Each request has ``id``
and ``op`` (``run spawn signal processes wait_gone ping``); each answer has the same ``id`` and
either ``error`` or the fields of its operation. Messages with ``event`` instead of ``id`` come
unasked (``hello``, ``exit``).
"""

from __future__ import annotations

import errno
import os
import select
import time

from mutiny.box.lean_json import dumps, loads
from mutiny.system.procfs import (
    descendants_of,
    environment_has,
    kill_descendants,
    open_descriptors,
    process_row,
    read_stat,
    start_ticks,
    tagged_with,
)
from mutiny.system.wire import first_message, framed, packed, unpacked

TYPE_CHECKING = (
    False  # the real one would import typing, which costs more than the rest of this module
)
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable
    from typing import Any
else:
    import _signal as signal  # the public module makes enumerations of its numbers, at a price

TARGET_MARK = b"MUTINY_TARGET"
OUTPUT_LIMIT_BYTES = 4 * 1024 * 1024
QUIET_AFTER_EXIT_S = 0.05
DRAIN_LIMIT_S = 2.0
STUCK_LIMIT_S = 2.0
KILL_LIMIT_S = 10.0
_CHUNK_BYTES = 65536
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR
_WRITABLE = select.POLLOUT | select.POLLHUP | select.POLLERR
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)
_DEFAULT_IN_CHILDREN = (*_IGNORED, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1


# --- one command in flight ------------------------------------------------------------------------


class Stream:
    """One output pipe of a command: keeps the first megabytes, throws the rest away."""

    __slots__ = ("chunks", "descriptor", "is_open", "keep", "size", "truncated")

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.chunks: list[bytes] = []
        self.size = 0
        self.truncated = False
        self.is_open = True
        self.keep = True

    def take(self, data: bytes) -> None:
        """Add what was read, up to the limit."""
        room = OUTPUT_LIMIT_BYTES - self.size
        if self.keep and room > 0:
            self.chunks.append(data[:room])
            self.size += min(len(data), room)
        if self.keep and len(data) > room:
            self.truncated = True


class Command:
    """One ``run`` request between start and answer."""

    __slots__ = (
        "answered",
        "ended_at",
        "identity",
        "last_data_at",
        "pid",
        "start",
        "started_at",
        "status",
        "stdin",
        "streams",
        "timed_out",
    )

    def __init__(
        self, identity: int, pid: int, start: int, stdin: bytes, streams: list[Stream]
    ) -> None:
        self.identity = identity
        self.pid = pid
        self.start = start
        self.stdin = memoryview(stdin)
        self.streams = streams
        self.started_at = time.monotonic()
        self.ended_at: float | None = None
        self.last_data_at = self.started_at
        self.status: int | None = None
        self.timed_out = False
        self.answered = False


def exit_fields(status: int | None) -> dict[str, int | None]:
    """Translate a wait status to ``exit_code`` or ``signal``; both null when it is not known."""
    if status is None:
        return {"exit_code": None, "signal": None}
    if os.WIFSIGNALED(status):
        return {"exit_code": None, "signal": os.WTERMSIG(status)}
    return {"exit_code": os.WEXITSTATUS(status), "signal": None}


def find_program(name: str, environment: dict[str, str]) -> str:
    """Return the path to execute for ``name``, searched in the command's own PATH."""
    if "/" in name:
        return name
    for directory in environment.get("PATH", os.defpath).split(":"):
        candidate = f"{directory or '.'}/{name}"
        if os.access(candidate, os.X_OK) and not os.path.isdir(candidate):
            return candidate
    raise FileNotFoundError(errno.ENOENT, "no such program on PATH", name)


# --- the loop -------------------------------------------------------------------------------------


class Agent:
    """The loop: one connection to Mutiny, many children."""

    def __init__(self, connection: int, options: dict[str, Any]) -> None:
        self.connection = connection
        self.scope: str = options["scope"]
        self.cgroup: str | None = options.get("cgroup")
        self.link: str | None = options.get("link")
        self.box_id = os.environ["MUTINY_BOX"]
        self.environment = dict(os.environ)
        self.poller = select.poll()
        self.handlers: dict[int, Callable[[int], None]] = {}
        self.timers: list[tuple[float, int, Callable[[], None]]] = []
        self.timer_count = 0
        self.incoming = bytearray()
        self.outgoing = bytearray()
        self.commands: dict[int, Command] = {}
        self.spawned: dict[int, int] = {}

    def serve(self) -> None:
        """Say hello, then answer until the connection closes."""
        os.set_inheritable(self.connection, False)
        os.set_blocking(self.connection, False)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self.watch(wake_read, _READABLE, self.child_ended)
        self.watch(self.connection, _READABLE, self.control)
        self.send({"event": "hello", "pid": os.getpid(), "start": start_ticks(os.getpid())})
        while True:
            for descriptor, _ in self.poller.poll(self.next_timeout_ms()):
                handler = self.handlers.get(descriptor)
                if handler is not None:  # an earlier handler of this round may have closed it
                    handler(descriptor)
            while self.timers and self.timers[0][0] <= time.monotonic():
                self.timers.pop(0)[2]()

    def watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> None:
        self.handlers[descriptor] = handler
        self.poller.register(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor and close it."""
        del self.handlers[descriptor]
        self.poller.unregister(descriptor)
        os.close(descriptor)

    def after(self, delay_s: float, action: Callable[[], None]) -> None:
        self.timer_count += 1
        self.timers.append((time.monotonic() + delay_s, self.timer_count, action))
        self.timers.sort()  # they are few, and a heap would have to be loaded

    def next_timeout_ms(self) -> float | None:
        if not self.timers:
            return None
        return max(0.0, (self.timers[0][0] - time.monotonic()) * 1000)

    # messages

    def send(self, message: dict[str, Any]) -> None:
        self.outgoing += framed(dumps(message))
        self.flush()

    def flush(self) -> None:
        try:
            while self.outgoing:
                sent = os.write(self.connection, self.outgoing[: 16 * _CHUNK_BYTES])
                del self.outgoing[:sent]
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            self.end()
        wanted = _READABLE | (select.POLLOUT if self.outgoing else 0)
        self.poller.modify(self.connection, wanted)

    def control(self, descriptor: int) -> None:
        if self.outgoing:
            self.flush()
        try:
            data = os.read(descriptor, 16 * _CHUNK_BYTES)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.end()
        self.incoming += data
        while (request := first_message(self.incoming)) is not None:
            self.answer(loads(request))

    def answer(self, request: dict[str, Any]) -> None:
        operations: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "run": self.run,
            "spawn": self.spawn,
            "signal": self.signal,
            "processes": self.processes,
            "wait_gone": self.wait_gone,
            "ping": lambda request: {},
        }
        try:
            fields = operations[request["op"]](request)
        except OSError as error:
            fields = {"error": error.strerror or str(error), "errno": error.errno}
            fields["file"] = error.filename
        except Exception as error:  # noqa: BLE001 - told to Mutiny, which raises it there
            fields = {"error": f"{type(error).__name__}: {error}", "errno": None, "file": None}
        if fields is not None:  # None: the answer comes later
            self.send({"id": request["id"], **fields})

    # run and spawn

    def start_process(
        self, request: dict[str, Any], actions: list[tuple[Any, ...]]
    ) -> tuple[int, int]:
        """Start a program in its own session; return its pid and start time."""
        environment = {**self.environment, "PWD": request["cwd"], **request["env"]}
        argv: list[str] = request["argv"]
        os.chdir(request["cwd"])
        try:
            pid = os.posix_spawn(
                find_program(argv[0], environment),
                argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=_DEFAULT_IN_CHILDREN,
            )
        finally:
            os.chdir("/")  # never hold a directory of the target as our own
        found = read_stat(pid)  # not yet reaped, so it is there even when it has already ended
        return pid, int(found[0][19]) if found else 0

    def run(self, request: dict[str, Any]) -> None:
        stdin = unpacked(request["stdin"])
        ends = [os.pipe() for _ in range(3 if stdin else 2)]
        child_ends = [ends[0][1], ends[1][1], *(pair[0] for pair in ends[2:])]
        own_ends = [ends[0][0], ends[1][0], *(pair[1] for pair in ends[2:])]
        actions: list[tuple[Any, ...]] = [
            (os.POSIX_SPAWN_DUP2, child_ends[2], 0)
            if stdin
            else (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, child_ends[0], 1),
            (os.POSIX_SPAWN_DUP2, child_ends[1], 2),
        ]
        try:
            pid, start = self.start_process(request, actions)
        except BaseException:
            for descriptor in own_ends:
                os.close(descriptor)
            raise
        finally:
            for descriptor in child_ends:
                os.close(descriptor)
        streams = [Stream(own_ends[0]), Stream(own_ends[1])]
        command = Command(request["id"], pid, start, stdin, streams)
        self.commands[pid] = command
        for stream in streams:
            os.set_blocking(stream.descriptor, False)
            self.watch(stream.descriptor, _READABLE, self.reader(command, stream))
        if stdin:
            os.set_blocking(own_ends[2], False)
            self.watch(own_ends[2], _WRITABLE, self.writer(command))
        self.after(request["timeout_s"], lambda: self.time_out(command))

    def spawn(self, request: dict[str, Any]) -> dict[str, Any]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid, start = self.start_process(
            request,
            [
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, request["output"], flags, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
        )
        self.spawned[pid] = start
        return {"pid": pid, "start": start}

    def reader(self, command: Command, stream: Stream) -> Callable[[int], None]:
        def read(descriptor: int) -> None:
            self.read_stream(command, stream)
            self.finish_if_drained(command)

        return read

    def read_stream(self, command: Command, stream: Stream) -> bool:
        """Read once; False when there was nothing to read."""
        try:
            data = os.read(stream.descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        if data:
            command.last_data_at = time.monotonic()
            stream.take(data)
            return True
        stream.is_open = False
        self.forget(stream.descriptor)
        return False

    def writer(self, command: Command) -> Callable[[int], None]:
        def write(descriptor: int) -> None:
            try:
                sent = os.write(descriptor, command.stdin[:_CHUNK_BYTES])
            except BlockingIOError:
                return
            except BrokenPipeError:  # the command does not want the rest: its right
                sent = len(command.stdin)
            command.stdin = command.stdin[sent:]
            if not command.stdin:
                self.forget(descriptor)

        return write

    def time_out(self, command: Command) -> None:
        if command.answered or command.status is not None:
            return
        command.timed_out = True
        # Not reaped yet, so that the number is still its own and there is a group to kill.
        os.killpg(command.pid, signal.SIGKILL)
        self.after(STUCK_LIMIT_S, lambda: self.finish(command))

    def child_ended(self, wakeup: int) -> None:
        try:
            while len(os.read(wakeup, 4096)) == 4096:
                pass
        except BlockingIOError:
            pass
        self.reap()

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            command = self.commands.pop(pid, None)
            if command is not None:
                self.command_ended(command, status)
            start = self.spawned.pop(pid, None)
            if start is not None:
                self.send({"event": "exit", "pid": pid, "start": start, **exit_fields(status)})

    def command_ended(self, command: Command, status: int) -> None:
        command.status = status
        if os.WIFEXITED(status):  # it had ended by itself when its time was up
            command.timed_out = False
        command.ended_at = command.last_data_at = time.monotonic()
        for stream in command.streams:
            # What the command itself wrote is in the pipe now; the bound is for a chatty
            # descendant.
            for _ in range(256):
                if not (stream.is_open and self.read_stream(command, stream)):
                    break
        self.finish_if_drained(command)
        if not command.answered:
            self.after(QUIET_AFTER_EXIT_S, lambda: self.finish_if_quiet(command))

    def finish_if_drained(self, command: Command) -> None:
        if command.status is not None and not any(s.is_open for s in command.streams):
            self.finish(command)

    def finish_if_quiet(self, command: Command) -> None:
        """A descendant holds a pipe open: wait for silence, but not for ever."""
        assert command.ended_at is not None
        now = time.monotonic()
        quiet_s = now - command.last_data_at
        if quiet_s >= QUIET_AFTER_EXIT_S or now - command.ended_at >= DRAIN_LIMIT_S:
            self.finish(command)
        else:
            self.after(QUIET_AFTER_EXIT_S - quiet_s, lambda: self.finish_if_quiet(command))

    def finish(self, command: Command) -> None:
        if command.answered:
            return
        command.answered = True
        output, errors = (b"".join(stream.chunks) for stream in command.streams)
        truncated = any(stream.truncated for stream in command.streams)
        for stream in command.streams:
            # An open stream stays watched and its data is thrown away. Closing it would kill the
            # daemon that holds it with SIGPIPE, a fault that nobody asked for.
            stream.keep = False
            stream.chunks.clear()
        ended_at = command.ended_at if command.ended_at is not None else time.monotonic()
        self.send(
            {
                "id": command.identity,
                "pid": command.pid,
                "start": command.start,
                **exit_fields(command.status),
                "stdout": packed(output),
                "stderr": packed(errors),
                "truncated": truncated,
                "timed_out": command.timed_out,
                "duration_s": ended_at - command.started_at,
            }
        )

    # looking at processes and sending signals

    def signal(self, request: dict[str, Any]) -> dict[str, Any]:
        pid: int = request["pid"]
        if pid == os.getpid():
            return {"delivered": False, "reason": "that is the agent of the box itself"}
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return {"delivered": False, "reason": "no such process"}
        try:
            found = start_ticks(pid)
            if found is None:
                return {"delivered": False, "reason": "the process has already ended"}
            if found != request["start"]:
                return {"delivered": False, "reason": "another process has this pid now"}
            signal.pidfd_send_signal(handle, request["signal"])
        except ProcessLookupError:
            return {"delivered": False, "reason": "the process ended just now"}
        finally:
            os.close(handle)
        return {"delivered": True, "reason": None}

    def members(self) -> Iterable[int]:
        """The pids of this box, without the agent."""
        own = os.getpid()
        if self.scope == "namespace":
            found = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        else:
            found = set(descendants_of(own)) | set(tagged_with(self.box_id))
            if self.cgroup is not None:
                with open(f"{self.cgroup}/cgroup.procs") as file:
                    found |= set(map(int, file.read().split()))
        return sorted(found - {own})

    def processes(self, request: dict[str, Any]) -> dict[str, Any]:
        rows = [row for row in map(process_row, self.members()) if row is not None]
        for row in rows:
            row["target"], row["pane"] = environment_has(row["pid"], TARGET_MARK, b"TMUX_PANE")
            row["asked"] = row["pid"] in self.commands or row["pid"] in self.spawned
            lasts = row["target"] and not row["pane"]
            row["descriptors"] = open_descriptors(row["pid"]) if lasts else None
        return {"processes": rows}

    def wait_gone(self, request: dict[str, Any]) -> dict[str, Any] | None:
        pid: int = request["pid"]
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return {"gone": True}
        if start_ticks(pid) != request["start"]:
            os.close(handle)
            return {"gone": True}

        def answer(gone: bool) -> None:
            if self.handlers.get(handle) is ended:
                self.forget(handle)
                self.send({"id": request["id"], "gone": gone})

        def ended(descriptor: int) -> None:
            # Asked again, because the event may be of an earlier descriptor with the same number.
            if start_ticks(pid) != request["start"]:
                answer(True)

        self.watch(handle, _READABLE, ended)
        self.after(request["timeout_s"], lambda: answer(False))
        return None

    # the end

    def end(self) -> None:
        """Mutiny is gone: nothing of the box may outlive it."""
        if self.link is not None and os.path.islink(self.link):
            os.unlink(self.link)
        if self.cgroup is not None:
            with open(f"{self.cgroup}/cgroup.kill", "w") as file:
                file.write("1")  # takes this process too
        if self.scope == "subreaper":
            kill_descendants(os.getpid(), time.monotonic() + KILL_LIMIT_S, self.reap_silently)
        os._exit(0)  # in a pid namespace the kernel now kills everything else

    def reap_silently(self) -> None:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass


def become_subreaper() -> None:
    """Let orphans of this box become children of the agent, so that none gets lost."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def prepare_namespaces(network: bool) -> None:
    """Finish namespaces that ``unshare`` made: name the host, bring loopback up, drop the extra
    rights.
    """
    import ctypes
    import fcntl
    import socket
    import struct

    socket.sethostname("box")
    if network:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = struct.pack("16sH14x", b"lo", _IFF_UP)
            fcntl.ioctl(control, _SIOCSIFFLAGS, request)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_CAP_AMBIENT) failed")


def main(connection: int, given: str) -> None:
    """Take the place that the options name, then serve the connection until it closes."""
    options: dict[str, Any] = loads(given)
    if options.get("cgroup"):
        with open(f"{options['cgroup']}/cgroup.procs", "w") as file:
            file.write("0")
    if options["scope"] != "namespace":
        become_subreaper()
    if options.get("finish_namespaces"):
        prepare_namespaces(bool(options.get("own_network")))
    Agent(connection, options).serve()
