"""A program of long sessions as one TOML file: what it says beyond what every target file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mutiny.contracts.session.contract import SessionContract
from mutiny.contracts.session.knobs import NAMES
from mutiny.contracts.session.operations import COMMANDS, OPERATIONS, STATUSES
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.refusals import REFUSALS
from mutiny.contracts.session.rules import RULES, TIER_0
from mutiny.contracts.session.single_file import Form
from mutiny.kit.answer import Words as AnswerWords
from mutiny.kit.rules import binding
from mutiny.targets.kit.files import TargetFile, Vocabulary, by_word, unknown_names
from mutiny.targets.kit.marks import Inside, Pattern, Words
from mutiny.targets.kit.state import StateSource


@dataclass(frozen=True, kw_only=True)
class SessionSpec(TargetFile):
    """A target file of a program of long sessions."""

    state: StateSource
    sessions: Inside
    """The directory in which each session has one of its own."""
    settings: Inside
    """The file in which settings stand, and which a session that runs reads again."""
    answers: tuple[Words, ...] = ()
    """The command that prints what the model's API is to answer for a project (`{project}`)."""
    build: tuple[Words, ...] = ()
    """The command that runs the tests of what a session has built (`{project_directory}`)."""
    supervisor: Pattern = ""
    """What the command line of the process that drives a session is like."""
    agent: Pattern = ""
    """What that of an agent is like."""
    form: Form | None = None
    """Sessions are files of `sessions`, `NAME.json` with `NAME.json.bak` and `NAME.delta.jsonl` beside it,
    and these are the names of their fields. Without it each session is a directory.
    """
    key: Inside = ""
    """The file with the key of their digests, where these are HMACs."""
    project: Inside = ""
    """Where the work is done, when that is not a part of the session."""
    keeps_requests: bool = False
    """What is said to the model is kept: only so is seen what a session has restored."""
    knobs: Mapping[str, str] = field(default_factory=dict)
    """The contract's setting -> the target's word for it."""
    words: Mapping[str, str] = field(default_factory=dict)
    """The target's name of a field of its answers -> ours."""
    refusal_words: Mapping[str, str] = field(default_factory=dict)
    """The target's word of a refusal -> ours, where they differ."""
    logs: tuple[Inside, ...] = ()
    """Files that are kept with a bug."""
    quiet: tuple[str, ...] = ()
    """Names of files that a command which only looks may change: a lock, a socket."""
    profile: SessionProfile = field(default_factory=SessionProfile)

    vocabulary: ClassVar[Vocabulary] = Vocabulary(
        contract="session",
        commands=by_word(*(one.__name__ for one in COMMANDS)),
        required=("start_session", "status", "recover"),
        placeholders=(
            *("api", "project", "agents", "hours", "name", "checkpoint", "decide"),
            *("project_directory", "written"),
        ),
        refusals=REFUSALS,
        statuses=STATUSES,
        operations=OPERATIONS,
        rules=RULES,
        binding=binding("session", *(row[0] for row in TIER_0)),
    )

    def own_problems(self) -> Iterator[str]:
        """What is wrong beyond what files of all contracts are checked for."""
        yield from unknown_names("knobs", "knob", self.knobs, NAMES)

    def make_profile(self) -> SessionProfile:
        """With the knobs that the rest of the file names, and what a session is told when it begins."""
        made: SessionProfile = super().make_profile()
        start = self.commands.get("start_session")
        told = start is None or start.says("agents")
        return replace(made, settable=tuple(self.knobs), takes_agents=told)

    def make_contract(self, agents: str) -> SessionContract:
        """The contract with this target's profile and words."""
        words = AnswerWords(self.refusal_words, self.rejections, self.words)
        return SessionContract(self.profile, words)
