"""One command at work: home, settings, git, the run's state and log, and the processes it has started."""

from __future__ import annotations

import os
import re
import signal
import threading
from types import FrameType, SimpleNamespace

from longboat.batch.config import Config
from longboat.batch.store import Events, Home
from longboat.batch.values import Run, Task
from longboat.planting import planted
from longboat.workers.gitops import Git, free_environment
from longboat.workers.proc import Result
from longboat.workers.proc import run as run_program
from longboat.workers.processes import Identity, carrying, send, wait_dead

_SECRET_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_LEAST_SECRET = 6
MARK = "LONGBOAT_BATCH_RUN"
"""Everything that a run starts carries this variable, so that nothing of it is ever forgotten."""


class Stopped(Exception):
    """Somebody asked the command to stop; what is under way was broken off."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Site:
    """What the steps of a run share."""

    def __init__(self, home: Home, config: Config, git: Git, run: Run) -> None:
        self.home = home
        self.config = config
        self.git = git
        self.state = run
        self.events = Events(home, run.id)
        self._signal = 0
        self._noting = threading.Lock()

    # --- the state ------------------------------------------------------------------------------

    def save(self, run: Run) -> None:
        """The new state, on the disk before anything follows from it."""
        self.home.save(run)
        self.state = run

    def note_tokens(self, task: Task) -> None:
        """What an agent has used counts from here on, whatever becomes of its work; any thread may ask."""
        if planted("tokens-forgotten"):
            return
        with self._noting:
            known = self.state.tasks[task.id]
            self.save(self.state.with_task(known._replace(tokens=task.tokens)))

    # --- references and checkouts -----------------------------------------------------------------

    @property
    def trunk(self) -> str:
        """The branch that work lands on."""
        return f"refs/heads/{self.config.main}"

    def kept(self, name: str) -> str:
        """The reference that keeps a commit of this run from being lost."""
        return f"refs/longboat/batch/{self.state.id}/{name}"

    @property
    def checkout_site(self) -> SimpleNamespace:
        """As the module that brings the user's checkout along wants it."""
        return SimpleNamespace(
            git=self.git,
            home=self.home,
            config=SimpleNamespace(default_branch=self.config.main),
            log=lambda text: self.events.say("checkout.kept", text=text),
        )

    # --- processes --------------------------------------------------------------------------------

    def program(
        self,
        argv: list[str],
        at: str,
        timeout_s: float,
        task: str = "",
        stdin: bytes = b"",
        more: dict[str, str] | None = None,
    ) -> Result:
        """Run a foreign program in a directory; it is ended with the run, wherever it hides."""
        self.check()
        environment = {
            **free_environment(),
            MARK: mark_of(self.home, self.state.id),
            **(more or {}),
        }
        if task:
            environment["TASK_ID"] = task
        result = run_program(
            ["env", "-C", at, *argv], timeout_s=timeout_s, stdin=stdin, environment=environment
        )
        if not planted("gate-children-left"):
            self.reap(task)
        self.check()
        return without_secrets(result)

    def client(self, argv: list[str], timeout_s: float, *, last: bool = False) -> Result:
        """Ask a program that serves us; whoever is asked to stop asks nothing more but for the `last`."""
        if not last:
            self.check()
        environment = {**free_environment(), MARK: mark_of(self.home, self.state.id)}
        result = run_program(argv, timeout_s=timeout_s, environment=environment)
        if not last:
            self.check()
        return without_secrets(result)

    def reap(self, task: str = "") -> None:
        """End what a task, or the whole run, has left running."""
        for _ in range(100):
            living = marked(self.home, self.state.id, task)
            if not living:
                return
            for one in living:
                send(one, signal.SIGKILL)
            wait_dead(living, 0.5)

    # --- being stopped ------------------------------------------------------------------------------

    def listen(self) -> None:
        """From now on a signal ends what runs, and the next step does not begin."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        for one in marked(self.home, self.state.id, ""):
            send(one, signal.SIGKILL)

    def check(self) -> None:
        """Raise when the command was asked to stop."""
        if self._signal:
            raise Stopped(self._signal)


def without_secrets(result: Result) -> Result:
    """What a program said, as it may be kept: its log, its last words, whatever is made of them."""
    if planted("secret-in-log"):
        return result
    err = result.err if planted("secret-in-failure") else redacted(result.err)
    return result._replace(out=redacted(result.out), err=err)


def redacted(text: str) -> str:
    """A text without the values of variables that look like secrets."""
    for name, value in os.environ.items():
        if _SECRET_NAMES.search(name) and len(value) >= _LEAST_SECRET:
            text = text.replace(value, f"[{name}]")
    return text


def mark_of(home: Home, run_id: str) -> str:
    """What everything of a run carries: the first run of every home is called r1."""
    return f"{home.path} {run_id}"


def marked(home: Home, run_id: str, task: str) -> list[Identity]:
    """Live processes of a run, or of one of its tasks."""
    marks = {f"{MARK}={mark_of(home, run_id)}".encode()}
    if task and planted("processes-by-task-alone"):
        return carrying({f"TASK_ID={task}".encode()})
    if task:
        marks.add(f"TASK_ID={task}".encode())
    return carrying(marks)
