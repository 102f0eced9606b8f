"""What is seen of a batch orchestrator at one moment: its state, git, its log, and what the doubles did."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mutiny.kit.contract import SeenBase

TASK_STATUSES = ("pending", "running", "validated", "complete", "skipped", "failed", "review")
RUN_STATUSES = ("running", "paused", "failed", "complete")
DONE = ("complete", "skipped")
UNFINISHED = ("running", "paused")
MOST_SHOWN = 20


@dataclass(frozen=True)
class TaskSeen:
    """A task in the target's state."""

    status: str
    attempts: int | None = None
    error: str = ""
    tokens: int | None = None
    """None: the target does not say what it has used."""
    begun: int | None = None
    """So many attempts were begun. Of this and what follows None: the target does not say it."""
    conflicts: int | None = None
    commit: str | None = None
    """What has passed its gates."""
    base: str | None = None
    """Where it was begun."""
    merged: str | None = None
    """The commit of the branch that brought it."""
    planned: Mapping[str, Any] = field(default_factory=dict)
    """What is kept of it as it was planned, by the names of a plan file."""


@dataclass(frozen=True)
class BatchRow:
    """Tasks that were begun together, or came to the branch together, in the target's state."""

    id: object
    tasks: tuple[str, ...] = ()
    landed: bool = False
    base: str = ""
    target: str = ""
    """The branch went from `base` to `target`."""


