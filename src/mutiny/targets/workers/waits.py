"""Waits and assertions on a live target: they look until something is so, or until a deadline."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.profile import Limits
from mutiny.kit.contract import StepContext
from mutiny.model.pace import BOUND, Patience
from mutiny.model.result import OperationResult
from mutiny.targets.kit.live import unable
from mutiny.targets.workers.observer import Observer
from mutiny.targets.workers.state_file import StateReading

LOOK_EVERY_S = 1.0
"""How often a wait that watches only the state file looks at everything, to see whether it moves."""


def wait_status(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """Until a worker has a status, or had it since the last step."""
    status, worker = operation.status, operation.worker
    if context.before.believable().status_of(worker) == status and status in op.STATUSES:
        return OperationResult(stdout=f"{worker} is {status}")
    patience = _patience(observer, operation.timeout_seconds or _limit_for(limits, status))
    looked_at = time.monotonic()
    while True:
        as_left = observer.noticed_as_left()
        view = None if as_left else observer.state().workers.get(worker)
        if view is not None and view.status == status:
            return OperationResult(stdout=f"{worker} is {status}", target_ms=0)
        if view is not None and view.status == "error" and status != "error":
            return OperationResult(
                1, stderr=f"{worker} entered the error state: {view.error_reason}"
            )
        if view is not None and context.impossible(worker, view.status):
            return _hopeless(worker, view.status)
        if patience.over:
            if as_left:
                return _gave_up(patience, "the state file is still what the fault made of it")
            shown = view.status if view else "missing"
            return _gave_up(patience, f"{worker} is {shown}, not {status}")
        observer.wait_change(min(patience.left_s, LOOK_EVERY_S))
        if time.monotonic() - looked_at >= min(LOOK_EVERY_S, patience.limit_s / 4):
            patience.saw(observer.observe().standing())
            looked_at = time.monotonic()


def _patience(observer: Observer, limit_s: float) -> Patience:
    return Patience(observer.pacing.now().limit(limit_s))


def _gave_up(patience: Patience, what: str) -> OperationResult:
    """It has not come: nothing moves any more, or all of it is too slow to be waited for."""
    how = (
        f"nothing has moved for {patience.limit_s:.3g}s"
        if patience.stuck
        else f"things still move after {BOUND * patience.limit_s:.3g}s: slow is not stuck"
    )
    return OperationResult(
        None,
        stderr=f"{what}; {how}",
        timed_out=True,
        details={} if patience.stuck else {"moving": True},
    )


def _limit_for(limits: Limits, status: str) -> float:
    if status in ("needs_review", "no_changes"):
        return limits.complete_s
    return limits.rebase_s if status == "rebasing" else limits.idle_s


def wait_prompt(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """Until an agent of the worker is busy with a prompt."""
    patience = _patience(observer, operation.timeout_seconds or limits.complete_s)
    while True:
        seen = observer.observe()
        agents = seen.agents or ()
        if any(agent.worker == operation.worker and agent.alive and agent.busy for agent in agents):
            return OperationResult(stdout=f"the agent of {operation.worker} is busy")
        patience.saw(seen.standing())
        if patience.over:
            if seen.agents is None:
                return unable("who the agents are could not be read")
            return _gave_up(patience, f"no agent of {operation.worker} received a prompt")
        observer.wait_change(patience.left_s)


def settle(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """Until nothing is pending any more."""
    patience = _patience(observer, limits.recover_s)
    while True:
        seen = observer.observe()
        waiting = context.pending(seen)
        if not waiting:
            return OperationResult(stdout="settled")
        for name, view in seen.believable().workers.items():
            if context.impossible(name, view.status):
                return _hopeless(name, view.status)
        patience.saw(seen.standing())
        if patience.over:
            return _gave_up(patience, "; ".join(waiting))
        observer.wait_change(patience.left_s)


def _hopeless(worker: str, status: str) -> OperationResult:
    """Nothing explains this status; the rules will say so, and waiting would change nothing."""
    return OperationResult(1, stderr=f"{worker} is {status}, which nothing explains")


def _readable(observer: Observer) -> StateReading | OperationResult:
    """What the target says now; nothing is asserted of a state that is torn, or a fault's own."""
    as_left = observer.as_left()
    reading = observer.state()
    if reading.error is not None:
        return unable(f"the state could not be read: {reading.error}")
    return unable("the state file is what the fault made of it") if as_left else reading


def assert_state(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """The worker has this status now."""
    reading = _readable(observer)
    if isinstance(reading, OperationResult):
        return reading
    view = reading.workers.get(operation.worker)
    if view is not None and view.status == operation.status:
        return OperationResult()
    shown = view.status if view else "missing"
    return OperationResult(
        1, stderr=f"worker {operation.worker} is {shown}, not {operation.status}"
    )


def assert_exists(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """The target still knows the worker."""
    reading = _readable(observer)
    if isinstance(reading, OperationResult):
        return reading
    if operation.worker in reading.workers:
        return OperationResult()
    return OperationResult(1, stderr=f"worker {operation.worker} is not in the state")


def assert_session(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """The worker's session is there, or comes back in time."""
    patience = _patience(observer, limits.recover_s)
    while True:
        seen = observer.observe()
        view = seen.workers.get(operation.worker)
        if view is not None and seen.sessions is not None and view.session in seen.sessions:
            return OperationResult(stdout=view.session)
        patience.saw(seen.standing())
        if patience.over:
            if seen.sessions is None or seen.state_error is not None:
                return unable("the sessions, or the state, could not be read")
            late = _gave_up(patience, f"no session for worker {operation.worker}")
            return replace(late, exit_code=1, timed_out=False)
        observer.wait_change(0.05)


WAITS = {
    op.Settle: settle,
    op.WaitForIdle: wait_status,
    op.WaitForNeedsReview: wait_status,
    op.WaitForState: wait_status,
    op.WaitForPrompt: wait_prompt,
    op.AssertState: assert_state,
    op.AssertWorkerExists: assert_exists,
    op.AssertSessionAlive: assert_session,
}
"""How each wait and assertion is carried out."""
