"""A target file, tried step by step: what it says is held against what is seen, before anything is a bug.

Nothing is minimised and nothing is accused: a step that does not go as its file says ends in advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutiny.contracts.catalogue import contract_named
from mutiny.engine.loop import Engine, Event
from mutiny.engine.rundir import RunDirectory
from mutiny.errors import UsageError
from mutiny.kit.judging import classes_in
from mutiny.kit.operations import USUAL_WORLD, Reset, disturbs
from mutiny.model.operation import Operation, walk
from mutiny.model.verdict import Verdict
from mutiny.targets.kit.advice import Advice, about_command

if TYPE_CHECKING:
    from mutiny.engine.loop import Outcome
    from mutiny.kit.contract import AnyContract, Live
    from mutiny.kit.descriptor import TargetForm
    from mutiny.modes.subject import Subject

USAGE = UsageError.exit_code
KNOWN = "after a run that found it, `mutiny known add` lets the next ones go on behind it"
"""What is left for a bug that no word of a file takes away."""


@dataclass(frozen=True)
class Covered:
    """How much of a contract a file covers."""

    what: str
    has: tuple[str, ...]
    lacks: tuple[str, ...]

    @property
    def percent(self) -> int:
        """Of all that there is."""
        whole = len(self.has) + len(self.lacks)
        return round(100 * len(self.has) / whole) if whole else 100


@dataclass(frozen=True)
class Tried:
    """What came of it."""

    verdict: Verdict
    advice: tuple[Advice, ...]
    told: str
    """The result in one line."""

    @property
    def exit_code(self) -> int:
        """A file that has to be changed is a mistake of its writer; what is left is the verdict."""
        return USAGE if self.advice else self.verdict.exit_code


class Checkup:
    """One look at one target."""

    def __init__(self, target: Subject, directory: RunDirectory) -> None:
        self._target = target
        self._directory = directory
        self._live: Live | None = None
        self._advice: list[Advice] = []

    def run(self, listeners: Sequence[Any] = ()) -> Tried:
        """Say everything once that the file has words for."""
        contract = self._target.contract()
        engine = Engine(
            contract, self._make_live, self._directory, listeners=(*listeners, self._listen)
        )
        outcome = engine.run(sequence_of(contract, self._target.spec.profile))
        self._directory.discard_box()
        return Tried(outcome.verdict, tuple(self._advice), self._told(outcome))

    def _told(self, outcome: Outcome) -> str:
        name = self._target.name
        if self._advice:
            return f"{name}: {len(self._advice)} to change; nothing is called a bug before that"
        if outcome.verdict is Verdict.SUCCESS:
            return f"{name}: {len(outcome.steps)} steps went as the file says"
        step = outcome.failed_step
        where = "" if step is None else f"step {step.sequence_id}, {step.operation.short()}: "
        told = f"{name}: the file fits what was seen; {where}"
        if outcome.rule is None:
            return f"{told}{outcome.verdict.value}: {outcome.reason}"
        told = f"{told}{outcome.rule}: {outcome.reason}"
        if outcome.rule in self._target.spec.vocabulary.binding:
            return f"{told}\nNobody is excused from this rule; {KNOWN}"
        excuse = f'[profile.not_applicable] "{outcome.rule}" = "why"'
        return f"{told}\nIf it does not promise that, say so: {excuse}"

    def _make_live(self, directory: Path, reset: Reset = USUAL_WORLD) -> Live:
        live = self._target.make_live(directory, reset)
        self._live = live
        return live

    def _listen(self, event: Event) -> None:
        step = event.step
        if step is None or self._live is None:
            return
        went_well = step.verdict in (Verdict.SUCCESS, Verdict.EXPECTED)
        known = contract_named(self._target.spec.contract).advice
        if known is not None:
            found = known.load()(self._live, step.operation, step.result)
        else:
            spec = self._target.spec
            due = [one for told in (step.expected, *step.inconclusive) for one in classes_in(told)]
            found = about_command(spec, step.operation, step.result, due)
            found = iter(()) if went_well else found
        self._advice += [one for one in found if one not in self._advice]


def sequence_of(contract: AnyContract, profile: Any) -> tuple[Operation, ...]:
    """What is said to a target whose file is tried: the contract's own list, or its first calm scenario."""
    own = contract_named(contract.name).checkup
    told = () if own is None else own.load()(profile)
    if told:
        return contract.fit(told).sequence
    scenarios = [tuple(steps) for steps in contract.scenarios.values()]
    calm = [
        one for one in scenarios if not any(disturbs(part) for step in one for part in walk(step))
    ]
    return next(iter(calm or scenarios), ())


def coverage_of(spec: TargetForm, contract: AnyContract) -> tuple[Covered, ...]:
    """Which commands, rules and scenarios of its contract a file covers."""
    known = contract_named(spec.contract)
    told = contract.scenarios
    return (
        _covered("commands", spec.vocabulary.commands, lambda name: name not in spec.missing),
        _covered("rules", known.all_rules(), lambda name: name not in contract.not_applicable),
        _covered("scenarios", known.all_about(), lambda name: name in told),
    )


def _covered(what: str, names: Iterable[str], has: Callable[[str], bool]) -> Covered:
    everything = tuple(names)
    mine = tuple(name for name in everything if has(name))
    return Covered(what, mine, tuple(name for name in everything if name not in mine))
