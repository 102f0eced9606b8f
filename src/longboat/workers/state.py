"""The state of a home as immutable values, and its one JSON form.

NamedTuples instead of dataclasses on purpose: they are as immutable, and importing ``dataclasses``
would cost more than a whole longboat command.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from longboat.planting import planted
from longboat.workers.processes import Identity

VERSION = 1
STATUSES = (
    "idle",
    "working",
    "needs_review",
    "reviewing",
    "rejected",
    "rebasing",
    "error",
    "offline",
    "no_changes",
)
TASK_STATES = ("queued", "active", "merged", "discarded", "failed")

# Stages of a delivery. Each is saved BEFORE the action that it names is done.
CLEARING = "clearing"  # "/clear" is being typed, the agent forgets the earlier task
CLEARED = "cleared"  # the agent confirmed it; nothing is typed yet
TYPING = "typing"  # the prompt may or may not have reached the agent
TYPED = "typed"  # the prompt was typed
RECEIVED = "received"  # the agent's own hook confirmed it


class Prompt(NamedTuple):
    """One text for an agent; ``kind`` is task, message, reject, conflict or manual."""

    id: str
    kind: str
    text: str
    task_id: str
    attempts: int = 0


class Delivery(NamedTuple):
    """The one prompt that is outstanding at an agent."""

    prompt: Prompt
    stage: str
    pid: int
    start: int
    head: str
    since: float


class Agent(NamedTuple):
    """One started agent program: the process of its pane, and which tmux server holds it."""

    pid: int
    start: int
    spawn: str
    pane: str
    server_pid: int
    server_start: int
    since: float
    session_id: str | None = None
    ready: bool = False
    task_id: str | None = None
    owes_stop: bool = False
    transcript: str = ""

    @property
    def identity(self) -> Identity:
        """The agent's process for ever."""
        return Identity(self.pid, self.start)

    @property
    def server(self) -> Identity:
        """The tmux server that holds the agent's terminal."""
        return Identity(self.server_pid, self.server_start)


class Worker(NamedTuple):
    """One worker: a branch, a worktree, a session, and what it is doing."""

    name: str
    status: str
    branch: str
    worktree: str
    session: str
    model: str = ""
    command: str = ""
    current_prompt: str = ""
    commit_sha: str | None = None
    error_reason: str | None = None
    agent: Agent | None = None
    spawning: str = ""
    inflight: Delivery | None = None
    inbox: tuple[Prompt, ...] = ()
    task_id: str | None = None
    resume: str = "idle"
    rebase_wanted: bool = False
    rebase_onto: str = ""
    spawn_failures: int = 0
    since_generation: int = 0


def _standing(worker: Worker) -> str:
    """What it is, or will be again when it comes back: being away for a while ends nobody's wait."""
    return worker.resume if worker.status == "offline" else worker.status


class Task(NamedTuple):
    """One piece of work from `start` to merged or discarded; never removed from the state."""

    id: str
    worker: str
    prompt: str
    state: str
    commit: str | None = None


class Intent(NamedTuple):
    """A half-done change of one worker that whoever comes next finishes or takes back."""

    kind: str
    worker: str
    phase: str = ""
    base: str = ""
    commit: str = ""
    head: str = ""
    task: str = ""


class Daemon(NamedTuple):
    """The daemon that wrote itself into the state."""

    pid: int
    start: int

    @property
    def identity(self) -> Identity:
        """The daemon's process for ever."""
        return Identity(self.pid, self.start)


class State(NamedTuple):
    """Everything that longboat knows."""

    generation: int = 0
    daemon: Daemon | None = None
    daemon_running: bool = False
    last_reviewed: str | None = None
    workers: dict[str, Worker] = {}  # noqa: RUF012  (never mutated: see `with_worker`)
    tasks: dict[str, Task] = {}  # noqa: RUF012
    intents: dict[str, Intent] = {}  # noqa: RUF012
    applied: tuple[str, ...] = ()

    def with_worker(self, worker: Worker) -> State:
        """The state with this worker added or replaced."""
        old = self.workers.get(worker.name)
        if old is not None and _standing(old) != _standing(worker):
            worker = worker._replace(since_generation=self.generation + 1)
        return self._replace(workers={**self.workers, worker.name: worker})

    def without_worker(self, name: str) -> State:
        """The state without this worker, and without its trace in `last_reviewed`."""
        workers = {key: value for key, value in self.workers.items() if key != name}
        if planted("nuke-forgets-by-prefix"):
            workers = {key: one for key, one in workers.items() if not key.startswith(name)}
        last = None if self.last_reviewed == name else self.last_reviewed
        return self._replace(workers=workers, last_reviewed=last)

    def with_task(self, task: Task) -> State:
        """The state with this task added or replaced."""
        return self._replace(tasks={**self.tasks, task.id: task})

    def with_task_state(self, task_id: str | None, state: str, commit: str | None = None) -> State:
        """The state with a task's state changed; an unknown task changes nothing."""
        task = self.tasks.get(task_id or "")
        if task is None:
            return self
        return self.with_task(task._replace(state=state, commit=commit or task.commit))

    def with_intent(self, intent: Intent) -> State:
        """The state with a half-done change noted."""
        return self._replace(intents={**self.intents, intent.worker: intent})

    def without_intent(self, name: str) -> State:
        """The state with the half-done change of this worker struck out."""
        intents = {key: value for key, value in self.intents.items() if key != name}
        return self._replace(intents=intents)


