"""New tasks and what hangs on what: refusing cycles, unblocking, and failing what can never run.

The one insight: when a task ends for good, everything behind it is settled in the same step, so
that a board on which nothing can run has no open tasks.
"""

from __future__ import annotations

from longboat.board.ledger import Ledger
from longboat.board.values import (
    AVAILABLE,
    BLOCKED,
    CANCELLED,
    DONE,
    FAILED,
    PRIORITY_MAX,
    TERMINAL,
    NewTask,
    Refused,
    Task,
    check_name,
)
from longboat.planting import planted


def add(ledger: Ledger, wanted: tuple[NewTask, ...]) -> list[str]:
    """Add these tasks, all of them or none; a refusal says what is wrong with which."""
    named = _name(ledger, wanted)
    if not planted("cycle-accepted"):
        _refuse_cycles(named)
    added = []
    for name, new in named.items():
        _check(ledger, name, new, named)
        counters = ledger.counters
        ledger.set_counters(counters._replace(sequence=counters.sequence + 1))
        task = Task(
            id=name,
            description=new.description,
            order=counters.sequence + 1,
            status=BLOCKED if new.depends else AVAILABLE,
            priority=new.priority,
            depends=new.depends,
            epoch=counters.epoch_floor,
            max_attempts=new.max_attempts or ledger.config.max_attempts,
            payload=new.payload,
        )
        ledger.put(task.moved(task.status, "added"))
        added.append(name)
    for name in added if not planted("waits-for-what-is-done") else ():
        look_again(ledger, name)
    return added


def _name(ledger: Ledger, wanted: tuple[NewTask, ...]) -> dict[str, NewTask]:
    given = {new.id for new in wanted if new.id}
    named: dict[str, NewTask] = {}
    number = ledger.counters.sequence
    for new in wanted:
        name = new.id
        while not name:
            number += 1
            if f"task-{number}" not in given and ledger.get(f"task-{number}") is None:
                name = f"task-{number}"
        check_name("task", name)
        if name in named or ledger.get(name) is not None:
            raise Refused("duplicate_id", f"Task '{name}' exists already")
        named[name] = new._replace(depends=tuple(dict.fromkeys(new.depends)))
    return named


def _check(ledger: Ledger, name: str, new: NewTask, together: dict[str, NewTask]) -> None:
    if not new.description.strip():
        raise Refused("bad_input", f"Task '{name}' has no description")
    if not 1 <= new.priority <= PRIORITY_MAX:
        raise Refused("bad_input", f"The priority of '{name}' is not in 1..{PRIORITY_MAX}")
    if new.max_attempts is not None and new.max_attempts < 1:
        raise Refused("bad_input", f"Task '{name}' must be allowed at least one attempt")
    for other in new.depends:
        if other not in together and ledger.get(other) is None:
            if planted("crash-on-missing-dependency"):
                raise KeyError(other)
            text = f"Task '{name}' depends on '{other}', which does not exist"
            raise Refused("error" if planted("refusal-unclassed") else "dependency_missing", text)


def _refuse_cycles(named: dict[str, NewTask]) -> None:
    """Only among new tasks can there be a cycle: what exists depends on what existed before."""
    open_in = {
        name: {other for other in new.depends if other in named} for name, new in named.items()
    }
    while free := [name for name, needs in open_in.items() if not needs]:
        for name in free:
            del open_in[name]
        for needs in open_in.values():
            needs.difference_update(free)
    if open_in:
        raise Refused("cycle", f"These depend on each other: {', '.join(sorted(open_in))}")


def verdict(ledger: Ledger, task: Task) -> tuple[str, str]:
    """The status that a task has because of its dependencies alone, and why."""
    waiting = []
    for name in task.depends:
        other = ledger.get(name)
        if other is None or other.status in (FAILED, CANCELLED):
            return FAILED, f"dependency {name} failed"
        if other.status != DONE:
            waiting.append(name)
    if waiting and not planted("dependencies-ignored"):
        return BLOCKED, f"waits for {waiting[0]}"
    return AVAILABLE, "dependencies done"


def look_again(ledger: Ledger, name: str) -> None:
    """Settle a blocked task, and then what waits for it, as far as that is decided."""
    left = [name]
    while left:
        task = ledger.get(left.pop())
        if task is None or task.status != BLOCKED:
            continue
        status, why = verdict(ledger, task)
        if status == BLOCKED:
            continue
        reason = why if status == FAILED else None
        ledger.put(task.moved(status, why)._replace(reason=reason))
        if status == FAILED:
            left.extend(one.id for one in ledger.waiting_on(task.id))


def ended(ledger: Ledger, task: Task) -> None:
    """A task has ended: what waits for it may run, or can never run."""
    if task.status in ((DONE,) if planted("failure-not-passed-on") else TERMINAL):
        for other in ledger.waiting_on(task.id):
            look_again(ledger, other.id)


def settle_deadlock(ledger: Ledger) -> list[str]:
    """Fail what waits for each other when nothing else is left; names of what was failed."""
    for task in ledger.blocked():
        look_again(ledger, task.id)
    if any(task.status not in (*TERMINAL, BLOCKED) for task in ledger.tasks()):
        return []
    stuck = ledger.blocked()
    for task in stuck:
        ledger.put(task.moved(FAILED, "deadlock")._replace(reason="deadlock: nothing can run"))
    return [task.id for task in stuck]
