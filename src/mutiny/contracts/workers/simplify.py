"""What makes a sequence simpler, and whether a shortened one still means anything.

The minimiser asks two questions and this module answers both without starting a process: which
simpler forms are worth trying, and which shortened sequences are nonsense (a wait for a status that
nothing leads to would only cost its time limit).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mutiny.contracts import faults
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.advance import OK, REFUSED, advance
from mutiny.contracts.workers.expect import expect
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.profile import Profile
from mutiny.model.operation import Operation, walk
from mutiny.values import fields, replace

SHORT_PROMPT = "Create a.txt"
SHORT_SLEEP_S = 0.5
MOST_POINTS = 40
"""So many calls are tried when a random kill is turned into an exact one."""
WORKER_NAMES = ("alpha", "beta", "gamma", "delta")


def plausible(
    profile: Profile, sequence: Sequence[Operation], original: Sequence[Operation] = ()
) -> bool:
    """Walk the sequence symbolically; False when it is nonsense or would depend on luck.

    A wait, assertion or fault that can never be meant seriously is nonsense. A command whose
    outcome depends on the target's pace is luck, unless it did so in the original already: a
    shorter sequence that only fails when an agent happens to start fast is no reproduction.
    """
    if not sequence or not isinstance(sequence[0], op.Reset):
        return False
    lucky = _lucky(profile, original)
    model = WorkersModel(profile)
    for operation in sequence[1:]:
        if isinstance(operation, op.Reset):
            model = WorkersModel(profile)
            continue
        if not _sensible(model, operation):
            return False
        if original and _depends_on_pace(model, operation) and operation.type not in lucky:
            return False
        model = _walk(model, operation)
    return True


def _lucky(profile: Profile, original: Sequence[Operation]) -> frozenset[str]:
    """Types of commands whose outcome depended on the target's pace in the original."""
    model = WorkersModel(profile)
    found = set()
    for operation in original:
        if isinstance(operation, op.Reset):
            model = WorkersModel(profile)
            continue
        if _depends_on_pace(model, operation):
            found.add(operation.type)
        model = _walk(model, operation)
    return frozenset(found)


def _depends_on_pace(model: WorkersModel, operation: Operation) -> bool:
    """More than one course is right: which one comes depends on how fast the target is."""
    inner = operation.inner if isinstance(operation, op.ExpectError) else operation
    if not isinstance(inner, _PACED) or not model.initialised:
        return False
    name = model.last_reviewed if isinstance(inner, op.Reject) else op.worker_of(inner)
    hit = [name] if name is not None else list(model.workers)
    return any(not _certain(model, worker) for worker in hit if worker in model.workers)


def _certain(model: WorkersModel, worker: str) -> bool:
    """The worker has one status only, or its agent is scripted to stay busy for a while."""
    belief = model.workers[worker]
    held = belief.behaviours[0].partition(":")[0] in ("slow", "hang")
    busy = held and belief.received and belief.statuses <= {"working", "rejected", "rebasing"}
    return busy or len(model.allowed(worker)) == 1


_PACED = (
    *(op.Start, op.Accept, op.Review, op.Reject, op.Message, op.Rebase),
    *(op.Nuke, op.ResetWorker, op.Down),
    *(op.KillAgent, op.KillTmuxSession, op.KillTmuxServer, op.KillDaemon),
)


def _sensible(model: WorkersModel, operation: Operation) -> bool:
    if not model.initialised and not isinstance(operation, op.Init):
        return False
    if isinstance(operation, op.Init) and model.initialised:
        return False
    if isinstance(operation, op.ExpectError):
        return not expect(model, operation.inner, None).success_due
    worker = op.worker_of(operation)
    awaited = op.awaited_status(operation)
    if awaited is not None:
        known = worker is not None and worker in model.workers
        return known and awaited in model.allowed(worker or "") and True in model.daemon
    if isinstance(
        operation, op.KillTmuxSession | op.KillAgent | op.AssertSessionAlive | op.AssertState
    ):
        return worker in model.workers
    if isinstance(operation, op.WaitForPrompt):
        told = operation.worker in model.workers and model.workers[operation.worker].tokens
        return bool(told) and True in model.daemon
    if isinstance(operation, op.KillDaemon):
        return True in model.daemon
    if isinstance(operation, op.KillTmuxServer):
        return bool(model.workers) and True in model.daemon
    if isinstance(operation, op.PauseProcess) and operation.role != "agent":
        return True in model.daemon and (operation.role == "daemon" or bool(model.workers))
    return True


def _walk(model: WorkersModel, operation: Operation) -> WorkersModel:
    """Take the outcome that the model holds for right."""
    if isinstance(operation, op.ExpectError):
        return model
    parts = operation.operations if isinstance(operation, op.Parallel) else (operation,)
    if isinstance(operation, op.Choice):
        parts = operation.options[:1]
    for part in parts:
        expectation = expect(model, part, None)
        outcome = OK if expectation.success else REFUSED
        tokens = ("symbolic",) if hasattr(part, "prompt") or hasattr(part, "message") else ()
        if (
            outcome == OK
            and isinstance(part, op.Reject)
            and model.last_reviewed not in model.workers
        ):
            continue
        model = advance(model, part, outcome, tokens=tokens)
        if isinstance(part, op.PauseProcess | faults.Injury) and part.during is not None:
            model = _walk(model, part.during)
        if isinstance(part, op.SweepPoint | faults.KillDuring):
            model = _walk(model, part.operation)
            if part.ends_world:
                model = replace(model, daemon=frozenset({False}))
    return model


