"""The rules about state, asked under every alternative: what is broken, and what could not be told.

A rule is a function from a `Check` to violations. One that breaks down, or whose facts could not be read,
is a doubt: the step is inconclusive, never green and never a dead run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from mutiny.kit import operations as common
from mutiny.kit.beliefs import GIVEN_UP, Beliefs, ModelBase
from mutiny.kit.contract import Checked
from mutiny.model.operation import Operation, walk
from mutiny.model.violation import Violation

Model = TypeVar("Model", bound=ModelBase)
Seen = TypeVar("Seen")

WRAPPING = (
    common.ExpectError,
    common.Wrongly,
    common.SweepPoint,
    common.Trace,
    common.LibraryFault,
    common.KillDuring,
)
"""What is done to one command."""


class Unreadable(Exception):
    """A fact that a rule needs could not be read."""


@dataclass(frozen=True)
class Check(Generic[Model, Seen]):
    """What a rule may look at."""

    model: Model
    """The beliefs after the operation."""
    seen: Seen
    before: Seen
    """What was seen before the operation."""
    operation: Operation
    succeeded: bool = True

    def gave(self, kind: type[Operation] | tuple[type[Operation], ...]) -> bool:
        """Was such a command part of the operation?"""
        return any(isinstance(part, kind) for part in walk(self.operation))


Found = tuple[str, str] | tuple[str, str, Mapping[str, object]]
"""Whom a broken promise is about, what is wrong, and what else was seen."""
AnyCheck = TypeVar("AnyCheck", bound=Check[Any, Any])


class RuleBook(Generic[AnyCheck]):
    """The rules about state of one contract: functions that give what they find, named as their rule."""

    def __init__(self, contract: str) -> None:
        self.contract = contract
        self.rules: dict[str, tuple[Callable[[AnyCheck], Iterator[Violation]], bool]] = {}
        """Rule id -> (function, eventual). An eventual rule may be broken for the length of the lag."""

    def rule(self, *, eventual: bool) -> Callable[[Callable[[AnyCheck], Iterable[Found]]], None]:
        """Take a function as the rule of its name."""

        def register(function: Callable[[AnyCheck], Iterable[Found]]) -> None:
            rule = f"{self.contract}.{function.__name__}"

            def ask(check: AnyCheck) -> Iterator[Violation]:
                for subject, message, *evidence in function(check):
                    yield Violation(rule, message, subject, *evidence)

            self.rules[rule] = (ask, eventual)

        return register


@dataclass(frozen=True)
class StateRule:
    """One rule about state, as it is asked now."""

    name: str
    ask: Callable[[Any], Iterable[Violation | tuple[Violation, bool]]]
    """Gives violations; with each of them whether it is eventual, where that differs."""
    eventual: bool = False
    """It may be broken for the length of the target's lag."""
    certain: Callable[[str], bool] = lambda _rule: False
    """Does what it says with this id hold whatever is believed?"""


def inner_of(operation: Operation) -> Operation:
    """The command that was given, without what was done to it."""
    wrapped = isinstance(operation, WRAPPING) and operation.children()
    return operation.children()[0] if wrapped else operation


def ask(
    rules: Iterable[StateRule], check: Any, excused: Collection[str]
) -> tuple[Checked[Any], frozenset[str]]:
    """All of these rules about one alternative, and the ids of what holds whatever is believed."""
    broken: list[Violation] = []
    settling: list[Violation] = []
    unreadable: list[str] = []
    certain: set[str] = set()
    for rule in rules:
        try:
            for found in rule.ask(check):
                one, late = found if isinstance(found, tuple) else (found, rule.eventual)
                if one.rule not in excused:
                    (settling if late else broken).append(one)
                    certain |= {one.rule} if rule.certain(one.rule) else set()
        except Unreadable as error:
            unreadable.append(f"{rule.name}: could not read {error}")
        except Exception as error:  # noqa: BLE001  a broken rule is inconclusive, never a dead run
            unreadable.append(f"{rule.name}: the rule itself failed with {error!r}")
    return Checked(tuple(broken), tuple(settling), tuple(unreadable)), frozenset(certain)


def best_of(
    beliefs: Beliefs[Model], results: Sequence[tuple[Checked[Any], Model]], at: float
) -> Checked[Beliefs[Model]]:
    """What counts is the alternative that the rules suit best; those that they refute are dropped.

    As long as a half-done command may still be finished or taken back, nothing is refuted.
    """
    clean = [pair for pair in results if not pair[0].broken and not pair[0].settling]
    possible = [pair for pair in results if not pair[0].broken]
    chosen = clean or possible or list(results[:1])
    best = chosen[0][0]
    fitting = tuple(one for _, one in chosen)
    if at >= beliefs.undecided_until:
        return replace(best, model=replace(beliefs, alternatives=fitting, fitting=0))
    others = tuple(pair[1] for pair in results if pair not in chosen)
    kept = replace(beliefs, alternatives=(*fitting, *others), fitting=len(fitting))
    return replace(best, broken=(), settling=(*best.broken, *best.settling), model=kept)


def without_guesses(
    checked: Checked[Beliefs[Model]], certain: Collection[str]
) -> Checked[Beliefs[Model]]:
    """What no kept alternative explains may be right in one that was given up."""

    def sure(violations: tuple[Violation, ...]) -> tuple[Violation, ...]:
        return tuple(one for one in violations if one.rule in certain)

    accused = (*checked.broken, *checked.settling)
    doubts = tuple(
        f"{one.message} ({one.rule}) But {GIVEN_UP}." for one in accused if one.rule not in certain
    )
    return replace(
        checked,
        broken=sure(checked.broken),
        settling=sure(checked.settling),
        unreadable=(*checked.unreadable, *doubts),
    )