@dataclass(frozen=True)
class RunSeen:
    """A run in the target's state."""

    name: str
    status: str
    reason: str = ""
    tasks: Mapping[str, TaskSeen] = field(default_factory=dict)
    tokens: int | None = None
    """What all have used; None: the target does not say it."""
    batches: tuple[BatchRow, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """An agent that was started for a task, as the agent itself wrote it down."""

    task: str
    number: int
    present: frozenset[str]
    """Tasks whose work lay in the workspace when it began."""
    ended: bool = False
    code: int | None = None
    tokens: int = 0
    gated: bool = False
    """A gate was asked about its work: whoever started it has heard how it ended."""
    beside: frozenset[int] = frozenset()
    """Attempts, by their place in the row of all, that had begun before it and ended after it began."""


@dataclass(frozen=True)
class Asked:
    """A gate that was asked, as the gate itself wrote it down."""

    gate: str
    task: str
    tree: str
    passed: bool
    canary: bool = False


@dataclass(frozen=True)
class Line:
    """A line of the event log."""

    said: Mapping[str, Any]
    """As it was written."""
    task: str = ""
    """The task that it is about."""
    tasks: tuple[str, ...] = ()
    """All that it names in a list."""
    batch: str = ""
    begins: bool = False
    """It says that an attempt was begun."""
    tells: Mapping[str, object] = field(default_factory=dict)
    """What it says of the task that the state keeps, too."""

    @property
    def short(self) -> str:
        """For people."""
        return str(self.said)[:120]


@dataclass(frozen=True)
class Head:
    """A commit that the branch was at."""

    sha: str
    tree: str
    foreign: bool = False
    """Somebody else brought it there."""


@dataclass(frozen=True)
class GitSeen:
    """The user's repository."""

    head: str | None = None
    commits: frozenset[str] = frozenset()
    heads: tuple[Head, ...] = ()
    """Where the branch has been, the newest first."""
    landed: Mapping[str, int] = field(default_factory=dict)
    """Task -> how often its work came to the branch."""
    steps: tuple[str, ...] = ()
    """The commits of the branch itself, without those of what was merged; the newest first."""
    brought: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Task -> those of them that changed its file."""
    files: frozenset[str] = frozenset()
    shared: tuple[str, ...] = ()
    """The lines of the file that several tasks write."""
    lost: tuple[str, ...] = ()
    """Commits of others that are no longer on the branch."""
    dirty: tuple[str, ...] = ()
    edit_kept: bool = True
    """The user's own edit, if there is one, is still there."""
    left: tuple[str, ...] = ()
    """References, remotes, worktrees and half merges that are not the user's."""


@dataclass(frozen=True)
class ContainerSeen:
    """A container of the target, as the engine tells it."""

    name: str
    run: str = ""
    task: str = ""
    """What its labels say."""
    running: bool = False
    network: str = ""
    memory: int = 0
    pids: int = 0
    stranger: str = ""
    """As whom it works, where that is not the one who started the run."""
    writes: tuple[str, ...] = ()
    """Directories of the box that it may change, beside its workspace and the desk of the doubles."""


@dataclass(frozen=True, kw_only=True)
class BatchSeen(SeenBase):
    """Everything that one look tells."""

    home: bool = False
    """There is a home for batches."""
    plan: str | None = None
    """The bytes of the plan, as a hash."""
    planned: Any = None
    """The plan as it is kept; None: there is none, or it is no JSON."""
    runs: Mapping[str, RunSeen] = field(default_factory=dict)
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Run -> its state as it is kept, in the target's own words."""
    ledger: frozenset[tuple[str, str]] | None = None
    """Runs and tasks that the target's own list of what was merged has; None: it keeps none."""
    git: GitSeen | None = None
    attempts: tuple[Attempt, ...] = ()
    asked: tuple[Asked, ...] = ()
    bad_events: tuple[str, ...] = ()
    """Lines of the log that are not as they should be, each with the reason."""
    events: int = 0
    """Lines of the log."""
    logged: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Run and task -> how many lines of the log are about it; no task: all of the run's."""
    lines: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    """Run -> the lines of its log, in their order."""
    logs: frozenset[str] = frozenset()
    """What the log tells of every task that is merged; the names are those of the state."""
    logs_starts: bool = False
    """It tells of every attempt that is begun."""
    event_types: frozenset[str] = frozenset()
    no_events: frozenset[str] = frozenset()
    """Types that the target never logs."""
    processes: tuple[str, ...] = ()
    """What runs in the box and was not asked for."""
    workspaces: tuple[str, ...] = ()
    """Directories in which tasks were worked on, or batches put together."""
    containers: tuple[ContainerSeen, ...] | None = None
    """Those that there are now; None: there is no engine, or it does not answer."""
    contained: Mapping[str, ContainerSeen] = field(default_factory=dict)
    """All that were ever seen."""
    neighbour: bool = True
    """A container that is none of the target's is still there, as far as the engine tells."""
    told: tuple[str, ...] = ()
    """Files in which the secret stands."""
    outside: tuple[str, ...] = ()
    """Files that appeared where nobody may write."""
    digest: str = ""
    """All bytes of the home."""

    @property
    def run(self) -> RunSeen | None:
        """The newest run."""
        return self.runs[max(self.runs, key=_order)] if self.runs else None

    def attempts_of(self, task: str) -> list[Attempt]:
        """All agents that were started for a task."""
        return [one for one in self.attempts if one.task == task]

    def tokens_of(self, task: str, since: int, without: Collection[int] = ()) -> int:
        """What its agents say that they have used, without the first attempts: those of older runs."""
        return sum(
            one.tokens
            for place, one in enumerate(self.attempts)
            if place >= since and one.task == task and place not in without
        )

    def unheard(self, since: int) -> frozenset[int]:
        """Which attempts may have told nobody what they used, when whoever started them was broken off."""
        last = {one.task: place for place, one in enumerate(self.attempts) if place >= since}
        return frozenset(place for place in last.values() if not self.attempts[place].gated)

    def landed(self, task: str) -> int:
        """How often its work came to the branch."""
        return 0 if self.git is None else self.git.landed.get(task, 0)

    def as_json(self) -> dict[str, object]:
        """The journal's form: short, because there are many."""
        run, git = self.run, self.git
        return {
            "home": self.home,
            "error": self.error,
            "runs": {name: one.status for name, one in self.runs.items()},
            "tasks": {} if run is None else {name: one.status for name, one in run.tasks.items()},
            "landed": {} if git is None else dict(git.landed),
            "head": None if git is None or git.head is None else git.head[:12],
            "dirty": [] if git is None else list(git.dirty),
            "left": [] if git is None else list(git.left),
            "attempts": len(self.attempts),
            "asked": len(self.asked),
            "bad_events": list(self.bad_events),
            "processes": list(self.processes),
            "containers": None if self.containers is None else [c.name for c in self.containers],
            "workspaces": list(self.workspaces[:MOST_SHOWN]),
            "told": list(self.told),
            "outside": list(self.outside),
        }

    def standing(self) -> Hashable:
        """How things stand, without times."""
        return repr((self.as_json(), self.events))


def _order(name: str) -> tuple[int, Any]:
    digits = "".join(one for one in name if one.isdigit())
    return (int(digits) if digits else 0, name)
