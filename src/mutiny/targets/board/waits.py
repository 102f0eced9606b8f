"""Waits and assertions on a live board."""

from __future__ import annotations

import time
from dataclasses import replace

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.sentences import understand
from mutiny.kit.contract import StepContext
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.targets.board.host import BoardHost
from mutiny.targets.kit.waits import Wait, not_so, until


def _settling_s(live: BoardHost) -> float:
    """What is due may first have to wait for a lease, a rest or a breaker."""
    return live.limits.settle_s + live.time_to_pass_s


def wait_status(
    live: BoardHost, operation: op.WaitForStatus, context: StepContext
) -> OperationResult:
    """Until a task has a status."""

    def missing(seen: BoardObservation) -> str:
        if seen.tasks is None:
            return seen.state_error or "the board cannot be looked at"
        status = seen.status_of(operation.task)
        if status == operation.status:
            return ""
        return f"task {operation.task} is {status or 'not there'}, not {operation.status}"

    limit_s = live.limits.status_s + live.time_to_pass_s
    return until(live, operation.timeout_seconds or limit_s, missing)


def wait_settled(
    live: BoardHost, operation: op.WaitForSettled, context: StepContext
) -> OperationResult:
    """Until every task has come to its end."""

    def missing(seen: BoardObservation) -> str:
        if seen.tasks is None:
            return seen.state_error or "the board cannot be looked at"
        left = [view.id for view in seen.tasks.values() if view.status not in op.TERMINAL]
        return f"not settled: {', '.join(left)}" if left else ""

    began = time.monotonic()
    result = until(live, operation.timeout_seconds or _settling_s(live), missing)
    return _with_history(live, result, began)


def wait_agent(
    live: BoardHost, operation: op.WaitForAgent, context: StepContext
) -> OperationResult:
    """Until an agent has a task in hand."""

    def missing(seen: BoardObservation) -> str:
        runs = [run for run in seen.agents if run.task == operation.task]
        if len(runs) >= operation.runs and any(run.busy for run in runs):
            return ""
        return f"{len(runs)} agents have begun task {operation.task}, none works on it now"

    limit_s = live.limits.status_s + live.time_to_pass_s
    return until(live, operation.timeout_seconds or limit_s, missing)


def settle(live: BoardHost, operation: op.Settle, context: StepContext) -> OperationResult:
    """Until nothing is pending any more; then the history must make sense."""
    limit_s = operation.timeout_seconds or _settling_s(live)
    began = time.monotonic()
    result = until(live, limit_s, lambda seen: "; ".join(context.pending(seen)))
    return _with_history(live, result, began)


def _with_history(live: BoardHost, result: OperationResult, began: float) -> OperationResult:
    """At a moment when everything has come to its end the whole history can be judged."""
    written = live.spawned.histories()
    details = {**result.details, "history": live.history.judge(live.profile(), written)}
    if result.timed_out and live.history.contended(written, began):
        details["moving"] = True
    return replace(result, details=details)


def assert_status(
    live: BoardHost, operation: op.AssertStatus, context: StepContext
) -> OperationResult:
    """A task has this status now."""
    seen = live.observe()
    status = seen.status_of(operation.task)
    if status == operation.status:
        return OperationResult()
    shown = status or "not there"
    return not_so(f"task {operation.task} is {shown}, not {operation.status}", _unread(seen))


def assert_owner(
    live: BoardHost, operation: op.AssertOwner, context: StepContext
) -> OperationResult:
    """A task belongs to this worker now."""
    seen = live.observe()
    view = (seen.tasks or {}).get(operation.task)
    if view is not None and view.status in op.HELD and view.owner == operation.worker:
        return OperationResult()
    shown = "not there" if view is None else f"{view.status}, owner {view.owner or 'nobody'}"
    return not_so(f"task {operation.task} is {shown}", _unread(seen))


def _unread(seen: BoardObservation) -> str | None:
    if seen.tasks is not None:
        return None
    return seen.state_error or "the board could not be looked at"


def verify(live: BoardHost, operation: op.Verify, context: StepContext) -> OperationResult:
    """A registered sentence holds now."""
    finding = understand(operation.sentence).of(live.observe())
    if finding.so:
        return OperationResult(stdout=finding.why)
    return not_so(finding.why, finding.why if finding.so is None else None)


WAITS: dict[type[Operation], Wait] = {
    op.Settle: settle,
    op.WaitForStatus: wait_status,
    op.WaitForSettled: wait_settled,
    op.WaitForAgent: wait_agent,
    op.AssertStatus: assert_status,
    op.AssertOwner: assert_owner,
    op.Verify: verify,
}
"""How each wait and assertion is carried out."""
