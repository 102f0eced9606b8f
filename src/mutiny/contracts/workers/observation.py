"""What can be seen of a workers target at one moment, as values.

A fact that could not be read is `None`, never an empty answer: a query that fails is not an answer,
and a rule that needs the fact becomes inconclusive instead of green.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from mutiny.contracts.workers.operations import STATUSES
from mutiny.kit.views import AgentView, Commit, ProcessView, Receipt, WorktreeView
from mutiny.model.forms import Says
from mutiny.model.pace import Pace


class WorkerState(TypedDict):
    """A worker in a journal."""

    status: Annotated[str, Says(enum=list(STATUSES))]
    branch: str
    commit_sha: str | None
    current_prompt: str
    error_reason: NotRequired[str]


class WorkersState(TypedDict):
    """What was seen of workers, in a journal."""

    workers: dict[str, WorkerState]
    daemon_running: bool
    """Whether its process lives."""
    state_says_daemon_running: NotRequired[bool]
    """What the state file says, where it says otherwise."""
    sessions: NotRequired[list[str]]
    state_error: NotRequired[str]
    state_as_left: NotRequired[Literal[True]]
    probe_errors: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One worker as the target's state file tells it, in the contract's words."""

    name: str
    status: str
    branch: str = ""
    worktree: str = ""
    session: str = ""
    prompt: str = ""
    pending_prompt: str = ""
    commit_sha: str | None = None
    error_reason: str | None = None

    @property
    def standing(self) -> str:
        """Who it is and how it stands, as the beginning of a sentence."""
        return f"Worker {self.name!r} is {self.status}"

    def as_json(self) -> WorkerState:
        """The journal's form."""
        told: WorkerState = {
            "status": self.status,
            "branch": self.branch,
            "commit_sha": self.commit_sha,
            "current_prompt": self.prompt,
        }
        if self.error_reason:
            told["error_reason"] = self.error_reason
        return told


TASK_FATES = ("open", "given_up", "merged", "discarded")
"""What can have become of a task in a target's own account; `given_up`: nobody works on it until somebody
is told to go on.
"""


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task as the target's own account tells it, in the contract's words."""

    name: str
    fate: str
    text: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that was looked at, at one moment."""

    at: float = 0.0
    state_exists: bool = False
    state_error: str | None = None
    state_in_place: bool = False
    """The state file was modified in place since the last look instead of being replaced."""
    state_as_left: bool = False
    """The state file is still what a fault made of it: it tells nothing about the target."""
    daemon_flag: bool | None = None
    workers: Mapping[str, WorkerView] = field(default_factory=dict)
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Worker -> all that is kept of it, in the target's own words."""
    document: Mapping[str, Any] | None = None
    """All of the state, in the target's own words; None: it is none of names and values."""
    tasks: tuple[TaskView, ...] | None = None
    """The target's own account of all tasks; None when it keeps none."""
    sessions: frozenset[str] | None = None
    daemons: tuple[ProcessView, ...] | None = None
    agents: tuple[AgentView, ...] | None = None
    worktrees: Mapping[str, WorktreeView] = field(default_factory=dict)
    registered: frozenset[str] = frozenset()
    """Directories that git knows as worktrees of the target's repositories."""
    receipts: tuple[Receipt, ...] | None = None
    commits: tuple[Commit, ...] | None = None
    default_head: str | None = None
    default_tokens: frozenset[str] | None = None
    """Tokens in the files of the default branch."""
    default_untold: frozenset[str] | None = None
    """Files of the default branch without any token: no agent has written them."""
    default_conflicted: frozenset[str] | None = None
    """Files of the default branch with the marks of a conflict that nobody has resolved."""
    default_shape: frozenset[str] | None = None
    """`MODE SIZE PATH` of each file of the default branch that an agent may have reshaped."""
    source_dirty: tuple[str, ...] | None = None
    """Tracked files of the user's checkout that are not as in its last commit; None when git failed."""
    source_edit_intact: bool | None = None
    """The user's uncommitted edit (DirtySource) is still there; None when there is none."""
    neighbours: Mapping[str, bool] = field(default_factory=dict)
    """What somebody else has beside the target, and whether it is as they left it."""
    probe_errors: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)
    """How fast things go: limits are to be taken at this pace."""
    daemon_crash: str | None = None
    """What went wrong in the daemon, as its log tells since the last look."""

    @property
    def daemon_alive(self) -> bool:
        return bool(self.daemons)

    def status_of(self, worker: str) -> str | None:
        view = self.workers.get(worker)
        return view.status if view else None

    def standing_of(self, worker: str) -> Hashable:
        """How one worker's affairs stand, without pids and times: what changes in it is progress."""
        view = self.workers.get(worker)
        if view is None:
            return None
        agents = sorted(
            (agent.alive, agent.busy) for agent in self.agents or () if agent.worker == worker
        )
        tokens = {
            token
            for receipt in self.receipts or ()
            if receipt.worker == worker
            for token in receipt.tokens
        }
        finished = sum(
            receipt.finished for receipt in self.receipts or () if receipt.worker == worker
        )
        tree = self.worktrees.get(worker)
        return (
            *(view.status, bool(view.prompt), view.pending_prompt, view.commit_sha),
            self.sessions is not None and view.session in self.sessions,
            *(tuple(agents[-1:]), frozenset(tokens), min(finished, len(tokens))),
            *((tree.exists, tree.head, tree.rebasing) if tree is not None else ()),
        )

    def standing(self) -> Hashable:
        """The same of everything."""
        workers = frozenset((name, self.standing_of(name)) for name in self.workers)
        commits = None if self.commits is None else frozenset(c.sha for c in self.commits)
        return (self.state_exists, self.state_error, self.state_as_left, self.daemon_alive), (
            *(workers, commits, self.default_head),
        )

    def believable(self) -> Observation:
        """The same without what Mutiny itself has written."""
        return replace(self, workers={}, daemon_flag=None) if self.state_as_left else self

    def as_json(self) -> WorkersState:
        """The journal's `pre_state` and `post_state`."""
        record: WorkersState = {
            "workers": {name: view.as_json() for name, view in sorted(self.workers.items())},
            "daemon_running": self.daemon_alive,
        }
        if self.daemon_flag not in (None, self.daemon_alive):
            record["state_says_daemon_running"] = self.daemon_flag
        if self.sessions is not None:
            record["sessions"] = sorted(self.sessions)
        if self.state_error:
            record["state_error"] = self.state_error
        if self.state_as_left:
            record["state_as_left"] = True
        if self.probe_errors:
            record["probe_errors"] = list(self.probe_errors)
        return record
