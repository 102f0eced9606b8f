"""Every right outcome of each command: its answer, and what is the case afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mutiny.contracts.batch import operations as op
from mutiny.contracts.batch.forecast import Forecast, forecast
from mutiny.contracts.batch.model import BatchModel, May
from mutiny.contracts.batch.observation import DONE, UNFINISHED, BatchSeen
from mutiny.contracts.batch.tasks import Task, in_circle
from mutiny.kit.domains import BAD_INPUT, plain_name
from mutiny.kit.judging import Moment
from mutiny.kit.outcome import Outcome, no, ok
from mutiny.model.operation import Operation

BatchOutcome = Outcome[BatchModel]
SETTABLE = ("pending", "skipped")
ENDS = ("complete", "failed", "paused")
"""How a command that drives a run may call its end."""


def outcomes(
    model: BatchModel, operation: Operation, moment: Moment[BatchSeen]
) -> Sequence[BatchOutcome]:
    """What is right, and what follows."""
    if isinstance(operation, op.Init):
        return _init(model)
    if not model.home:
        return (no(model, "there is no home", "no_home"),)
    if isinstance(operation, op.Plan):
        return _plan(model, operation)
    if model.doubted and not isinstance(operation, op.Plan):
        return _damaged(model, operation)
    if isinstance(operation, op.Run):
        return _run(model, operation, moment)
    if isinstance(operation, op.Status):
        looked = ok(model, "it only looks")
        return (looked, no(model, "there is no run", "no_run"))[: 1 + (model.run is None)]
    if isinstance(operation, op.Clean) and not _is_run(model, _named(model, operation)):
        return (no(model, "there is no such run", "no_run", BAD_INPUT),)
    if model.run is None:
        return (no(model, "there is no run", "no_run"),)
    if isinstance(operation, op.Resume):
        return _resume(model, moment)
    if isinstance(operation, op.SetTaskStatus):
        return _set_status(model, operation)
    if isinstance(operation, op.Clean):
        return _clean(model, operation)
    return (ok(model, "it only looks"),)


def _init(model: BatchModel) -> tuple[BatchOutcome, ...]:
    if model.home:
        return (no(model, "there is a home already", "exists"),)
    return (ok(replace(model, home=True), "there is none yet"),)


def _plan(model: BatchModel, operation: op.Plan) -> tuple[BatchOutcome, ...]:
    wrong = wrong_plan(operation.parsed())
    if wrong:
        return (no(model, wrong, "bad_plan", BAD_INPUT),)
    planned = ok(_planned(model, operation.parsed()), "the plan is good")
    strange = any(not plain_name(task.id) for task in operation.parsed())
    return (planned, no(model, "a name may be refused", "bad_plan", BAD_INPUT))[: 1 + strange]


def _planned(model: BatchModel, tasks: tuple[Task, ...]) -> BatchModel:
    return replace(model, plan=tasks, same_plan=tasks == model.plan)


def wrong_plan(tasks: Sequence[Task]) -> str:
    """Why a plan must be refused; empty when it is good."""
    names = [task.id for task in tasks]
    if not names:
        return "a plan has tasks"
    if len(set(names)) < len(names):
        return "a task is there twice"
    if any(_leaves(name) for name in names):
        return "a name must not leave its directory"
    if any(other not in names for task in tasks for other in task.needs):
        return "a dependency is not there"
    return "tasks depend on each other in a circle" if in_circle(tasks) else ""


def _leaves(name: str) -> bool:
    return "/" in name or name in ("", ".", "..")


def _damaged(model: BatchModel, operation: Operation) -> tuple[BatchOutcome, ...]:
    """A state that was cut off is refused, and nothing is invented in its place; a run that was meant to be
    cleaned may go.
    """
    refused = no(model, "the state was cut off", "unreadable")
    if isinstance(operation, op.Clean) and operation.force:
        gone = replace(model, run=None, doubted=False)
        return (refused, ok(gone, "it is to be thrown away"))
    return (refused,)


def _named(model: BatchModel, operation: op.Clean) -> str | None:
    """The run that is to go: without a name it is the newest when the step began; None: the newest now."""
    return operation.name or model.newest


def _is_run(model: BatchModel, name: str | None) -> bool:
    known = [one for one in (model.run, *model.older) if one is not None]
    return any(name is None or one.name in ("", name) for one in known)


def _run(
    model: BatchModel, operation: op.Run, moment: Moment[BatchSeen]
) -> tuple[BatchOutcome, ...]:
    if not model.plan:
        return (no(model, "there is no plan", "no_plan"),)
    if operation.name and _leaves(operation.name):
        return (no(model, "a name must not leave its directory", BAD_INPUT),)
    wrong: tuple[BatchOutcome, ...] = ()
    if model.run is not None and not model.run.finished:
        wrong = (no(model, "another run is not finished", "unfinished"),)
        if model.run_resumes:
            wrong = (*wrong, *_resume(model, moment))
        elif model.run.status <= set(UNFINISHED):
            return wrong
    named = {one.name for one in (model.run, *model.older) if one is not None}
    if operation.name and operation.name in named:
        taken = no(model, "there is such a run", "exists")
        return (taken, *(_resume(model, moment) if model.run_resumes else ()))
    begun = model.begun(operation.name, moment.before)
    if _used_up(model, moment.before):
        wrong = (*wrong, no(model, "everything that was planned is merged", "no_plan"))
    if model.edited:
        wrong = (*wrong, no(model, "the user is in the middle of something", "dirty"))
    return (*wrong, *_driven(begun, moment))


def _used_up(model: BatchModel, seen: BatchSeen | None) -> bool:
    """Has all of the plan come to the branch before? A target may plan to do nothing twice."""
    return seen is not None and all(seen.landed(task.id) > 0 for task in model.plan)


def _resume(model: BatchModel, moment: Moment[BatchSeen]) -> tuple[BatchOutcome, ...]:
    run = model.run
    assert run is not None
    found: list[BatchOutcome] = []
    if "complete" in run.status:
        found.append(ok(_fixed(model, "complete"), "everything is done"))
    if "failed" in run.status:
        found.append(no(_fixed(model, "failed"), "it has failed", "finished", "failed"))
    if run.status & set(UNFINISHED):
        found += _driven(_fixed(model, *UNFINISHED), moment)
    return tuple(found)


def _fixed(model: BatchModel, *words: str) -> BatchModel:
    assert model.run is not None
    return replace(model, run=replace(model.run, status=model.run.status & set(words)))


def _driven(model: BatchModel, moment: Moment[BatchSeen]) -> list[BatchOutcome]:
    """A run to its end, from where it is."""
    run = model.run
    assert run is not None
    end = forecast(model, moment.before)
    merges = any("complete" in may and not run.sure(name, *DONE) for name, may in end.tasks.items())
    if model.engine_out and model.contained:
        stopped = model.broken_off(end.tasks, end.run)
        told = "the container engine is away"
        return [no(stopped, told, "engine", "paused", "failed"), *_ends(model, end)]
    if model.edited and merges:
        stopped = model.broken_off(end.tasks, end.run)
        told = "the user is in the middle of something in the checkout"
        return [no(stopped, told, "dirty", "paused", "failed")]
    found = _ends(model, end)
    if moment.seen is not None:
        # Whatever it calls the end: the rules about state tell best what is wrong with it.
        others = set(ENDS) - end.run
        found += [_as_called(found[0].after, status, "") for status in sorted(others)]
    return found


def _ends(model: BatchModel, end: Forecast) -> list[BatchOutcome]:
    return [
        _as_called(
            model.ended(_that_fit(end.tasks, status), frozenset({status})),
            status,
            f"the run ends {status}",
        )
        for status in ENDS
        if status in end.run
    ]


def _as_called(after: BatchModel, status: str, why: str) -> BatchOutcome:
    return ok(after, why) if status == "complete" else no(after, why, status)


def _that_fit(tasks: Mapping[str, May], status: str) -> dict[str, May]:
    """What the tasks may be when the run ended so."""
    if status == "complete":
        return {name: may & set(DONE) for name, may in tasks.items()}
    return dict(tasks)


def _set_status(model: BatchModel, operation: op.SetTaskStatus) -> tuple[BatchOutcome, ...]:
    run = model.run
    assert run is not None
    if operation.status not in SETTABLE:
        return (no(model, "no such status can be set", BAD_INPUT),)
    if operation.task not in run.tasks:
        return (no(model, "there is no such task", "no_task"),)
    if run.sure(operation.task, "complete"):
        return (no(model, "what is merged stays merged", "merged"),)
    may = {**run.may, operation.task: frozenset({operation.status})}
    # A run that was interrupted may be resumed as it stands; one that has ended needs a way back.
    status = frozenset({"paused"}) | (run.status & {"running"})
    after = replace(
        model,
        run=replace(run, may=may, status=status),
        set_anew=model.set_anew | {operation.task},
    )
    found = [ok(after, "it is not merged")]
    if "complete" in run.may[operation.task]:
        found.append(no(model, "it may be merged", "merged"))
    if model.faults:
        found.append(no(model, "it was interrupted while it landed", "landing"))
    return tuple(found)


def _clean(model: BatchModel, operation: op.Clean) -> tuple[BatchOutcome, ...]:
    run = model.run
    assert run is not None
    if not operation.force:
        return (no(model, "nothing is deleted without being sure", "needs_force"),)
    name = _named(model, operation)
    if name is not None and run.name != name and any(one.name == name for one in model.older):
        kept = tuple(one for one in model.older if one.name != name)
        return (ok(replace(model, older=kept), "it is thrown away"),)
    *older, last = model.older or (None,)
    last = None if last is None else replace(last, again=True)
    gone = replace(model, run=last, older=tuple(one for one in older if one is not None))
    found = [ok(gone, "it is thrown away")]
    if model.faults:
        found.append(no(model, "somebody may still work on it", "at_work"))
    if model.engine_out and model.contained:
        found = [no(model, "nobody knows what is left of its containers", "engine")]
    return tuple(found)
