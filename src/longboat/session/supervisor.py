"""The supervisor of a session: `python -m longboat.session.supervisor HOME ID`.

One loop over agents, commands and time. It is the only one that changes the state, and everything that
it could lose by dying is less than what agents have done since their last finished task.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable

from longboat.board.daemon import short_path
from longboat.board.files import discard, try_lock
from longboat.planting import planted
from longboat.session import health, measures
from longboat.session.course import Course
from longboat.session.desks import Desk, Job
from longboat.session.home import Home
from longboat.session.project import read
from longboat.session.saving import Saving
from longboat.session.site import Site
from longboat.session.values import ENDED, LOOKS, Json, Refused, too_late
from longboat.session.work import Work
from longboat.workers.processes import identify

_REQUEST_LIMIT = 1 << 16
_WATCH_S = 10.0
"""How often somebody looks for idle agents, full memory and new settings."""
_LATE_S = 0.5
"""So long somebody who has come at the very end may take to say what he wants."""
Reply = Callable[[Json], None]


class Client:
    """One command that waits for its answer."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = b""


class Supervisor:
    """A session at work."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._selector = selectors.DefaultSelector()
        self.work = Work(site, self._selector, self)
        self.saving = Saving(site, self.work, self)
        self.course = Course(site, self.work, self.saving, self)
        self.over = False
        self.leaving = ""
        self._pressure = health.Pressure()
        self._leak: list[bytes] = []
        self._opened: list[int] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._selector.register(self._wake_read, selectors.EVENT_READ, lambda _: self._woken())
        self._clients: set[Client] = set()
        """Those who have not said what they want so far."""
        self._listening = self._listen()

    # --- the loop -------------------------------------------------------------------------------------

    def run(self, ready: Callable[[], None]) -> None:
        """Until the session is over or somebody wants the supervisor to end."""
        site = self.site
        me = identify(os.getpid())
        site.say("supervisor.start", pid=os.getpid(), start=me.start if me else 0)
        if site.state["status"] == "paused":
            site.clock.pause()
            self.work.halted = True
        self.course.resume()
        self._each(site.config.metrics_s, self._metrics)
        self._each(min(_WATCH_S, site.config.idle_s / 4, site.config.metrics_s), self._watch)
        ready()
        while not self.over:
            site.clock.run_due()
            wait_s = site.clock.next_due_s()
            for key, _ in self._selector.select(wait_s):
                act: Callable[[int], None] = key.data
                act(0)
        self.work.end()
        discard(site.session.file("control.sock"))
        self._turn_away()
        self._listening.close()

    def _each(self, every_s: float, action: Callable[[], None]) -> None:
        """Again and again; the next one is due when the last one was, so that none is ever skipped over."""
        due_s = self.site.clock.now() + every_s

        def again() -> None:
            nonlocal due_s
            action()
            now_s = self.site.clock.now()
            due_s = max(due_s + every_s, now_s - every_s)
            self.site.clock.after(max(0.0, due_s - now_s), again)

        self.site.clock.after(every_s, again)

    def wake(self, *_: object) -> None:
        """A signal: save and end; the session can be recovered."""
        self.leaving = "signal"
        with contextlib.suppress(BlockingIOError):  # full: it wakes anyway
            os.write(self._wake_write, b"x")

    def _woken(self) -> None:
        os.read(self._wake_read, 100)
        if self.site.state["status"] == "paused":
            self.over = True
        else:
            status = "stopped" if planted("session-signal-is-a-stop") else ""
            self.saving.want("stop", lambda _: self._end(), status=status)

    def _end(self) -> None:
        self.over = True

    # --- from time to time ----------------------------------------------------------------------------

    def _metrics(self) -> None:
        site = self.site
        site.metrics_number += 1
        line = measures.line(site, site.spent, self.work.pids())
        if planted("session-memory-grows"):
            self._leak.append(os.urandom(400_000))
        if planted("session-descriptors-grow"):
            self._opened.append(os.open(site.session.directory, os.O_RDONLY | os.O_DIRECTORY))
        if planted("session-metrics-field-missing"):
            del line["test_coverage"]
        try:
            site.metrics.say(line)
            if planted("session-metrics-doubled"):
                site.metrics.say(line)
        except OSError as error:
            site.metrics_number -= 1  # they count the lines that are there
            site.say("metrics.failed", text=str(error))

    def _watch(self) -> None:
        self.site.reread_config()
        self.course.look_for_idle()
        health.watch(self.site, self.work, self.saving, self, self._pressure)

    # --- what the parts tell ----------------------------------------------------------------------------

    def critical(self, kind: str, text: str) -> None:
        """Pause for somebody to look."""
        if self.site.state["status"] == "paused":
            return
        self.site.state["counts"]["errors"] += 1
        known = {"kind": kind, "severity": "critical", "agent": "", "task": "", "attempt": 1}
        self.site.say("error", **known, action="pause", wait_s=0.0, text=text[:300])
        if planted("session-critical-ignored"):
            self.site.clock.after(self.site.config.backoff_s, self.work.release)
            return
        self.pause(f"{kind}: {text}"[:300])

    def fatal(self, kind: str, text: str) -> None:
        """Stop: going on would make it worse."""
        known = {"kind": kind, "severity": "fatal", "agent": "", "task": "", "attempt": 1}
        self.site.say("error", **known, action="stop", wait_s=0.0, text=text[:300])
        self.site.say("session.failed", reason=f"{kind}: {text}"[:300])
        self.over = True

    def pause(self, reason: str) -> None:
        """Calls under way end; nothing begins until somebody says so."""
        self.site.state["status"], self.site.state["reason"] = "paused", reason
        self.site.say("session.pause", reason=reason)
        self.work.halted = not planted("session-pause-ignored")
        self._save("pause")
        if self.work.halted:
            self.site.clock.pause()

    def proceed(self) -> None:
        """Go on after a pause."""
        self.site.state["status"], self.site.state["reason"] = "running", ""
        self.site.clock.resume()
        self.work.halted = False
        self.site.say("session.continue")
        self._save("continue")
        self.work.release()
        self.course.step()

    def _save(self, why: str) -> None:
        try:
            self.site.save(why)
        except OSError as error:
            self.site.say("checkpoint.failed", why=f"the change was not saved: {error}")

    def job_done(self, desk: Desk, job: Job, outcome: Json) -> None:
        """A job has ended."""
        self.course.job_done(desk, job, outcome)

    def settled(self) -> None:
        """A call has ended."""
        self.saving.step()

    def withdraw_votes(self) -> None:
        """Nobody can vote now."""
        self.course.withdraw_votes()

    def wants_quiet(self) -> bool:
        """A checkpoint waits for the tools."""
        return self.saving.pending

    # --- commands ---------------------------------------------------------------------------------------

    def _listen(self) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        discard(self.site.session.file("control.sock"))
        with short_path(self.site.session.directory, "control.sock") as short:
            listening.bind(short)
        listening.listen(16)
        listening.setblocking(False)
        self._selector.register(listening, selectors.EVENT_READ, lambda _: self._accept())
        return listening

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return  # the caller has gone again
        connection.setblocking(False)
        client = Client(connection)
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._receive(client))

    def _receive(self, client: Client) -> None:
        try:
            data = client.connection.recv(_REQUEST_LIMIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.received += data
        if b"\n" not in client.received:
            if not data or len(client.received) > _REQUEST_LIMIT:
                self._forget(client)
                client.connection.close()
            return
        self._forget(client)

        def reply(answer: Json) -> None:
            with (
                contextlib.suppress(OSError),
                client.connection,
            ):  # it may have gone: it is done all the same
                client.connection.setblocking(True)
                client.connection.sendall(json.dumps(answer, ensure_ascii=False).encode() + b"\n")

        try:
            asked = json.loads(client.received)
            if self.over and asked["verb"] not in LOOKS:
                raise too_late(self.site.session.name, self.site.state["status"], asked["verb"])
            self._obey(asked, reply)
        except Refused as refusal:
            reply(refusal.answer())
        except (ValueError, KeyError) as error:
            reply(Refused("system", f"not a command: {error!r}").answer())

    def _forget(self, client: Client) -> None:
        self._clients.discard(client)
        self._selector.unregister(client.connection)

    def _turn_away(self) -> None:
        """Who came too late is told so: a connection that is only cut off leaves him in the dark."""
        waiting = -1
        while waiting != len(self._clients):  # until nobody is left in the queue
            waiting = len(self._clients)
            self._accept()
        for client in list(self._clients):
            client.connection.settimeout(_LATE_S)
            self._receive(client)

    def _obey(self, asked: Json, reply: Reply) -> None:
        known = {"ok": True, "session": self.site.session.name}
        self.site.reread_config()
        match asked["verb"]:
            case "status":
                reply({**known, **health.status(self.site, self.work)})
            case "metrics":
                reply({**known, **measures.line(self.site, self.site.spent, self.work.pids())})
            case "health":
                reply(health.answer(self.site, self.work))
            case "checkpoint":
                self.saving.want("command", lambda made: reply({**known, **made}))
            case "pause":
                if self.site.state["status"] == "paused":
                    raise Refused("paused", f"Session {self.site.session.name} is paused already")
                self.pause("asked")
                reply({**known, "status": "paused"})
            case "continue":
                self._continue(asked.get("decide", ""))
                reply({**known, "status": self.site.state["status"]})
            case "recover":
                recovered = self.site.state["status"] == "paused"
                if recovered:
                    full = self.site.state["reason"].startswith("disk_full")
                    if full or planted("session-recover-cleans-up"):
                        self.saving.clean_up()
                    self._continue("")
                base, deltas = self.site.numbers
                where = {"checkpoint": base, "deltas": deltas, "fell_back": []}
                reply({**known, "recovered": recovered, **where, "pid": os.getpid()})
            case "stop":
                self._stop(lambda made: reply({**known, **made}))
            case _:
                raise Refused("system", f"there is no command {asked['verb']!r}")

    def _continue(self, decide: str) -> None:
        state = self.site.state
        if state["status"] != "paused":
            raise Refused("not_paused", f"Session {self.site.session.name} is not paused")
        if decide:
            self.course.decide(*decide.partition("=")[::2])
        elif any(vote["status"] == "escalated" for vote in state["votes"].values()):
            name = next(
                name for name, vote in state["votes"].items() if vote["status"] == "escalated"
            )
            text = f"Vote {name} waits for a decision: continue --decide {name}=OPTION"
            raise Refused("paused", text)
        self.proceed()

    def _stop(self, reply: Reply) -> None:
        """In good order: quiet, a last checkpoint, the end."""
        was_paused = self.site.state["status"] == "paused"
        self.site.clock.resume()

        def stopped(made: Json) -> None:
            if made.get("ok", True):
                self.site.say("session.stop")
                self.over = True
                reply({**made, "status": "stopped"})
            else:
                if was_paused:
                    self.site.clock.pause()
                reply(made)

        self.work.halted = True
        self.saving.want("stop", stopped, status="stopped")


def main(arguments: list[str]) -> int:
    """Supervise one session to its end; says `ready` on its output when it listens."""
    home = Home(arguments[0])
    lock = try_lock(home.file("supervisor.lock"))
    if lock is None and not planted("session-second-supervisor"):
        sys.stderr.write("another supervisor is at work here\n")
        return 1
    session = home.session(arguments[1])
    site = Site(session, read(session.file("project.toml")), session.about(), lock)
    if site.state["status"] in ENDED:
        sys.stderr.write(f"session {session.name} is {site.state['status']}\n")
        return 1
    supervisor = Supervisor(site)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, supervisor.wake)

    def ready() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)  # who started us may go now

    supervisor.run(ready)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
