"""The batch contract: its parts for one target's profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mutiny.contracts.batch import container_rules, generate, invariants, kept, operations, outcomes
from mutiny.contracts.batch.judge import BatchJudge
from mutiny.contracts.batch.model import BatchModel
from mutiny.contracts.batch.observation import BatchSeen
from mutiny.contracts.batch.profile import BatchProfile
from mutiny.contracts.batch.rules import RULES
from mutiny.contracts.batch.scenarios import scenarios_of
from mutiny.contracts.batch.supported import fit
from mutiny.foreign import parse
from mutiny.kit.answer import Answer, Words, answer_of, first_line
from mutiny.kit.base import ContractBase
from mutiny.kit.checking import Check, StateRule
from mutiny.kit.exploring import Explored
from mutiny.kit.judging import Moment
from mutiny.kit.operations import Settle
from mutiny.kit.outcome import Outcome
from mutiny.kit.supported import Fitted
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult


@dataclass(frozen=True)
class BatchContract(ContractBase[BatchModel, BatchSeen]):
    """Operations, model, rules and scenarios of the batch contract, for one target's profile."""

    profile: BatchProfile = field(default_factory=BatchProfile)
    words: Words = field(default_factory=Words)
    statuses: Mapping[str, str] = field(default_factory=dict)
    """The target's word of a status -> ours, where they differ."""

    name = "batch"
    operations = operations.OPERATIONS
    rules = RULES
    judge_class = BatchJudge
    model_class = BatchModel
    seen_class = BatchSeen

    @property
    def scenarios(self) -> Mapping[str, tuple[Operation, ...]]:
        """Those that make sense for this target."""
        return scenarios_of(self.profile)

    def first_model(self) -> BatchModel:
        """No home yet."""
        profile = self.profile
        return BatchModel(
            cost_per_1k=profile.cost_per_1k,
            run_resumes=profile.run_resumes,
            tidy=profile.tidy,
            done_once=profile.done_once,
            forgets_errors=profile.forgets_errors,
        )

    def outcomes(
        self, model: BatchModel, operation: Operation, moment: Moment[BatchSeen]
    ) -> Sequence[Outcome[BatchModel]]:
        """Every right outcome of a command."""
        return outcomes.outcomes(model, operation, moment)

    def word(self, status: object) -> str:
        """Our word of a target's status."""
        return self.statuses.get(str(status), str(status))

    def read(self, result: OperationResult) -> Answer:
        """What the target answered: a run has ended as its status says, whatever the exit code is."""
        said = _document(result.stdout)
        status = self.word(said.get("status", ""))
        if status in outcomes.ENDS and not result.stderr.strip():
            error = "" if status == "complete" or result.exit_code == 0 else status
            return Answer(not error, error, said, first_line(str(said.get("reason", ""))))
        return replace(answer_of(result, self.words), said=said)

    def state_rules(self, check: Check[BatchModel, BatchSeen]) -> Iterator[StateRule]:
        """All of them, in the order in which they tell most."""
        for rule in (*container_rules.RULES, *invariants.RULES, kept.kept_true):
            certain = rule not in (*invariants.OF_BELIEFS, kept.kept_true)
            yield StateRule(
                rule.__name__,
                rule,
                rule in invariants.HEALING,
                (lambda _rule, certain=certain: certain),  # type: ignore[misc]
            )

    def subject_of(self, operation: Operation, model: BatchModel) -> str | None:
        """The task that a command is about."""
        task = getattr(operation, "task", None)
        return task if isinstance(task, str) and task else None

    def status_of(self, seen: BatchSeen, subject: str) -> str | None:
        """The task's status."""
        run = seen.run
        return None if run is None or subject not in run.tasks else run.tasks[subject].status

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """Whoever saw it fail looks, tries again, and goes on; then everything must be merged."""
        again: tuple[Operation, ...] = (operations.Status(),)
        if isinstance(broken, operations.Run):
            again = (*again, broken, operations.Resume())
        elif not broken.looks:
            again = (*again, broken)
        if isinstance(broken, operations.Init | operations.Plan):
            plan = operations.Plan(("after",))
            return (*again, plan, operations.Run(), operations.Status(), Settle())
        return (*again, operations.Resume(), operations.Status(), Settle())

    def fit(self, sequence: Sequence[Operation]) -> Fitted:
        """The sequence in the words of this target."""
        return fit(self.profile, sequence)

    def explored(self) -> Explored:
        """What exploration may do with a batch."""
        return generate.explored(self.profile)


def _document(text: str) -> Mapping[str, object]:
    """The JSON document that a command printed; nothing when there is none."""
    start = text.find("{")
    try:
        value = parse(text[start:]) if start >= 0 else None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
