"""A workers target as one TOML file: what it says beyond what every target file says.

A new orchestrator needs no Python: `mutiny target init` writes a commented file, `mutiny target
check` names every mistake with its line. longboat's and LLMC's own adapters are such files
(`targets/files/*.toml`).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import ClassVar

from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.levels import LEVELS, at_level
from mutiny.contracts.workers.observation import TASK_FATES
from mutiny.contracts.workers.operations import OPERATIONS, STATUSES
from mutiny.contracts.workers.outcomes import REJECTIONS
from mutiny.contracts.workers.profile import LEGAL, Profile
from mutiny.contracts.workers.rules import BINDING, BY_RECORD, RULES
from mutiny.errors import nearest
from mutiny.kit.descriptor import Lazy
from mutiny.model.operation import Kind
from mutiny.probes.records import StatusRule
from mutiny.targets.kit.files import (
    PLACEHOLDERS,
    CommandSpec,
    TargetFile,
    Vocabulary,
    by_word,
    unknown_names,
)
from mutiny.targets.kit.marks import Inside, Pattern
from mutiny.targets.kit.state import StateSource
from mutiny.targets.workers.proposal import HINTS
from mutiny.targets.workers.state_file import StateWords, TaskWords

WHOLE = "."
"""The list of a file that is nothing but the list."""
VOCABULARY = Vocabulary(
    contract="workers",
    commands={
        **by_word("Init", "Up", "Down", "Add", "Nuke", "Start", "Message", "Attach", "Review"),
        **by_word("ReviewNext", "Accept", "AcceptReviewed", "Reject", "Rebase"),
        "reset": "ResetWorker",
        "doctor": "Doctor",
        "repair": "Doctor",
        "status": "Status",
    },
    required=("add",),
    placeholders=("worker", "prompt", "message", "model"),
    statuses=STATUSES,
    refusals=REJECTIONS,
    operations=OPERATIONS,
    rules=RULES,
    binding=BINDING,
    hints=HINTS,
    own_lines=Lazy("mutiny.targets.workers.proposal:own_lines"),
)


@dataclass(frozen=True, kw_only=True)
class WorkersCommand(CommandSpec):
    """How one command is spoken, and what it means for the daemon."""

    background: bool = False
    """The command stays in the foreground for ever: it is started and left running."""
    ready: Pattern = ""
    """Regular expression in the background command's output that means: it is up."""
    stop_daemon: str = ""
    """Signal (INT, TERM) to the daemon process before the command, for targets whose `down` leaves
    it running.
    """


@dataclass(frozen=True)
class StateFields:
    """Names of a worker's fields in the target's state file."""

    status: str = "status"
    branch: str = "branch"
    worktree: str = "worktree"
    session: str = "session"
    prompt: str = "current_prompt"
    pending_prompt: str = ""
    commit_sha: str = "commit_sha"
    error_reason: str = "error_reason"


@dataclass(frozen=True)
class TaskFields:
    """Names of a task's fields in the target's own account."""

    text: str = "prompt"
    fate: str = "state"
    commit: str = "commit"


@dataclass(frozen=True, kw_only=True)
class StateSpec(StateSource):
    """Where the target keeps its state and how to read it."""

    workers: str = "workers"
    """The list in a file; in other sources it is `list`."""
    daemon_flag: str = ""
    names: Pattern = ""
    """Regular expression of what a record is called there; its group `name` is what commands call it.
    Records that it does not fit are no workers.
    """
    fields: StateFields = field(default_factory=StateFields)
    tasks: str = ""
    """The target's own account of all tasks, in the same file: a list, or a table by their names."""
    task_fields: TaskFields = field(default_factory=TaskFields)
    task_fates: Mapping[str, str] = field(default_factory=dict)
    """What became of a task in the target's words -> `open`, `merged` or `discarded`."""

    @property
    def words(self) -> StateWords:
        """How a worker is read in it."""
        path = self.list or (self.workers if self.source == "file" else "")
        path = "" if path == WHOLE else path
        names = {name: str(key) for name, key in asdict(self.fields).items()}
        key = self.key or "name"
        return StateWords(path, self.daemon_flag, names, {}, key, self.rules, self._task_words)

    @property
    def _task_words(self) -> TaskWords | None:
        if not self.tasks or self.source != "file":  # other sources show one list, that of workers
            return None
        of = self.task_fields
        return TaskWords(self.tasks, of.text, of.fate, of.commit, self.task_fates)


@dataclass(frozen=True)
class DaemonSpec:
    """The daemon is what `up` leaves running (`daemons.py`); it is always killed by handle."""

    argv: Pattern = ""
    """A hint: processes whose command line matches this regular expression are the daemon, too."""


@dataclass(frozen=True)
class GitSpec:
    """Repositories in which work lives."""

    repositories: tuple[Inside, ...] = ("{source}",)
    default_branch: str = "master"
    squashes: bool = False
    """Accept squashes a branch and keeps only the last message: tokens are also looked for in what
    commits add.
    """


