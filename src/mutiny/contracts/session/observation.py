"""What is seen of a session at one moment: its checkpoints read directly, its logs, its processes, its
project's git, and what the model's API wrote down.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mutiny.contracts.session.checkpoints import Point, State, last_valid
from mutiny.kit.contract import SeenBase

Row = Mapping[str, Any]
UNFINISHED = ("running", "paused", "interrupted")
ENDED = ("complete", "stopped", "failed")
_STATUS_AFTER = {
    "session.start": "running",
    "session.continue": "running",
    "session.pause": "paused",
    "session.stop": "stopped",
    "session.complete": "complete",
    "session.failed": "failed",
}


@dataclass(frozen=True)
class Plan:
    """What a project is to become: its phases, its tasks, its votes."""

    phases: tuple[str, ...] = ()
    minutes: tuple[float, ...] = ()
    checkpoint_minutes: tuple[float, ...] = ()
    criteria: tuple[tuple[str, ...], ...] = ()
    tasks: Mapping[str, Row] = field(default_factory=dict)
    votes: Mapping[str, Row] = field(default_factory=dict)
    agents: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    """Agent -> its role."""

    def phase_of(self, task: str) -> int:
        """The place of a task's phase."""
        return self.phases.index(self.tasks[task]["phase"])


_MOVES = (
    *("task.done", "task.flagged", "phase.start", "phase.complete"),
    *("vote.open", "vote.won", "vote.priority", "vote.decided", "vote.escalated"),
    *("supervisor.start", "session.restore"),
)
"""Events that bring a session further: each once, for who says the same for ever stands still."""
_ABOUT = ("type", "life", "phase", "task", "vote")
_ASKED = ("kind", "life", "agent", "task", "name", "input")


@dataclass(frozen=True)
class GitSeen:
    """The repository of the project."""

    head: str | None = None
    dirty: tuple[str, ...] = ()
    trees: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Commit -> its files, each with git's name of its content; of the commits that checkpoints name."""


@dataclass(frozen=True)
class Processes:
    """What runs in the box."""

    supervisors: int = 0
    agents: int = 0
    others: tuple[str, ...] = ()
    """What nobody drives any more."""
    tools: int = 0
    """What agents have started themselves."""
    memory_mb: float = 0.0
    descriptors: int = 0


@dataclass(frozen=True)
class SessionView:
    """One session: everything that it has written down."""

    name: str
    project: str = ""
    agents: int = 0
    hours: float = 0.0
    plan: Plan = field(default_factory=Plan)
    points: tuple[Point, ...] = ()
    """The checkpoints, by number."""
    events: tuple[Row, ...] = ()
    calls: tuple[Row, ...] = ()
    metrics: tuple[Row, ...] = ()
    bad_lines: tuple[str, ...] = ()
    git: GitSeen | None = None
    processes: Processes | None = None
    size_mb: float = 0.0
    digest: str = ""
    """All bytes of the session, without what changes by looking."""
    written: Row | None = None
    """What tasks have written and lies in the user's directory: file -> its hash; None: nobody looked."""

    @cached_property
    def told(self) -> str:
        """Its status by its own events."""
        found = "running"
        for one in self.of(*_STATUS_AFTER, "session.restore"):
            # A named checkpoint may bring back the time before the end.
            found = _STATUS_AFTER.get(one["type"]) or str(one.get("status") or found)
        return found

    @property
    def alive(self) -> bool | None:
        """Does something drive it? None: nobody could look."""
        return None if self.processes is None else self.processes.supervisors > 0

    @property
    def status(self) -> str:
        """What it is now: one that nobody drives and that is not at its end was interrupted."""
        return "interrupted" if self.told not in ENDED and self.alive is False else self.told

    def of(self, *kinds: str) -> Iterator[Row]:
        """Its events of these types, in order."""
        return (one for one in self.events if one["type"] in kinds)

    def of_last(self, *kinds: str) -> Iterator[Row]:
        """The same, the last one first."""
        return (one for one in reversed(self.events) if one["type"] in kinds)

    @property
    def last_valid(self) -> State | None:
        """What a recovery has to bring back."""
        return last_valid(self.points)

    @cached_property
    def done(self) -> frozenset[str]:
        """Tasks that are done by the newest state that can be read."""
        state = self.last_valid
        tasks = {} if state is None else state.tasks
        return frozenset(name for name, status in tasks.items() if status in ("done", "flagged"))

    @cached_property
    def told_done(self) -> frozenset[str]:
        """Tasks that it has told as done; what it does not keep is told all the same."""
        return frozenset(str(row.get("task")) for row in self.of("task.done", "task.flagged"))

    @cached_property
    def elapsed_s(self) -> float:
        """How old it is, by whatever it has written last in this life of it.

        Going back to a checkpoint makes it younger: what an earlier life has written is no clock then.
        """
        last = next(self.of_last("session.restore", "supervisor.start"), None)
        others = (*self.calls[-1:], *self.metrics[-1:])
        if last is not None and last["type"] == "session.restore":
            others = ()
        elif last is not None:
            life = last.get("life")
            others = tuple(row for row in others if row.get("life", life) == life)
        return max(map(at_of, (*self.events[-1:], *others)), default=0.0)

    @property
    def phase(self) -> int:
        """The phase that it is in, counted from 1; one more than there are when it is complete."""
        if self.told == "complete":
            return len(self.plan.phases) + 1
        state = self.last_valid
        begun = [one["phase"] for one in self.of("phase.start")]
        names = [name for name in begun if name in self.plan.phases]
        if names:
            return self.plan.phases.index(names[-1]) + 1
        return 1 if state is None else state.phase + 1

    def spans(self) -> Iterator[tuple[int, int]]:
        """The lives of the session: from which event to which one process drove it."""
        starts = [
            index for index, one in enumerate(self.events) if one["type"] == "supervisor.start"
        ]
        yield from zip(starts, [*starts[1:], len(self.events)], strict=True)


