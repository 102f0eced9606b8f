"""A program in which agents summon agents, as one TOML file: what it says beyond every target file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mutiny.contracts.spawns.contract import SpawnsContract
from mutiny.contracts.spawns.operations import OPERATIONS
from mutiny.contracts.spawns.profile import SETTINGS, SpawnsProfile
from mutiny.contracts.spawns.refusals import REFUSALS
from mutiny.contracts.spawns.rules import RULES, TIER_0
from mutiny.kit.answer import Words as AnswerWords
from mutiny.kit.rules import binding
from mutiny.targets.kit.files import TargetFile, Vocabulary, by_word, unknown_names
from mutiny.targets.kit.marks import Inside, Pattern, Words
from mutiny.targets.kit.state import StateSource

COMMANDS = by_word(
    *("Init", "Register", "CreateChannel", "Send", "Spawn", "Stop", "StopAll", "Cleanup"),
    *("Health", "ListSpawns", "Chain", "Logs", "Receive", "Await", "AwaitHuman"),
)
TABLES: Mapping[str, tuple[str, ...]] = {
    "agents": ("name", "provider"),
    "channels": ("name",),
    "messages": ("id", "channel", "sender", "text", "at", "spawn", "attempt"),
    "spawns": (
        *("id", "agent", "channel", "message", "status", "reason", "attempt", "stopping"),
        *("supervisor_pid", "supervisor_start", "pid", "start", "session"),
        *("created_at", "started_at", "ended_at"),
    ),
    "events": ("seq", "kind", "message", "spawn"),
}
"""What the queries of a target's file give, by the names of their columns."""
MAY_SAY: Mapping[str, tuple[str, ...]] = {
    "messages": ("root",),
    "spawns": ("exit_code", "provider", "root", "parent", "depth"),
}
"""Columns that a query can give besides: what they say is held against what is known otherwise."""
KEPT: Mapping[str, str] = {
    "agents": "agent",
    "channels": "channel",
    "messages": "id",
    "spawns": "id",
    "events": "seq",
}
"""What a target can keep -> the column that names a row in its answers."""


@dataclass(frozen=True, kw_only=True)
class SpawnsSpec(TargetFile):
    """A target file of agents that summon agents."""

    state: StateSource
    database: Inside
    """The SQLite database; it is read from a copy."""
    tables: Mapping[str, str]
    """What the contract knows -> the query that gives it, with the columns of `TABLES`. Times are seconds
    since 1970.
    """
    kept: Mapping[str, str] = field(default_factory=dict)
    """What is kept (`KEPT`) -> the query that gives it in the words of the target's own answers, for a
    target that promises to tell what it keeps: what its answers say of a run or a message is compared.
    """
    linked: bool = False
    """The target does not write down which message started a run, nor which run posted a message: what the
    agents noted tells it. The query of `spawns` then also gives `name` and `lasting`.
    """
    starting: Pattern = ""
    """Command lines of processes that are about to start a run of which no row tells yet."""
    post: tuple[Words, ...]
    """How an agent posts, with {channel} and {text}."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The contract's setting -> the target's environment variable."""
    logs: tuple[Inside, ...] = ()
    """Files that are kept with a bug."""
    profile: SpawnsProfile = field(default_factory=SpawnsProfile)

    vocabulary: ClassVar[Vocabulary] = Vocabulary(
        contract="spawns",
        commands=COMMANDS,
        required=("register", "create_channel", "send"),
        placeholders=(
            *("agent", "provider", "model", "channel", "text", "sender", "detach", "run"),
            *("tail", "follow", "reader", "after", "most", "runs"),
        ),
        refusals=REFUSALS,
        operations=OPERATIONS,
        rules=RULES,
        binding=binding("spawns", *(row[0] for row in TIER_0)),
    )

    def own_problems(self) -> Iterator[str]:
        """What is wrong beyond what files of all contracts are checked for."""
        yield from unknown_names("settings", "setting", self.settings, SETTINGS)
        yield from unknown_names("profile.settings", "setting", self.profile.settings, SETTINGS)
        yield from unknown_names("tables", "table", self.tables, TABLES)
        yield from unknown_names("kept", "table", self.kept, KEPT)
        yield from unknown_names("profile.heals", "command", self.profile.heals, OPERATIONS)
        for name in ("messages", "spawns"):
            if name not in self.tables:
                yield f"tables.{name}: is missing"

    def make_profile(self) -> SpawnsProfile:
        """With the settings that the rest of the file names."""
        made: SpawnsProfile = super().make_profile()
        register = self.commands.get("register")
        models = register is not None and register.says("model")
        return replace(made, settable=tuple(self.settings), takes_models=models)

    def make_contract(self, agents: str) -> SpawnsContract:
        """The contract with this target's profile and words."""
        return SpawnsContract(self.profile, AnswerWords(rejections=self.rejections))
