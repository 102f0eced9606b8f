"""What can be seen of a board at one moment. An unknown fact is None, never an empty answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field

from mutiny.model.pace import Pace


@dataclass(frozen=True)
class TaskView:
    """One task as the board shows it; what a board does not show is None."""

    id: str
    status: str
    owner: str | None = None
    epoch: int | None = None
    attempts: int | None = None
    max_attempts: int | None = None
    priority: int | None = None
    depends: tuple[str, ...] = ()
    completions: int | None = None
    output: str | None = None
    reason: str | None = None
    own: str | None = None
    """The board's own name of the task, where that is another one."""
    unchanged_s: float = 0.0
    """For how long status, owner and epoch have been seen like this."""


@dataclass(frozen=True)
class AgentRun:
    """One task in the hands of one agent process that the board itself has started."""

    worker: str
    task: str
    identity: tuple[int, int]
    """Pid and start time."""
    alive: bool
    busy: bool
    """It lives, and has not answered yet."""
    begun: int = 0
    ended: int | None = None
    """Places in the order in which all agents wrote down what they did."""
    told: int | None = None
    """So many characters it was told."""


@dataclass(frozen=True)
class BoardObservation:
    """One look at a board."""

    at: float = 0.0
    began: float = 0.0
    ended: float = 0.0
    """When the look was taken, on our own monotonic clock."""
    tasks: Mapping[str, TaskView] | None = None
    """None: there was nothing to look at, or it could not be read."""
    state_error: str | None = None
    """Why the board could not be read although it is there."""
    absent: bool = True
    """There is no board yet."""
    leader: str | None = None
    token: int | None = None
    servers: int | None = None
    """How many servers of the board run; None: not looked, or it has none."""
    living: frozenset[str] = frozenset()
    """Spawned workers, and agents of the board's own, whose processes run."""
    agents: tuple[AgentRun, ...] = ()
    """What agents of the board's own have done so far, and do now."""
    probe_errors: tuple[str, ...] = ()
    pace: Pace = field(default_factory=Pace)
    crash: str | None = None
    """How the board's own command that shows its tasks died, in one sentence."""
    silent: str | None = None
    """What the board says, again and again, instead of showing its tasks: that it has no time."""

    def status_of(self, task: str | None) -> str | None:
        """The status of a task, if it was seen."""
        view = (self.tasks or {}).get(task or "")
        return view.status if view is not None else None

    def standing(self) -> Hashable:
        """How things stand, without pids and times: what changes in it is progress."""
        return frozenset(
            (
                *((view.id, view.status, view.attempts) for view in (self.tasks or {}).values()),
                *((run.task, run.identity, run.busy) for run in self.agents),
                ("servers", self.servers),
                ("readable", self.tasks is not None),
            )
        )

    def as_json(self) -> dict[str, object]:
        """The journal's form: what is said, without what is not."""
        tasks = None
        if self.tasks is not None:
            tasks = {
                name: {
                    key: value
                    for key, value in asdict(view).items()
                    if value not in (None, ()) and key not in ("id", "unchanged_s")
                }
                for name, view in self.tasks.items()
            }
        record: dict[str, object] = {"tasks": tasks, "leader": self.leader, "token": self.token}
        optional: dict[str, object] = {
            "state_error": self.state_error,
            "crash": self.crash,
            "servers": self.servers,
            "living": sorted(self.living) or None,
            "agents": [
                {"worker": run.worker, "task": run.task, "pid": run.identity[0]}
                for run in self.agents
                if run.busy
            ]
            or None,
        }
        record.update({key: value for key, value in optional.items() if value is not None})
        return record
