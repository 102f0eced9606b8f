"""What a counter promises: its commands, its model, every right outcome, its rules, its scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mutiny.kit import hazards
from mutiny.kit.base import ContractBase
from mutiny.kit.beliefs import ModelBase
from mutiny.kit.checking import Check, StateRule
from mutiny.kit.contract import SeenBase
from mutiny.kit.exploring import Explored, Move, Some
from mutiny.kit.judging import Moment
from mutiny.kit.operations import ExpectError, Parallel, Reset, Settle
from mutiny.kit.outcome import Outcome, no, ok
from mutiny.kit.profile import TargetProfile
from mutiny.kit.registry import registry
from mutiny.kit.rules import rules_of
from mutiny.model.operation import Operation
from mutiny.model.violation import Violation

NAME = "counter"


@dataclass(frozen=True)
class Init(Operation):
    """Make the counter."""


@dataclass(frozen=True)
class Add(Operation):
    """Count up."""

    amount: int = 1


@dataclass(frozen=True)
class Take(Operation):
    """Count down; what is not there cannot be taken."""

    amount: int = 1


@dataclass(frozen=True)
class Show(Operation):
    """Say how much there is."""

    looks: ClassVar[bool] = True


OPERATIONS = registry(Init, Add, Take, Show)
REFUSALS = ("exists", "no_counter", "too_few", "system")
RULES = rules_of(
    NAME,
    ("count_kept", "Lost work", "The count is what the acknowledged commands make of it."),
    ("state_readable", "Corrupted state", "After any crash the count can be read."),
)
SCENARIOS: dict[str, tuple[Operation, ...]] = {
    "up_and_down": (Reset(), Init(), Add(5), Take(2), Show(), ExpectError(Take(9)), Settle()),
    "together": (Reset(), Init(), Add(2), Add(1), Parallel((Add(3), Add(4))), Show(), Settle()),
}
ABOUT = {
    "up_and_down": "Counts up and down; more than there is cannot be taken.",
    "together": "Two commands count up at once: none of them is lost.",
}


@dataclass(frozen=True)
class CounterSeen(SeenBase):
    """What is seen of a counter; None: there is none."""

    count: int | None = None


@dataclass(frozen=True)
class CounterModel(ModelBase):
    """What should be the case; None: there is no counter."""

    count: int | None = None


@dataclass(frozen=True)
class CounterContract(ContractBase[CounterModel, CounterSeen]):
    """The counter, for one target's profile."""

    profile: TargetProfile = field(default_factory=TargetProfile)
    name = NAME
    model_class = CounterModel
    seen_class = CounterSeen
    operations = OPERATIONS
    rules = RULES
    scenarios = SCENARIOS

    def outcomes(
        self, model: CounterModel, operation: Operation, moment: Moment[CounterSeen]
    ) -> Sequence[Outcome[CounterModel]]:
        """What is right, and what follows."""
        count = model.count
        if isinstance(operation, Init):
            if count is not None:
                return (no(model, "there is a counter already", "exists"),)
            return (ok(replace(model, count=0), "there is none yet"),)
        if count is None:
            return (no(model, "there is no counter", "no_counter"),)
        if isinstance(operation, Add):
            return (ok(replace(model, count=count + operation.amount), "one can always add"),)
        if isinstance(operation, Take):
            if operation.amount > count:
                return (no(model, "there is not so much", "too_few"),)
            return (ok(replace(model, count=count - operation.amount), "there is enough"),)
        return (ok(model, "it only looks"),)

    def state_rules(self, check: Check[CounterModel, CounterSeen]) -> Sequence[StateRule]:
        """The rules about the file."""
        return (
            StateRule("count_kept", _kept),
            StateRule("state_readable", _readable),
        )

    def recovery(
        self, broken: Operation, *, world_ended: bool, damaged: bool = False
    ) -> tuple[Operation, ...]:
        """Whoever saw it fail tries again; then everything must be served."""
        return (broken, Add(1), Show(), Settle())

    def explored(self) -> Explored:
        """What exploration may do."""
        amounts = Some(lambda _scene: (1, 2, 7, 1000))
        return Explored(
            opening=lambda _scene: (Init(),),
            moves=(
                Move(Init, weight=0.1),
                Move(Add, {"amount": amounts}, 4.0),
                Move(Take, {"amount": amounts}, 3.0),
                Move(Show, writes=False),
            ),
            recovery=lambda _scene: (Show(), Settle()),
            around=(*hazards.broken(3), *hazards.disks(lambda _scene, _operation: "state")),
        )


def _kept(check: Check[CounterModel, CounterSeen]) -> Iterator[Violation]:
    if check.seen.error is not None:
        return  # that is another promise
    if check.seen.count != check.model.count:
        text = f"The count is {check.seen.count}, but should be {check.model.count}."
        yield Violation(f"{NAME}.count_kept", text)


def _readable(check: Check[CounterModel, CounterSeen]) -> Iterator[Violation]:
    if check.seen.error is not None:
        yield Violation(f"{NAME}.state_readable", f"The count cannot be read: {check.seen.error}")
