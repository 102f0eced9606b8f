"""Waits and assertions on live workers."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.observation import Observation
from mutiny.contracts.workers.profile import Limits
from mutiny.kit import operations as common
from mutiny.kit.contract import StepContext
from mutiny.kit.git_rules import has_commit
from mutiny.model.operation import Operation
from mutiny.model.result import OperationResult
from mutiny.targets.kit.combinations import unable
from mutiny.targets.kit.waits import Finding, Wait, Waiting, until, until_glanced
from mutiny.targets.workers.observer import Observer
from mutiny.targets.workers.state_file import StateReading

StatusWait = op.WaitForState | op.WaitForIdle | op.WaitForNeedsReview


class WorkersHost(Waiting, Protocol):
    """Live workers, seen from a wait."""

    observer: Observer
    limits: Limits


def wait_status(live: WorkersHost, operation: StatusWait, context: StepContext) -> OperationResult:
    """Until a worker has a status, or had it since the last step."""
    status, worker, observer = operation.status, operation.worker, live.observer
    if context.before.believable().status_of(worker) == status and status in op.STATUSES:
        return OperationResult(stdout=f"{worker} is {status}")

    def missing() -> Finding:
        if observer.noticed_as_left():
            return "the state file is still what the fault made of it"
        view = observer.state().workers.get(worker)
        if view is None:
            return f"{worker} is missing, not {status}"
        if view.status == status:
            return OperationResult(stdout=f"{worker} is {status}", target_ms=0)
        if view.status == "error" and status != "error":
            text = f"{worker} entered the error state: {view.error_reason}"
            return OperationResult(1, stderr=text)
        if context.impossible(worker, view.status):
            return _hopeless(worker, view.status)
        return f"{worker} is {view.status}, not {status}"

    limit_s = operation.timeout_seconds or _limit_for(live.limits, status)
    return until_glanced(live, limit_s, missing)


def _limit_for(limits: Limits, status: str) -> float:
    if status in ("needs_review", "no_changes"):
        return limits.complete_s
    return limits.rebase_s if status == "rebasing" else limits.idle_s


def _hopeless(worker: str, status: str) -> OperationResult:
    """Nothing explains this status; the rules will say so, and waiting would change nothing."""
    return OperationResult(1, stderr=f"{worker} is {status}, which nothing explains")


def wait_prompt(
    live: WorkersHost, operation: op.WaitForPrompt, context: StepContext
) -> OperationResult:
    """Until an agent of the worker is busy with a prompt, or has had what it was told last: a short turn
    may be over before anybody looks.
    """
    unread = False
    beliefs = context.model.alternatives[:1] if context.model is not None else ()
    told = [belief.tokens[-1:] for one in beliefs if (belief := one.workers.get(operation.worker))]
    last = told[0] if told else ()

    def missing(seen: Observation) -> Finding:
        nonlocal unread
        unread = seen.agents is None
        for agent in seen.agents or ():
            if agent.worker != operation.worker or not agent.alive:
                continue
            if agent.busy:
                return OperationResult(stdout=f"the agent of {operation.worker} is busy")
            had = (one.tokens for one in seen.receipts or () if one.agent == agent.identity)
            if last and any(last[0] in tokens for tokens in had):
                return OperationResult(stdout=f"the agent of {operation.worker} has had it")
        return f"no agent of {operation.worker} received a prompt"

    ended = until(live, operation.timeout_seconds or live.limits.complete_s, missing)
    late = ended.timed_out and unread
    return unable("who the agents are could not be read") if late else ended


def wait_turn_end(
    live: WorkersHost, operation: op.WaitForTurnEnd, context: StepContext
) -> OperationResult:
    """Until no agent of the worker is busy."""

    def missing(seen: Observation) -> Finding:
        if seen.agents is None:
            return "who the agents are could not be read"
        busy = any(one.worker == operation.worker and one.alive and one.busy for one in seen.agents)
        at_work = f"the agent of {operation.worker} is busy"
        return at_work if busy else OperationResult(stdout="its turn is over")

    return until(live, operation.timeout_seconds or live.limits.complete_s, missing)


def settle(live: WorkersHost, operation: common.Settle, context: StepContext) -> OperationResult:
    """Until nothing is pending any more."""

    def missing(seen: Observation) -> Finding:
        waiting = context.pending(seen)
        if not waiting:
            return OperationResult(stdout="settled")
        for name, view in seen.believable().workers.items():
            if context.impossible(name, view.status):
                return _hopeless(name, view.status)
        return "; ".join(waiting)

    return until(live, live.limits.recover_s, missing)


def _readable(live: WorkersHost) -> StateReading | OperationResult:
    """What the target says now; nothing is asserted of a state that is torn, or a fault's own."""
    as_left = live.observer.as_left()
    reading = live.observer.state()
    if reading.error is not None:
        return unable(f"the state could not be read: {reading.error}")
    return unable("the state file is what the fault made of it") if as_left else reading


