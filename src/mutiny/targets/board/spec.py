"""A board as one TOML file: what it says beyond what every target file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.explain import KNOWN
from mutiny.contracts.board.operations import OPERATIONS, SETTINGS, STATUSES
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.rules import BINDING, RULES
from mutiny.errors import nearest
from mutiny.kit.answer import Words as AnswerWords
from mutiny.kit.descriptor import Lazy
from mutiny.targets.board.proposal import HINTS
from mutiny.targets.kit.files import TargetFile, Vocabulary, by_word, unknown_words
from mutiny.targets.kit.marks import FilledPattern, Inside, Pattern, Words
from mutiny.targets.kit.state import StateSource

COMMANDS = {
    "init": "Init",
    "add": "AddTask",
    "add_unnamed": "AddUnnamed",
    **by_word("AddBatch", "Claim", "Start", "Complete", "Fail", "Heartbeat", "Release", "Cancel"),
    **by_word("Retry", "Recover", "Checkpoint", "Restore", "Elect", "Renew", "StepDown"),
    **by_word("WriteAsLeader", "Status", "List", "Repair"),
}
"""The target file's name of each command, and the operation that it carries out."""
VOCABULARY = Vocabulary(
    contract="board",
    commands=COMMANDS,
    required=("add", "claim", "complete", "list"),
    placeholders=(
        *("task", "description", "priority", "depends", "max_attempts", "payload"),
        *("tasks", "batch", "worker", "epoch", "output", "output_file", "reason"),
        *("name", "node", "token", "text"),
    ),
    typed=("priority", "epoch", "token", "tasks"),
    statuses=STATUSES,
    refusals=KNOWN,
    operations=OPERATIONS,
    rules=RULES,
    binding=BINDING,
    hints=HINTS,
    own_lines=Lazy("mutiny.targets.board.proposal:own_lines"),
)


@dataclass(frozen=True)
class ServerSpec:
    """The board's server: how it is started, when it is ready, how it is recognised and stopped."""

    argv: tuple[Words, ...]
    ready: Pattern
    """Regular expression in its output; a group `endpoint` says where clients find it."""
    process: FilledPattern = ""
    """Regular expression of the command line of servers that Mutiny has not started itself."""
    stop: str = "TERM"
    then: tuple[str, ...] = ()
    """Commands that make the board when its first server is ready."""


@dataclass(frozen=True)
class LinesSpec:
    """A socket on which a JSON object a line is asked and answered: loads use it instead of processes."""

    socket: Inside
    messages: Mapping[str, Mapping[str, Words]]
    """Command -> the object's fields; `"{worker}"` is the value itself, and is left out without one."""


@dataclass(frozen=True)
class PickSpec:
    """How a worker comes by a task when a claim has to name one: it looks first, and claims what it saw."""

    argv: tuple[Words, ...]
    answer: Pattern
    """Regular expression; its group `task` is the task. No match: there is nothing to claim."""
    claims: bool = False
    """What it names is claimed by that already."""


@dataclass(frozen=True)
class AgentsSpec:
    """The board starts agents of its own: doubles stand in for them."""

    prompt: Pattern
    """Regular expression of a prompt; its group `task` is the task's name."""


@dataclass(frozen=True)
class StateFields:
    """Names of a task's fields where the target shows them."""

    id: str = "id"
    status: str = "status"
    owner: str = "owner"
    epoch: str = "epoch"
    attempts: str = "attempts"
    max_attempts: str = "max_attempts"
    priority: str = "priority"
    depends: str = "depends"
    completions: str = "completions"
    output: str = "output"
    reason: str = "reason"
    own: str = ""
    """The board's own name of a task, where `id` is the text that we gave it."""


@dataclass(frozen=True, kw_only=True)
class StateSpec(StateSource):
    """How the board is looked at: one of the sources, or its own `list`."""

    probe: str = "file"
    """`list`: the board is asked, and `file` is only what faults damage."""
    tasks: str = "tasks"
    """The list in a file and in the board's answer; in other sources it is `list`."""
    leader: str = "leader"
    names: Pattern = ""
    """Regular expression of the field `id`; its group `name` is our name of a task; others are left out."""
    derives_blocked: bool = False
    """It says nowhere that a task is blocked: one that waits for what is not done is."""
    fields: StateFields = field(default_factory=StateFields)


