"""The questions that the judge asks a contract, with the answers that are true of most contracts.

`Judge` in `mutiny.kit.judging` asks these questions; a contract's own judge replaces the answers that are
not true of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from mutiny.kit import operations as common
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import ANYTIME, ModelBase, Span, distinct
from mutiny.kit.outcome import Outcome, reasons
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

Model = TypeVar("Model", bound=ModelBase)
Seen = TypeVar("Seen")

CERTAIN = ("no_crash", "fails_clearly", "answers_in_time")
"""Rules that are broken whatever the target should hold."""


@dataclass(frozen=True)
class Moment(Generic[Seen]):
    """When a command was given, what was seen around it, and the marks of the work that it handed over.

    Without any of it a contract runs symbolically: that is how sequences are made and simplified.
    """

    before: Seen | None = None
    """What was seen just before; None: something else was done since."""
    seen: Seen | None = None
    """What was seen afterwards."""
    now: float = 0.0
    span: Span = ANYTIME
    """From before the command was given until after it was answered, on our own clock."""
    tokens: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged(Generic[Model]):
    """What an answer means under one model."""

    verdict: Verdict
    models: tuple[Model, ...]
    violation: Violation | None = None
    reason: str = ""
    followed: bool = True
    """The models know what happened, also where it was wrong."""
    half_done: bool = False
    """A command was broken off: the target may still finish it or take it back."""


@dataclass(frozen=True)
class Heard:
    """A command that was rightly served, and its answer."""

    operation: Operation
    result: OperationResult
    answer: Answer
    alone: bool
    """Nothing else was done between the two looks."""


class Meaning(Protocol[Model, Seen]):
    """What the judge asks a contract."""

    @property
    def name(self) -> str: ...

    @property
    def profile(self) -> Any: ...

    @property
    def not_applicable(self) -> Mapping[str, str]: ...

    def outcomes(
        self, model: Model, operation: Operation, moment: Moment[Seen]
    ) -> Sequence[Outcome[Model]]: ...

    def read(self, result: OperationResult) -> Answer: ...

    def unheard(self, classes: frozenset[str]) -> frozenset[str]: ...

    def subject_of(self, operation: Operation, model: Model) -> str | None: ...

    def learn(
        self,
        model: Model,
        after: Model,
        operation: Operation,
        answer: Answer,
        moment: Moment[Seen],
    ) -> Model: ...


class Questions(Generic[Model, Seen]):
    """About one operation between two looks."""

    certain: tuple[str, ...] = CERTAIN
    """Rules that no other belief would explain."""

    def __init__(
        self, contract: Meaning[Model, Seen], before: Seen, seen: Seen, now: float
    ) -> None:
        self.contract = contract
        self.before = before
        self.seen = seen
        self.now = now

    # --- what a contract may say differently ---------------------------------------------------------

    def prepared(self, model: Model, operation: Operation) -> Model:
        """The beliefs when the operation begins."""
        return model

    def hampered(self, model: Model, operation: Operation) -> Model:
        """The beliefs when a command begins while a fault is on."""
        return model

    def special(
        self, model: Model, operation: Operation, result: OperationResult
    ) -> Judged[Model] | None:
        """An operation that only this contract has, and that is judged in a way of its own."""
        return None

    def follows(self, model: Model, operation: Operation, moment: Moment[Seen]) -> Sequence[Model]:
        """The beliefs after a step that was done and is not said to the target: a fault, a wait, time."""
        return (after_step(model, operation),)

    def struck(self, model: Model, operation: Operation, moment: Moment[Seen]) -> Model:
        """The beliefs after a point in the middle of a command: who died, what was torn."""
        return model.fault(str(operation))

    def excuses(self, fault: Operation) -> frozenset[str] | None:
        """Refusals that are true while this fault is on; None: any clear failure is."""
        return frozenset() if isinstance(fault, common.LibraryFault) and fault.harmless else None

    def unclear(
        self, model: Model, operation: Operation, answer: Answer, moment: Moment[Seen]
    ) -> Judged[Model] | None:
        """The verdict where the right outcomes are not known; None: they are known."""
        return None

    def taken(self, model: Model) -> Collection[str]:
        """Names that the target has taken: it may not call them bad any more."""
        return ()

    def misheard(self, before: Model, model: Model, operation: Operation) -> Model:
        """The model without what a command may have been taken for that was said wrongly."""
        return model

    def came_late(self, model: Model) -> bool:
        """Has so much time passed that something may be right now that no scenario expects?"""
        return False

    def dishonest(self, model: Model, heard: Heard) -> Violation | None:
        """What a command that was rightly served says besides, and is not true."""
        return None

    def untrue_refusal(self, model: Model, heard: Heard) -> Violation | None:
        """What a command that was rightly refused says besides, and is not true."""
        return None

    def forced(self, model: Model, operation: Operation, moment: Moment[Seen]) -> Model | None:
        """The beliefs after a command that was served although it was due to be refused; None: unknown."""
        return None

    def explain(
        self,
        model: Model,
        operation: Operation,
        result: OperationResult,
        right: Sequence[Outcome[Model]],
        moment: Moment[Seen],
    ) -> Violation:
        """The promise that an answer breaks that is on no right outcome."""
        answer, due = self.contract.read(result), reasons(right)
        evidence = {"exit_code": result.exit_code, "stderr": result.stderr[-2000:]}
        if answer.ok:
            text = f"{operation} succeeded but was due to be refused: {due}."
            return self.violation("rejects_illegal", text, "", evidence)
        said = answer.message or answer.shown
        if not answer.classes and not self.excused("fails_clearly"):
            text = f"{operation} failed with an unknown error (exit {result.exit_code}): {said}"
            return self.violation("fails_clearly", text, "", evidence)
        if all(one.success for one in right):
            text = f"{operation} was refused but was due to succeed ({due}): {said}"
            return self.violation("serves_legal", text, "", evidence)
        text = f"{operation} was refused with a reason that is not true: {said}"
        return self.violation("rejects_truthfully", text, "", evidence)

    def unordered(
        self,
        parts: Sequence[Operation],
        results: Sequence[OperationResult],
        deepest: Judged[Model],
    ) -> Violation:
        """The promise that answers break that no order of their commands explains."""
        said = "; ".join(
            f"{part}: exit {one.exit_code}" for part, one in zip(parts, results, strict=True)
        )
        return self.violation("parallel_is_serial", f"No order explains these answers: {said}.")

    def unknown(
        self, model: Model, operation: Operation, moment: Moment[Seen]
    ) -> tuple[Model, ...]:
        """It has happened or it has not: every model afterwards, and the one before.

        What is seen now does not tell: it may still be finished or taken back.
        """
        right = self.contract.outcomes(model, operation, replace(moment, seen=None))
        return distinct((model, *(one.after for one in right)))

    def stopped(
        self, model: Model, operation: Operation, moment: Moment[Seen]
    ) -> tuple[Model, ...]:
        """What may be the case after a command that was ended at one of its moments."""
        return self.unknown(model, operation, moment)

    def after_wrong_answer(
        self, model: Model, operation: Operation, moment: Moment[Seen]
    ) -> tuple[Model, ...]:
        """What may be the case after a crash, or after an answer that fits no outcome."""
        return self.unknown(model, operation, moment)

    def failed(
        self, model: Model, operation: Operation, answer: Answer, moment: Moment[Seen]
    ) -> tuple[Model, ...]:
        """What may be the case after a command that a fault made fail."""
        return self.unknown(model, operation, moment)

    def proves_nothing(self, model: Model, operation: Operation, result: OperationResult) -> bool:
        """Slow is not stuck; and nothing has to happen while a fault is on, or is known of a state that
        may be the fault's own.
        """
        return bool(
            result.details.get("moving")
            or result.details.get("unknown")
            or model.lasting
            or model.doubted
        )

    def overdue(
        self, model: Model, operation: Operation, result: OperationResult
    ) -> Violation | None:
        """The promise that is broken because a wait ran out of time; None: it was not due."""
        waiting = "; ".join(model.pending(self.seen))
        return self.violation("recovers", f"Not settled in time: {waiting}.") if waiting else None

    def beliefs_hold(self, operation: Operation, violation: Violation | None) -> bool:
        """May the state be held against the beliefs after this? A wait changes nothing, and of a command
        that died both outcomes are believed; after any other wrong answer nobody knows.
        """
        if operation.kind in (Kind.WAIT, Kind.ASSERTION):
            return True
        died = violation is not None and violation.rule.endswith((".no_crash", ".answers_in_time"))
        several = sum(part.asks for part in operation.children()) > 1  # nobody knows the order
        return died and not several and not common.competes(operation)

    # --- what the answers are made of ------------------------------------------------------------------

    def moment(self, result: OperationResult, *, first: bool = True) -> Moment[Seen]:
        """When this part was given and answered."""
        return Moment(
            self.before if first else None, self.seen, self.now, self.span(result), result.tokens
        )

    def span(self, result: OperationResult) -> Span:
        """When the command was given and answered, on our own clock."""
        invoked, returned = result.details.get("invoked"), result.details.get("returned")
        if isinstance(invoked, float) and isinstance(returned, float):
            return Span(invoked, returned)
        return ANYTIME

    def violation(
        self, rule: str, text: str, subject: str = "", evidence: Mapping[str, object] | None = None
    ) -> Violation:
        """A broken rule of this contract."""
        return Violation(f"{self.contract.name}.{rule}", text, subject, evidence or {})

    def excused(self, rule: str) -> bool:
        """Does the target not promise this?"""
        return f"{self.contract.name}.{rule}" in self.contract.not_applicable

    def depends_on_beliefs(self, violation: Violation | None) -> bool:
        """Would another belief explain it?"""
        return violation is not None and violation.rule.rpartition(".")[2] not in self.certain


def after_step(model: Model, operation: Operation) -> Model:
    """The beliefs after a step that every contract knows."""
    if isinstance(operation, common.Heal):
        return replace(model, lasting=())
    if isinstance(operation, common.Settle):
        return replace(model, faults=(), lasting=())
    if operation.kind is not Kind.FAULT:
        return model
    if isinstance(operation, common.LibraryFault) and operation.harmless:
        return model
    hit = model.fault(str(operation))
    if isinstance(operation, common.LibraryFault) and operation.lasting:
        return replace(hit, lasting=(*hit.lasting, operation))
    return hit
