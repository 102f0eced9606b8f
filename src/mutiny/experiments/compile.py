"""From an experiment to the operations of the one loop, each with its phase and its line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mutiny.experiments.experiment import CHAOS_TOOLKIT
from mutiny.kit.experiment import SteadyState, Undo, Unwatch, Watch
from mutiny.kit.operations import Reset
from mutiny.model.operation import Operation

if TYPE_CHECKING:
    from mutiny.experiments.experiment import Experiment, PlannedStep
    from mutiny.kit.contract import AnyContract

AFTER_WITHIN_S = 30.0


@dataclass(frozen=True)
class Placed:
    """An operation with where it comes from."""

    operation: Operation
    phase: str
    line: int = 0
    text: str = ""


@dataclass(frozen=True)
class Plan:
    """What runs, and what runs in any case."""

    steps: tuple[Placed, ...]
    rollback: tuple[Placed, ...]
    changes: tuple[str, ...] = ()
    """What is said otherwise or left out, because the target has no word for it."""

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(step.operation for step in self.steps)

    @property
    def undoing(self) -> tuple[Operation, ...]:
        return tuple(step.operation for step in self.rollback)


def compile_experiment(experiment: Experiment) -> Plan:
    """The whole run: setup, steady state, method under watch, recovery, steady state."""
    lines = tuple(line.text for line in experiment.steady_state)
    watch = Watch(experiment.probe, experiment.rate_hz, lines)
    steps = [Placed(Reset(), "setup"), *_placed(experiment.setup, "setup")]
    if experiment.form == CHAOS_TOOLKIT:
        steps += [Placed(operation, "before") for operation in experiment.before]
    else:
        steps.append(Placed(SteadyState(lines, "before", 0.0), "before"))
        steps.append(Placed(watch, "before"))
    steps += _placed(experiment.method, "method")
    steps += [Placed(operation, "recovery") for operation in experiment.settle]
    if experiment.form == CHAOS_TOOLKIT:
        steps += [Placed(operation, "after") for operation in experiment.after]
    else:
        steps.append(Placed(SteadyState(lines, "after", AFTER_WITHIN_S), "after"))
        steps.append(Placed(Unwatch(), "after"))
    undoing = (
        Placed(Undo(item.operation), "rollback", item.line, item.text)
        for item in _placed(experiment.rollback, "rollback")
    )
    return Plan(tuple(steps), tuple(undoing))


def fit_plan(plan: Plan, contract: AnyContract) -> tuple[Plan, str]:
    """The plan in the words of a target, and why nothing of it is left to show (empty: something is)."""
    fitted = contract.fit((*plan.operations, *plan.undoing))
    made = [
        None if operation is None else replace(step, operation=operation)
        for step, operation in zip((*plan.steps, *plan.rollback), fitted.operations, strict=True)
    ]
    steps = tuple(step for step in made[: len(plan.steps)] if step is not None)
    rollback = tuple(step for step in made[len(plan.steps) :] if step is not None)
    return Plan(steps, rollback, fitted.changes), fitted.nothing_left


def _placed(steps: tuple[PlannedStep, ...], phase: str) -> list[Placed]:
    return [
        Placed(operation, phase, step.line, step.text)
        for step in steps
        for operation in step.operations
    ]
