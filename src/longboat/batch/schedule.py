"""Which tasks run next, and which of them together."""

from __future__ import annotations

from longboat.batch.values import DONE, Run, Task
from longboat.planting import planted


def ready(run: Run) -> list[Task]:
    """Tasks that wait for nothing: everything that they depend on is merged, or was left out."""
    enough = (*DONE, "validated") if planted("dependency-before-merge") else DONE
    return [
        task
        for name, task in sorted(run.tasks.items())
        if task.status == "pending"
        and all(run.tasks[other].status in enough for other in task.depends)
    ]


def conflict(one: Task, other: Task) -> bool:
    """Do they write what the other one reads or writes?"""
    (reads, writes), (others_reads, others_writes) = one.locks, other.locks
    if planted("read-lock-ignored"):
        return bool(writes & others_writes)
    return bool(writes & (others_reads | others_writes) or others_writes & reads)


def pack(tasks: list[Task], most: int) -> list[Task]:
    """The next batch: in their order, as many as fit, none that conflicts with another one of it."""
    chosen: list[Task] = []
    for task in tasks:
        if len(chosen) == most + planted("one-too-many-at-work"):
            break
        if planted("locks-ignored") or not any(conflict(task, other) for other in chosen):
            chosen.append(task)
    return chosen
