"""The rules about agents in containers. Where no engine answers nothing is said."""

from __future__ import annotations

from collections.abc import Iterator

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.invariants import (
    BatchCheck,
    ended_by_itself,
    found,
    new_landings,
    run_of,
    was_stopped,
)
from mutiny.contracts.batch.observation import Attempt, ContainerSeen
from mutiny.contracts.batch.tasks import Task
from mutiny.model.operation import Kind, walk
from mutiny.model.violation import Violation

_DILIGENT = ("works", "shares", "leaves", "tells")
"""What agents do whose work is good at once."""


def ended_work_only(check: BatchCheck) -> Iterator[Violation]:
    """An agent that was ended on the way has not done its task, whatever lies in its workspace."""
    run = run_of(check)
    if run is None:
        return
    for name in new_landings(check):
        tries = [one for one in check.seen.attempts[run.began :] if one.task == name]
        if tries and not any(one.ended and one.code == 0 for one in tries):
            text = f"{name} was merged, and none of its agents has come to its end."
            yield found("ended_work_only", text, name)


def containers_end(check: BatchCheck) -> Iterator[Violation]:
    """No container outlives the run, or the command, that it was made for."""
    left, model = check.seen.containers, check.model
    if not left or not model.contained or check.gave(op.EngineOutage) or model.engine_out:
        return
    if ended_by_itself(check) or was_stopped(check):
        text = f"{check.operation.short()} has ended, but the container {left[0].name} is there."
        yield found("containers_end", text)
    elif isinstance(check.operation, op.Clean) and check.succeeded:
        mine = [one for one in left if one.run not in check.seen.runs]
        if mine:
            text = f"The run was cleaned, but its container {mine[0].name} is still there."
            yield found("containers_end", text)


def others_containers_stay(check: BatchCheck) -> Iterator[Violation]:
    """What the target has not made it does not take away."""
    if not check.seen.neighbour and check.before.neighbour:
        text = f"{check.operation.short()} has taken away a container of somebody else."
        yield found("others_containers_stay", text)


def _new(check: BatchCheck) -> Iterator[ContainerSeen]:
    """Containers that were not seen before this step."""
    for name, one in check.seen.contained.items():
        if name not in check.before.contained:
            yield one


def container_labelled(check: BatchCheck) -> Iterator[Violation]:
    """Its labels say which run and which task it is for: whoever comes later finds it by them."""
    run, shown = run_of(check), check.seen.run
    for one in _new(check):
        if run is not None and one.task not in run.tasks:
            text = f"The container {one.name} does not say for which task it is ({one.task!r})."
            yield found("container_labelled", text)
        elif shown is not None and one.run != shown.name:
            text = f"The container {one.name} does not say for which run it is ({one.run!r})."
            yield found("container_labelled", text, one.task)


def container_walled(check: BatchCheck) -> Iterator[Violation]:
    """Its network and its limits are those that were set."""
    knobs = check.model.knobs
    for one in _new(check):
        for word, has, due in (
            ("network", one.network, knobs.network),
            ("bytes of memory", one.memory, knobs.memory_mb << 20),
            ("processes", one.pids, knobs.pids),
        ):
            if due and has != due:
                text = f"The container of {one.task} has {word} {has}; {due} was set."
                yield found("container_walled", text, one.task)


def container_mounts(check: BatchCheck) -> Iterator[Violation]:
    """It changes its workspace and nothing else, as the one who started the run."""
    for one in _new(check):
        if one.writes:
            text = (
                f"The container of {one.task} may change {one.writes[0]}, not only its workspace."
            )
            yield found("container_mounts", text, one.task)
        if one.stranger:
            text = f"The container of {one.task} works as {one.stranger}, not as who started it."
            yield found("container_mounts", text, one.task)


def reattached(check: BatchCheck) -> Iterator[Violation]:
    """Resume goes on with a container that is there, instead of beginning its task again."""
    run, there = run_of(check), check.before.containers
    harmed = any(part.kind is Kind.FAULT for part in walk(check.operation))
    if run is None or not there or harmed or not check.gave(op.Resume):
        return
    due = set(run.tasks) - check.model.set_anew if check.model.contained else set()
    for name in sorted({one.task for one in there} & due):
        before, now = check.before.attempts_of(name), check.seen.attempts_of(name)
        if before and len(now) > len(before):
            kept = now[len(before) - 1]
            if not kept.gated and not _failed(run.tasks[name], kept):
                text = f"{name} was at work in a container, or done, and resume has begun it again."
                yield found("reattached", text, name)


def _failed(task: Task, attempt: Attempt) -> bool:
    """Was it right to try once more after this attempt?"""
    if attempt.ended and attempt.code != 0:
        return True
    return task.behaviour(attempt.number) not in _DILIGENT


RULES = (
    *(ended_work_only, container_labelled, container_walled, container_mounts, reattached),
    *(containers_end, others_containers_stay),
)
"""In the order in which they tell most."""