def simpler(sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """Simpler forms, the most promising first; each with a word for the progress line."""
    yield from _unwrapped(sequence)
    yield from _fewer_workers(sequence)
    yield from _shorter_texts(sequence)
    yield from _smaller_waits(sequence)
    yield from _exact_points(sequence)


def _unwrapped(sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """A combination by one of its parts; a script of several turns by its first."""
    for index, operation in enumerate(sequence):
        if isinstance(operation, op.Parallel):
            for part in operation.operations:
                yield "unwrap", _with(sequence, index, part)
        if isinstance(operation, faults.Injury | faults.KillDuring | op.SweepPoint):
            for part in operation.children():
                yield "unwrap", _with(sequence, index, part)
        if isinstance(operation, op.Behave) and len(operation.turns) > 1:
            yield "script", _with(sequence, index, replace(operation, turns=operation.turns[:1]))


def _fewer_workers(sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """Merge the last worker into an earlier one, and give the workers their plain names."""
    names = _workers(sequence)
    for gone in reversed(names):
        kept_operations = tuple(item for item in sequence if gone not in _workers((item,)))
        if len(kept_operations) < len(sequence):
            yield "workers", kept_operations
    for gone in reversed(names[1:]):
        for kept in names:
            if kept != gone:
                merged = [_renamed(item, {gone: kept}) for item in sequence]
                yield "workers", _without_repeated_adds(merged)
    plain = dict(zip(names, WORKER_NAMES, strict=False))
    if any(old != new for old, new in plain.items()) and not _prefixes(names):
        yield "names", tuple(_renamed(item, plain) for item in sequence)


def _prefixes(names: Sequence[str]) -> bool:
    """Names that are prefixes of each other are a trigger in themselves and must stay."""
    return any(a != b and a.startswith(b) for a in names for b in names)


def _without_repeated_adds(sequence: Sequence[Operation]) -> tuple[Operation, ...]:
    kept: list[Operation] = []
    for item in sequence:
        repeated = (
            isinstance(item, op.Add | op.WaitForIdle | op.WaitForNeedsReview) and item in kept[-3:]
        )
        if not repeated and not (isinstance(item, op.Add) and item in kept):
            kept.append(item)
    return tuple(kept)


def _shorter_texts(sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    short = tuple(
        replace(item, prompt=SHORT_PROMPT)
        if isinstance(item, op.Start)
        else replace(item, message="x")
        if isinstance(item, op.Message | op.Reject)
        else item
        for item in sequence
    )
    if short != tuple(sequence):
        yield "texts", short
    for index, item in enumerate(sequence):
        if short[index] != item:
            yield "texts", _with(sequence, index, short[index])


def _smaller_waits(
    sequence: Sequence[Operation],
) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """Halve long sleeps; short ones are left alone, or the result would depend on milliseconds."""
    for index, item in enumerate(sequence):
        if isinstance(item, op.Sleep) and item.seconds >= SHORT_SLEEP_S:
            yield "waits", _with(sequence, index, replace(item, seconds=round(item.seconds / 2, 3)))


def _exact_points(sequence: Sequence[Operation]) -> Iterator[tuple[str, tuple[Operation, ...]]]:
    """A kill after some milliseconds by the exact call before which it shows the same."""
    for index, item in enumerate(sequence):
        if isinstance(item, faults.KillDuring):
            kind = op.CrashAt if item.whole else op.KillAt
            for call in range(MOST_POINTS):
                yield "exact point", _with(sequence, index, kind(item.operation, call))


def _with(sequence: Sequence[Operation], index: int, item: Operation) -> tuple[Operation, ...]:
    return (*sequence[:index], item, *sequence[index + 1 :])


def _workers(sequence: Sequence[Operation]) -> list[str]:
    """Workers in the order of their first mention."""
    names: dict[str, None] = {}
    for item in sequence:
        for part in walk(item):
            name = op.worker_of(part)
            if name is not None:
                names.setdefault(name)
    return list(names)


def _renamed(operation: Operation, names: dict[str, str]) -> Operation:
    changes: dict[str, object] = {}
    for item in fields(operation):
        value = getattr(operation, item.name)
        if item.name == "worker" and isinstance(value, str):
            changes["worker"] = names.get(value, value)
        elif isinstance(value, Operation):
            changes[item.name] = _renamed(value, names)
        elif isinstance(value, tuple) and value and isinstance(value[0], Operation):
            changes[item.name] = tuple(_renamed(part, names) for part in value)
    return replace(operation, **changes) if changes else operation
