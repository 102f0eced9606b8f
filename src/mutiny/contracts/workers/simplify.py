"""What makes a sequence simpler, and whether a shortened one still means anything.

The minimiser asks two questions and this module answers both without starting a process: which
simpler forms are worth trying, and which shortened sequences are nonsense (a wait for a status that
nothing leads to would only cost its time limit).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.model import WorkersModel
from mutiny.contracts.workers.profile import Profile
from mutiny.contracts.workers.symbolic import Walk, served
from mutiny.kit import operations as common
from mutiny.kit.simplifying import (
    Forms,
    Steps,
    exact_points,
    fewer,
    mentioned,
    renamed,
    smaller_waits,
    unwrapped,
    with_one,
)
from mutiny.model.operation import Operation, walk

SHORT_PROMPT = "Create a.txt"
WORKER_NAMES = ("alpha", "beta", "gamma", "delta")


def plausible(
    profile: Profile, sequence: Sequence[Operation], original: Sequence[Operation] = ()
) -> bool:
    """Walk the sequence symbolically; False when it is nonsense.

    A wait, assertion or fault that can never be meant seriously is nonsense, and so is an assertion
    that the model held for true in the original and does not hold for true here.
    """
    if not sequence or not isinstance(sequence[0], common.Reset):
        return False
    promised = {one for model, one in _walked(profile, original) if _agrees(model, one)}
    return all(
        _sensible(model, operation) and (operation not in promised or _agrees(model, operation))
        for model, operation in _walked(profile, sequence)
    )


def certain(
    profile: Profile, sequence: Sequence[Operation], original: Sequence[Operation] = ()
) -> bool:
    """Is there no command whose outcome depends on the target's pace, unless it did in the original?

    A shorter sequence that only fails when an agent happens to start fast is a weak reproduction.
    """
    lucky = _lucky(profile, original)
    return not any(
        operation.type not in lucky and _depends_on_pace(model, operation)
        for model, operation in _walked(profile, sequence)
    )


def _walked(
    profile: Profile, sequence: Sequence[Operation]
) -> Iterator[tuple[WorkersModel, Operation]]:
    """Every operation with the beliefs that it meets."""
    way = Walk(profile)
    for operation in sequence:
        if not isinstance(operation, common.Reset):
            yield way.model, operation
        way.apply(operation)


def _agrees(model: WorkersModel, operation: Operation) -> bool:
    """Does the model say what is asserted? Then no shorter sequence may make it wrong by itself."""
    worker = common.worker_of(operation)
    if worker is None or worker not in model.workers:
        return False
    if isinstance(operation, op.AssertState):
        return operation.status in model.allowed(worker)
    if isinstance(operation, op.AssertSessionAlive):
        return True in model.daemon
    return isinstance(operation, op.AssertWorkerExists)


def _lucky(profile: Profile, original: Sequence[Operation]) -> frozenset[str]:
    """Types of commands whose outcome depended on the target's pace in the original."""
    return frozenset(
        operation.type
        for model, operation in _walked(profile, original)
        if _depends_on_pace(model, operation)
    )


def _depends_on_pace(model: WorkersModel, operation: Operation) -> bool:
    """More than one course is right: which one comes depends on how fast the target is."""
    inner = operation.inner if isinstance(operation, common.ExpectError) else operation
    if not isinstance(inner, _PACED) or not model.initialised:
        return False
    name = op.meant(inner, model.last_reviewed)
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
    *(op.ReviewNext, op.AcceptReviewed),
    *(op.Nuke, op.ResetWorker, op.Down),
    *(op.KillAgent, op.KillTmuxSession, op.KillTmuxServer, op.KillDaemon),
)


def _sensible(model: WorkersModel, operation: Operation) -> bool:
    begins = any(isinstance(part, op.Init) for part in walk(operation))
    if not model.initialised and not begins and not isinstance(operation, op.MoveSource):
        return isinstance(operation, common.ExpectError) and served(model, operation.inner) is False
    if isinstance(operation, op.Init) and model.initialised and not model.faults:
        return False  # one that was broken off may be given again
    if isinstance(operation, common.ExpectError):
        return served(model, operation.inner) is not True
    worker = common.worker_of(operation)
    awaited = op.awaited_status(operation)
    if awaited is not None:
        known = worker is not None and worker in model.workers
        return known and awaited in model.allowed(worker or "") and True in model.daemon
    if isinstance(
        operation,
        op.KillTmuxSession
        | op.KillAgent
        | op.AssertSessionAlive
        | op.AssertState
        | op.AssertOnTop
        | op.AssertAuthor,
    ):
        return worker in model.workers
    if isinstance(operation, op.WaitForTurnEnd):
        return operation.worker in model.workers
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


def simpler(sequence: Sequence[Operation]) -> Forms:
    """Simpler forms, the most promising first; each with a word for the progress line."""
    yield from unwrapped(sequence)
    yield from _fewer_workers(sequence)
    yield from _shorter_texts(sequence)
    yield from smaller_waits(sequence)
    yield from exact_points(sequence)


def _fewer_workers(sequence: Sequence[Operation]) -> Forms:
    """Leave a worker out, let an earlier one do its part, and give them their plain names."""
    for word, form in fewer("workers", "worker", sequence):
        yield word, _without_repeated_adds(form)
    names = mentioned(sequence, "worker")
    plain = dict(zip(names, WORKER_NAMES, strict=False))
    if any(old != new for old, new in plain.items()) and not _prefixes(names):
        yield "names", tuple(renamed(item, "worker", plain) for item in sequence)


def _prefixes(names: Sequence[str]) -> bool:
    """Names that are prefixes of each other are a trigger in themselves and must stay."""
    return any(a != b and a.startswith(b) for a in names for b in names)


def _without_repeated_adds(sequence: Sequence[Operation]) -> Steps:
    kept: list[Operation] = []
    for item in sequence:
        repeated = (
            isinstance(item, op.Add | op.WaitForIdle | op.WaitForNeedsReview) and item in kept[-3:]
        )
        if not repeated and not (isinstance(item, op.Add) and item in kept):
            kept.append(item)
    return tuple(kept)


def _shorter_texts(sequence: Sequence[Operation]) -> Forms:
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
            yield "texts", with_one(sequence, index, short[index])
