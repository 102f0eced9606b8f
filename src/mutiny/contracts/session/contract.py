"""The session contract: its parts for one target's profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mutiny.contracts.session import (
    account_rules,
    checkpoint_rules,
    flow_rules,
    generate,
    operations,
    outcomes,
    recovery_rules,
    vote_rules,
)
from mutiny.contracts.session.checkpoints import METRICS
from mutiny.contracts.session.judge import SessionJudge
from mutiny.contracts.session.looking import BOOK
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import SessionSeen
from mutiny.contracts.session.profile import SessionProfile
from mutiny.contracts.session.rules import RULES
from mutiny.contracts.session.scenarios import scenarios_of
from mutiny.contracts.session.supported import TELLING, fit
from mutiny.kit.answer import Answer, Words, answer_of
from mutiny.kit.base import ContractBase
from mutiny.kit.checking import Check, StateRule
from mutiny.kit.exploring import Explored
from mutiny.kit.judging import Moment
from mutiny.kit.operations import Settle
from mutiny.kit.outcome import Outcome
from mutiny.kit.supported import Fitted, worth_running
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult

RULE_MODULES = (checkpoint_rules, recovery_rules, vote_rules, flow_rules, account_rules)
"""Loaded, so that their rules are in the book."""
OF_BELIEFS = ("session.answers_truly", "session.no_crash")
"""Rules that hold what is seen against what is believed; all others need no belief."""


@dataclass(frozen=True)
class SessionContract(ContractBase[SessionModel, SessionSeen]):
    """Operations, model, rules and scenarios of the session contract, for one target's profile."""

    profile: SessionProfile = field(default_factory=SessionProfile)
    words: Words = field(default_factory=Words)

    name = "session"
    operations = operations.OPERATIONS
    rules = RULES
    judge_class = SessionJudge
    model_class = SessionModel
    seen_class = SessionSeen

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target, in its words."""
        return worth_running(scenarios_of(self.profile), self.fit, TELLING)

    def first_model(self) -> SessionModel:
        """An empty home, and what its gates promise."""
        told = self.profile.answers.get("Metrics", ())
        measured = tuple(name for name in METRICS if name in told)
        profile = self.profile
        return SessionModel(
            criteria=profile.criteria,
            has_fallback=profile.has_fallback,
            keeps_progress=profile.keeps_progress,
            keeps_phase=profile.keeps_phase,
            keeps_tests=profile.keeps_tests,
            uses_limits=profile.uses_limits,
            measured=measured,
        )

    def outcomes(
        self, model: SessionModel, operation: Operation, moment: Moment[SessionSeen]
    ) -> Sequence[Outcome[SessionModel]]:
        """Every right outcome of a command."""
        return outcomes.outcomes(self.profile, model, operation, moment)

    def read(self, result: OperationResult) -> Answer:
        """What the target answered."""
        return answer_of(result, self.words)

    def state_rules(self, check: Check[SessionModel, SessionSeen]) -> Iterator[StateRule]:
        """All of them; a rule that needs no belief is certain."""
        if check.seen.error is not None:  # one doubt says as much as forty
            yield StateRule("session.logs_whole", *BOOK.rules["session.logs_whole"])
            return
        for rule, (ask, eventual) in BOOK.rules.items():
            certain = rule not in OF_BELIEFS
            yield StateRule(rule, ask, eventual, lambda _rule, certain=certain: certain)  # type: ignore[misc]

    def subject_of(self, operation: Operation, model: SessionModel) -> str | None:
        """The session that a command is about."""
        if isinstance(operation, operations.OfSession | operations.StartSession):
            return operation.name or "newest"
        return None

    def status_of(self, seen: SessionSeen, subject: str) -> str | None:
        """The newest session's status."""
        return seen.status

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """Whoever saw it fail looks, tries again, and brings the session back; then it must end well.

        One that may have begun is first brought back: to begin another one would hide what is left of it.
        """
        status, recover = operations.Status(), operations.Recover()
        if isinstance(broken, operations.StartSession):
            return (status, recover, status, Settle(), broken, Settle())
        again: tuple[Operation, ...] = () if broken.looks else (broken,)
        return (status, *again, recover, status, Settle())

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target."""
        return fit(self.profile, sequence)

    def explored(self) -> Explored:
        """What exploration may do with a session."""
        return generate.explored(self.profile)
