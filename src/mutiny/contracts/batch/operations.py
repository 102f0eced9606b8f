"""What can be said and done to a batch orchestrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mutiny.contracts.batch import fixtures
from mutiny.contracts.batch.knobs import check_knob
from mutiny.contracts.batch.tasks import Task, read_tasks
from mutiny.kit.moments import MOMENT_OPERATIONS, At
from mutiny.kit.registry import registry
from mutiny.model.operation import Kind, Operation

GATES = ("lint", "doctor", "test", "style", "architecture", "review")
"""What the user's own programs say; `review` is the validator of the doctor."""
NO = ("fail", "crash", "garbage", "hang", "missing", "odd")
"""A gate that has not passed: it says no; dies; says nothing that is a verdict; never ends; is not
installed; gives its verdict in another type than was agreed.
"""
VERDICTS = ("pass", *NO, "blind", "stuck", "apart", "leaves")
"""What a gate does: it passes, or not; does not notice the canary; passes each task but not two of them
together; leaves a process running.
"""

ENGINE = "containers: private engine"
"""What the catalogue of faults calls an engine of our own."""

# --- commands -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Init(Operation):
    """A home for batches of the source repository."""


@dataclass(frozen=True)
class Plan(Operation):
    """Plan these tasks, one line each; `t1..60` is sixty tasks."""

    tasks: tuple[str, ...]
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.parsed()

    def parsed(self) -> tuple[Task, ...]:
        """The tasks themselves."""
        return tuple(task for line in self.tasks for task in read_tasks(line))


@dataclass(frozen=True)
class Run(Operation):
    """Run the plan to its end."""

    name: str = ""
    """The run's name; without one the target chooses."""


@dataclass(frozen=True)
class Resume(Operation):
    """Go on with the run."""


@dataclass(frozen=True)
class Status(Operation):
    """What is so."""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class LogsQuery(Operation):
    """The events of the run, all or those of one task."""

    task: str = ""
    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class LogsTimeline(Operation):
    """When what began and ended."""

    looks: ClassVar[bool] = True


@dataclass(frozen=True)
class Clean(Operation):
    """Take the files of a run away; `name`: which, the newest without one."""

    force: bool = True
    name: str = ""


@dataclass(frozen=True)
class SetTaskStatus(Operation):
    """Try a task again, or leave it out."""

    task: str
    status: str = "pending"


# --- the user's side ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Configure(Operation):
    """Change a setting from now on."""

    name: str
    value: str
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        check_knob(self.name, self.value)

    @property
    def needs(self) -> tuple[str, ...]:
        """Containers need an engine."""
        return (ENGINE,) if (self.name, self.value) == ("workers", "container") else ()


@dataclass(frozen=True)
class GateSays(Operation):
    """What one of the user's gates says from now on."""

    gate: str
    verdict: str = "pass"
    kind: ClassVar[Kind] = Kind.CONTROL

    def __post_init__(self) -> None:
        if self.gate not in GATES:
            raise ValueError(f"gate {self.gate!r} is none of {', '.join(GATES)}")
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict {self.verdict!r} is none of {', '.join(VERDICTS)}")


@dataclass(frozen=True)
class UseFixture(Operation):
    """The user's repository is one of the known ones from now on."""

    name: str
    kind: ClassVar[Kind] = Kind.CONTROL
    positional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.name not in fixtures.NAMES:
            raise ValueError(f"fixture {self.name!r} is none of {', '.join(fixtures.NAMES)}")


@dataclass(frozen=True)
class EditSource(Operation):
    """The user edits a tracked file of the checkout without committing; `undo` takes it back."""

    undo: bool = False
    kind: ClassVar[Kind] = Kind.CONTROL


# --- faults ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KillWorker(Operation):
    """The agent of a task dies."""

    task: str
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class StopContainer(Operation):
    """Somebody stops the container of a task: its agent ends before its work has."""

    task: str
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class RemoveContainer(Operation):
    """Somebody takes the container of a task away, with its agent in it."""

    task: str
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class EngineOutage(Operation):
    """The container engine dies, and its containers live on; `back`: and it answers again."""

    back: bool = False
    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class MoveMain(Operation):
    """Somebody else commits to the branch that work lands on."""

    path: str = "README.md"
    kind: ClassVar[Kind] = Kind.FAULT


@dataclass(frozen=True)
class RunElsewhere(Operation):
    """Somebody else on this machine runs the same program, in a home and on a repository of his own; his
    only task has this name, which may be that of one of ours.
    """

    task: str = "other"
    kind: ClassVar[Kind] = Kind.FAULT
    positional: ClassVar[bool] = True


@dataclass(frozen=True)
class TruncateState(Operation):
    """The state of the run is cut off in the middle; `back`: and is put back as it was."""

    back: bool = False
    kind: ClassVar[Kind] = Kind.FAULT


__all__ = ["At"]
OF_CONTAINERS = (StopContainer, RemoveContainer, EngineOutage)
"""What can only happen to agents in containers."""
LONG = (Run, Resume)
"""Commands that have moments."""
OPERATIONS = registry(
    *(Init, Plan, Run, Resume, Status, LogsQuery, LogsTimeline, Clean, SetTaskStatus),
    *(Configure, GateSays, UseFixture, EditSource, KillWorker, MoveMain, TruncateState),
    RunElsewhere,
    *OF_CONTAINERS,
    *MOMENT_OPERATIONS,
)
