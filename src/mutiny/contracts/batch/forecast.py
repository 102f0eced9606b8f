"""How a run must end, from the plan, the settings, and what agents and gates will say.

Where the order of batches decides, and nobody promised an order, several ends are right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mutiny.contracts.batch.model import BatchModel, May, RunModel
from mutiny.contracts.batch.observation import DONE, BatchSeen
from mutiny.contracts.batch.operations import NO
from mutiny.contracts.batch.tasks import FRUITLESS, STRAYING, Task

_COMPLETE: May = frozenset({"complete"})
_FAILED: May = frozenset({"failed"})
_REVIEW: May = frozenset({"review"})
_STOPPED: May = frozenset({"complete", "pending", "validated"})
"""What else was to be merged when a run is stopped: it was, or it was not yet."""
TOKENS_PER_COST = 1000.0


@dataclass(frozen=True)
class Forecast:
    """What is right at the end."""

    tasks: Mapping[str, May]
    run: May


def forecast(model: BatchModel, seen: BatchSeen | None) -> Forecast:
    """How the run ends when nothing disturbs it from here on.

    Attempts that may have told nobody what they used count for a budget, or they do not.
    """
    run = model.run
    assert run is not None
    ends = {name: _alone(model, run, name, seen) for name in run.tasks}
    ends = _with_dependencies(run, ends)
    either = [
        _stopped(model, run, ends, seen, without) or Forecast(ends, _ending(ends))
        for without in {frozenset(), model.unheard}
    ]
    return Forecast(
        {name: frozenset().union(*(one.tasks[name] for one in either)) for name in ends},
        frozenset().union(*(one.run for one in either)),
    )


def _ending(ends: Mapping[str, May]) -> May:
    """How the run ends when its tasks end so."""
    found: set[str] = set()
    surely_failed = any(one == _FAILED for one in ends.values())
    if all(one & set(DONE) for one in ends.values()):
        found.add("complete")
    if any("failed" in one for one in ends.values()):
        found.add("failed")
    if not surely_failed and any(one - {*DONE, "failed"} for one in ends.values()):
        found.add("paused")
    return frozenset(found)


def _alone(model: BatchModel, run: RunModel, name: str, seen: BatchSeen | None) -> May:
    """How one task ends when everything that it needs is there."""
    now = run.may[name]
    settled = now & {"complete", "skipped", "failed", "review"}
    if settled == now:
        return now
    task, knobs = run.tasks[name], model.knobs
    ends: set[str] = set(settled)
    tries = 0 if seen is None else len(seen.attempts_of(name))
    failures = _failures(model, task, tries)
    lost = name in model.lost or bool(model.faults)
    if failures is None or failures + (name in model.lost) > knobs.max_retries:
        ends.add("failed")
        if failures is not None and failures <= knobs.max_retries and lost:
            ends.add("complete")
        if "validated" in now:  # it had passed its own gates before
            ends |= {"complete", "review"}
        return frozenset(ends)
    if failures and model.faults and failures + 1 > knobs.max_retries:
        ends.add("failed")
    good = task.behaviour(tries + failures + 1)
    blocked = any(model.gate(one) not in ("pass", "leaves") for one in knobs.blocking)
    stray = good in STRAYING and knobs.manifest == "block" and knobs.rescope == "off"
    ends |= _REVIEW if blocked or stray else _COMPLETE
    if (blocked or stray) and "validated" in now:
        ends.add("complete")
    if _rivals(run, name) > knobs.max_conflicts:
        ends |= _REVIEW
    return frozenset(ends)


def _rivals(run: RunModel, name: str) -> int:
    """How many others write the same file, and may each come to the branch before it: a conflict each."""
    over = ("complete", "skipped", "failed", "review")
    if "shares" not in run.tasks[name].does:
        return 0
    open_ones = [one for one in run.tasks.values() if not run.sure(one.id, *over)]
    return sum("shares" in one.does for one in open_ones if one.id != name)


def _failures(model: BatchModel, task: Task, tries: int) -> int | None:
    """How many attempts fail before one works; None: all of them."""
    if model.gate("lint") not in ("pass", "leaves") or model.gate("doctor") in NO:
        return None
    for number in range(tries + 1, tries + 1 + max(1, len(task.does))):
        if task.behaviour(number) not in FRUITLESS:
            return number - tries - 1
    return None


def _with_dependencies(run: RunModel, ends: Mapping[str, May]) -> dict[str, May]:
    """A task whose dependency is not merged does not begin."""
    found = dict(ends)
    for _ in run.tasks:
        for name, task in run.tasks.items():
            needed = [found[other] for other in task.needs if other in found]
            if run.sure(name, "complete", "skipped", "failed", "review"):
                continue
            if any(not one & set(DONE) for one in needed):
                kept = run.may[name] & {"complete", "skipped", "failed", "review"}
                found[name] = frozenset({"pending"}) | kept
            elif any(one - set(DONE) for one in needed):
                found[name] = found[name] | {"pending"}
    return found


def _stopped(
    model: BatchModel,
    run: RunModel,
    ends: Mapping[str, May],
    seen: BatchSeen | None,
    unheard: frozenset[int],
) -> Forecast | None:
    """A run that something stops as a whole: a budget, a failure, the whole that does not work."""
    knobs = model.knobs
    will = [name for name, one in ends.items() if "complete" in one]
    loose = {
        name: one if run.sure(name, *DONE) else one | (_STOPPED if "complete" in one else set())
        for name, one in ends.items()
    }
    open_tasks = [name for name in will if not run.sure(name, *DONE)]
    if not open_tasks and all(run.sure(name, *DONE) for name in run.tasks):
        return None
    if knobs.budget == "block":
        over = _over_budget(model, run, ends, seen, unheard)
        if over is not None:
            loose |= _not_tried_to_the_end(run, loose)
            return Forecast({**loose, **_never_merged(over, loose)}, frozenset({"failed"}))
    untested = model.gate("doctor") in ("blind", "stuck") and knobs.canary == "block"
    if open_tasks and untested:
        held = {name: loose[name] - _COMPLETE | _REVIEW for name in open_tasks}
        return Forecast({**loose, **held}, frozenset({"failed"}))
    merged = [name for name in run.tasks if run.sure(name, "complete")]
    if model.gate("doctor") == "apart" and open_tasks and len(merged) + len(open_tasks) > 1:
        held = {name: loose[name] | _REVIEW | {"failed"} for name in open_tasks}
        return Forecast({**loose, **held}, frozenset({"failed"}))
    if knobs.failure_policy == "stop" and any("failed" in one for one in ends.values()):
        status = _ending(ends) if any(one == _FAILED for one in ends.values()) else frozenset()
        failing = [name for name, one in ends.items() if "failed" in one]
        # Whoever fails first stops the others, which would have failed, too.
        others = failing if len(failing) > 1 else ()
        spared = {name: loose[name] | {"pending"} for name in others if not run.sure(name, *DONE)}
        return Forecast({**loose, **spared}, status | _ending(loose))
    return None


def _not_tried_to_the_end(run: RunModel, loose: Mapping[str, May]) -> dict[str, May]:
    """Whoever would fail at last may have tries left when a budget ends the run."""
    failing = [name for name, one in loose.items() if "failed" in one]
    return {name: loose[name] | {"pending"} for name in failing if not run.sure(name, "failed")}


def _never_merged(names: frozenset[str], loose: Mapping[str, May]) -> dict[str, May]:
    return {name: loose[name] - _COMPLETE or frozenset({"validated"}) for name in names}


def _over_budget(
    model: BatchModel,
    run: RunModel,
    ends: Mapping[str, May],
    seen: BatchSeen | None,
    unheard: frozenset[int],
) -> frozenset[str] | None:
    """The tasks that may not be merged because they cost too much; None: no limit is exceeded."""
    knobs, price = model.knobs, model.cost_per_1k / TOKENS_PER_COST
    total, over = 0, set()
    for name, task in run.tasks.items():
        tokens = 0 if seen is None else seen.tokens_of(name, run.began, unheard)
        if not run.sure(name, "complete", "skipped", "failed", "review") and ends[name] != {
            "pending"
        }:
            tries = 0 if seen is None else len(seen.attempts_of(name))
            failures = _failures(model, task, tries)
            more = knobs.max_retries + 1 if failures is None else failures + 1
            if task.behaviour(tries + more) in STRAYING and knobs.rescope == "on":
                more += knobs.manifest != "off"
            tokens += task.tokens * more
        total += tokens
        if (knobs.task_tokens and tokens > knobs.task_tokens) or (
            knobs.task_cost and tokens * price > knobs.task_cost
        ):
            over.add(name)
    too_much = (knobs.run_tokens and total > knobs.run_tokens) or (
        knobs.run_cost and total * price > knobs.run_cost
    )
    return frozenset(over) if over or too_much else None
