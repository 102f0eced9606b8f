"""A run without a target: what a contract's model believes on the way through a sequence.

Exploration chooses with it; nothing is started. A contract whose model follows real time or other
programs writes a walk of its own.
"""

from __future__ import annotations

from typing import Any, Protocol

from mutiny.kit import operations as common
from mutiny.kit.beliefs import distinct
from mutiny.kit.judging import Moment
from mutiny.kit.questions import after_step
from mutiny.model.operation import Kind, Operation


class Meaning(Protocol):
    """What is needed of a contract."""

    def first_model(self) -> Any: ...

    def outcomes(self, model: Any, operation: Operation, moment: Moment[Any]) -> Any: ...


class ModelWalk:
    """All models that may be true, operation by operation."""

    def __init__(self, contract: Meaning) -> None:
        self._contract = contract
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
            self._command(operation, sure=True)
        elif isinstance(operation, common.ExpectError | common.Choice):
            return
        elif isinstance(operation, common.SweepPoint | common.KillDuring | common.LibraryFault):
            self.models = tuple(after_step(one, operation) for one in self.models)
            for part in operation.children():
                self._command(part, sure=False)
        elif operation.children():
            for part in operation.children():
                self.apply(part)
        else:
            self.models = tuple(after_step(one, operation) for one in self.models)

    def _command(self, operation: Operation, *, sure: bool) -> None:
        after = [
            one.after
            for model in self.models
            for one in self._contract.outcomes(model, operation, Moment())
        ]
        self.models = distinct((*(() if sure else self.models), *after))

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
