"""The board contract: its parts for one target's profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mutiny.contracts.board import operations, outcomes, simplify
from mutiny.contracts.board.invariants import OF_BELIEFS, Check, healing, rules_for
from mutiny.contracts.board.judge import BoardJudge
from mutiny.contracts.board.model import BoardModel, BoardOutcome
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.rules import RULES
from mutiny.contracts.board.scenarios import scenarios_of
from mutiny.contracts.board.supported import fit, supported
from mutiny.contracts.board.symbolic import Walk
from mutiny.kit.answer import Answer, Words, answer_of
from mutiny.kit.base import ContractBase
from mutiny.kit.checking import StateRule
from mutiny.kit.judging import Moment
from mutiny.kit.operations import Sleep
from mutiny.kit.supported import Fitted
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult

if TYPE_CHECKING:
    from mutiny.kit.exploring import Explored

_TRIED_AGAIN = (operations.AddTask, operations.AddBatch, operations.Claim, operations.Cancel)
"""Commands that whoever saw them fail gives again: they need nothing that a dead process knew."""


@dataclass(frozen=True)
class BoardContract(ContractBase[BoardModel, BoardObservation]):
    """Operations, model, rules and scenarios of the board contract, for one target's profile."""

    profile: BoardProfile = field(default_factory=BoardProfile)
    words: Words = field(default_factory=Words)

    name = "board"
    operations = operations.OPERATIONS
    rules = RULES
    judge_class = BoardJudge
    check_class = Check
    seen_class = BoardObservation

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target."""
        return scenarios_of(self.profile)

    def first_model(self) -> BoardModel:
        """No board yet."""
        return BoardModel(self.profile)

    def outcomes(
        self, model: BoardModel, operation: Operation, moment: Moment[BoardObservation]
    ) -> Sequence[BoardOutcome]:
        """Every right outcome of a command."""
        return outcomes.outcomes(model, operation, moment.span)

    def read(self, result: OperationResult) -> Answer:
        """What the board answered."""
        return answer_of(result, self.words)

    def unheard(self, classes: frozenset[str]) -> frozenset[str]:
        """Classes of refusals of which the target's file does not tell how they sound."""
        return self.words.unheard(classes)

    def learn(
        self,
        model: BoardModel,
        after: BoardModel,
        operation: Operation,
        answer: Answer,
        moment: Moment[BoardObservation],
    ) -> BoardModel:
        """With the numbers that only the answer tells, and what a vague checkpoint held."""
        known = outcomes.learn(after, operation, answer).acknowledged(model)
        vague = isinstance(operation, operations.Restore) and operation.name in model.vague
        return known.as_seen(moment.seen) if vague and moment.seen is not None else known

    def state_rules(self, check: Check) -> Iterator[StateRule]:
        """Those that can be asked now."""
        late = healing(check)
        for rule in rules_for(check):
            certain = _never if rule in OF_BELIEFS else _always
            yield StateRule(rule.__name__, rule, rule in late, certain)

    def subject_of(self, operation: Operation, model: BoardModel) -> str | None:
        """The task that a command is about."""
        return operations.task_of(operation)

    def status_of(self, seen: BoardObservation, subject: str) -> str | None:
        """The task's status."""
        return seen.status_of(subject)

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """What follows a sweep's point: the board comes back, and serves the command that was broken and
        the next one of its kind.
        """
        # Where the board gives the ids, adding again makes another task, and nobody knows of how many.
        adds = isinstance(broken, operations.AddTask | operations.AddBatch)
        fresh = adds and not self.profile.names_new_tasks
        again = (broken,) if isinstance(broken, _TRIED_AGAIN) and not fresh else ()
        lock_s = self.profile.figures.stale_lock_s
        serving: tuple[Operation, ...] = (
            *((Sleep(lock_s),) if lock_s else ()),
            operations.List(),
            operations.Recover(),
            *again,
            operations.AddTask("afterwards", priority=1),
            operations.Claim("rescuer"),
            operations.Status(),
            operations.Settle(),
        )
        if isinstance(broken, operations.Init):  # whoever saw it fail does it again
            serving = (operations.Init(), *serving)
        if isinstance(broken, operations.Checkpoint):  # either the old copy is there or the new one
            serving = (operations.Restore(broken.name), *serving)
        if isinstance(broken, operations.Repair) or damaged:
            serving = (operations.Repair(), *serving)
        whole = (operations.Up(), *serving) if world_ended else serving
        return tuple(one for one in whole if supported(self.profile, one))

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target."""
        return fit(self.profile, sequence)

    def explored(self) -> Explored:
        """What exploration may do with a board."""
        from mutiny.contracts.board import generate

        return generate.explored(self.profile)

    def walk(self) -> Walk:
        """A run without a board."""
        return Walk(BoardModel(self.profile))

    def plausible(self, sequence: Sequence[Operation], original: Sequence[Operation]) -> bool:
        """Could this sequence mean anything? The minimiser does not run what could not."""
        return simplify.plausible(self.profile, sequence, original)

    def simpler(self, sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
        """Simpler forms of a sequence: fewer workers and tasks, smaller payloads and waits."""
        return simplify.simpler(sequence)


def _always(rule: str) -> bool:
    return True


def _never(rule: str) -> bool:
    return False
