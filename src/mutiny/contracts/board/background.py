"""What is not said to the board: time, spawned workers, waits and assertions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import FINISHING, BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.outcomes import server_killed
from mutiny.contracts.board.profile import LONGEST_WAIT_S
from mutiny.kit.faults import Heal
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation


def control(model: BoardModel, operation: Operation, seen: BoardObservation) -> BoardModel:
    """The beliefs after a step that is not said to the board."""
    if isinstance(operation, op.Configure):
        kind = type(getattr(model.profile.figures, operation.name))
        changed = {operation.name: kind(operation.value)}
        figures = replace(model.profile.figures, **changed)
        return replace(model, profile=replace(model.profile, figures=figures))
    if isinstance(operation, op.SpawnWorker):
        names = dict.fromkeys(operation.names, operation.behaviour)
        breaker = replace(model.breaker, unsure=True)  # how often they fail nobody counts
        return replace(model, spawned={**model.spawned, **names}, breaker=breaker)
    if isinstance(operation, op.StopWorker | op.KillWorker):
        gone = named(model.spawned, operation.worker)
        after = model.see(seen).without(gone, seen.began)
        return after.fault(str(operation)) if isinstance(operation, op.KillWorker) else after
    if isinstance(operation, op.KillServer):
        return server_killed(model).fault(str(operation))
    if isinstance(operation, op.CorruptBoard):  # `damage.hurt` knows what can be told of it
        return replace(model.fault(str(operation)), damaged=True)
    if isinstance(operation, Heal):
        return replace(model, lasting=())
    if operation.kind is Kind.FAULT:
        return model.fault(str(operation))
    return model


def named(spawned: Mapping[str, str], worker: str) -> frozenset[str]:
    """This worker, or all that were spawned under this name."""
    return frozenset(
        name for name in spawned if name == worker or name.rpartition("-")[0] == worker
    )


def pending(model: BoardModel, seen: BoardObservation) -> tuple[str, ...]:
    """What has still to happen by itself: with healthy workers every task comes to its end."""
    if seen.tasks is None:
        trouble = seen.state_error or "the board cannot be looked at"
        due = model.serving is True and model.initialised and not model.damaged
        return (trouble,) if due else ()
    if not _hands(model, seen) and not model.profile.works:
        return ()
    waiting = later(model, seen)
    return tuple(
        f"task {view.id} is {view.status}" + (f" by {view.owner}" if view.owner else "")
        for view in seen.tasks.values()
        if view.status not in op.TERMINAL and view.id not in waiting
    )


def _hands(model: BoardModel, seen: BoardObservation) -> frozenset[str]:
    """Spawned workers that live and finish what they claim."""
    return frozenset(
        name
        for name, how in model.spawned.items()
        if how.partition(":")[0] in FINISHING and name in seen.living
    )


def later(model: BoardModel, seen: BoardObservation) -> frozenset[str]:
    """Tasks that the board, by its own figures, leaves for longer than a run lasts."""
    tasks = seen.tasks or {}
    found = {view.id for view in tasks.values() if _put_off(model, seen, view)}
    never = ("failed",) if model.profile.dependants_wait else ()  # until somebody retries it
    grown = True
    while grown:
        behind = {
            view.id
            for view in tasks.values()
            if view.status == "blocked"
            and any(one in found or seen.status_of(one) in never for one in view.depends)
        }
        grown = not behind <= found
        found |= behind
    return frozenset(found)


def _put_off(model: BoardModel, seen: BoardObservation, view: TaskView) -> bool:
    profile, figures = model.profile, model.profile.figures
    if view.status in op.HELD:
        finishes = view.owner in _hands(model, seen)
        return profile.leases and not finishes and figures.lease_s > LONGEST_WAIT_S
    if view.status == "available" and figures.longest_rest_s > LONGEST_WAIT_S:
        mine = model.tasks.get(view.id)
        retried = profile.retry_rests and mine is not None and mine.rest is not None
        return bool(view.attempts) or retried
    return False


def judge_wait(
    model: BoardModel, operation: Operation, result: OperationResult, seen: BoardObservation
) -> tuple[Verdict, Violation | None]:
    """A wait that ran out of time, or an assertion that does not hold, is a broken promise."""
    history = result.details.get("history")
    if isinstance(history, Mapping) and history.get("verdict") == "no":
        text = f"The history cannot be put in any order: {history.get('text')}"
        return Verdict.BUG, Violation("board.linearizable", text, str(history.get("key", "")))
    if operation.kind is Kind.ASSERTION:
        if result.succeeded:
            return Verdict.SUCCESS, None
        if result.details.get("unknown") or model.foreign:
            return Verdict.INCONCLUSIVE, None
        text = f"{operation} does not hold: {result.stderr}"
        return Verdict.BUG, Violation("board.assertion", text, op.task_of(operation) or "")
    if result.timed_out:
        return _too_late(model, operation, result, seen)
    if isinstance(history, Mapping) and history.get("verdict") == "unknown":
        return Verdict.INCONCLUSIVE, None
    if model.damaged and seen.tasks is None:  # a board that nobody has repaired settles nothing
        return Verdict.INCONCLUSIVE, None
    return (Verdict.SUCCESS if result.succeeded else Verdict.INCONCLUSIVE), None


def _too_late(
    model: BoardModel, operation: Operation, result: OperationResult, seen: BoardObservation
) -> tuple[Verdict, Violation | None]:
    if model.lasting or model.foreign:
        return Verdict.INCONCLUSIVE, None
    if result.details.get("moving"):  # slow is not stuck
        return Verdict.INCONCLUSIVE, None
    waiting = pending(model, seen)
    if waiting:
        return Verdict.BUG, _stuck(model, waiting, seen)
    if later(model, seen):  # it is not due in the time of a run
        return Verdict.INCONCLUSIVE, None
    text = f"{operation} did not come true in time: {result.stderr}"
    return Verdict.TIMEOUT, Violation("board.answers_in_time", text)


def _stuck(model: BoardModel, waiting: tuple[str, ...], seen: BoardObservation) -> Violation:
    """Nothing has moved for longer than the board's own figures say."""
    held = [
        view
        for view in (seen.tasks or {}).values()
        if view.status in op.HELD and view.owner not in seen.living
    ]
    text = f"Not settled in time: {'; '.join(waiting)}."
    if held and not model.profile.leases:
        text += " This board never returns what a silent worker holds."
    rule = "board.no_stuck_claim" if held else "board.all_settle"
    return Violation(rule, text, held[0].id if held else "")
