"""What was done to the target in a run, in words: faults that fired, misbehaviour, forced orders.

A report says "no fault" only when this list is empty. A schedule is told in calls: which command was
stopped before which system call on which file, and who went on in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mutiny.kit.operations import (
    FailAt,
    FailReadAt,
    FullAt,
    PowerLossAt,
    SweepPoint,
    TearAt,
    competes,
    disturbs,
)
from mutiny.model.operation import Kind, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mutiny.engine.journal import Step
    from mutiny.model.operation import Operation
    from mutiny.model.result import OperationResult

LANE = 60
"""Columns of a lane; longer schedules are drawn smaller."""


_KINDS = {
    "death": ("Kill", "CrashAt", "PowerLossAt"),
    "damage": ("Corrupt", "Damage", "TearAt"),
    "refused call": (
        *("FailAt", "FailReadAt", "FullAt", "FillDisk", "ReadOnlyDisk", "Forbid", "LowerLimit"),
    ),
}
"""Kinds of faults by the beginning of their names."""


_TORN = {
    "kill": "everything died",
    "short": "the caller was told so",
    "lie": "the caller was told that it was all",
}


@dataclass(frozen=True)
class Disturbance:
    """Something beyond plain commands that really happened."""

    step: Step
    text: str
    """What was done, as a part of a sentence."""
    forced_order: bool = False


def disturbances(steps: Sequence[Step]) -> tuple[Disturbance, ...]:
    """Everything that fired, in its order."""
    return tuple(one for step in steps for one in _of(step, step.operation, step.result))


def missed(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Faults that were asked for and did not happen."""
    return tuple(s for s in steps if s.operation.kind is Kind.FAULT and s.result.fired is False)


def _of(step: Step, operation: Operation, result: OperationResult) -> Iterator[Disturbance]:
    if operation.kind is Kind.FAULT:
        if result.fired:
            yield Disturbance(step, _fault(operation, result))
        return
    if disturbs(operation) and result.succeeded:
        yield Disturbance(step, f"`{operation.short()}`: a worker was told to misbehave")
    if competes(operation):
        turns = turns_of(result)
        exact = f", in one exact order of their calls ({len(turns)} turns)" if turns else ""
        names = " and ".join(f"`{part.short()}`" for part in operation.children())
        yield Disturbance(step, f"{names} at once{exact}", forced_order=True)
    for part, inner in zip(operation.children(), result.inner, strict=False):
        yield from _of(step, part, inner)


def _fault(operation: Operation, result: OperationResult) -> str:
    how = f" ({result.technique})" if result.technique else ""
    if not isinstance(operation, SweepPoint):
        return f"`{operation.short()}`{how}"
    where = result.stdout.strip() or f"call {operation.call}"
    point = f"{where} of `{operation.operation.short()}`"
    if isinstance(operation, FailAt | FailReadAt):
        return f"{point} failed with {operation.errno}{how}"
    if isinstance(operation, FullAt):
        return f"the disk was full from {point} on{how}"
    if isinstance(operation, TearAt):
        return f"half of {point} was written, and {_TORN[operation.mode]}{how}"
    when = point if where.startswith("after") else f"before {point}"
    if isinstance(operation, PowerLossAt):
        return f"the power was lost {when}, names {operation.names}{how}"
    who = "everything" if operation.ends_world else "the process"
    return f"{who} died {when}{how}"


def cause_of(steps: Sequence[Step]) -> str:
    """What kind of thing came last before a failure: `death`, `damage`, `refused call`, `order`, another
    kind of fault, or nothing at all.
    """
    fired = disturbances(steps)
    if not fired:
        return ""
    if fired[-1].forced_order:
        return "order"
    name = next(
        part.type for part in walk(fired[-1].step.operation) if disturbs(part) or competes(part)
    )
    kinds = (kind for kind, words in _KINDS.items() if name.startswith(words))
    return next(kinds, "other")


# --- schedules --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """What one command did until another one went on."""

    command: int
    calls: int
    first: str
    last: str
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Names of files that it opened for reading, and that it changed."""


def turns_of(result: OperationResult) -> tuple[Turn, ...]:
    """The turns of commands that ran in one exact order; nothing for everything else."""
    told = result.details.get("turns")
    return tuple(_turns(told)) if isinstance(told, list) else ()


def _turns(told: Sequence[Mapping[str, object]]) -> Iterator[Turn]:
    for turn in told:
        yield Turn(
            int(str(turn["command"])),
            int(str(turn["calls"])),
            str(turn["first"]),
            str(turn["last"]),
            _names(turn.get("read")),
            _names(turn.get("changed")),
        )


def _names(told: object) -> tuple[str, ...]:
    return tuple(str(name) for name in told) if isinstance(told, list | tuple) else ()


def schedule_lines(operation: Operation, turns: Sequence[Turn]) -> Iterator[str]:
    """Who was stopped before which call, and who went on: one sentence a turn."""
    names = [part.short() for part in operation.children()]
    made = [0] * len(names)
    for place, turn in enumerate(turns):
        name = f"`{names[turn.command]}`"
        later = next((one for one in turns[place + 1 :] if one.command == turn.command), None)
        begins = "begins" if made[turn.command] == 0 else "goes on"
        made[turn.command] += turn.calls
        calls = f"{turn.calls} call" + ("" if turn.calls == 1 else "s")
        last = f", the last of them `{turn.last}`" if turn.last != "start" else ""
        end = "ends" if later is None else f"is stopped before `{later.first}`"
        yield f"{name} {begins}, makes {calls}{last}, and {end}."


def stops_of(operation: Operation, turns: Sequence[Turn]) -> Iterator[str]:
    """A schedule in short: who was stopped before which call."""
    names = [part.short() for part in operation.children()]
    for place, turn in enumerate(turns):
        if any(earlier.command == turn.command for earlier in turns[:place]):
            yield f"{names[turn.command]} stopped before {turn.first}"


def lanes(operation: Operation, turns: Sequence[Turn]) -> Iterator[str]:
    """A lane for each command: `#` where it moves, `.` where it is held."""
    names = [part.short() for part in operation.children()]
    width = max(len(name) for name in names)
    total = sum(turn.calls for turn in turns)
    scale = max(1.0, total / LANE)
    rows = [""] * len(names)
    for turn in turns:
        length = max(1, round(turn.calls / scale))
        for command in range(len(names)):
            rows[command] += ("#" if command == turn.command else ".") * length
    for name, row in zip(names, rows, strict=True):
        yield f"{name:<{width}}  {row}"
    each = "one call" if scale == 1.0 else f"about {scale:.0f} calls"
    yield f"{'':<{width}}  a column is {each} on the target's files and locks, {total} in all"
