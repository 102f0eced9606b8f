"""A counter as a target: what its file says, and what its state means."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from counter_contract import contract as counter
from mutiny.kit.profile import TargetProfile
from mutiny.kit.rules import binding
from mutiny.probes.records import Raw
from mutiny.targets.kit.commands import CommandTarget
from mutiny.targets.kit.files import TargetFile, Vocabulary
from mutiny.targets.kit.state import StateSource


@dataclass(frozen=True, kw_only=True)
class CounterFile(TargetFile):
    """A target file of a counter."""

    state: StateSource
    profile: TargetProfile = field(default_factory=TargetProfile)
    vocabulary: ClassVar[Vocabulary] = Vocabulary(
        contract=counter.NAME,
        commands={"init": "Init", "add": "Add", "take": "Take", "show": "Show"},
        required=("init", "add", "take"),
        placeholders=("amount",),
        refusals=counter.REFUSALS,
        operations=counter.OPERATIONS,
        rules=counter.RULES,
        binding=binding(counter.NAME, "count_kept"),
    )

    def make_contract(self, agents: str) -> counter.CounterContract:
        """The contract with this target's profile."""
        return counter.CounterContract(self.profile)


class CounterLive(CommandTarget):
    """A counter in its box."""

    def seen(self, state: Raw) -> counter.CounterSeen:
        """What the file means."""
        if not state.exists or state.error is not None:
            return counter.CounterSeen(error=state.error)
        try:
            return counter.CounterSeen(count=int(state.data["count"]))
        except (KeyError, TypeError, ValueError) as error:
            return counter.CounterSeen(error=f"no count in it: {error!r}")
