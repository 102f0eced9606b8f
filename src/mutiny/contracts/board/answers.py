"""What a board says in an answer, held against what is known: names, texts, numbers and lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.texts import UNNAMED, description_of, payload_of
from mutiny.kit.answer import Answer
from mutiny.model.operation import Operation

LISTED = ("status", "owner", "epoch", "attempts", "max_attempts", "priority", "depends")
"""What a list is held to."""


def untrue_alone(model: BoardModel, operation: Operation, answer: Answer) -> Iterator[str]:
    """What no other command could explain: names, texts and epochs that were given before."""
    said, named = answer.said, op.task_of(operation)
    about_one = isinstance(operation, op.AddTask | op.OwnerCommand | op.Cancel | op.Retry)
    if about_one and named and model.profile.names_new_tasks and answer.task not in (None, named):
        yield f"it names task {answer.task}"
    if isinstance(operation, op.AddUnnamed) and answer.task in model.tasks:
        yield f"it names task {answer.task}, which was there already"
    if isinstance(operation, op.OwnerCommand):
        epoch = model.epoch_used(operation.worker, operation.task, stale=operation.stale)
        told = answer.number("epoch")
        if None not in (epoch, told) and told != epoch:
            yield f"it names epoch {told}, and {operation.worker} has epoch {epoch}"
    if isinstance(operation, op.Claim) and model.profile.names_new_tasks:
        yield from _handed_over(model, answer)
    if isinstance(operation, op.AddBatch) and model.profile.names_new_tasks:
        yield from _names(said.get("tasks"), set(operation.named), "added")
    if "lease_s" in model.profile.answers.get(operation.type, ()):
        figures = model.profile.figures
        leads = isinstance(operation, op.Elect | op.Renew)
        due = figures.leader_lease_s if leads else figures.lease_s
        if said.get("lease_s") != due:
            yield f"it promises a lease of {said.get('lease_s')} s, not of {due:g} s"
    for name in ("node", "worker"):
        given = getattr(operation, name, None)
        if isinstance(given, str) and isinstance(said.get(name), str) and said[name] != given:
            yield f"it names {name} {said[name]}"


def _handed_over(model: BoardModel, answer: Answer) -> Iterator[str]:
    """Who claims a task gets what it was added with."""
    task, said = model.tasks.get(answer.task or ""), answer.said
    if task is None:
        return
    description = said.get("description")
    named = task.id if task.named else UNNAMED
    if isinstance(description, str) and description_of(named) not in description:
        yield f"its description is {description[:60]!r}"
    payload = said.get("payload", 0) or ""
    if task.size is None or "payload" not in said or not isinstance(payload, str):
        return
    if payload != payload_of(task.size):
        yield f"its payload has {len(payload)} bytes, not the {task.size} that were given"


def untrue_now(
    model: BoardModel,
    operation: Operation,
    answer: Answer,
    before: BoardObservation,
    seen: BoardObservation,
) -> Iterator[str]:
    """What the looks before and after the command show otherwise, when nobody else has done anything."""
    own_names = not model.profile.names_new_tasks  # its lists name tasks in a way of its own
    if model.loose or own_names or before.tasks is None or seen.tasks is None:
        return
    said = answer.said
    if isinstance(operation, op.Fail | op.Retry):
        view = seen.tasks.get(operation.task)
        for name in ("status", "attempts"):
            if view is not None and name in said and said[name] != getattr(view, name):
                yield f"it says {name} {said[name]}, which is {getattr(view, name)}"
    if isinstance(operation, op.Heartbeat) and _steady(before, seen):
        held = {one.id for one in _held(seen).values() if one.owner == operation.worker}
        yield from _names(said.get("tasks"), held, "held")
    returned, failed = said.get("returned"), said.get("failed")
    if isinstance(operation, op.Recover) and isinstance(returned, list):
        told = [*returned, *(failed if isinstance(failed, list) else [])]
        yield from _names(told, set(_held(before)) - set(_held(seen)), "returned")
    counted = "total" if isinstance(operation, op.Status) else "tasks"
    if isinstance(operation, op.Checkpoint | op.Restore | op.Status):
        number = answer.number(counted)
        if number not in (None, len(seen.tasks)):
            yield f"it says {number} tasks, and there are {len(seen.tasks)}"
    if isinstance(operation, op.Status) and _steady(before, seen):
        yield from _wrong_status(said, before, seen)
    if isinstance(operation, op.Status) and model.profile.keeps_writes:
        yield from _forgotten_writes(said, model.writes)


def _wrong_status(
    said: Mapping[str, object], before: BoardObservation, seen: BoardObservation
) -> Iterator[str]:
    """Who holds what, and who leads."""
    workers = said.get("workers")
    for name, shown in workers.items() if isinstance(workers, Mapping) else ():
        held = {one.id for one in _held(seen).values() if one.owner == name}
        if isinstance(shown, Mapping):
            yield from _names(shown.get("tasks"), held, f"held by {name}")
    leader = said.get("leader")
    if isinstance(leader, Mapping) and seen.leader is not None:
        told, real = (leader.get("node"), leader.get("token")), (seen.leader, seen.token)
        if before.leader == seen.leader and before.token == seen.token and told != real:
            yield f"it says that {told[0]} leads with token {told[1]}, but {real[0]} has {real[1]}"


def _forgotten_writes(
    said: Mapping[str, object], due: tuple[tuple[str, int, str], ...] | None
) -> Iterator[str]:
    """What leaders have written last is what their account ends with."""
    told = said.get("writes")
    if not due or not isinstance(told, list):
        return
    rows = [one if isinstance(one, Mapping) else {} for one in told]
    shown = [(one.get("node"), one.get("token"), one.get("text")) for one in rows]
    if tuple(shown[-len(due) :]) != due:
        node, token, text = due[-1]
        ends = f"{shown[-1]}" if shown else "nothing"
        yield f"{node} wrote {text!r} with token {token}, and it tells {len(shown)} writes, at last {ends}"


def wrongly_listed(
    listed: Mapping[str, Mapping[str, object]], before: BoardObservation, seen: BoardObservation
) -> Iterator[str]:
    """A list that does not show what the board's own files showed before and after it."""
    if not _steady(before, seen):
        return
    assert seen.tasks is not None
    for name in (*seen.tasks, *listed):
        view, told = seen.tasks.get(name), listed.get(name)
        if view is None or told is None:
            yield f"task {name} is {'not ' if view is None else ''}there"
            continue
        for field in LISTED:
            real = getattr(view, field)
            if told.get(field) != (list(real) if isinstance(real, tuple) else real):
                yield f"{field} of task {name} is {real}, not {told.get(field)}"


def _held(look: BoardObservation) -> dict[str, TaskView]:
    return {name: view for name, view in (look.tasks or {}).items() if view.status in op.HELD}


def _steady(before: BoardObservation, seen: BoardObservation) -> bool:
    """Was everything the same before and after?"""
    if before.tasks is None or seen.tasks is None or set(before.tasks) != set(seen.tasks):
        return False
    return all(
        getattr(view, field) == getattr(seen.tasks[name], field)
        for name, view in before.tasks.items()
        for field in LISTED
    )


def _names(told: object, due: set[str], what: str) -> Iterator[str]:
    """A list of names that must be these."""
    if not isinstance(told, list) or not all(isinstance(name, str) for name in told):
        return
    if sorted(told) != sorted(due):
        shown = ", ".join(sorted(due)) or "none"
        yield f"it says {', '.join(told) or 'none'}, and {what} are {shown}"
