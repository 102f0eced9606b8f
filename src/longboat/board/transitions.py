"""What every verb about tasks means. Pure: a ledger, a command and a moment give an answer.

The one insight: an owner is a name **and** an epoch. Every claim has a new epoch, so whoever lost
a task, however long it slept, can never speak for it again.
"""

from __future__ import annotations

from longboat.board import dependencies, scheduling
from longboat.board.ledger import Ledger, Moment
from longboat.board.values import (
    AVAILABLE,
    BLOCKED,
    CANCELLED,
    CLAIMED,
    DONE,
    FAILED,
    HELD,
    IN_PROGRESS,
    TERMINAL,
    Answer,
    Command,
    Refused,
    Task,
)
from longboat.planting import planted

KEPT_BY_PLANT = 1000


def add(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """One new task."""
    return {"ok": True, "task": dependencies.add(ledger, command.new)[0]}


def add_batch(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """Many new tasks, all or nothing."""
    if planted("batch-half-added"):
        added: list[str] = []
        for new in command.new:
            try:
                added += dependencies.add(ledger, (new,))
            except Refused as refusal:
                return refusal.answer()
        return {"ok": True, "tasks": added}
    return {"ok": True, "tasks": dependencies.add(ledger, command.new)}


def claim(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """Give a worker the best task, or the one that it names. What is stale is returned first."""
    return_stale(ledger, moment)
    try:
        _pass_breaker(ledger, moment)
        chosen = _named(ledger, command.task, moment) if command.task else ledger.best(moment.now)
        if chosen is None and planted("claim-waits-for-work"):
            _wait_for_work()
        if chosen is None:
            raise Refused("nothing_to_claim", "No task is available")
    except Refused as refusal:  # an answer, not an exception: what was returned stays returned
        return refusal.answer()
    taken = chosen.moved(CLAIMED, f"{command.worker} #{chosen.epoch + 1}")._replace(
        owner=command.worker, epoch=chosen.epoch + 1, not_before=0.0, reason=None
    )
    ledger.put(taken)
    _tell_breaker(ledger, "dispatched", taken, moment)
    return {
        "ok": True,
        "task": taken.id,
        "epoch": taken.epoch,
        "description": taken.description,
        "payload": taken.payload,
        "lease_s": ledger.config.lease_s,
    }


def _wait_for_work() -> None:
    """Plants only: the lock is held, so no work can ever come."""
    import time

    while True:
        time.sleep(1.0)


def _named(ledger: Ledger, name: str, moment: Moment) -> Task:
    task = _existing(ledger, name)
    if task.status == BLOCKED and planted("crew-ignores-dag"):
        return task
    if task.status in HELD and planted("named-claim-steals"):
        return task
    if task.status == BLOCKED:
        text = f"Task '{name}' {dependencies.verdict(ledger, task)[1]}"
        raise Refused("dependencies_open", text)
    if task.status != AVAILABLE:
        raise Refused("task_not_available", f"Task '{name}' is {task.status}")
    if not scheduling.is_due(ledger.config, task.not_before, moment.now):
        wait_s = task.not_before - moment.now
        raise Refused("task_not_available", f"Task '{name}' rests for another {wait_s:.3f} s")
    return task


def _existing(ledger: Ledger, name: str) -> Task:
    task = ledger.get(name)
    if task is None:
        raise Refused("unknown_task", f"Task '{name}' does not exist")
    return task


def _own(ledger: Ledger, command: Command, verb: str, statuses: tuple[str, ...]) -> Task:
    """The task that a worker speaks for, or the reason why it does not."""
    task = _existing(ledger, command.task)
    if verb == "complete" and planted("completion-by-stranger"):
        return task
    if command.epoch is not None and command.epoch != task.epoch:
        text = f"Task '{task.id}' is at epoch {task.epoch}, not {command.epoch}"
        raise Refused("stale_epoch", text)
    if task.owner != command.worker:
        owner = f"belongs to {task.owner}" if task.owner else "has no owner"
        raise Refused("not_owner", f"Task '{task.id}' {owner}, not to {command.worker}")
    if task.status not in statuses:
        if verb == "complete" and task.status == DONE and planted("double-completion"):
            return task
        raise Refused("wrong_status", f"Cannot {verb} task '{task.id}': it is {task.status}")
    return task


def start(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The owner begins."""
    task = _own(ledger, command, "start", HELD if planted("start-twice") else (CLAIMED,))
    ledger.put(task.moved(IN_PROGRESS, command.worker))
    return {"ok": True, "task": task.id, "epoch": task.epoch}


def complete(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The owner has done it; this happens once."""
    task = _own(ledger, command, "complete", HELD)
    output = (command.text or "")[:KEPT_BY_PLANT] if planted("output-cut") else command.text
    done = task.moved(DONE, command.worker)._replace(
        output=output, completions=task.completions + 1, reason=None
    )
    ledger.put(done)
    if planted("completion-frees-worker"):
        for other in [one for one in ledger.held() if one.owner == command.worker]:
            ledger.put(other.moved(AVAILABLE, "its worker is free")._replace(owner=None))
    dependencies.ended(ledger, done)
    _tell_breaker(ledger, "succeeded", task, moment)
    return {"ok": True, "task": task.id, "epoch": task.epoch}


def fail(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The owner could not do it: again after a rest, or never."""
    task = _own(ledger, command, "fail", HELD)
    after = _attempt_over(ledger, task, command.text or "failed", moment, rest=True)
    _tell_breaker(ledger, "went_wrong", task, moment)
    rest_s = max(0.0, round(after.not_before - moment.now, 3))
    return {
        "ok": True,
        "task": task.id,
        "status": after.status,
        "attempts": after.attempts,
        "retry_in_s": rest_s * 1000 if planted("rest-told-in-ms") else rest_s,
    }


def _attempt_over(ledger: Ledger, task: Task, why: str, moment: Moment, *, rest: bool) -> Task:
    attempts = task.attempts + 1
    is_last = attempts >= task.max_attempts and not planted("max-attempts-ignored")
    if is_last or (not rest and planted("stale-claim-failed")):
        after = task.moved(FAILED, why)._replace(attempts=attempts, reason=why)
    else:
        pause_s = scheduling.backoff_s(ledger.config, task.id, attempts) if rest else 0.0
        after = task.moved(AVAILABLE, why)._replace(
            attempts=attempts,
            owner=None,
            reason=why,
            not_before=moment.now + pause_s if pause_s else 0.0,
        )
    ledger.put(after)
    dependencies.ended(ledger, after)
    return after


def release(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The owner gives it back untouched; no attempt is counted."""
    statuses = (CLAIMED,) if planted("release-only-before-start") else HELD
    task = _own(ledger, command, "release", statuses)
    ledger.put(task.moved(AVAILABLE, f"released by {command.worker}")._replace(owner=None))
    _tell_breaker(ledger, "dropped", task, moment)
    return {"ok": True, "task": task.id}


def cancel(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """Nobody needs it any more."""
    task = _existing(ledger, command.task)
    if task.status in TERMINAL and not planted("cancel-of-done"):
        raise Refused("wrong_status", f"Cannot cancel task '{task.id}': it is {task.status}")
    after = task.moved(CANCELLED, command.text or "cancelled")._replace(reason=command.text)
    ledger.put(after)
    dependencies.ended(ledger, after)
    _tell_breaker(ledger, "dropped", task, moment)
    return {"ok": True, "task": task.id}


def retry(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """By hand: a failed task gets all its attempts again."""
    task = _existing(ledger, command.task)
    if task.status != FAILED:
        raise Refused("wrong_status", f"Cannot retry task '{task.id}': it is {task.status}")
    status, why = dependencies.verdict(ledger, task)
    if status == FAILED:
        raise Refused(
            "dependencies_open", f"Cannot retry task '{task.id}': {why}; retry that first"
        )
    after = task.moved(status, "retried by hand")
    ledger.put(after._replace(owner=None, attempts=0, not_before=0.0, reason=None))
    return {"ok": True, "task": task.id, "status": status}


def return_stale(ledger: Ledger, moment: Moment) -> tuple[list[str], list[str]]:
    """Take back what dead workers hold: names of those returned, and of those failed for good."""
    returned: list[str] = []
    failed: list[str] = []
    for task in ledger.held():
        age_s = moment.age_s(task.owner or "")
        if age_s <= ledger.config.lease_s or planted("stale-claim-kept"):
            continue
        why = f"{task.owner} was not heard of for {ledger.config.lease_s:g} s"
        after = _attempt_over(ledger, task, why, moment, rest=False)
        (failed if after.status == FAILED else returned).append(task.id)
        _tell_breaker(ledger, "went_wrong", task, moment)
    return returned, failed


def recover(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """Return stale claims, promote what has rested enough, settle what is decided."""
    returned, failed = return_stale(ledger, moment)
    promoted = []
    for task in ledger.resting():
        if scheduling.is_due(ledger.config, task.not_before, moment.now):
            ledger.put(task._replace(not_before=0.0))
            promoted.append(task.id)
    for task in ledger.blocked():
        dependencies.look_again(ledger, task.id)
    return {"ok": True, "returned": returned, "failed": failed, "promoted": promoted}


def heartbeat(ledger: Ledger, command: Command, moment: Moment) -> Answer:
    """The worker lives (its beat was noted before); says what it holds."""
    mine = [task.id for task in ledger.held() if task.owner == command.worker]
    return {"ok": True, "worker": command.worker, "tasks": mine, "lease_s": ledger.config.lease_s}


def _pass_breaker(ledger: Ledger, moment: Moment) -> None:
    breaker = ledger.guards.breaker
    if breaker is None:
        return
    breaker = scheduling.at(ledger.config, breaker, moment.now)
    ledger.guards.breaker = breaker
    if not scheduling.lets_through(ledger.config, breaker):
        raise Refused("breaker_open", f"Too many failures: the circuit breaker is {breaker.state}")


def _tell_breaker(ledger: Ledger, event: str, task: Task, moment: Moment) -> None:
    breaker = ledger.guards.breaker
    if breaker is None:
        return
    key = f"{task.id}#{task.epoch}"
    match event:
        case "dispatched":
            breaker = scheduling.dispatched(breaker, key)
        case "succeeded":
            breaker = scheduling.succeeded(ledger.config, breaker, key)
        case "went_wrong":
            breaker = scheduling.went_wrong(ledger.config, breaker, key, moment.now)
        case _:
            breaker = scheduling.dropped(breaker, key)
    ledger.guards.breaker = breaker