def assert_state(
    live: WorkersHost, operation: op.AssertState, context: StepContext
) -> OperationResult:
    """The worker has this status now."""
    reading = _readable(live)
    if isinstance(reading, OperationResult):
        return reading
    view = reading.workers.get(operation.worker)
    if view is not None and view.status == operation.status:
        return OperationResult()
    shown = view.status if view else "missing"
    return OperationResult(
        1, stderr=f"worker {operation.worker} is {shown}, not {operation.status}"
    )


def assert_on_top(
    live: WorkersHost, operation: op.AssertOnTop, context: StepContext
) -> OperationResult:
    """The worker's branch has everything that the default branch has, or gets it in time."""

    def missing(seen: Observation) -> Finding:
        tree, base = seen.worktrees.get(operation.worker), seen.default_head
        if tree is None or base is None or seen.commits is None:
            return "the branches could not be read"
        why = next(has_commit(tree.branch, tree.head, base, seen.commits), None)
        return why or OperationResult(stdout=base)

    ended = until(live, live.limits.recover_s, missing)
    return replace(ended, exit_code=1, timed_out=False) if ended.timed_out else ended


def assert_exists(
    live: WorkersHost, operation: op.AssertWorkerExists, context: StepContext
) -> OperationResult:
    """The target still knows the worker."""
    reading = _readable(live)
    if isinstance(reading, OperationResult):
        return reading
    if operation.worker in reading.workers:
        return OperationResult()
    return OperationResult(1, stderr=f"worker {operation.worker} is not in the state")


def assert_session(
    live: WorkersHost, operation: op.AssertSessionAlive, context: StepContext
) -> OperationResult:
    """The worker's session is there, or comes back in time."""
    unread = False

    def missing(seen: Observation) -> Finding:
        nonlocal unread
        unread = seen.sessions is None or seen.state_error is not None
        view = seen.workers.get(operation.worker)
        if view is not None and seen.sessions is not None and view.session in seen.sessions:
            return OperationResult(stdout=view.session)
        return f"no session for worker {operation.worker}"

    ended = until(live, live.limits.recover_s, missing)
    if ended.timed_out and unread:
        return unable("the sessions, or the state, could not be read")
    return replace(ended, exit_code=1, timed_out=False) if ended.timed_out else ended


WAITS: dict[type[Operation], Wait] = {
    common.Settle: settle,
    op.WaitForIdle: wait_status,
    op.WaitForNeedsReview: wait_status,
    op.WaitForState: wait_status,
    op.WaitForPrompt: wait_prompt,
    op.WaitForTurnEnd: wait_turn_end,
    op.AssertState: assert_state,
    op.AssertOnTop: assert_on_top,
    op.AssertWorkerExists: assert_exists,
    op.AssertSessionAlive: assert_session,
}
"""How each wait and assertion is carried out."""
