"""From a verb to its meaning; the one entry that all three boards use.

``apply`` is the whole board as a function of values: (board, command, moment) -> (board, answer).
"""

from __future__ import annotations

from collections.abc import Callable

from longboat.board import leadership, scheduling, transitions
from longboat.board.config import Config
from longboat.board.ledger import Counters, Guards, Ledger, MemoryLedger, Moment
from longboat.board.values import (
    AVAILABLE,
    DONE,
    HELD,
    Answer,
    Board,
    Command,
    Leader,
    Refused,
    Task,
    check_name,
)
from longboat.planting import planted

Transition = Callable[[Ledger, Command, Moment], Answer]

WORKING = frozenset({"claim", "start", "complete", "fail", "release"})
"""Verbs of a worker that change the board; a rate limit counts them."""
LEADING = frozenset({"elect", "renew", "step-down", "write-as-leader"})


def beats(command: Command) -> bool:
    """True when a command shows that its worker lives."""
    if command.verb == "heartbeat":
        return not planted("heartbeat-ignored")
    return command.verb in WORKING


def renews(command: Command) -> bool:
    """True when a command, once it succeeded, starts the leader's lease anew."""
    return command.verb in ("elect", "renew")


def check(command: Command) -> None:
    """Refuse names that cannot be names."""
    if command.verb in WORKING or command.verb == "heartbeat":
        check_name("worker", command.worker)
    if command.verb in LEADING:
        check_name("node", command.name)
    if command.verb in ("checkpoint", "restore"):
        check_name("checkpoint", command.name)


def run(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """Decide one verb on a ledger. A raised refusal means: throw the ledger away."""
    transition = _TABLE.get(command.verb)
    if transition is None:
        raise Refused("bad_input", f"unknown verb {command.verb!r}")
    check(command)
    if command.verb in WORKING and ledger.config.rate_limit > 0:
        _pay(ledger, command.worker, moment.now)
    return transition(ledger, command, moment)


def _pay(ledger: Ledger, worker: str, now: float) -> None:
    key = scheduling.bucket_key(worker)
    bucket = scheduling.take(ledger.config, ledger.guards.buckets.get(key), now)
    if bucket is None:
        rate = f"{ledger.config.rate_limit:g} a second"
        raise Refused("rate_limited", f"{worker} asks too often (limit: {rate})")
    ledger.guards.buckets[key] = bucket


def apply(
    board: Board, command: Command, moment: Moment, config: Config, guards: Guards | None = None
) -> tuple[Board, Answer]:
    """The board after a command, and the answer; a refusal leaves the same board."""
    ledger = MemoryLedger(board, config, guards or Guards(with_breaker=False))
    try:
        answer = run(ledger, command, moment)
    except Refused as refusal:
        return board, refusal.answer()
    return ledger.board(), answer


def restore(ledger: Ledger, saved: Board) -> Answer:
    """Bring a checkpoint back exactly; only what fences old owners and leaders never goes down."""
    counters, leader = ledger.counters, ledger.leader
    gone = [task.epoch for task in ledger.tasks() if task.id not in saved.tasks]
    floor = max([counters.epoch_floor, saved.epoch_floor, *gone])
    tasks = []
    for task in saved.tasks.values():
        now = ledger.get(task.id)
        epoch = max(task.epoch, now.epoch if now else counters.epoch_floor)
        if planted("restore-lowers-epoch"):
            epoch = task.epoch
        if task.status in HELD:
            if planted("restore-loses-claimed"):
                continue
            task = task.moved(AVAILABLE, "restored")._replace(owner=None)
        tasks.append(task._replace(epoch=epoch))
    ledger.replace_all(tasks)
    ledger.set_counters(Counters(max(counters.sequence, saved.sequence), floor))
    ledger.set_leader(leader._replace(token=max(leader.token, saved.leader.token)))
    return {"ok": True, "tasks": len(tasks)}


REPAIR_JUMP = 1000
"""How far a repair raises what fences: more than a lost state can have been ahead."""


def after_repair(board: Board, generation: int) -> Board:
    """A board from a backup: nobody's claim, epoch or token of the lost time is valid on it."""
    tasks = {}
    for task in board.tasks.values():
        if task.status in HELD:
            task = task.moved(AVAILABLE, "repaired")._replace(owner=None)
        tasks[task.id] = task._replace(epoch=task.epoch + REPAIR_JUMP)
    leader = board.leader._replace(node=None, token=board.leader.token + REPAIR_JUMP)
    if planted("repair-forgets-leader"):
        leader = Leader()
    floor = max([board.epoch_floor, *(task.epoch for task in tasks.values())])
    return board._replace(generation=generation, tasks=tasks, leader=leader, epoch_floor=floor)


def for_checkpoint(board: Board) -> Board:
    """What a checkpoint keeps."""
    if planted("checkpoint-skips-done"):
        open_tasks = {name: task for name, task in board.tasks.items() if task.status != DONE}
        return board._replace(tasks=open_tasks)
    return board


def describe(task: Task) -> Answer:
    """A task as `list` shows it."""
    return dict(task._asdict())


def list_tasks(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """All tasks with every field."""
    return {"ok": True, "tasks": [describe(task) for task in ledger.tasks()]}


def status(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """How things are; changes nothing."""
    held: dict[str, list[str]] = {}
    for task in ledger.held():
        held.setdefault(task.owner or "", []).append(task.id)
    workers = {}
    for name in sorted({*held, *moment.beats}):
        age_s = moment.age_s(name)
        workers[name] = {
            "alive": age_s <= ledger.config.lease_s,
            "last_heartbeat_age_s": round(age_s, 3) if age_s < 1e12 else None,
            "tasks": held.get(name, []),
        }
    leader = leadership.present(ledger, moment)
    counts = ledger.counts()
    return {
        "ok": True,
        "counts": counts,
        "total": sum(counts.values()),
        "leader": {"node": leader.node, "token": leader.token} if leader else None,
        "token": ledger.leader.token,
        "writes": [write._asdict() for write in ledger.leader.writes],
        "breaker": _describe_breaker(ledger, moment),
        "limiter": {"rate": ledger.config.rate_limit, "burst": ledger.config.rate_burst},
        "workers": workers,
    }


def _describe_breaker(ledger: Ledger, moment: Moment) -> Answer:
    breaker = ledger.guards.breaker
    if breaker is None:
        return {"state": "none"}
    breaker = scheduling.at(ledger.config, breaker, moment.now)
    return {
        "state": scheduling.CLOSED if planted("breaker-called-closed") else breaker.state,
        "failures": breaker.failures,
        "successes": breaker.successes,
        "probes": sorted(breaker.probes),
    }


_TABLE: dict[str, Transition] = {
    "add": transitions.add,
    "add-batch": transitions.add_batch,
    "claim": transitions.claim,
    "start": transitions.start,
    "complete": transitions.complete,
    "fail": transitions.fail,
    "heartbeat": transitions.heartbeat,
    "release": transitions.release,
    "cancel": transitions.cancel,
    "retry": transitions.retry,
    "recover": transitions.recover,
    "elect": leadership.elect,
    "renew": leadership.renew,
    "step-down": leadership.step_down,
    "write-as-leader": leadership.write,
    "status": status,
    "list": list_tasks,
}
