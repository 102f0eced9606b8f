"""What can be said and done to agents that summon agents."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from mutiny.kit.operations import check_one_of
from mutiny.kit.registry import registry
from mutiny.model.operation import Kind, Operation

PROVIDERS = ("claude", "codex", "gemini")
SETTINGS = (
    *("max_depth", "max_runs", "max_running", "retries", "retry_delay_s"),
    *("timeout_s", "no_session_s", "stall_s"),
)
ENDLESS = ("hang", "silent", "tty")
"""Steps after which an agent never ends by itself."""
_WORDS = (
    *("reply", "human", "echo", "quiet", "hang", "silent", "tty", "stdin", "die", "leave"),
    *("ignore-term", "bytes"),
)
_STEP = re.compile(
    rf"(?:{'|'.join(_WORDS)}|mention:[\w,-]+|echo:[\w,-]+|flood:\d+(?:,[\w-]+)*|post:[^+]+"
    r"|slow:\d+|busy:\d+|exit:\d+|in:[\w-]+)"
)


def steps_of(turn: str) -> tuple[str, ...]:
    """What an agent does in one turn, step by step."""
    return tuple(turn.split("+"))


def is_endless(turn: str) -> bool:
    """Does it never end by itself?"""
    return any(step in ENDLESS for step in steps_of(turn))


# --- commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Init(Operation):
    """A home for agents, channels and messages."""


@dataclass(frozen=True)
class Register(Operation):
    """Make an agent known."""

    agent: str
    provider: str = "claude"
    model: str = ""

    def __post_init__(self) -> None:
        check_one_of("provider", self.provider, PROVIDERS)


@dataclass(frozen=True)
class CreateChannel(Operation):
    """A place for messages."""

    channel: str
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class Send(Operation):
    """Post a message; whoever is mentioned in it is started."""

    channel: str
    text: str
    sender: str = "human"
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class Spawn(Operation):
    """Start one agent with a text; in the foreground the command lasts until its end."""

    agent: str
    text: str
    channel: str
    detach: bool = True
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class Stop(Operation):
    """Stop the run of an agent in a channel: the one that lives, else the newest."""

    agent: str
    channel: str
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class StopAll(Operation):
    """Stop all runs, or those of a channel or an agent."""

    channel: str = ""
    agent: str = ""


@dataclass(frozen=True)
class Cleanup(Operation):
    """Put right what says that it runs and is dead."""


@dataclass(frozen=True)
class Health(Operation):
    """What is dead, stalled, or without a session."""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class ListSpawns(Operation):
    """All runs."""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Chain(Operation):
    """Who started whom."""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Logs(Operation):
    """What the run of an agent in a channel has written; `follow`: until its end."""

    agent: str
    channel: str
    tail: int = 20
    follow: bool = False
    positional: ClassVar[bool] = True
    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Receive(Operation):
    """Read a channel; a reader goes on where it was.

    `again`: it reads so many of the last messages again; `most`: no more than so many at once.
    """

    channel: str
    reader: str = ""
    again: int = 0
    most: int = 0
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class Await(Operation):
    """Wait by the target's own command until the newest runs of these agents in a channel are over."""

    agents: tuple[str, ...]
    channel: str
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.agents:
            raise ValueError("agents: needs at least one name")


@dataclass(frozen=True)
class AwaitHuman(Operation):
    """Wait by the target's own command until an agent calls a human in a channel."""

    channel: str
    positional: ClassVar[bool] = True


# --- the user's side ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Behave(Operation):
    """What an agent does in its turns from now on, the first one first; the last one repeats.

    A turn is steps joined by `+`: `slow:300+mention:prime,hailot+exit:1`.
    """

    agent: str
    does: tuple[str, ...] = ("reply",)
    kind: ClassVar[Kind] = Kind.CONTROL
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.does:
            raise ValueError("does: needs at least one turn")
        for turn in self.does:
            for step in steps_of(turn):
                if _STEP.fullmatch(step) is None:
                    known = ", ".join(
                        (
                            *(*_WORDS, "mention:A", "flood:N", "post:TEXT", "slow:MS", "busy:MS"),
                            "in:CHANNEL",
                        )
                    )
                    raise ValueError(f"does: {step!r} is no behaviour; known: {known}, exit:N")


@dataclass(frozen=True)
class Configure(Operation):
    """Change a setting from now on."""

    name: str
    value: float
    kind: ClassVar[Kind] = Kind.CONTROL
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_one_of("name", self.name, SETTINGS)
        if not 0 <= self.value <= 100_000:
            raise ValueError(f"value must be between 0 and 100000, got {self.value:g}")


# --- waits ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WaitForRun(Operation):
    """Until an agent is at work in a channel: its provider runs, and has its text."""

    agent: str
    channel: str = ""
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class WaitForCompletion(Operation):
    """Until every run of an agent has ended."""

    agent: str
    channel: str = ""
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class WaitForHuman(Operation):
    """Until an agent says `@human` in a channel."""

    channel: str
    kind: ClassVar[Kind] = Kind.WAIT
    positional: ClassVar[bool] = True


class WaitForQuiet(Operation):
    """Until nothing that ends by itself runs or waits any more."""

    kind: ClassVar[Kind] = Kind.WAIT


# --- faults ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OfRun(Operation):
    """Something that happens to the live run of an agent."""

    agent: str
    channel: str = ""
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class KillSupervisor(OfRun):
    """Whoever watches over the run dies; `over`: as soon as the run is called over, if he still lives."""

    over: bool = False


class KillProvider(OfRun):
    """The agent itself dies."""


class KillSpawnGroup(OfRun):
    """Both die at once."""


@dataclass(frozen=True)
class KillSender(Operation):
    """A command is killed with its whole session right after it has answered: a terminal that closes."""

    operation: Operation
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.operation, Send | Spawn):
            raise ValueError(f"only a Send or a Spawn can be killed so, not {self.operation.type}")

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


@dataclass(frozen=True)
class HoldDatabase(Operation):
    """Somebody else holds the database for so long while a command runs."""

    operation: Operation
    seconds: float = 0.5
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        if self.operation.kind is not Kind.COMMAND:
            raise ValueError(f"operation must be a command; {self.operation.type} is none")
        if not 0.05 <= self.seconds <= 60:
            raise ValueError(f"seconds must be between 0.05 and 60, got {self.seconds:g}")

    def children(self) -> tuple[Operation, ...]:
        return (self.operation,)


@dataclass(frozen=True)
class ReusePid(Operation):
    """The pid of an agent's dead run comes to mean somebody else's process."""

    agent: str
    channel: str = ""
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class ProviderMissing(Operation):
    """The program of a provider is not installed; `back`: it is again."""

    provider: str
    back: bool = False
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_one_of("provider", self.provider, PROVIDERS)


@dataclass(frozen=True)
class LoseDatabase(Operation):
    """The database is empty, cut off, or gone; `back`: it is as it was."""

    how: str = "delete"
    back: bool = False
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_one_of("how", self.how, ("delete", "empty", "truncate"))


OPERATIONS = registry(
    *(Init, Register, CreateChannel, Send, Spawn, Stop, StopAll, Cleanup, Health, ListSpawns),
    *(Chain, Logs, Receive, Await, AwaitHuman, Behave, Configure),
    *(WaitForRun, WaitForCompletion, WaitForHuman, WaitForQuiet),
    *(KillSupervisor, KillProvider, KillSpawnGroup, KillSender, HoldDatabase, ReusePid),
    *(ProviderMissing, LoseDatabase),
)
