"""The workers contract: its parts for one target's profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mutiny.contracts.workers import invariants, operations, outcomes, process_rules, simplify
from mutiny.contracts.workers.applicability import KEPT_BY, KeptBy, is_kept
from mutiny.contracts.workers.judge import WorkersJudge
from mutiny.contracts.workers.ledger import audit
from mutiny.contracts.workers.levels import PROMISED
from mutiny.contracts.workers.looking import BOOK, Check, touched_workers
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.rules import RULES
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.contracts.workers.supported import TELLING, fit, supported
from mutiny.contracts.workers.symbolic import Walk
from mutiny.kit import operations as common
from mutiny.kit.answer import Answer, text_answer
from mutiny.kit.base import ContractBase
from mutiny.kit.checking import StateRule
from mutiny.kit.contract import Checked
from mutiny.kit.judging import Moment
from mutiny.kit.outcome import Outcome
from mutiny.kit.supported import Fitted, worth_running
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult
from mutiny.model.violation import Violation

if TYPE_CHECKING:
    from mutiny.kit.exploring import Explored

RULE_MODULES = (invariants, process_rules)
"""Loaded, so that their rules are in the book."""
_LANDING = (operations.Accept, operations.AcceptReviewed)
_TRIED_AGAIN = (operations.Add, operations.Nuke, operations.Accept, operations.ResetWorker)
"""Commands that whoever saw them fail gives again; none of them brings a new prompt."""


@dataclass(frozen=True)
class WorkersContract(ContractBase[WorkersModel, Observation]):
    """Operations, model, rules and scenarios of the workers contract, for one target's profile."""

    profile: Profile = field(default_factory=Profile)
    patterns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Class of refusals -> regular expressions of the target's texts."""

    name = "workers"
    operations = operations.OPERATIONS
    rules = RULES
    judge_class = WorkersJudge
    seen_class = Observation

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target, in its words; what is the same then is there once."""
        promised = {
            name: sequence
            for name, sequence in SCENARIOS.items()
            if (name not in PROMISED or PROMISED[name](self.profile))
            and name not in self.profile.skips
        }
        told: dict[tuple[Operation, ...], str] = {}
        for name, sequence in worth_running(promised, self.fit, TELLING).items():
            told.setdefault(sequence, name)
        return {name: sequence for sequence, name in told.items()}

    @property
    def recover_s(self) -> float:
        """How long the daemon may take to finish or to take back what was broken off; if there is one."""
        return 0.0 if self.profile.daemonless else self.profile.limits.recover_s

    def first_model(self) -> WorkersModel:
        """No workspace yet."""
        return WorkersModel(self.profile)

    def outcomes(
        self, model: WorkersModel, operation: Operation, moment: Moment[Observation]
    ) -> Sequence[Outcome[WorkersModel]]:
        """Every right outcome of a command."""
        return outcomes.outcomes(model, operation, moment)

    def read(self, result: OperationResult) -> Answer:
        """What the target answered: by exit code and text; a worker by our name, where it has its own."""
        answer = text_answer(result, self.patterns)
        ours = {"worker": result.details["named"]} if "named" in result.details else {}
        return replace(answer, names="worker", said={**answer.said, **ours} if answer.said else {})

    def unheard(self, classes: frozenset[str]) -> frozenset[str]:
        """Classes of refusals of which the target's file does not tell how they sound."""
        return classes - self.patterns.keys()

    def believable(self, seen: Observation) -> Observation:
        """Without a state that is still as a fault has left it."""
        return seen.believable()

    # --- rules about state -------------------------------------------------------------------------

    def cannot_be_seen(self, operation: Operation, succeeded: bool) -> bool:
        """Everything is dead: the recovery is what counts. It still is when somebody who came by meanwhile
        could not commit, because git was left locked.
        """
        dead = isinstance(operation, operations.MoveSource) and operation.while_dead
        return dead or (operation.ends_world and succeeded)

    def check_of(
        self,
        model: WorkersModel,
        operation: Operation,
        succeeded: bool,
        before: Observation,
        seen: Observation,
    ) -> Check:
        """What the rules about state may look at."""
        names, everyone, daemon = touched_workers(
            operation, up_restarts=model.profile.restarts_agents_on_up
        )
        if model.profile.accept_removes:
            merging = (operations.Accept, operations.AcceptReviewed)
            parts = (part for part in walk(operation) if isinstance(part, merging))
            names |= {operations.meant(part, model.last_reviewed) or "" for part in parts}
        return Check(model, seen, before, operation, succeeded, names, everyone, daemon)

    def state_rules(self, check: Check) -> Iterator[StateRule]:
        """Those whose keeper is there, and the ledger."""
        for name, (function, eventual) in BOOK.rules.items():
            if name not in self.not_applicable and is_kept(name, check.model, check.seen):
                yield StateRule(name, function, eventual, _always)
        yield StateRule("ledger", _kept_ledger, certain=_always)

    def arranged(self, checked: Checked[object]) -> Checked[object]:
        """What a status should have been says least about a failure: every other rule comes before it.

        And no lag makes good that a worker is offline beside its agent when nothing explains the status.
        """
        strange = {
            one.subject
            for one in (*checked.broken, *checked.settling)
            if one.rule == "workers.status_follows_model"
        }
        hopeless = tuple(
            one
            for one in checked.settling
            if one.rule == "workers.offline_has_no_agent" and one.subject in strange
        )
        settling = (one for one in checked.settling if one not in hopeless)
        return replace(
            checked,
            broken=tuple(sorted((*checked.broken, *hopeless), key=_says_least)),
            settling=tuple(sorted(settling, key=_says_least)),
        )

    # --- sequences ---------------------------------------------------------------------------------

    def subject_of(self, operation: Operation, model: WorkersModel) -> str | None:
        """The worker that a command is about."""
        return operations.meant(operation, model.last_reviewed)

    def status_of(self, seen: Observation, subject: str) -> str | None:
        """The worker's status."""
        return seen.status_of(subject)

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """What follows a sweep's point: the target comes back by its own means, serves the command that
        was broken and the next one of its kind, and settles.
        """
        again: tuple[Operation, ...] = ()
        if isinstance(broken, _TRIED_AGAIN):
            again = (broken, common.Settle())
        if isinstance(broken, operations.Add | operations.Nuke):
            prompt = "Create afterwards.txt" if self.profile.prompt_with_add else ""
            again += (operations.Add("afterwards", prompt=prompt),)
        recovering: tuple[Operation, ...] = (
            common.Settle(),
            *again,
            *((operations.Doctor(repair=True, yes=True),) if damaged else ()),
            operations.Doctor(),
            operations.Down(),
        )
        if isinstance(broken, operations.Init):  # whoever saw it fail does it again
            whole: tuple[Operation, ...] = (broken, operations.Up(), *recovering)
        else:
            whole = (operations.Up(), *recovering) if world_ended else recovering
        return tuple(one for one in whole if supported(self.profile, one))

    def meanwhile(self, broken: Operation) -> tuple[Operation, ...]:
        """Somebody goes on from what an accept has left on the default branch."""
        given = (operations.MoveSource(while_dead=True),) if isinstance(broken, _LANDING) else ()
        return tuple(one for one in given if supported(self.profile, one))

    def daemon_deaths(
        self, operation: Operation, changes: int
    ) -> tuple[tuple[Operation, ...], ...]:
        """The daemon dies; then it is started again, or what it has left running is stopped first."""
        dies, down = operations.KillDaemon(operation, changes), operations.Down()
        if not all(supported(self.profile, one) for one in (dies, down, operations.Up())):
            return ()
        back = self.recovery(operation, world_ended=True)
        return (dies, *back), (dies, down, *back)

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target."""
        return fit(self.profile, sequence)

    def explored(self) -> Explored:
        """What exploration may do with workers: only refusals whose text is known are asked for."""
        from mutiny.contracts.workers import generate

        return generate.explored(self.profile, self.patterns or outcomes.REJECTIONS)

    def walk(self) -> Walk:
        """A run without a target."""
        return Walk(self.profile)

    def plausible(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could this sequence mean anything? The minimiser does not run what could not."""
        return simplify.plausible(self.profile, sequence, original)

    def certain(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Does it depend on the target's pace no more than the original did?"""
        return simplify.certain(self.profile, sequence, original)

    def simpler(self, sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Simpler forms of a sequence: fewer workers, shorter texts, smaller waits."""
        return simplify.simpler(sequence)


def _always(rule: str) -> bool:
    return KEPT_BY[rule] is KeptBy.ALWAYS


def _says_least(violation: Violation) -> bool:
    return violation.rule == "workers.status_follows_model"


def _kept_ledger(check: Check) -> Iterator[tuple[Violation, bool]]:
    for violation, eventual in audit(check):
        if is_kept(violation.rule, check.model, check.seen):
            yield violation, eventual
