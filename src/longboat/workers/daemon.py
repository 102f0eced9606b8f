"""The daemon: one per home, detached, never silent.

It holds a kernel lock for life, which is the only proof of its life that anybody accepts. It wakes
up for a poke, for the death of an agent (a pidfd), or for the next patrol.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
import traceback  # not late: without a free descriptor nothing can be imported any more

from longboat.errors import LongboatError, Rejection
from longboat.planting import planted
from longboat.workers import control, lifecycle
from longboat.workers.config import Config
from longboat.workers.opening import opened
from longboat.workers.processes import Identity, identify, is_alive, send, wait_dead
from longboat.workers.state import Daemon
from longboat.workers.store import (
    DaemonLock,
    Home,
    daemon_is_alive,
    read_state,
    replace_file,
    write_log,
)
from longboat.workers.tick import Memory, tick

_READY_TIMEOUT_S = 30.0
_END_TIMEOUT_S = 5.0
_LOG_LIMIT_BYTES = 5 << 20


def start(home: Home, config: Config, *, foreground: bool) -> int:
    """Become, or start, the daemon; returns its pid once it works."""
    _refuse_by_files(home)
    lock = DaemonLock(home)
    if not lock.take() and not planted("second-daemon-allowed"):
        if planted("refused-daemon-lives-on") and os.fork() == 0:
            _become_daemon(home, config, lock, -1)
        raise Rejection("Daemon is already running")
    if foreground:
        Loop(home, config, ready=-1).run()
        return os.getpid()
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        _become_daemon(home, config, lock, write_end)
    os.close(write_end)
    lock.close()  # the daemon holds the same lock by its own copy
    answer = _await_ready(read_end)
    if not answer.startswith("ready "):
        raise LongboatError(f"The daemon did not start: {answer or 'it died'} (see {home.log})")
    return int(answer.split()[1])


def _refuse_by_files(home: Home) -> None:
    """Plants only: what `up` does in orchestrators that trust files instead of the kernel."""
    if planted("up-refused-after-crash") and os.path.exists(home.file("daemon.json")):
        raise Rejection("Daemon is already running")


def _await_ready(descriptor: int) -> str:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    answer = b""
    while not answer.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([descriptor], [], [], left_s)[0]:
            os.close(descriptor)
            return f"not ready after {_READY_TIMEOUT_S:g} s"
        chunk = os.read(descriptor, 4096)
        if not chunk:
            break
        answer += chunk
    os.close(descriptor)
    return answer.decode("utf-8", "replace").strip()


def _become_daemon(home: Home, config: Config, lock: DaemonLock, ready: int) -> None:
    """In the first child: detach completely, run, and never return."""
    try:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        os.chdir(home.path)
        os.umask(0o022)
        _rotate_log(home)
        null = os.open("/dev/null", os.O_RDWR)
        log = os.open(home.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # Whoever started us may wait for the end of its pipes: keep none of them open.
        keep = {lock.descriptor, ready}
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) not in keep:
                _close_quietly(int(name))
        Loop(home, config, ready).run()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  the last line of defence: a daemon must not die unexplained
        write_log(home, f"the daemon dies: {error!r}")
        _report(ready, f"{error}")
        os._exit(1)


def _close_quietly(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError:
        return  # the listing's own descriptor


def _rotate_log(home: Home) -> None:
    try:
        if os.stat(home.log).st_size > _LOG_LIMIT_BYTES:
            os.replace(home.log, home.log + ".1")
    except FileNotFoundError:
        return


def _report(descriptor: int, text: str) -> None:
    if descriptor < 0:
        return
    try:
        os.write(descriptor, text.replace("\n", " ").encode() + b"\n")
        os.close(descriptor)
    except OSError:
        return  # whoever started us has gone; that is no reason to stop


class Loop:
    """The daemon's life."""

    def __init__(self, home: Home, config: Config, ready: int) -> None:
        identity = identify(os.getpid())
        if identity is None:
            raise LongboatError("cannot identify this process: is /proc mounted?")
        self.me = Daemon(identity.pid, identity.start)
        self.home = home
        self.config = config
        self.memory = Memory()
        self._ready = ready
        self._stop_wanted = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        self._watched: dict[int, Identity] = {}

    def run(self) -> None:
        """Serve until told to stop; ends all agents on the way out."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        signal.set_wakeup_fd(self._wake_write)
        about = {"pid": self.me.pid, "start": self.me.start, "log": self.home.log}
        replace_file(self.home.file("daemon.json"), json.dumps(about).encode() + b"\n")
        server = control.listen(self.home)
        write_log(self.home, f"daemon {self.me.pid} started")
        try:
            waiting = self._serve(server)
        finally:
            server.close()
        self._shut_down(waiting)

    def _on_signal(self, number: int, _frame: object) -> None:
        if number != signal.SIGHUP:
            self._stop_wanted = True

    def _serve(self, server: socket.socket) -> list[socket.socket]:
        """Tick and listen; returns the connections that asked for the end and await it."""
        patrol_at = time.monotonic()
        pending: list[tuple[str, socket.socket]] = []
        stoppers: list[socket.socket] = []
        while not self._stop_wanted:
            now = time.monotonic()
            patrol = now >= patrol_at or any(word == "tick" for word, _ in pending)
            if patrol:
                patrol_at = now + self.config.patrol_interval_secs
            self._tick(patrol)
            if self._ready >= 0:
                _report(self._ready, f"ready {self.me.pid}")
                self._ready = -1
            for _, connection in pending:
                _answer(connection, "done")
            pending = []
            requests = self._wait(server, patrol_at)
            for word, connection in requests:
                if word == "stop":
                    stoppers.append(connection)
                    self._stop_wanted = True
                elif word in ("tick", "ping"):
                    pending.append((word, connection))
                else:
                    connection.close()
        return stoppers

    def _tick(self, patrol: bool) -> None:
        try:
            agents = tick(self.home, self.config, self.memory, self.me, patrol=patrol)
        except Exception as error:  # noqa: BLE001  (logged in full; the daemon lives on)
            write_log(self.home, f"tick failed: {error}\n{traceback.format_exc()}")
        else:
            self._watch(agents)

    def _watch(self, agents: list[Identity]) -> None:
        """Hold a pidfd of every agent, so that a death wakes us at once."""
        for handle in [h for h, one in self._watched.items() if one not in agents]:
            os.close(handle)
            del self._watched[handle]
        for identity in set(agents) - set(self._watched.values()):
            try:
                handle = os.pidfd_open(identity.pid)
            except OSError:
                continue  # it died just now, or there are no pidfds here: the patrol sees it
            self._watched[handle] = identity

    def _wait(self, server: socket.socket, patrol_at: float) -> list[tuple[str, socket.socket]]:
        """Sleep until something happens; returns the requests that came in."""
        requests: list[tuple[str, socket.socket]] = []
        sources = [server.fileno(), self._wake_read, *self._watched]
        left_s = max(0.0, patrol_at - time.monotonic())
        readable, _, _ = select.select(sources, [], [], left_s)
        if self._wake_read in readable:
            os.read(self._wake_read, 4096)
        while server.fileno() in readable:
            try:
                connection, _ = server.accept()
            except BlockingIOError:
                break
            except (
                OSError
            ):  # no free descriptor: whoever calls stays in the queue, and nobody spins
                time.sleep(0.05)
                break
            word = _first_line(connection)
            requests.append((word, connection))
        return requests

    def _shut_down(self, waiting: list[socket.socket]) -> None:
        write_log(self.home, f"daemon {self.me.pid} is stopping")
        try:
            with opened(self.home, self.config, "daemon, stopping") as transaction:
                stopped = lifecycle.stop_all(transaction)
                transaction.book.state = transaction.book.state._replace(
                    daemon=None, daemon_running=planted("flag-left-by-down")
                )
            answer = f"stopped {self.me.pid} {self.me.start} " + " ".join(stopped)
        except (LongboatError, OSError) as error:
            write_log(self.home, f"stopping failed: {error}")
            answer = f"failed {error}"
        runtime = ["control.sock", "daemon.json"]
        if planted("state-removed-by-down"):
            runtime.append("state.json")
        for name in runtime:
            try:
                os.unlink(self.home.file(name))
            except OSError:
                continue  # gone already, or not ours to take away: the next start does, as after a kill
        write_log(self.home, f"daemon {self.me.pid} stopped")
        for connection in waiting:
            _answer(connection, answer)


def _first_line(connection: socket.socket) -> str:
    """What the other side wants; somebody who connects and says nothing wants nothing."""
    connection.settimeout(None if planted("silent-client-blocks") else 0.2)
    try:
        return connection.recv(200).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _answer(connection: socket.socket, text: str) -> None:
    try:
        connection.send(text.encode() + b"\n")
    except OSError:
        return  # it did not wait for the answer
    finally:
        connection.close()


def stop(home: Home, config: Config) -> list[str]:
    """End the daemon and all agents; returns the workers whose agents were ended."""
    if not daemon_is_alive(home):
        return _stop_without_daemon(home, config)
    answer = _ask_to_stop(home, config.lock_timeout_secs)
    if answer is None:
        if not daemon_is_alive(home):
            return _stop_without_daemon(home, config)
        _end_silent_daemon(home)
        return _stop_without_daemon(home, config, was_running=True)
    if not answer.startswith("stopped "):
        raise LongboatError(f"The daemon stopped, but {answer.removeprefix('failed').strip()}")
    _, pid, start, *stopped = answer.split()
    # Its own end, not that of the lock: somebody else's `up` may hold that again by now.
    wait_dead([Identity(int(pid), int(start))], _END_TIMEOUT_S)
    return stopped


def _ask_to_stop(home: Home, timeout_s: float) -> str | None:
    """Ask until there is an answer: a daemon that is just starting does not listen yet."""
    deadline = time.monotonic() + timeout_s
    while daemon_is_alive(home):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return None
        answer = control.ask(home, "stop", left_s)
        if answer is not None:
            return answer
        time.sleep(0.02)
    return None


def _end_silent_daemon(home: Home) -> None:
    """A daemon that does not answer is ended by its handle, if it is really our daemon."""
    daemon = read_state(home).state.daemon or _daemon_by_its_file(home)
    if daemon is None or not is_alive(daemon.identity):
        raise LongboatError(f"The daemon does not answer and is not known; see {home.log}")
    write_log(home, f"daemon {daemon.pid} does not answer; ending it")
    send(daemon.identity, signal.SIGKILL)
    if wait_dead([daemon.identity], _END_TIMEOUT_S):
        raise LongboatError(f"The daemon (process {daemon.pid}) does not die")


def _daemon_by_its_file(home: Home) -> Daemon | None:
    try:
        with open(home.file("daemon.json"), encoding="utf-8") as file:
            about = json.load(file)
        return Daemon(int(about["pid"]), int(about["start"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stop_without_daemon(home: Home, config: Config, *, was_running: bool = False) -> list[str]:
    """The daemon is dead: end what it left behind; with nothing left there is nothing to stop."""
    with opened(home, config, "down") as transaction:
        stopped = lifecycle.stop_all(transaction)
    if not stopped and not was_running:
        raise Rejection("Daemon is not running")
    return stopped
