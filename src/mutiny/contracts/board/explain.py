"""Which promise does an answer break that is on no right outcome? The most telling rule is named."""

from __future__ import annotations

from collections.abc import Sequence

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.model import BoardModel, BoardOutcome
from mutiny.contracts.board.tasks import has_cycle
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import Span
from mutiny.model.operation import Operation
from mutiny.model.violation import Violation


def explain(
    model: BoardModel,
    operation: Operation,
    answer: Answer,
    right: Sequence[BoardOutcome],
    when: Span,
) -> Violation:
    """The violation that an answer is."""
    due = "; or ".join(dict.fromkeys(outcome.reason for outcome in right))
    subject = op.task_of(operation) or ""
    if answer.ok:
        rule, why = _wrong_success(model, operation, answer, right, when)
        text = f"{operation} succeeded{_named(answer)} but {why} ({due})."
    else:
        rule, why = _wrong_refusal(model, operation, answer, right)
        text = f"{operation} was refused ({answer.error or answer.message}) but {why} ({due})."
    evidence = {"answer": dict(answer.said), "right": due}
    return Violation(f"board.{rule}", text, answer.task or subject, evidence)


def _named(answer: Answer) -> str:
    epoch = answer.number("epoch")
    shown = "" if epoch is None else f" at epoch {epoch}"
    return f" with task {answer.task}{shown}" if answer.task else ""


def _wrong_success(
    model: BoardModel,
    operation: Operation,
    answer: Answer,
    right: Sequence[BoardOutcome],
    when: Span,
) -> tuple[str, str]:
    refusals = frozenset().union(*(outcome.refusals for outcome in right))
    if refusals and refusals <= {"rate_limited"}:
        return "rate_limit_holds", "its worker asks too often"
    if isinstance(operation, op.Claim):
        return _wrong_claim(model, operation, answer, right, when)
    if isinstance(operation, op.OwnerCommand):
        return _wrong_owner(model, operation)
    if isinstance(operation, op.Cancel):
        task = model.tasks.get(operation.task)
        if task is not None and task.over:
            return "terminal_is_terminal", f"the task is {task.status} for good"
    whole = model.profile.batches  # one by one no circle can be said, only what is unknown yet
    if isinstance(operation, op.AddBatch) and whole and has_cycle(operation.named):
        return "cycles_refused", "its tasks depend on each other in a circle"
    if isinstance(operation, op.AddTask) and operation.task in operation.depends:
        return "cycles_refused", "the task depends on itself"
    if isinstance(operation, op.Elect):
        return "one_leader", "another leader's lease still runs"
    if isinstance(operation, op.LeaderCommand):
        return "old_token_refused", "the node does not lead with that token"
    if isinstance(operation, op.StartSecondServer | op.Up):
        return "one_server", "a server runs already"
    return "rejects_illegal", "was due to be refused"


def _wrong_claim(
    model: BoardModel,
    operation: op.Claim,
    answer: Answer,
    right: Sequence[BoardOutcome],
    when: Span,
) -> tuple[str, str]:
    refusals = frozenset[str]().union(*(outcome.refusals for outcome in right))
    if "breaker_open" in refusals and "nothing_to_claim" not in refusals:
        probing = bool(model.breaker.probes)
        rule = "breaker_half_opens" if probing else "breaker_opens"
        return rule, "the circuit breaker was due to let nothing through"
    task = model.tasks.get(answer.task or "")
    if task is None:
        return "rejects_illegal", f"there is no task {answer.task}"
    if operation.task is not None and operation.task != task.id:
        return "rejects_illegal", f"task {operation.task} was asked for"
    if task.held:
        if model.stale(task.owner, when) is False and task.owner != operation.worker:
            return "live_worker_kept", f"{task.owner} holds it and lives"
        return "single_owner", f"{task.owner} holds it"
    if task.over:
        return "terminal_is_terminal", f"the task is {task.status} for good"
    if task.status == "blocked":
        return "dependencies_respected", "its dependencies are not done"
    if model.rested(task, when) is False:
        return "backs_off", "the task was due to rest"
    first = {outcome.task for outcome in right if outcome.task is not None}
    stale = sorted(name for name in first if name in model.tasks and model.tasks[name].held)
    if stale and set(stale) == first:
        return "no_stuck_claim", f"{stale[0]} comes first: the lease of its owner is over"
    return "priority_respected", "another task comes first"


def _wrong_owner(model: BoardModel, operation: op.OwnerCommand) -> tuple[str, str]:
    task = model.tasks.get(operation.task)
    if task is None:
        return "rejects_illegal", "there is no such task"
    if isinstance(operation, op.Complete) and task.status == "done":
        return "no_double_effect", "the task is done already"
    if task.over:
        return "terminal_is_terminal", f"the task is {task.status} for good"
    if task.owner != operation.worker or not task.held:
        return "only_owner_completes", f"it belongs to {task.owner or 'nobody'}"
    epoch = model.epoch_used(operation.worker, operation.task, stale=operation.stale)
    if epoch is not None and epoch != task.epoch:
        return "only_owner_completes", f"its epoch is {task.epoch}, not {epoch}"
    return "rejects_illegal", f"the task is {task.status}"


def _wrong_refusal(
    model: BoardModel, operation: Operation, answer: Answer, right: Sequence[BoardOutcome]
) -> tuple[str, str]:
    if not answer.classes or not answer.classes <= KNOWN:
        return "fails_clearly", "the board has no such class of refusals"
    success_due = all(outcome.success for outcome in right)
    if isinstance(operation, op.Repair) and success_due:
        return "repair_keeps_data", "there was a whole copy"
    if answer.error == "breaker_open":
        closed = model.breaker.opened is None
        return ("breaker_closes" if closed else "breaker_half_opens"), "was due to be let through"
    if answer.error == "rate_limited":
        return "rate_limit_holds", "the worker was within its limit"
    if answer.error == "unreadable" and not model.damaged:
        return "state_readable", "nobody has damaged the board"
    if model.damaged and answer.error in ("nothing_to_claim", "unknown_task"):
        return "add_kept", "what was there is forgotten instead of called unreadable"
    if not success_due:
        return "rejects_truthfully", "that is not the reason"
    named = {outcome.task for outcome in right}
    stale = {name for name, task in model.tasks.items() if task.held}
    if answer.error in ("nothing_to_claim", "task_not_available") and named & stale:
        return "no_stuck_claim", "the lease of its owner is over"
    return "serves_legal", "was due to succeed"


KNOWN = frozenset(
    {"nothing_to_claim", "unknown_task", "not_owner", "stale_epoch", "wrong_status", "cycle"}
    | {"dependency_missing", "duplicate_id", "task_not_available", "dependencies_open", "busy"}
    | {"unknown_checkpoint", "not_leader", "leader_exists", "stale_token", "rate_limited"}
    | {"breaker_open", "unreadable", "no_space", "bad_input", "not_initialised", "system"}
    | {"server_down", "server_running", "already_initialised", "retries_used"}
)
"""Classes of refusals."""
