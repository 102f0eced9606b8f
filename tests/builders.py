"""Small worlds for tests: beliefs, and a healthy picture of a target that a test then breaks in one
place.

Every builder gives something in which all rules hold, so that a test shows exactly the one fact
that matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mutiny.contracts.workers import outcomes
from mutiny.contracts.workers.contract import WorkersContract
from mutiny.contracts.workers.judge import WorkersJudge
from mutiny.contracts.workers.looking import Check
from mutiny.contracts.workers.model import Work, WorkerBelief, WorkersModel
from mutiny.contracts.workers.observation import Observation, WorkerView
from mutiny.contracts.workers.steps import follows
from mutiny.engine.journal import Step
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.kit import checking
from mutiny.kit import operations as common
from mutiny.kit.beliefs import Beliefs
from mutiny.kit.contract import Evidence
from mutiny.kit.judging import Judged, Moment
from mutiny.kit.views import AgentView, Commit, ProcessView, Receipt, WorktreeView
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

SHA = "a" * 40
BASE = "b" * 40
TOKEN = "MT-7f3a-1"
DAEMON = ProcessView(100, 1, 1, ("longboat", "up"))
HISTORY = (Commit(BASE, (), on_default=True), Commit(SHA, (), on_default=False))
AT = 1000.0

TRACEBACK = """Traceback (most recent call last):
  File "/opt/tool/store.py", line 31, in save
    os.write(descriptor, text)
OSError: [Errno 28] No space left on device
"""
PATTERNS: dict[str, tuple[str, ...]] = {
    "no_such_worker": ("Worker '.*' does not exist",),
    "not_idle": ("Worker '.*' is not idle",),
    "not_needs_review": ("Worker '.*' is not in needs_review state",),
    "already_exists": ("Worker '.*' already exists",),
    "nothing_reviewed": ("No worker has been reviewed recently",),
    "daemon_running": ("Daemon is already running",),
    "daemon_down": ("Daemon is not running",),
    "wrong_state": ("Cannot .* while worker is in .* state",),
    "source_dirty": ("Source repository has uncommitted changes",),
    "unhealthy": ("problems? found",),
    "busy": ("is locked by",),
}
"""Eight texts of refusals, and three of longboat's own."""

CONTRACT = WorkersContract(patterns=PATTERNS)


# --- beliefs --------------------------------------------------------------------------------------


def belief(name: str = "alpha", *statuses: str, **changes: Any) -> WorkerBelief:
    """A worker that is well, and is one of these statuses (idle when none is given)."""
    plain = WorkerBelief(name, frozenset(statuses or ("idle",)), offline_allowed=False)
    return replace(plain, **changes)


def model(*beliefs: WorkerBelief, work: tuple[Work, ...] = (), **changes: Any) -> WorkersModel:
    """A running system with these workers."""
    plain = WorkersModel(
        initialised=True,
        daemon=frozenset({True}),
        workers={item.name: item for item in beliefs},
        work={item.token: item for item in work},
    )
    return replace(plain, **changes)


def beliefs(*models: WorkersModel) -> Beliefs[WorkersModel]:
    """What may be the case, as the engine passes it around."""
    return Beliefs(models)


# --- judging --------------------------------------------------------------------------------------

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


@dataclass(frozen=True)
class Broken:
    """A violation, and whether the target's lag may still heal it."""

    violation: Violation
    eventual: bool


def judge_answer(
    believed: WorkersModel,
    operation: Operation,
    result: OperationResult,
    before: Observation,
    seen: Observation,
    patterns: Mapping[str, Any],
    now: float,
) -> Judged[WorkersModel]:
    """What an answer means under one model."""
    contract = WorkersContract(believed.profile, patterns)
    judge = WorkersJudge(contract, before.believable(), seen.believable(), now)
    return judge.judge(believed, operation, result)


def check_state(
    believed: WorkersModel,
    operation: Operation,
    succeeded: bool,
    before: Observation,
    seen: Observation,
    skips: Mapping[str, str],
) -> tuple[tuple[Broken, ...], tuple[str, ...]]:
    """All rules about state under one model: what is broken, and what could not be read."""
    contract = WorkersContract(replace(believed.profile, not_applicable=dict(skips)), PATTERNS)
    check = contract.check_of(believed, operation, succeeded, before, seen)
    found, _ = checking.ask(contract.state_rules(check), check, skips)
    checked = contract.arranged(found)
    broken = (
        *(Broken(one, eventual=False) for one in checked.broken),
        *(Broken(one, eventual=True) for one in checked.settling),
    )
    return broken, checked.unreadable


def advance(
    believed: WorkersModel,
    operation: Operation,
    outcome: str,
    *,
    tokens: tuple[str, ...] = (),
    now: float = 0.0,
    seen: Observation | None = None,
) -> WorkersModel:
    """The beliefs after a step that went like this; unknown: nobody can explain its answer."""
    moment: Moment[Observation] = Moment(None, seen, now, tokens=tokens)
    if outcome == UNKNOWN:
        judge = WorkersJudge(CONTRACT, Observation(), seen or Observation(), now)
        after = judge.after_wrong_answer(believed, operation, moment)[-1]
    elif outcome == REFUSED:
        after = outcomes.refused(believed, operation, moment)
    elif operation.kind is Kind.COMMAND:
        after = outcomes.served(believed, operation, moment)
    else:
        after = follows(believed, operation, moment)
    return after if seen is None else after.see(seen)


