"""A batch orchestrator as one TOML file: what it says beyond what every target file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mutiny.contracts.batch.contract import BatchContract
from mutiny.contracts.batch.knobs import NAMES
from mutiny.contracts.batch.observation import RUN_STATUSES, TASK_STATUSES
from mutiny.contracts.batch.operations import OPERATIONS
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.refusals import REFUSALS
from mutiny.contracts.batch.rules import RULES, TIER_0
from mutiny.kit.answer import Words as AnswerWords
from mutiny.kit.rules import binding
from mutiny.targets.batch.containers import ContainerWords
from mutiny.targets.kit.files import TargetFile, Vocabulary, unknown_names
from mutiny.targets.kit.marks import Inside
from mutiny.targets.kit.moments import MomentSpec
from mutiny.targets.kit.state import StateSource

COMMANDS = {
    "init": "Init",
    "plan": "Plan",
    "run": "Run",
    "resume": "Resume",
    "status": "Status",
    "logs": "LogsQuery",
    "timeline": "LogsTimeline",
    "clean": "Clean",
    "set_status": "SetTaskStatus",
}


@dataclass(frozen=True, kw_only=True)
class RunFields:
    """How the target's state calls what the contract knows."""

    name: str = "run_id"
    status: str = "status"
    reason: str = "reason"
    """Empty: its event log says it."""
    tasks: str = "tasks"
    task_status: str = "status"
    task_attempts: str = "attempts"
    task_error: str = "error"
    task_tokens: str = ""
    """Empty: it does not say what a task has used. So with all that follows."""
    task_begun: str = ""
    """How many attempts were begun; then `task_attempts` are those that have failed."""
    task_conflicts: str = ""
    task_commit: str = ""
    task_base: str = ""
    task_merged: str = ""
    planned: tuple[str, ...] = ()
    """What of the plan file is kept of each task, by the same names."""
    tokens: str = ""
    batches: str = ""
    batch_id: str = "id"
    batch_tasks: str = "tasks"
    batch_status: str = "phase"
    landed: tuple[str, ...] = ()
    """How `batch_status` calls a batch that has come to the branch."""
    batch_base: str = "base"
    batch_target: str = "target"


@dataclass(frozen=True, kw_only=True)
class EventFields:
    """What every line of the event log has."""

    required: tuple[str, ...] = ("ts", "type", "run_id")
    task: str = "task_id"
    of_tasks: tuple[str, ...] = ()
    """Types of events (how they begin) that name their task."""
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Types of events (how they begin) -> what they have beside that."""
    batch: str = ""
    """The field that names a batch."""
    tasks: str = ""
    """The field that lists tasks."""
    begins: str = ""
    """The type that says that an attempt was begun, where each has such a line."""
    tells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Type -> what it says of its task (the field, and ours: `begun`, `commit`, `merged`, `tokens`,
    `conflicts`): every task that is merged has a line of this type, at least where a word is not 0.
    """
    reasons: tuple[str, ...] = ()
    """Types of events that say why a run has stopped, where the state does not."""
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The target's type -> what the contract calls it, where they differ."""
    lacks: tuple[str, ...] = ()
    """The contract's types for which the target has no event: whether they happened cannot be told."""


@dataclass(frozen=True, kw_only=True)
class BatchSpec(TargetFile):
    """A target file of a batch orchestrator."""

    state: StateSource
    branch: str = "master"
    """Where finished work lands."""
    plan: Inside
    """Where the plan is kept."""
    events: Inside
    """The event logs; `*` stands for the run."""
    task_events: Inside = ""
    """Those that each task has of its own."""
    event_fields: EventFields = field(default_factory=EventFields)
    ledger: Inside = ""
    """Where it keeps for good what was merged: JSON, `RUN/TASK` -> commit. Empty: it keeps no such list."""
    workspaces: tuple[Inside, ...] = ()
    """Directories in which tasks are worked on, and batches put together."""
    logs: tuple[Inside, ...] = ()
    """Files that are kept with a bug."""
    quiet: tuple[Inside, ...] = ()
    """Files of the home that a command which only looks may change: a lock."""
    knobs: Mapping[str, str] = field(default_factory=dict)
    """The contract's setting -> the target's environment variable."""
    fields: RunFields = field(default_factory=RunFields)
    moments: Mapping[str, MomentSpec] = field(default_factory=dict)
    secret: str = "AGENT_API_KEY"
    """The variable that holds a secret which nobody may write down."""
    containers: ContainerWords | None = None
    """How agents are put into containers; without it they cannot be."""
    references: str = ""
    """Where the target keeps references of its own while it works."""
    profile: BatchProfile = field(default_factory=BatchProfile)

    vocabulary: ClassVar[Vocabulary] = Vocabulary(
        contract="batch",
        commands=COMMANDS,
        required=("plan", "run", "resume", "status"),
        placeholders=(
            "desk",
            "plan",
            "run",
            "task",
            "status",
            "force",
            "engine",
            "image",
            "options",
        ),
        statuses=(*TASK_STATUSES, *RUN_STATUSES),
        refusals=REFUSALS,
        operations=OPERATIONS,
        rules=RULES,
        binding=binding("batch", *(row[0] for row in TIER_0)),
    )

    def own_problems(self) -> Iterator[str]:
        """What is wrong beyond what files of all contracts are checked for."""
        yield from unknown_names("knobs", "knob", self.knobs, NAMES)
        for name, moment in self.moments.items():
            if not moment.told:
                yield f"moments.{name}: say event, file, hold or git"

    def make_profile(self) -> BatchProfile:
        """With the knobs and moments that the rest of the file names."""
        settable = (*self.knobs, *(() if self.containers is None else ("workers",)))
        moments = tuple(self.moments)
        made: BatchProfile = super().make_profile()
        return replace(made, settable=settable, moments=moments)

    def make_contract(self, agents: str) -> BatchContract:
        """The contract with this target's profile and words."""
        words = AnswerWords(rejections=self.rejections)
        return BatchContract(self.profile, words, self.statuses)