@dataclass(frozen=True, kw_only=True)
class BoardSpec(TargetFile):
    """Everything that Mutiny needs to know about a board."""

    state: StateSpec
    server: ServerSpec | None = None
    lines: LinesSpec | None = None
    agents: AgentsSpec | None = None
    configure: Mapping[str, str] = field(default_factory=dict)
    """Figure -> environment variable that sets it."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """The target's class of refusals -> the contract's, where they differ."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The target's name of an answer's field -> the contract's."""
    texts: bool = False
    """It answers in texts: exit codes, `answer` patterns and [rejections] say what they mean."""
    pick: PickSpec | None = None
    depend: tuple[Words, ...] = ()
    """Makes {task} wait for {depends}, for each of them after `add`, which cannot say it."""
    nobody: str = ""
    """An id that no task has, in the form of the board's own: for tasks that it does not know."""
    priorities: Mapping[str, str] = field(default_factory=dict)
    """Our priority -> the board's word for it; others are said as the nearest of these."""
    logs: tuple[Inside, ...] = ()
    profile: BoardProfile = field(default_factory=BoardProfile)

    vocabulary: ClassVar[Vocabulary] = VOCABULARY

    @property
    def words(self) -> AnswerWords:
        """How its answers are read."""
        return AnswerWords(self.errors, self.rejections, self.names, self.texts)

    def template(self, command: str) -> dict[str, object] | None:
        """How a command is spoken, and how its answer is read."""
        made = super().template(command)
        if made is None:
            return None
        if self.texts:  # also without any: then every refusal is of no class
            made["rejections"] = {name: list(each) for name, each in self.rejections.items()}
        if self.pick is not None and command == "claim":
            pick = self.pick
            made["pick"] = {"argv": list(pick.argv), "answer": pick.answer, "claims": pick.claims}
        return made

    def priority(self, given: int) -> object:
        """A priority in the board's words."""
        if not self.priorities:
            return given
        return self.priorities[min(self.priorities, key=lambda one: abs(int(one) - given))]

    def make_contract(self, agents: str) -> BoardContract:
        """The contract with this target's profile and words."""
        return BoardContract(self.profile, self.words)

    def make_profile(self) -> BoardProfile:
        """The contract's profile of this target."""
        lacks = self.lacks
        if not self.profile.batches and "AddBatch" not in self.profile.lacks:
            lacks = tuple(one for one in lacks if one != "AddBatch")  # one task after the other
        if self.server is None:
            lacks += ("Down", "KillServer", "RestartServer", "StartSecondServer")
        if self.agents is None:
            lacks += ("Behave", "KillAgent", "WaitForAgent")
        if not self.state.file and not self.state.sqlite:  # no single file that damage could mean
            lacks += ("CorruptBoard",)
        if "lock" not in self.places:
            lacks += ("HoldBoardLock", "HoldLock")
        if not self.client and not self.parties:  # nobody speaks to it over a network
            lacks += ("Partition", "SlowLink")
        lacks = tuple(dict.fromkeys(lacks))
        says = self.profile.adds_dependencies and not self.depend
        add = self.commands.get("add")
        told = bool(self.depend) or add is None or add.says("depends")
        urgent = add is None or add.says("priority")
        settable = tuple(self.configure)
        return replace(
            self.profile,
            lacks=lacks,
            settable=settable,
            has_init=self.profile.has_init and ("init" in self.commands or self.server is not None),
            says_dependencies=self.profile.says_dependencies and told,
            says_priorities=self.profile.says_priorities and urgent,
            says_attempts=self.profile.says_attempts and (add is None or add.says("max_attempts")),
            adds_dependencies=says,
            urgencies=tuple(int(one) for one in self.priorities),
            typed=self.typed,
        )

    def own_problems(self) -> Iterator[str]:
        """What is wrong beyond what files of all contracts are checked for."""
        for name in self.configure:
            if name not in SETTINGS:
                yield f"configure.{name}: unknown figure{nearest(name, SETTINGS)}"
        yield from unknown_words("errors", "class of refusals", self.errors, sorted(KNOWN))
        if self.pick is not None and "(?P<task>" not in self.pick.answer:
            yield "pick.answer: needs a group (?P<task>...) for the task"
        if self.state.names and "(?P<name>" not in self.state.names:
            yield "state.names: needs a group (?P<name>...) for our name of the task"
        for name in self.priorities:
            if not name.isdigit():
                yield f"priorities.{name}: is no number"
        if self.profile.picks not in ("oldest", "urgent", "any"):
            yield f"profile.picks: {self.profile.picks!r} is none of oldest, urgent, any"
        if self.profile.works != (self.agents is not None):
            yield "profile.works: must be true with [agents], and only then"
        if self.profile.server != (self.server is not None):
            yield "profile.server: must be true with [server], and only then"
        if self.state.probe not in ("file", "list"):
            yield f"state.probe: {self.state.probe!r} is neither 'file' nor 'list'"
