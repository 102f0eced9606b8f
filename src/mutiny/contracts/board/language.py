"""What an experiment may say about a board: its own sentences, and those that need the history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.sentences import MOMENTARY
from mutiny.kit.language import HEAL_ALL, Language, RollbackLine, doing
from mutiny.kit.sentences import (
    Deed,
    Finding,
    Record,
    Sentence,
    Value,
    broken,
    holds,
    pending,
)
from mutiny.model.operation import Operation, walk
from mutiny.model.result import OperationResult

_CALM = ("healthy", "slow")


def _unread(seen: BoardObservation) -> Finding:
    return pending(seen.state_error or "there is no board to look at")


def _all_reach(record: Record, values: Mapping[str, Value]) -> Finding:
    seen: BoardObservation = record.seen
    if seen.tasks is None:
        return _unread(seen)
    others = [
        f"{one.id} is {one.status}"
        for one in seen.tasks.values()
        if one.status not in values["statuses"]
    ]
    if others:
        return pending(", ".join(others[:5]) + (", ..." if len(others) > 5 else ""))
    return holds(f"{len(seen.tasks)} tasks")


def _returned(record: Record, values: Mapping[str, Value]) -> Finding:
    """A task that somebody held was taken from him: it is free, or another one has it."""
    held: dict[str, TaskView] = {}
    for look in record.looks:
        for one in (look.seen.tasks or {}).values():
            earlier = held.get(one.id)
            if earlier is not None and _taken(earlier, one):
                return holds(f"{one.id} was taken from {earlier.owner}")
            if one.status in op.HELD and one.owner:
                held[one.id] = one
            if (one.attempts or 0) >= 2 or (one.epoch or 0) >= 2:
                return holds(f"{one.id} was claimed again")
    return pending("no claim was seen to be returned")


def _taken(earlier: TaskView, later: TaskView) -> bool:
    if later.status == "available":
        return True
    return later.status in op.HELD and later.owner != earlier.owner


def _reassigned(record: Record, values: Mapping[str, Value]) -> Finding:
    owners: dict[str, str] = {}
    for look in record.looks:
        for one in (look.seen.tasks or {}).values():
            if one.status not in (*op.HELD, "done"):
                continue
            first = owners.get(one.id)
            if one.owner and first and one.owner != first:
                return holds(f"{one.id} went from {first} to {one.owner}")
            if one.owner:
                owners.setdefault(one.id, one.owner)
            if (one.epoch or 0) >= 2:
                return holds(
                    f"{one.id} was claimed {one.epoch} times, last by {one.owner or 'somebody'}"
                )
    return pending("no task was seen to go to another worker")


def _one_leader(record: Record, values: Mapping[str, Value]) -> Finding:
    leaders: dict[int, str] = {}
    top = 0
    for look in record.looks:
        token, leader = look.seen.token, look.seen.leader
        if token is None:
            continue
        if token < top:
            return broken(f"the token fell from {top} to {token}")
        top = token
        if leader is not None and leaders.setdefault(token, leader) != leader:
            return broken(f"{leaders[token]} and {leader} lead with the token {token}")
    return holds(f"highest token {top}" if top else "nobody leads")


def _has_leader(record: Record, values: Mapping[str, Value]) -> Finding:
    leader = record.seen.leader
    return holds(f"{leader} leads") if leader else pending("nobody leads")


def _nothing_lost(record: Record, values: Mapping[str, Value]) -> Finding:
    seen: BoardObservation = record.seen
    if seen.tasks is None:
        return _unread(seen)
    added: dict[str, None] = {}
    for deed in record.deeds:
        if isinstance(deed.operation, op.Restore) and deed.result.succeeded:
            added.clear()  # a restore brings back what was there at its checkpoint
        for operation, result in _pairs(deed.operation, deed.result):
            if result.succeeded and isinstance(operation, op.AddTask):
                added[operation.task] = None
            if result.succeeded and isinstance(operation, op.AddBatch):
                added.update(dict.fromkeys(operation.named))
    missing = [task for task in added if task not in seen.tasks]
    if missing:
        return broken(f"{', '.join(missing[:5])} was acknowledged and is gone", missing[0])
    return holds(f"{len(added)} acknowledged tasks are there")


def _pairs(
    operation: Operation, result: OperationResult
) -> list[tuple[Operation, OperationResult]]:
    """An operation and its parts, each with its own answer."""
    children = operation.children()
    if children and len(result.inner) == len(children):
        return [
            pair
            for child, part in zip(children, result.inner, strict=True)
            for pair in _pairs(child, part)
        ]
    return [(operation, result)]


def _said(deeds: Sequence[Deed], word: str) -> int | None:
    """The index of the first deed that was answered with a word."""
    for index, deed in enumerate(deeds):
        for _, result in _pairs(deed.operation, deed.result):
            if word in result.stdout or word in result.stderr:
                return index
    return None


def _refused(word: str, what: str) -> Sentence:
    def check(record: Record, values: Mapping[str, Value]) -> Finding:
        found = _said(record.deeds, word)
        if found is None:
            return pending(f"no command was refused with {word}")
        return holds(f"{record.deeds[found].operation.short()} was refused with {word}")

    return Sentence(what, check, f"A command was refused with `{word}`.")


def _closed_again(record: Record, values: Mapping[str, Value]) -> Finding:
    opened = _said(record.deeds, "breaker_open")
    if opened is None:
        return pending("it never opened")
    for deed in record.deeds[opened + 1 :]:
        if isinstance(deed.operation, op.Claim) and deed.result.succeeded:
            return holds(f"{deed.operation.short()} was served again")
    return pending("no claim was served after it had opened")


def _done(kind: type[Operation], what: str, meaning: str) -> Sentence:
    def check(record: Record, values: Mapping[str, Value]) -> Finding:
        for deed in record.deeds:
            if isinstance(deed.operation, kind):
                if deed.result.succeeded:
                    return holds(deed.operation.short())
                return broken(f"{deed.operation.short()}: {deed.result.stderr.strip()[:120]}")
        return pending(f"there was no {kind.__name__}")

    return Sentence(what, check, meaning)


SENTENCES: tuple[Sentence, ...] = (
    Sentence(
        "All tasks eventually reach {statuses:statuses}",
        _all_reach,
        "Every task ends in one of these statuses.",
        rule="board.all_settle",
    ),
    Sentence(
        "[stale] task detection triggered",
        _returned,
        "A task that a worker held was taken back: it is available, or somebody else's.",
    ),
    Sentence(
        "[The] task [was] reassigned to healthy worker",
        _reassigned,
        "A task was claimed a second time, by another worker.",
    ),
    Sentence(
        "At most one leader",
        _one_leader,
        "Tokens only grow, and one token has one leader.",
        always=True,
        rule="board.one_leader",
    ),
    Sentence("[There] is a leader", _has_leader, "Somebody leads."),
    Sentence("A leader is elected", _has_leader, "Somebody leads."),
    Sentence(
        "No acknowledged task is lost",
        _nothing_lost,
        "Every task whose adding was acknowledged is there.",
        always=True,
        rule="board.add_kept",
    ),
    _refused("breaker_open", "[The] circuit breaker opened"),
    Sentence(
        "[The] circuit breaker closed again",
        _closed_again,
        "After it had opened, a claim was served.",
    ),
    _refused("rate_limited", "[The] rate limit held"),
    _refused("cycle", "[The] cycle was refused"),
    _done(op.Restore, "[The] checkpoint was restored", "A restore succeeded."),
    _done(op.Repair, "[The] board was repaired", "A repair succeeded."),
    *MOMENTARY,
)


def _chaos_workers(method: Sequence[Operation]) -> tuple[str, ...]:
    spawned = [
        part
        for item in method
        for part in walk(item)
        if isinstance(part, op.SpawnWorker) and part.behaviour.partition(":")[0] not in _CALM
    ]
    return tuple(dict.fromkeys(name for part in spawned for name in part.names))


def _stop_chaos(values: Mapping[str, str], method: Sequence[Operation]) -> tuple[Operation, ...]:
    return tuple(op.KillWorker(worker) for worker in _chaos_workers(method))


ROLLBACKS = (
    RollbackLine(
        "Kill [the] chaos worker if still running", _stop_chaos, "Kill every misbehaving worker."
    ),
    RollbackLine("Kill [the] chaos workers if still running", _stop_chaos, "The same."),
    RollbackLine(
        "Reset any stuck tasks to {status:status}",
        doing(op.Recover()),
        "Return what dead workers hold.",
    ),
    HEAL_ALL,
    RollbackLine("Repair the board", doing(op.Repair()), "Mend a board that cannot be read."),
    RollbackLine("Start the server again", doing(op.Up()), "Start the server if it does not run."),
)

LANGUAGE = Language(
    "board",
    SENTENCES,
    ROLLBACKS,
    setup=(
        op.Init(),
        op.Up(),
        op.AddBatch(("task-1", "task-2", "task-3", "task-4")),
        op.SpawnWorker("healthy-worker", "slow:400"),
    ),
    probe=op.Status(),
    settle=(op.Settle(),),
    behaviours=op.BEHAVIOURS,
)
