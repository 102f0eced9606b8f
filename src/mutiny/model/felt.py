"""Can a fault be felt? A fault tests nothing when the target was asked nothing while it was on.

Both who adapts a sequence to a target and who judges a run that found nothing have to know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mutiny.model.operation import Kind, Operation, walk

_ENDS_LASTING = ("Heal", "Settle", "Reset")


def asks(operation: Operation) -> bool:
    """Does the target, or the foreign program of an experiment, have to answer in it?"""
    return any(part.asks for part in walk(operation))


def shows(operation: Operation) -> bool:
    """Does it ask the target, or wait for something that only the target can do?"""
    return asks(operation) or operation.kind in (Kind.WAIT, Kind.ASSERTION)


def comes_alone(operation: Operation) -> bool:
    """Is it a fault whose effect a later operation has to show? One inside a command is shown by it."""
    return operation.kind is Kind.FAULT and getattr(operation, "during", None) is None


def unfelt(operations: Sequence[Operation]) -> Iterator[Operation]:
    """Lasting faults that are taken back, or still on at the end, before anybody could feel them."""
    on: list[Operation] = []
    probed = False
    for operation in operations:
        if operation.type in ("Watch", "Unwatch"):
            probed = bool(operation.children())
        if operation.type in _ENDS_LASTING:
            yield from on
            on = []
        elif shows(operation) or (probed and operation.type == "Sleep"):
            on = []
        if getattr(operation, "lasting", False):
            on.append(operation)
    yield from on
