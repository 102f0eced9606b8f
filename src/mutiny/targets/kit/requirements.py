"""Which techniques a sequence needs, and which of them this machine lacks.

Asked before anything runs: a sequence that this machine cannot do as it is written is refused with the name
of the technique, because a run with a weaker fault would look green for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mutiny.errors import TechniqueMissing
from mutiny.kit import faults as op
from mutiny.kit import operations as common
from mutiny.model.operation import Operation, walk


def needs(operations: Iterable[Operation]) -> tuple[str, ...]:
    """The faults of the catalogue that a sequence needs, each once."""
    found = (name for item in operations for part in walk(item) for name in _needs_one(part))
    return tuple(dict.fromkeys(found))


def _needs_one(operation: Operation) -> Iterator[str]:
    yield from operation.needs
    calls = common.SweepPoint | common.Trace | common.Interleave
    if isinstance(operation, calls):
        yield "calls: crash before a call"
    elif isinstance(operation, op.SlowFiles):
        yield "calls: slow files"
    elif isinstance(operation, op.FillDisk):
        one_command = operation.during is not None
        yield "calls: full disk" if one_command else f"disk: full, {operation.what}"
    elif isinstance(operation, op.ReadOnlyDisk):
        yield "disk: read-only" if operation.during is None else "calls: read-only disk"
    elif isinstance(operation, op.Forbid):
        yield "disk: permission"
    elif isinstance(operation, op.SkewClock):
        yield "clock: offset" if operation.rate == 1 else "clock: rate"
    elif isinstance(operation, op.Partition):
        yield "network: partition"
    elif isinstance(operation, op.SlowLink):
        long = operation.delay_ms > 0
        yield "network: delay by the kernel" if long else "network: slow link"
    elif isinstance(operation, op.LimitProcesses):
        yield "resources: processes"


def lacking(
    operations: Iterable[Operation], recorded: Sequence[str] = (), isolation: str | None = None
) -> tuple[str, ...]:
    """What this machine lacks for a sequence, in words.

    `recorded`: techniques of the run in which it was found. `isolation`: the kind of box.
    """
    wanted = needs(operations)
    if not wanted and not recorded:
        return ()
    from mutiny.faults.catalogue import survey_machine

    found = survey_machine(wanted, recorded, isolation)
    missing = [
        f"{item.technique} ({item.fault}): {item.reason}"
        for item in found
        if item.fault in wanted and item.reason is not None
    ]
    able = {item.technique for item in found if item.available}
    missing += [
        f"{item.technique}: {item.reason}"
        for item in found
        if item.technique in recorded and item.technique not in able and item.fault not in wanted
    ]
    # Another technique under the same fault would be another fault.
    known = {item.technique for item in found}
    missing += [
        f"{technique}: this Mutiny would do it by another technique"
        for technique in recorded
        if technique in _ALTERNATIVES and technique not in known
    ]
    return tuple(dict.fromkeys(missing))


_ALTERNATIVES = ("pids cgroup", "prlimit (soft limit on processes)")
"""Techniques of which a machine has one or the other."""


def refuse_lacking(
    what: str,
    operations: Iterable[Operation],
    recorded: Sequence[str] = (),
    isolation: str | None = None,
) -> None:
    """Raise TechniqueMissing when this machine cannot do a sequence as it is written."""
    missing = lacking(operations, recorded, isolation)
    if missing:
        raise TechniqueMissing(f"{what} needs what this machine lacks: {'; '.join(missing)}")


def left_out(
    scenarios: Mapping[str, Sequence[Operation]], isolation: str | None = None
) -> dict[str, str]:
    """Those scenarios that this machine cannot do, each with the reason."""
    every = [item for operations in scenarios.values() for item in operations]
    if not lacking(every, (), isolation):
        return {}
    found = {name: lacking(operations, (), isolation) for name, operations in scenarios.items()}
    return {name: "; ".join(missing) for name, missing in found.items() if missing}
