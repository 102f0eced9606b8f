"""The operations of the board contract: the words of a task board, its workers, and its faults.

Every class here is data only. Epochs and leader tokens are no arguments: whoever claimed a task uses
the epoch that it was given, and `stale=True` uses the one before, as a worker does that slept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.kit import operations as common
from mutiny.kit.faults import DAMAGES
from mutiny.kit.operations import (
    OfWorker,
    check_command,
    check_noticeable,
    check_one_of,
    check_seconds,
    named_by,
)
from mutiny.kit.registry import registry
from mutiny.model.operation import Kind, Operation

STATUSES = ("blocked", "available", "claimed", "in_progress", "done", "failed", "cancelled")
HELD = ("claimed", "in_progress")
TERMINAL = ("done", "failed", "cancelled")
BEHAVIOURS = (
    *("healthy", "claim-and-die", "claim-and-hang", "slow", "stranger", "double"),
    *("flood", "deaf", "skewed"),
)
"""What a spawned worker does; `slow:MS` and `skewed:SECONDS` carry a number."""
SETTINGS = (
    *("lease_s", "leader_lease_s", "retry_base_s", "retry_cap_s", "jitter", "max_attempts"),
    *("breaker_failures", "breaker_open_s", "breaker_half_open", "breaker_successes"),
    *("rate_limit", "rate_burst", "agent_timeout_s"),
)
"""Figures of a board that `Configure` may set."""
DRIVES = ("cycles", "dag", "payloads", "long", "burst")
"""What a load does."""


def split_new_task(text: str) -> tuple[str, tuple[str, ...]]:
    """A task of a batch: `id`, or `id:dependency,dependency`."""
    name, _, depends = text.partition(":")
    return name, tuple(word for word in depends.split(",") if word)


@dataclass(frozen=True)
class OfTask(Operation):
    """Something that is said, done or asked about one task."""

    task: str


@dataclass(frozen=True)
class OfNode(Operation):
    """What a node says that leads, or wants to."""

    node: str


@dataclass(frozen=True)
class OfCopy(Operation):
    """What is said about a copy of the board."""

    name: str


def _check_name(what: str, name: str) -> None:
    if not name or name != name.strip():
        raise ValueError(f"{what} must be a name, got {name!r}")


# --- control --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Configure(Operation):
    """Set one figure of the board for all commands and servers that start from now on."""

    name: str
    value: float
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        check_one_of("name", self.name, SETTINGS)


@dataclass(frozen=True)
class Settle(common.Settle):
    """Heal all lasting faults, then wait until nothing is pending; the history is checked, too."""

    timeout_seconds: float | None = None


@dataclass(frozen=True)
class SpawnWorker(OfWorker):
    """Start workers in the background: `worker`, or `worker-1`, `worker-2`, ... when there are several."""

    behaviour: str = "healthy"
    count: int = 1
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        _check_name("worker", self.worker)
        word, _, number = self.behaviour.partition(":")
        if word not in BEHAVIOURS:
            raise ValueError(f"behaviour {self.behaviour!r} is none of {', '.join(BEHAVIOURS)}")
        if number and not number.lstrip("-").replace(".", "", 1).isdigit():
            raise ValueError(f"behaviour {self.behaviour!r}: {number!r} is no number")
        if not 1 <= self.count <= 100:
            raise ValueError(f"count must be between 1 and 100, got {self.count}")

    @property
    def names(self) -> tuple[str, ...]:
        """The workers that are started."""
        if self.count == 1:
            return (self.worker,)
        return tuple(f"{self.worker}-{number}" for number in range(1, self.count + 1))


class StopWorker(OfWorker):
    """Ask spawned workers (this one, or all of this name) to end; they finish what they hold."""

    kind: ClassVar[Kind] = Kind.CONTROL


@dataclass(frozen=True)
class Behave(Operation):
    """What the agents that the board starts do with every task from now on: obey, slow:MS, exit, ..."""

    turn: str = "nothing"
    kind: ClassVar[Kind] = Kind.CONTROL


# --- commands -------------------------------------------------------------------------------------


class Init(Operation):
    """Make the board."""


class Up(Operation):
    """Start the board's server; a board of files needs none."""


class Down(Operation):
    """Stop the board's server in an orderly way."""


@dataclass(frozen=True)
class AddTask(OfTask):
    """A new task; `size` bytes of payload go with it."""

    priority: int = 5
    depends: tuple[str, ...] = ()
    max_attempts: int | None = None
    size: int = 0

    def __post_init__(self) -> None:
        _check_name("task", self.task)