@dataclass(frozen=True)
class LogSpec:
    """Files worth keeping with a bug."""

    daemon: Inside = ""
    files: tuple[Inside, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TargetSpec(TargetFile):
    """Everything that Mutiny needs to know about a workers target."""

    commands: Mapping[str, WorkersCommand]
    state: StateSpec
    sessions: Pattern
    """Regular expression of the session names that belong to the target."""
    windows: bool = False
    """A worker has a window of a session that it shares, called `session:window`, not a session."""
    level: str = "review"
    """How much of the contract it offers: `sessions`, `workers` or `review`."""
    agents: tuple[str, ...] = ()
    """Programs that it starts as agents, beside `claude`: the double stands for each of them."""
    daemon: DaemonSpec = field(default_factory=DaemonSpec)
    git: GitSpec = field(default_factory=GitSpec)
    logs: LogSpec = field(default_factory=LogSpec)
    status_daemon: str = ""
    """Key in the JSON answer of `status` that claims whether the daemon runs."""
    status_workers: str = ""
    """Path in it to the list of workers, each with the fields that the state has."""
    needs: tuple[str, ...] = ("git", "tmux")
    profile: Profile = field(default_factory=Profile)

    vocabulary: ClassVar[Vocabulary] = VOCABULARY

    def make_contract(self, agents: str) -> WorkersContract:
        """The contract with this target's profile and words; real agents keep no record of their work."""
        profile = self.make_profile()
        if agents == "real":
            silent = dict.fromkeys(BY_RECORD, "a real agent writes down nothing that it received")
            profile = replace(profile, not_applicable={**profile.not_applicable, **silent})
        return WorkersContract(profile, self.rejections)

    def make_profile(self) -> Profile:
        """The contract's profile of this target."""
        damage = () if self.state.file or self.state.sqlite else ("CorruptState",)
        own = replace(
            self.profile,
            has_backup="backup" in self.places,
            has_lock="lock" in self.places,
            lacks=(*self.lacks, *damage),  # no single file that damage could mean
            makes_workspace="init" in self.commands,
            needs_daemon=self.profile.needs_daemon if "up" in self.commands else (),
            repairs="repair" in self.commands,
            prompt_with_add=self.takes_prompts,
            takes_names=self.takes_names,
        )
        return at_level(own, self.level)

    @property
    def takes_prompts(self) -> bool:
        """Does the command that makes a worker take its prompt?"""
        add = self.commands.get("add")
        return add is not None and any("{prompt}" in word for word in (*add.argv, add.stdin))

    @property
    def takes_names(self) -> bool:
        """Does the command that makes a worker say its name? Else the program gives it, and tells it."""
        add = self.commands.get("add")
        return add is None or add.says("worker") or "{worker}" in add.stdin

    @property
    def status_rules(self) -> tuple[StatusRule, ...]:
        """How a status is derived: as the file says, or as its level does."""
        derived = (StatusRule(status, where) for status, where in LEVELS[self.level].derived)
        return self.state.rules or tuple(derived)

    def own_problems(self) -> Iterator[str]:
        """What is wrong beyond what files of all contracts are checked for."""
        for name, command in self.commands.items():
            stop = command.stop_daemon
            if stop and f"SIG{stop}" not in signal.Signals.__members__:
                yield f"commands.{name}.stop_daemon: {stop!r} is no signal; write INT or TERM"
        if self.takes_prompts and "start" in self.commands:
            yield "commands.start: `add` takes the {prompt} already; say the rest with `message`"
        elif not self.takes_prompts and "start" not in self.commands:
            yield "commands.start: is missing; or `add` takes the {prompt}"
        yield from self._name_problems()
        profile = self.profile
        for name in self.agents:
            if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
                yield f"agents: {name!r} is no name of a program"
        yield from unknown_names("level", "level", (self.level,), LEVELS)
        for name in self.commands if self.level in LEVELS else ():
            if VOCABULARY.commands.get(name) in LEVELS[self.level].lacks:
                yield f"commands.{name}: level {self.level!r} has no such command; say `level` otherwise"
        commands = [name for name, cls in OPERATIONS.items() if cls.kind is Kind.COMMAND]
        yield from unknown_names("profile.needs_daemon", "command", profile.needs_daemon, commands)
        for status, moves in profile.extra_moves.items():
            where = f"profile.extra_moves.{status}"
            yield from unknown_names(where, "status", (status, *moves), STATUSES)
        for name, statuses in profile.legal.items():
            where = f"profile.legal.{name}"
            if name not in LEGAL:
                yield f"{where}: unknown command{nearest(name, list(LEGAL))}"
            yield from unknown_names(where, "status", statuses, (*STATUSES, "*"))
        fates = self.state.task_fates
        yield from unknown_names("state.task_fates", "fate", fates.values(), TASK_FATES)
        if self.state.tasks and not fates:
            yield "state.tasks: needs `task_fates`: what became of a task, in the target's words and ours"
        if profile.dirty_source not in ("refuse", "either"):
            yield "profile.dirty_source: is neither 'refuse' nor 'either'"

    def _name_problems(self) -> Iterator[str]:
        """Can it be known what a worker is called?"""
        add = self.commands.get("add")
        told = add is not None and "(?P<worker>" in add.answer
        said = re.findall(r"\{(\w+)\}", " ".join(add.argv)) if add is not None else ()
        known = (*PLACEHOLDERS, *VOCABULARY.placeholders)
        if not told and not self.takes_names and all(one in known for one in said):
            yield (
                "commands.add.answer: `add` says no {worker}; where the program gives the name, its answer "
                "tells it: a regular expression with a group (?P<worker>...)"
            )
        if self.state.names and "(?P<name>" not in self.state.names:
            yield "state.names: needs a group (?P<name>...) for what commands call the worker"
