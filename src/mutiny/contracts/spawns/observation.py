"""What is seen at one moment: the database, the processes, and what the agents themselves wrote down."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from mutiny.contracts.spawns.mentions import calls_human
from mutiny.contracts.spawns.operations import is_endless
from mutiny.kit.contract import SeenBase

WAITING = ("pending", "queued")
LIVE = ("pending", "running")
ENDED = ("completed", "failed", "stopped", "refused")
STATUSES = (*WAITING, "running", *ENDED)
Identity = tuple[int, int]
"""Pid and start time."""
Row = Mapping[str, Any]
"""A row as the target keeps it, in its own words."""


@dataclass(frozen=True)
class Message:
    """A message as the target keeps it."""

    id: int
    channel: str
    sender: str
    text: str
    spawn: int | None = None
    """The run that posted it; None: somebody from outside."""
    attempt: int = 0
    at: float = 0.0
    root: int | None = None
    """The message from outside that it goes back to, as the target has it; None: it does not say."""

    @property
    def ends(self) -> bool:
        """Is it the completion signal of its conversation?"""
        return self.spawn is not None and calls_human(self.text)


@dataclass(frozen=True)
class Run:
    """A run as the target keeps it, and which of its processes live."""

    id: int
    agent: str
    channel: str
    message: int
    status: str
    reason: str = ""
    attempt: int = 0
    stopping: bool = False
    supervisor: Identity | None = None
    provider: Identity | None = None
    supervised: bool = False
    """Its supervisor lives."""
    provided: bool = False
    """Its provider lives."""
    session: str = ""
    created: float = 0.0
    started: float = 0.0
    ended: float = 0.0
    exit_code: int | None = None
    """As the target has it; None: it does not say. So are the next ones."""
    program: str | None = None
    """The provider that does the work."""
    root: int | None = None
    depth: int | None = None
    parent: int | None = None
    """The run that started it; 0: nobody."""

    @property
    def over(self) -> bool:
        """Has it ended?"""
        return self.status in ENDED

    @property
    def place(self) -> tuple[str, str]:
        """Who, and where."""
        return (self.agent, self.channel)

    def __str__(self) -> str:
        return f"s{self.id} ({self.agent} in {self.channel})"


@dataclass(frozen=True)
class Invocation:
    """An agent that was started, as it wrote it down itself."""

    spawn: int
    attempt: int
    agent: str
    identity: Identity
    alive: bool = False
    task: str | None = None
    """The text that it received; None: it has not come so far."""
    message: int | None = None
    behaviour: str = ""
    session: str = ""
    session_at: float = 0.0
    """When it last gave a sign in its session file."""
    posts: tuple[int, ...] = ()
    """Messages that it posted and that were accepted; 0: the target does not say how it calls it."""
    posting: int = 0
    """How often it has tried to."""
    exit_code: int | None = None
    at: float = 0.0

    @property
    def endless(self) -> bool:
        """Will it never end by itself?"""
        return is_endless(self.behaviour)


@dataclass(frozen=True)
class Happened:
    """One line of the target's own account, in its one order."""

    seq: int
    kind: str
    message: int | None = None
    spawn: int | None = None