class AddUnnamed(Operation):
    """A new task that nobody has named: the board gives it a name that no other task has."""


@dataclass(frozen=True)
class AddBatch(Operation):
    """New tasks, all or none: `"a"`, or `"c:a,b"` for one that depends on others."""

    tasks: tuple[str, ...]
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.tasks:
            raise ValueError("needs at least one task")

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """Each task with its dependencies."""
        return dict(split_new_task(text) for text in self.tasks)


@dataclass(frozen=True)
class Claim(OfWorker):
    """A worker takes the best task, or this one."""

    task: str | None = None


@dataclass(frozen=True)
class OwnerCommand(OfWorker):
    """What a worker says about a task that it holds, or believes to hold."""

    task: str
    stale: bool = False
    """With the epoch before the last one that this worker was given, or none that is right."""


class Start(OwnerCommand):
    """The owner begins."""


@dataclass(frozen=True)
class Complete(OwnerCommand):
    """It is done; `size` bytes of output."""

    size: int = 0


class Fail(OwnerCommand):
    """The owner could not do it."""


class Release(OwnerCommand):
    """The owner gives it back."""


class Heartbeat(OfWorker):
    """The worker lives."""


class Cancel(OfTask):
    """Nobody needs the task any more."""


def reason_of(operation: Fail | Cancel) -> str:
    """What is said with it, where a target takes a reason."""
    who = operation.worker if isinstance(operation, Fail) else "nobody"
    return f"{who} {'could not do' if isinstance(operation, Fail) else 'needs'} {operation.task}"


class Retry(OfTask):
    """A failed task gets all its attempts again, by hand."""


class Recover(Operation):
    """Return what dead workers hold."""


class Checkpoint(OfCopy):
    """Keep a copy of the board."""


class Restore(OfCopy):
    """Bring a copy back."""


class Elect(OfNode):
    """A node wants to lead."""


@dataclass(frozen=True)
class LeaderCommand(OfNode):
    """What a node says as the leader that it is, or believes to be."""

    stale: bool = False
    """With the token before the last one that this node was given, or none that is right."""
    borrowed: bool = False
    """With the newest token that anybody was given, as it stands in every status."""


class Renew(LeaderCommand):
    """The leader lives."""


class StepDown(LeaderCommand):
    """The leader goes."""


@dataclass(frozen=True)
class WriteAsLeader(LeaderCommand):
    """A write that needs leadership."""

    text: str = "x"


class Status(Operation):
    """How things are."""

    looks: ClassVar[bool] = True


class List(Operation):
    """All tasks."""

    looks: ClassVar[bool] = True


class Repair(Operation):
    """Mend a board that cannot be read."""


# --- load -----------------------------------------------------------------------------------------


