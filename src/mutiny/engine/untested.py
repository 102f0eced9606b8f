"""Was anything tested? A run in which nothing broke is a pass only when the target was asked something,
while its faults were on and after them.

Pure: finished steps in, reasons out. No reason: it was tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.model.felt import asks, comes_alone, shows, unfelt
from mutiny.model.operation import Kind, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutiny.engine.journal import Step


def why_untested(steps: Sequence[Step], *, repeats: bool = False) -> tuple[str, ...]:
    """Why steps without a failure prove nothing.

    `repeats`: they repeat a failure that was made shorter, so that only its own steps are left.
    """
    operations = [step.operation for step in steps]
    if not any(asks(operation) for operation in operations):
        return ("no command of the target ran",)
    if repeats:
        return ()
    return (*_unfired(steps), *map(_nobody, unfelt(operations)), *_unasked(operations))


def _unfired(steps: Sequence[Step]) -> Iterator[str]:
    """Faults were planned, and none of them happened."""
    faults = [step for step in steps if step.result.fired is not None]
    if faults and not any(step.result.fired for step in faults):
        why = faults[0].result.stderr.strip() or "it did not happen"
        yield f"no fault happened: {faults[0].operation.short()}: {why}"


def _nobody(fault: Operation) -> str:
    return f"nothing was asked of the target while {fault.short()} was on"


def _unasked(operations: Sequence[Operation]) -> Iterator[str]:
    """The last fault, when the run ends with it."""
    for operation in reversed(operations):
        if operation.kind is Kind.FAULT:
            if comes_alone(operation):
                yield f"nothing was asked of the target after {operation.short()}"
            return
        if shows(operation):
            return
