"""Waits and assertions on a live target: they look until something is so, or until a deadline."""

from __future__ import annotations

import time
from typing import Any

from mutiny.contracts.base import StepContext
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.profile import Limits
from mutiny.model.result import OperationResult
from mutiny.targets.observer import Observer


def wait_status(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """Until a worker has a status, or had it since the last step."""
    status, worker = operation.status, operation.worker
    limit = operation.timeout_seconds or _limit_for(limits, status)
    if context.before.status_of(worker) == status and status in op.STATUSES:
        return OperationResult(stdout=f"{worker} is {status}")
    deadline = time.monotonic() + limit
    while True:
        reading = observer.state()
        view = reading.workers.get(worker)
        if view is not None and view.status == status:
            return OperationResult(stdout=f"{worker} is {status}", target_ms=0)
        if view is not None and view.status == "error" and status != "error":
            return OperationResult(
                1, stderr=f"{worker} entered the error state: {view.error_reason}"
            )
        if view is not None and context.impossible(worker, view.status):
            return _hopeless(worker, view.status)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            shown = view.status if view else "missing"
            return OperationResult(
                None,
                stderr=f"{worker} is {shown}, not {status}, after {limit:g}s",
                timed_out=True,
            )
        observer.wait_change(remaining)


def _limit_for(limits: Limits, status: str) -> float:
    if status in ("needs_review", "no_changes"):
        return limits.complete_s
    return limits.rebase_s if status == "rebasing" else limits.idle_s


def wait_prompt(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """Until an agent of the worker is busy with a prompt."""
    deadline = time.monotonic() + (operation.timeout_seconds or limits.complete_s)
    while True:
        agents = observer.observe().agents or ()
        if any(agent.worker == operation.worker and agent.alive and agent.busy for agent in agents):
            return OperationResult(stdout=f"the agent of {operation.worker} is busy")
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            text = f"no agent of {operation.worker} received a prompt"
            return OperationResult(None, stderr=text, timed_out=True)
        observer.wait_change(remaining)


def settle(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """Until nothing is pending any more."""
    deadline = time.monotonic() + limits.recover_s
    while True:
        seen = observer.observe()
        waiting = context.pending(seen)
        if not waiting:
            return OperationResult(stdout="settled")
        for name, view in seen.workers.items():
            if context.impossible(name, view.status):
                return _hopeless(name, view.status)
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return OperationResult(None, stderr="; ".join(waiting), timed_out=True)
        observer.wait_change(remaining)


def _hopeless(worker: str, status: str) -> OperationResult:
    """Nothing explains this status; the rules will say so, and waiting would change nothing."""
    return OperationResult(1, stderr=f"{worker} is {status}, which nothing explains")


def assert_state(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """The worker has this status now."""
    view = observer.state().workers.get(operation.worker)
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
    if operation.worker in observer.state().workers:
        return OperationResult()
    return OperationResult(1, stderr=f"worker {operation.worker} is not in the state")


def assert_session(
    observer: Observer, limits: Limits, operation: Any, context: StepContext
) -> OperationResult:
    """The worker's session is there, or comes back in time."""
    deadline = time.monotonic() + limits.recover_s
    while True:
        seen = observer.observe()
        view = seen.workers.get(operation.worker)
        if view is not None and seen.sessions is not None and view.session in seen.sessions:
            return OperationResult(stdout=view.session)
        if time.monotonic() >= deadline:
            return OperationResult(1, stderr=f"no session for worker {operation.worker}")
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