def _check_count(what: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        raise ValueError(f"{what} must be between 1 and {most}, got {number}")


@dataclass(frozen=True)
class AddMany(Operation):
    """Many new tasks `prefix-1`, `prefix-2`, ..., a thousand at a time: `plain`, or a `dag` in which each
    depends on up to three earlier ones.
    """

    count: int
    shape: str = "plain"
    prefix: str = "t"

    def __post_init__(self) -> None:
        _check_count("count", self.count, 100_000)
        _check_name("prefix", self.prefix)
        if self.shape not in ("plain", "dag"):
            raise ValueError(f"shape {self.shape!r} is neither 'plain' nor 'dag'")

    @property
    def named(self) -> dict[str, tuple[str, ...]]:
        """Each task with its dependencies, which come before it."""
        return {
            f"{self.prefix}-{number}": self._depends(number) for number in range(1, self.count + 1)
        }

    def _depends(self, number: int) -> tuple[str, ...]:
        """Roots every seventh; the others lean on a parent, a neighbour and a far one: diamonds, fans
        and chains, the same everywhere.
        """
        if self.shape == "plain" or number % 7 == 1:
            return ()
        picked = dict.fromkeys((number // 2, number - 1, number - number % 13 - 1))
        if number % 3:
            picked.pop(number - 1, None)
        return tuple(f"{self.prefix}-{one}" for one in picked if 1 <= one < number)


@dataclass(frozen=True)
class Drive(Operation):
    """Many commands in one step, by workers side by side that keep their connections: `load-1`, ...

    `cycles` claims and completes `count` tasks, `dag` all there are, `payloads` completes with outputs of
    up to `size` bytes, `long` works on each task for `seconds` with heartbeats while somebody tries to
    take it, `burst` claims `count` times a worker as fast as it can.
    """

    shape: str
    count: int = 100
    workers: int = 4
    size: int = 1_000_000
    seconds: float = 3.0
    kind: ClassVar[Kind] = Kind.CONTROL
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_one_of("shape", self.shape, DRIVES)
        _check_count("count", self.count, 1_000_000)
        _check_count("workers", self.workers, 256)
        _check_count("size", self.size, 64_000_000)
        check_seconds(self.seconds)

    @property
    def names(self) -> tuple[str, ...]:
        """The workers."""
        return tuple(f"load-{number}" for number in range(1, self.workers + 1))


# --- waits and assertions -------------------------------------------------------------------------


@dataclass(frozen=True)
class WaitForStatus(OfTask):
    """Until a task has a status."""

    status: str
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT

    def __post_init__(self) -> None:
        check_one_of("status", self.status, STATUSES)


@dataclass(frozen=True)
class WaitForSettled(Operation):
    """Until every task is done, failed for good, or cancelled."""

    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT


@dataclass(frozen=True)
class WaitForAgent(OfTask):
    """Until an agent of the board's own works on a task, and as many as `runs` have begun it in all."""

    runs: int = 1
    timeout_seconds: float | None = None
    kind: ClassVar[Kind] = Kind.WAIT


@dataclass(frozen=True)
class AssertStatus(OfTask):
    """A task has this status now."""

    status: str
    kind: ClassVar[Kind] = Kind.ASSERTION

    def __post_init__(self) -> None:
        check_one_of("status", self.status, STATUSES)


@dataclass(frozen=True)
class AssertOwner(OfTask):
    """A task belongs to this worker now."""

    worker: str
    kind: ClassVar[Kind] = Kind.ASSERTION


@dataclass(frozen=True)
class Verify(Operation):
    """A sentence of `contracts/board/sentences.py` holds now."""

    sentence: str
    kind: ClassVar[Kind] = Kind.ASSERTION
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        from mutiny.contracts.board.sentences import understand

        understand(self.sentence)


# --- faults ---------------------------------------------------------------------------------------


class KillWorker(OfWorker):
    """Kill spawned workers (this one, or all of this name), with whatever command they are in."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class PauseWorker(OfWorker):
    """Stop a spawned worker and what it runs for some seconds; then it goes on."""

    seconds: float = 1.0
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_noticeable(self.seconds)


class KillAgent(OfTask):
    """The agent process that works on this task is killed."""

    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class KillServer(Operation):
    """The board's server is killed; with `after`, at once when that command is answered."""

    after: Operation | None = None
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_command("after", self.after)

    def children(self) -> tuple[Operation, ...]:
        return () if self.after is None else (self.after,)


class RestartServer(Operation):
    """The board's server is stopped in an orderly way and started again."""


class StartSecondServer(Operation):
    """Somebody starts a second server on the same board, which must be refused."""


@dataclass(frozen=True)
class CorruptBoard(Operation):
    """The board's state file is damaged."""

    how: str = "garbage"
    seed: int = 1
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_one_of("how", self.how, DAMAGES)


@dataclass(frozen=True)
class HoldBoardLock(Operation):
    """Somebody holds the board's lock for some seconds, while a command runs if one is given."""

    seconds: float = 1.0
    during: Operation | None = None
    kind: ClassVar[Kind] = Kind.FAULT

    def __post_init__(self) -> None:
        check_noticeable(self.seconds)
        check_command("during", self.during)

    def children(self) -> tuple[Operation, ...]:
        return () if self.during is None else (self.during,)


OPERATIONS: dict[str, type[Operation]] = registry(
    *(Configure, Settle, SpawnWorker, StopWorker, Behave, KillAgent, WaitForAgent),
    *(
        Init,
        Up,
        Down,
        AddTask,
        AddUnnamed,
        AddBatch,
        Claim,
        Start,
        Complete,
        Fail,
        Heartbeat,
        Release,
    ),
    *(Cancel, Retry, Recover, Checkpoint, Restore, Elect, Renew, StepDown, WriteAsLeader),
    *(Status, List, Repair, AddMany, Drive),
    *(WaitForStatus, WaitForSettled, AssertStatus, AssertOwner, Verify),
    *(KillWorker, PauseWorker, KillServer, RestartServer, StartSecondServer),
    *(CorruptBoard, HoldBoardLock),
)
"""All operations by name: the registry that journals and replays are read with."""

WORKING = (Claim, Start, Complete, Fail, Release)
"""Commands of a worker that change the board: they count for a rate limit, and show that it lives."""


def task_of(operation: Operation) -> str | None:
    """The task that an operation names, if any."""
    return named_by(operation, "task")