# --- pictures -------------------------------------------------------------------------------------


def view(name: str = "alpha", status: str = "idle", **changes: Any) -> WorkerView:
    """A worker as a correct state file tells it."""
    busy = status not in ("idle", "offline")
    plain = WorkerView(
        name,
        status,
        branch=f"longboat/{name}",
        worktree=f"/box/home/longboat/worktrees/{name}",
        session=f"longboat-{name}",
        prompt="Create a.txt" if busy else "",
        commit_sha=SHA if status == "needs_review" else None,
        error_reason="it broke" if status == "error" else None,
    )
    return replace(plain, **changes)


def agent(
    worker: str = "alpha", pid: int = 200, *, alive: bool = True, busy: bool = False
) -> AgentView:
    """A running agent."""
    return AgentView(worker, (pid, 7), alive, busy)


def worktree(view_: WorkerView, **changes: Any) -> WorktreeView:
    """The worktree that a correct target keeps for this worker."""
    rebasing = view_.status == "rebasing"
    plain = WorktreeView(
        exists=True,
        branch=None if rebasing else view_.branch,
        head=SHA if view_.status == "needs_review" else BASE,
        rebasing=rebasing,
        dirty=() if view_.status in ("idle", "needs_review") else None,
    )
    return replace(plain, **changes)


def picture(*views: WorkerView, **changes: Any) -> Observation:
    """A look at a healthy target: every agent-bearing worker has session, agent and worktree."""
    attended = [item for item in views if item.status not in ("offline", "error")]
    plain = Observation(
        at=AT,
        state_exists=True,
        daemon_flag=True,
        workers={item.name: item for item in views},
        sessions=frozenset(item.session for item in attended),
        daemons=(DAEMON,),
        agents=tuple(agent(item.name, 200 + n) for n, item in enumerate(attended)),
        worktrees={item.name: worktree(item) for item in views},
        receipts=(),
        commits=HISTORY,
        default_head=BASE,
        source_dirty=(),
        default_tokens=frozenset(),
        default_untold=frozenset(),
        default_conflicted=frozenset(),
        default_shape=frozenset(),
    )
    return replace(plain, **changes)


def receipt(token: str | None = TOKEN, worker: str = "alpha", **changes: Any) -> Receipt:
    """An agent received a prompt and committed the work, once."""
    plain = Receipt(
        token,
        (token,) if token else (),
        worker,
        (200, 7),
        "task",
        earlier_alive=False,
        same_agent=False,
        finished=True,
        committed=True,
    )
    return replace(plain, **changes)


def commit(*tokens: str, on_default: bool, sha: str = "c" * 40) -> Commit:
    """A commit that carries these tokens."""
    return Commit(sha, tokens or (TOKEN,), on_default)


def check(
    believed: WorkersModel,
    seen: Observation,
    *,
    before: Observation | None = None,
    operation: Operation | None = None,
    succeeded: bool = True,
    **changes: Any,
) -> Check:
    """What a rule looks at; `before` is the same picture unless something else is given."""
    plain = Check(
        believed,
        seen,
        seen if before is None else before,
        operation if operation is not None else common.Sleep(),
        succeeded,
    )
    return replace(plain, **changes)


# --- answers and runs -----------------------------------------------------------------------------


def ok(**changes: Any) -> OperationResult:
    """A command that says it worked."""
    return replace(OperationResult(0, stdout="done"), **changes)


def refused(text: str, **changes: Any) -> OperationResult:
    """A command that was refused with this text."""
    return replace(OperationResult(1, stderr=f"Error: {text}\n"), **changes)


def step(
    operation: Operation,
    verdict: Verdict = Verdict.SUCCESS,
    sequence_id: int = 1,
    *violations: Violation,
    result: OperationResult | None = None,
    pre_state: Mapping[str, object] | None = None,
    post_state: Mapping[str, object] | None = None,
    inconclusive: tuple[str, ...] = (),
    expected: str = "",
) -> Step:
    """One judged step."""
    return Step(
        sequence_id,
        1736692252.0,
        operation,
        dict(pre_state or {}),
        result or ok(),
        dict(post_state or {}),
        verdict,
        violations,
        expected,
        inconclusive,
        own_ms=3.25,
        coverage={"status": "-", "operation": operation.type, "fault": "none", "outcome": "x"},
    )


def outcome(directory: Path, *steps: Step, evidence: Evidence | None = None) -> Outcome:
    """A finished run with these steps; the verdict is that of the last one."""
    verdict = steps[-1].verdict if steps else Verdict.INCONCLUSIVE
    return Outcome(
        Verdict.SUCCESS if verdict is Verdict.EXPECTED else verdict,
        steps,
        RunDirectory(directory),
        None,
        evidence or Evidence(),
        1.5,
    )
