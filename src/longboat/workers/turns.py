"""Turns: what a worker is after its agent finished, died, or was told to rebase.

git is the witness, not the agent: what counts as done is what is committed on the worker's branch.
"""

from __future__ import annotations

from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.workers import delivery, processes, worktrees
from longboat.workers.state import RECEIVED, Intent, Worker
from longboat.workers.transaction import Transaction


def finish(transaction: Transaction, worker: Worker) -> Worker:
    """The agent's turn is over: settle the tree and decide what comes next."""
    git = transaction.git
    inflight = worker.inflight
    worker = worker._replace(inflight=None, error_reason=None)
    if git.in_rebase(worker.worktree):
        return _unresolved(transaction, worker)
    if worker.status == "rebasing" and worker.rebase_onto:
        if not git.contains(git.head(worker.worktree), worker.rebase_onto):
            return _unresolved(transaction, worker)
        worker = worker._replace(rebase_onto="")
    try:
        if planted("dirty-tree-ignored"):
            head = git.head(worker.worktree)
        else:
            head = worktrees.settle(git, worker.worktree, worker.branch)
    except GitFailed as error:
        transaction.log(f"{worker.name}: {error}")
        if planted("end-lost-to-busy-git"):
            return transaction.put(worker)
        return transaction.put(worker._replace(status="error", error_reason=str(error)))
    if worker.inbox:
        status = "working" if worker.status != "rejected" else "rejected"
        return transaction.put(worker._replace(status=status))
    if git.ahead(head, transaction.trunk) == 0:
        transaction.log(f"{worker.name}: the turn ended without changes")
        return transaction.put(
            worker._replace(status="no_changes", commit_sha=None, rebase_wanted=False)
        )
    worker = worker._replace(status="needs_review", commit_sha=head)
    kind = inflight.prompt.kind if inflight else "late"
    transaction.log(f"{worker.name}: {kind} done, {head[:10]} needs review")
    if worker.rebase_wanted and not planted("rebase-forgotten"):
        return rebase(transaction, worker._replace(rebase_wanted=False), transaction.trunk_commit())
    return transaction.put(worker)


def _unresolved(transaction: Transaction, worker: Worker) -> Worker:
    """The conflict is still there: take the rebase back, the work stays on the branch."""
    transaction.log(f"{worker.name}: the rebase was left unfinished; taking it back")
    if not planted("rebase-left-half-done"):
        worktrees.restore_branch(transaction.git, worker.worktree, worker.branch)
    reason = (
        "the agent ended its turn without finishing the rebase; "
        "the work is on the branch as it was before"
    )
    return transaction.put(worker._replace(status="error", error_reason=reason, rebase_onto=""))


def rebase(transaction: Transaction, worker: Worker, onto: str) -> Worker:
    """Bring the worker's commits onto ``onto``; a conflict becomes a prompt for the agent."""
    git = transaction.git
    head = worktrees.settle(git, worker.worktree, worker.branch)
    worker = worker._replace(commit_sha=head)
    if git.contains(head, onto) or planted("rebase-only-said"):
        if planted("fast-forward-the-wrong-way"):
            git.change("update-ref", transaction.trunk, head)
        return transaction.put(worker)
    worker = transaction.put(worker)
    transaction.begin(
        Intent("rebase", worker.name, base=onto, head=head, task=worker.task_id or "")
    )
    label = f"{worker.task_id or 'work'}-before-rebase-{head[:8]}"
    worktrees.keep(git, worker.name, label, head)
    strategy = ("-X", "theirs") if planted("conflict-resolved-by-dropping") else ()
    result = git.write("rebase", "-q", "--no-fork-point", *strategy, onto, at=worker.worktree)
    if result.ok:
        head = git.head(worker.worktree)
        transaction.log(f"{worker.name}: rebased onto {onto[:10]}, now {head[:10]}")
        if not planted("stale-sha-after-rebase"):
            worker = worker._replace(commit_sha=head)
    elif result.code == 1 and _has_conflicts(transaction, worker):
        transaction.log(f"{worker.name}: the rebase onto {onto[:10]} has conflicts")
        text = delivery.CONFLICT_TEXT.format(branch=transaction.config.default_branch)
        prompt = delivery.new_prompt("conflict", text, worker.task_id or "")
        worker = worker._replace(status="rebasing", rebase_onto=onto, inbox=(prompt, *worker.inbox))
        worktrees.sync_stopped_rebase(git, worker.worktree, head, onto)
    else:
        worktrees.restore_branch(git, worker.worktree, worker.branch)
        transaction.end(worker.name)
        transaction.save()
        raise GitFailed(f"git rebase of worker '{worker.name}' failed: {result.last_words}")
    worker = transaction.put(worker)
    transaction.end(worker.name)
    transaction.save()
    return worker


def _has_conflicts(transaction: Transaction, worker: Worker) -> bool:
    """True when a rebase stopped properly at a conflict, rather than being cut off."""
    if not transaction.git.in_rebase(worker.worktree):
        return False
    return bool(transaction.git.ask("ls-files", "--unmerged", at=worker.worktree))


def agent_died(transaction: Transaction, worker: Worker) -> Worker:
    """The agent is proven dead: end its children, and finish or queue again what it had."""
    agent = worker.agent
    if agent is not None:
        processes.terminate(agent.pid, agent.spawn, grace_s=0.0)
        transaction.log(f"{worker.name}: agent {agent.pid} is dead")
    transaction.git.clear_worktree_locks(worker.worktree, worker.branch)
    worker = worker._replace(agent=None)
    inflight = worker.inflight
    if inflight is not None and inflight.stage == RECEIVED and _looks_done(transaction, worker):
        transaction.log(f"{worker.name}: its work was complete")
        return finish(transaction, worker)
    if planted("prompt-lost-on-session-death") and inflight is not None:
        return transaction.put(worker._replace(inflight=None))
    worker = delivery.after_death(worker, transaction.config.max_attempts)
    if worker.status == "error":
        transaction.log(f"{worker.name}: {worker.error_reason}")
        transaction.book.state = transaction.book.state.with_task_state(worker.task_id, "failed")
    return transaction.put(worker)


def _looks_done(transaction: Transaction, worker: Worker) -> bool:
    """Committed since the delivery, clean and not in the middle of anything."""
    git = transaction.git
    inflight = worker.inflight
    if inflight is None or git.in_rebase(worker.worktree):
        return False
    if git.checked_out(worker.worktree) != worker.branch or git.is_dirty(worker.worktree):
        return False
    head = git.head(worker.worktree)
    if inflight.prompt.kind == "conflict":
        return bool(worker.rebase_onto) and git.contains(head, worker.rebase_onto)
    return head != inflight.head


def looks_done_while_alive(transaction: Transaction, worker: Worker) -> str:
    """A fingerprint of finished-looking work, or nothing: the same for long means a missed end."""
    if not _looks_done(transaction, worker) or worker.agent is None:
        return ""
    import os

    try:
        talk = os.stat(worker.agent.transcript)
        talked = f"{talk.st_mtime_ns}:{talk.st_size}"
    except OSError:
        talked = "no transcript"
    return f"{transaction.git.head(worker.worktree)} {talked}"
