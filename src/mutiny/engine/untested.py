"""Was anything tested? A run in which nothing broke is a pass only when the target was asked something,
while its faults were on and after them.

Pure: finished steps in, reasons out. No reason: it was tested.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mutiny.model.operation import Kind, Operation, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutiny.engine.journal import Step

_ENDS_LASTING = ("Heal", "Settle", "Reset")


def asks(operation: Operation) -> bool:
    """Does the target, or the foreign program of an experiment, have to answer in it?"""
    return any(part.asks for part in walk(operation))


def looks(operation: Operation) -> bool:
    """Does it ask the target, or wait for something that only the target can do?"""
    return asks(operation) or operation.kind in (Kind.WAIT, Kind.ASSERTION)


def why_untested(steps: Sequence[Step], *, repeats: bool = False) -> tuple[str, ...]:
    """Why steps without a failure prove nothing.

    `repeats`: they repeat a failure that was made shorter, so that only its own steps are left.
    """
    operations = [step.operation for step in steps]
    if not any(asks(operation) for operation in operations):
        return ("no command of the target ran",)
    if repeats:
        return ()
    return (*_unfired(steps), *_unfelt(operations), *_unasked(operations))


def _unfired(steps: Sequence[Step]) -> Iterator[str]:
    """Faults were planned, and none of them happened."""
    faults = [step for step in steps if step.result.fired is not None]
    if faults and not any(step.result.fired for step in faults):
        why = faults[0].result.stderr.strip() or "it did not happen"
        yield f"no fault happened: {faults[0].operation.short()}: {why}"


def _unfelt(operations: Sequence[Operation]) -> Iterator[str]:
    """Lasting faults that were taken back before anybody could feel them."""
    on: list[Operation] = []
    probed = False
    for operation in operations:
        if operation.type in ("Watch", "Unwatch"):
            probed = bool(operation.children())
        if operation.type in _ENDS_LASTING:
            yield from map(_nobody, on)
            on = []
        elif looks(operation) or (probed and operation.type == "Sleep"):
            on = []
        if getattr(operation, "lasting", False):
            on.append(operation)
    yield from map(_nobody, on)


def _nobody(fault: Operation) -> str:
    return f"nothing was asked of the target while {fault.short()} was on"


def _unasked(operations: Sequence[Operation]) -> Iterator[str]:
    """The last fault, when the run ends with it."""
    for operation in reversed(operations):
        if operation.kind is Kind.FAULT:
            # A command that ran while the fault was on has answered.
            if getattr(operation, "during", None) is None:
                yield f"nothing was asked of the target after {operation.short()}"
            return
        if looks(operation):
            return