def encode(state: State) -> dict[str, Any]:
    """The JSON form."""
    return {
        "version": VERSION,
        "generation": state.generation,
        "daemon": state.daemon._asdict() if state.daemon else None,
        "daemon_running": state.daemon_running,
        "last_reviewed": state.last_reviewed,
        "workers": {name: _encode_worker(worker) for name, worker in state.workers.items()},
        "tasks": {key: task._asdict() for key, task in state.tasks.items()},
        "intents": {key: intent._asdict() for key, intent in state.intents.items()},
        "applied": list(state.applied),
    }


def _encode_worker(worker: Worker) -> dict[str, Any]:
    fields = worker._asdict()
    fields["agent"] = worker.agent._asdict() if worker.agent else None
    fields["inbox"] = [prompt._asdict() for prompt in worker.inbox]
    if worker.inflight is not None:
        inflight = worker.inflight._asdict()
        inflight["prompt"] = worker.inflight.prompt._asdict()
        fields["inflight"] = inflight
    return fields


def decode(data: Any) -> State:
    """The state from its JSON form; ValueError names what is wrong."""
    if not isinstance(data, dict):
        raise ValueError("the top level is not an object")
    if data.get("version") != VERSION:
        raise ValueError(f"version {data.get('version')!r}, this longboat knows {VERSION}")
    try:
        return State(
            generation=data["generation"],
            daemon=Daemon(**data["daemon"]) if data["daemon"] else None,
            daemon_running=data["daemon_running"],
            last_reviewed=data["last_reviewed"],
            workers={name: _decode_worker(one) for name, one in data["workers"].items()},
            tasks={name: Task(**one) for name, one in data["tasks"].items()},
            intents={name: Intent(**one) for name, one in data["intents"].items()},
            applied=tuple(data["applied"]),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a field is missing or unknown: {error}") from None


def _decode_worker(data: dict[str, Any]) -> Worker:
    fields = dict(data)
    fields["agent"] = Agent(**data["agent"]) if data["agent"] else None
    fields["inbox"] = tuple(Prompt(**one) for one in data["inbox"])
    if data["inflight"]:
        inflight = dict(data["inflight"])
        inflight["prompt"] = Prompt(**inflight["prompt"])
        fields["inflight"] = Delivery(**inflight)
    return Worker(**fields)


def contradictions(state: State) -> list[str]:
    """What can never be true of a state that longboat wrote; checked before every save."""
    found = []
    for name, worker in state.workers.items():
        if worker.name != name:
            found.append(f"worker '{name}' is called '{worker.name}'")
        if worker.status not in STATUSES:
            found.append(f"worker '{name}' has the unknown status '{worker.status}'")
        if worker.status == "needs_review" and not worker.commit_sha:
            found.append(f"worker '{name}' needs review but has no commit")
        if worker.status == "idle" and (worker.current_prompt or worker.inflight or worker.inbox):
            found.append(f"worker '{name}' is idle but has a prompt")
        if worker.status in ("working", "rejected") and not worker.current_prompt:
            found.append(f"worker '{name}' is {worker.status} without a prompt")
    for task in state.tasks.values():
        if task.state not in TASK_STATES:
            found.append(f"task '{task.id}' has the unknown state '{task.state}'")
    return found


def idle(worker: Worker) -> Worker:
    """The worker without its task."""
    prompt = worker.current_prompt if planted("idle-keeps-prompt") else ""
    return worker._replace(
        status="idle",
        resume="idle",
        current_prompt=prompt,
        commit_sha=None,
        error_reason=None,
        task_id=None,
        inflight=None,
        inbox=(),
        rebase_wanted=False,
        rebase_onto="",
    )
