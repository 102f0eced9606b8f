"""What a board consists of, as immutable values.

NamedTuples instead of dataclasses on purpose: they are as immutable, and importing ``dataclasses``
would cost more than a whole command.
"""

from __future__ import annotations

from typing import NamedTuple

BLOCKED = "blocked"
AVAILABLE = "available"
CLAIMED = "claimed"
IN_PROGRESS = "in_progress"
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
STATUSES = (BLOCKED, AVAILABLE, CLAIMED, IN_PROGRESS, DONE, FAILED, CANCELLED)
HELD = (CLAIMED, IN_PROGRESS)
TERMINAL = (DONE, FAILED, CANCELLED)

HISTORY_LENGTH = 12
WRITES_LENGTH = 50
NAME_LENGTH = 64
PRIORITY_MAX = 1000

Answer = dict[str, object]
"""What a verb answers: ``ok`` and what belongs to it; always a JSON object."""


class Task(NamedTuple):
    """One task; ``epoch`` grows with every claim and tells an old owner from the present one."""

    id: str
    description: str
    order: int
    status: str = AVAILABLE
    priority: int = 5
    depends: tuple[str, ...] = ()
    owner: str | None = None
    epoch: int = 0
    attempts: int = 0
    max_attempts: int = 3
    not_before: float = 0.0
    payload: str | None = None
    output: str | None = None
    completions: int = 0
    reason: str | None = None
    history: tuple[str, ...] = ()

    def moved(self, status: str, note: str) -> Task:
        """The task in another status, with a short note for its history."""
        history = (*self.history, f"{status}: {note}")[-HISTORY_LENGTH:]
        return self._replace(status=status, history=history)


class Write(NamedTuple):
    """One write that needed leadership."""

    node: str
    token: int
    text: str


class Leader(NamedTuple):
    """Who leads (None: nobody); the token never goes down, not even over a restore."""

    node: str | None = None
    token: int = 0
    writes: tuple[Write, ...] = ()


class Bucket(NamedTuple):
    """The token bucket of one worker."""

    tokens: float
    at: float


class Board(NamedTuple):
    """Everything that is kept. ``tasks`` are in the order in which they were added."""

    generation: int = 0
    sequence: int = 0
    epoch_floor: int = 0
    tasks: dict[str, Task] = {}  # noqa: RUF012  (never mutated: a ledger copies it)
    leader: Leader = Leader()
    buckets: dict[str, Bucket] = {}  # noqa: RUF012


class NewTask(NamedTuple):
    """What `add` and `add-batch` are asked for."""

    description: str
    id: str | None = None
    priority: int = 5
    depends: tuple[str, ...] = ()
    max_attempts: int | None = None
    payload: str | None = None


class Command(NamedTuple):
    """One verb with its arguments; which of them count depends on the verb."""

    verb: str
    worker: str = ""
    task: str = ""
    epoch: int | None = None
    new: tuple[NewTask, ...] = ()
    text: str | None = None
    name: str = ""
    token: int = 0


class Refused(Exception):
    """A verb that is not possible now; nothing was changed."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message

    def answer(self) -> Answer:
        """The refusal as a JSON object."""
        return {"ok": False, "error": self.error, "message": self.message}


class Unreadable(Refused):
    """The state is there but cannot be understood; an empty one must never be invented."""

    def __init__(self, message: str) -> None:
        super().__init__("unreadable", message)


class SystemRefused(Refused):
    """The system refused a call; ``happened`` says whether the verb took place."""

    def __init__(self, error: str, message: str, happened: str) -> None:
        super().__init__(error, message)
        self.happened = happened

    def answer(self) -> Answer:
        """The refusal as a JSON object, with `happened`: no or unknown."""
        return {**super().answer(), "happened": self.happened}


def check_name(kind: str, name: str) -> str:
    """A name that is safe as a file name and in a table, or a refusal."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if plain.isascii() and plain.isalnum() and name[0] not in "-." and len(name) <= NAME_LENGTH:
        return name
    raise Refused(
        "bad_input",
        f"{name!r} cannot be the name of a {kind}: letters, digits and ._- (not in front), "
        f"at most {NAME_LENGTH}",
    )