def at_of(row: Row) -> float:
    """The session time of a line."""
    value = row.get("at", row.get("elapsed_seconds", 0.0))
    return float(value) if isinstance(value, int | float) else 0.0


@dataclass(frozen=True, kw_only=True)
class SessionSeen(SeenBase):
    """Everything that one look tells."""

    names: tuple[str, ...] = ()
    """All sessions of the home, the newest last."""
    session: SessionView | None = None
    """The newest."""
    api: tuple[Row, ...] = ()
    """What the model's API was asked and answered."""
    asked: tuple[tuple[str, ...], ...] = ()
    """What each request said to the model, as digests of its messages, where requests are kept."""
    damaged: frozenset[str] = frozenset()
    """Parts of checkpoints that Mutiny itself has damaged: `3`, `3.delta`."""
    rate: float = 1.0
    """How many seconds of session time pass in a real one."""
    built: Row | None = None
    """What came of building the project by hand, when that was just done."""
    heedless_s: float = 0.0
    """For so long the session had less memory than it uses, just now, and did nothing about it."""

    @property
    def status(self) -> str:
        """The newest session's, or that there is none."""
        return "none" if self.session is None else self.session.status

    def as_json(self) -> dict[str, object]:
        """The journal's form: short, because there are many."""
        one = self.session
        if one is None:
            return {"error": self.error, "sessions": list(self.names), "status": "none"}
        state = one.last_valid
        return {
            "error": self.error,
            "sessions": list(self.names),
            "status": one.status,
            "phase": one.phase,
            "elapsed_s": round(one.elapsed_s, 1),
            "done": sorted(one.done),
            "told_done": sorted(one.told_done),
            "checkpoints": [point.number for point in one.points if point.valid],
            "not_valid": {str(p.number): p.why for p in one.points if not p.valid},
            "last_valid": None if state is None else [state.number, state.deltas],
            "events": len(one.events),
            "calls": len(one.calls),
            "requests": len(self.api),
            "metrics": len(one.metrics),
            "processes": None if one.processes is None else vars(one.processes),
        }

    def standing(self) -> Hashable:
        """How things stand, without times: whoever makes calls that go well moves; who tries for ever what
        always fails does not.
        """
        one = self.session
        if one is None:
            return "none"
        ended = {
            row.get("call")
            for row in one.calls
            if row.get("state") == "end" and row.get("ok", True)
        }
        begun = (
            row for row in one.calls if row.get("state") == "begin" and row.get("call") in ended
        )
        well = len({tuple(str(row.get(key)) for key in _ASKED) for row in begun})
        said = len({tuple(str(row.get(key)) for key in _ABOUT) for row in one.of(*_MOVES)})
        # Who writes down no calls is known by his requests and by what he keeps.
        kept = () if one.calls else (len(self.api), len(one.points))
        return (one.status, one.phase, well, said, len(one.done), *kept)
