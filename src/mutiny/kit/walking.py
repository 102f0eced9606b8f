"""A run without a target: what a contract's model believes on the way through a sequence.

Exploration chooses with it; nothing is started. A contract whose model follows real time or other
programs writes a walk of its own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from mutiny.kit import operations as common
from mutiny.kit import questions
from mutiny.kit.beliefs import distinct
from mutiny.kit.judging import Judge, Moment
from mutiny.kit.moments import At, EndsCommand
from mutiny.model.operation import Kind, Operation


class Meaning(questions.Meaning[Any, Any], Protocol):
    """What is needed of a contract."""

    judge_class: ClassVar[type[Judge[Any, Any]]]

    def first_model(self) -> Any: ...

    def nothing_seen(self) -> Any: ...


class ModelWalk:
    """All models that may be true, operation by operation."""

    def __init__(self, contract: Meaning) -> None:
        self._contract = contract
        seen = contract.nothing_seen()
        self._judge = contract.judge_class(contract, seen, seen, 0.0)
        self.models: tuple[Any, ...] = (contract.first_model(),)

    @property
    def lasting(self) -> bool:
        """Is a fault on that lasts?"""
        return any(one.lasting for one in self.models)

    def apply(self, operation: Operation) -> None:
        """Believe every outcome that the contract holds for right."""
        if isinstance(operation, common.Reset):
            self.models = (self._contract.first_model(),)
        elif operation.kind is Kind.COMMAND:
            self._command(operation)
        elif isinstance(operation, common.ExpectError | common.Wrongly | common.Choice):
            return
        elif isinstance(operation, common.SweepPoint | common.KillDuring | common.LibraryFault):
            self._follow(operation)
            for part in operation.children():
                self._broken_off(part)
        elif isinstance(operation, At):
            self._at_moment(operation)
        elif operation.children():
            for part in operation.children():
                self.apply(part)
        else:
            self._follow(operation)

    def _at_moment(self, operation: At) -> None:
        if isinstance(operation.then, EndsCommand):
            self._broken_off(operation.operation)
            return
        if operation.then.kind is not Kind.COMMAND:
            self._follow(operation.then)
        self.apply(operation.operation)

    def _follow(self, operation: Operation) -> None:
        """A step that is not said to the target."""
        self.models = distinct(
            after
            for model in self.models
            for after in self._judge.follows(model, operation, Moment())
        )

    def _broken_off(self, operation: Operation) -> None:
        """A command that was broken off: it may have done everything, a part, or nothing."""
        self.models = distinct(
            after
            for model in self.models
            for after in self._judge.unknown(model, operation, Moment())
        )

    def _command(self, operation: Operation) -> None:
        after = [
            one.after
            for model in self.models
            for one in self._contract.outcomes(model, operation, Moment())
        ]
        self.models = distinct(after)

    def served(self, command: Operation) -> bool | None:
        """Is a command sure to be served (True), or sure to be refused (False)? None: either is right."""
        found = {
            one.success
            for model in self.models
            for one in self._contract.outcomes(model, command, Moment())
        }
        return found.pop() if len(found) == 1 else None

    def situation(self, command: Operation) -> str:
        """The state that a command meets, in a word: why it would be served or refused."""
        reasons = {
            one.reason
            for model in self.models
            for one in self._contract.outcomes(model, command, Moment())
        }
        return "; ".join(sorted(reasons))