@dataclass(frozen=True, kw_only=True)
class SpawnsSeen(SeenBase):
    """Everything that one look tells."""

    home: bool = False
    agents: Mapping[str, str] = field(default_factory=dict)
    """Name -> provider."""
    channels: frozenset[str] = frozenset()
    messages: Mapping[int, Message] = field(default_factory=dict)
    runs: Mapping[int, Run] = field(default_factory=dict)
    events: tuple[Happened, ...] = ()
    """Empty where the target keeps no such account."""
    invocations: tuple[Invocation, ...] = ()
    killed: int = 0
    """Processes of ours that had a run's old pid, and are dead."""
    starting: tuple[str, ...] = ()
    """Processes that are about to start a run of which nothing is written down yet."""
    kept: Mapping[str, Mapping[str, Row]] = field(default_factory=dict)
    """Table -> rows by their names, in the target's own words; empty where it does not promise that its
    answers say what is kept.
    """
    strays: tuple[str, ...] = ()
    """What runs in the box and is neither a supervisor nor a provider of a run that lives."""

    @cached_property
    def by_run(self) -> Mapping[int, tuple[Invocation, ...]]:
        """Run -> its invocations, in order."""
        found: dict[int, list[Invocation]] = {}
        for one in self.invocations:
            found.setdefault(one.spawn, []).append(one)
        return {run: tuple(each) for run, each in found.items()}

    def invoked(self, run: Run) -> tuple[Invocation, ...]:
        """The invocations of a run."""
        return self.by_run.get(run.id, ())

    def latest(self, run: Run) -> Invocation | None:
        """The invocation of its attempt; None: it has not begun."""
        return next((one for one in self.invoked(run) if one.attempt == run.attempt), None)

    def said_in(self, channel: str) -> list[int]:
        """The messages of a channel, in their order."""
        return sorted(one.id for one in self.messages.values() if one.channel == channel.lower())

    def before_last(self, channel: str, count: int) -> int:
        """The message after which the last so many of a channel come; 0: there are no more."""
        return next(iter(self.said_in(channel)[: -count or None][-1:]), 0)

    def last_of(self, agent: str, channel: str = "") -> Run | None:
        """The run of an agent that is meant when nobody says which: one that lives, else the newest."""
        named = [
            run
            for run in self.runs.values()
            if run.agent == agent.lower() and channel.lower() in ("", run.channel)
        ]
        for status in ("running", "pending", "queued"):
            living = [run for run in named if run.status == status]
            if living:
                return living[-1] if status == "running" else living[0]
        return named[-1] if named else None

    def root_of(self, message: int) -> int:
        """The message from outside that a message goes back to."""
        for _ in range(len(self.messages) + 1):
            one = self.messages.get(message)
            starter = None if one is None or one.spawn is None else self.runs.get(one.spawn)
            if starter is None:
                return message
            message = starter.message
        return message

    def depth_of(self, run: Run) -> int:
        """How many runs stand above it."""
        depth, message = 0, self.messages.get(run.message)
        while message is not None and message.spawn is not None and depth <= len(self.runs):
            above = self.runs.get(message.spawn)
            message = None if above is None else self.messages.get(above.message)
            depth += 1
        return depth

    @cached_property
    def ends(self) -> Mapping[int, int]:
        """Root message -> the first message that ended its conversation."""
        found: dict[int, int] = {}
        for one in self.messages.values():
            if one.ends:
                found.setdefault(self.root_of(one.id), one.id)
        return found

    def of_root(self, root: int) -> Iterator[Run]:
        """All runs that go back to a message."""
        return (run for run in self.runs.values() if self.root_of(run.message) == root)

    def as_json(self) -> dict[str, object]:
        """The journal's form: enough for metrics and pictures, and no texts."""
        return {
            "home": self.home,
            "error": self.error,
            "agents": dict(self.agents),
            "channels": sorted(self.channels),
            "messages": [
                [
                    one.id,
                    one.channel,
                    one.sender,
                    one.spawn,
                    calls_human(one.text),
                    round(one.at, 3),
                ]
                for one in self.messages.values()
            ],
            "runs": [
                {
                    "id": run.id,
                    "agent": run.agent,
                    "channel": run.channel,
                    "message": run.message,
                    "status": run.status,
                    "reason": run.reason,
                    "attempt": run.attempt,
                    "alive": run.supervised or run.provided,
                    "created": round(run.created, 3),
                    "started": round(run.started, 3),
                    "ended": round(run.ended, 3),
                }
                for run in self.runs.values()
            ],
            "posts": {
                f"s{run}": sum(len(one.posts) for one in each) for run, each in self.by_run.items()
            },
            "killed": self.killed,
            "strays": list(self.strays),
        }

    def standing(self) -> Hashable:
        """How things stand, without times."""
        return (
            tuple((run.id, run.status, run.attempt, run.supervised) for run in self.runs.values()),
            len(self.messages),
            len(self.agents),
            len(self.channels),
            tuple((one.identity, one.exit_code, one.posting) for one in self.invocations),
            self.error,
            self.strays,
        )
