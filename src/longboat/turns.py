"""Turns: what a worker is after its agent finished, died, or was told to rebase.

git is the witness, not the agent: what counts as done is what is committed on the worker's branch.
"""

from __future__ import annotations

from longboat import delivery, processes, worktrees
from longboat.errors import GitFailed
from longboat.planting import planted
from longboat.state import RECEIVED, Intent, Worker
from longboat.workshop import Workshop


def finish(workshop: Workshop, worker: Worker) -> Worker:
    """The agent's turn is over: settle the tree and decide what comes next."""
    git = workshop.git
    inflight = worker.inflight
    worker = worker._replace(inflight=None, error_reason=None)
    if git.in_rebase(worker.worktree):
        return _unresolved(workshop, worker)
    if worker.status == "rebasing" and worker.rebase_onto:
        if not git.contains(git.head(worker.worktree), worker.rebase_onto):
            return _unresolved(workshop, worker)
        worker = worker._replace(rebase_onto="")
    try:
        if planted("dirty-tree-ignored"):
            head = git.head(worker.worktree)
        else:
            head = worktrees.settle(git, worker.worktree, worker.branch)
    except GitFailed as error:
        workshop.log(f"{worker.name}: {error}")
        return workshop.put(worker._replace(status="error", error_reason=str(error)))
    if worker.inbox:
        status = "working" if worker.status != "rejected" else "rejected"
        return workshop.put(worker._replace(status=status))
    if git.ahead(head, workshop.trunk) == 0:
        workshop.log(f"{worker.name}: the turn ended without changes")
        return workshop.put(
            worker._replace(status="no_changes", commit_sha=None, rebase_wanted=False)
        )
    worker = worker._replace(status="needs_review", commit_sha=head)
    kind = inflight.prompt.kind if inflight else "late"
    workshop.log(f"{worker.name}: {kind} done, {head[:10]} needs review")
    if worker.rebase_wanted:
        return rebase(workshop, worker._replace(rebase_wanted=False), workshop.trunk_commit())
    return workshop.put(worker)


def _unresolved(workshop: Workshop, worker: Worker) -> Worker:
    """The conflict is still there: take the rebase back, the work stays on the branch."""
    workshop.log(f"{worker.name}: the rebase was left unfinished; taking it back")
    if not planted("rebase-left-half-done"):
        worktrees.restore_branch(workshop.git, worker.worktree, worker.branch)
    reason = (
        "the agent ended its turn without finishing the rebase; "
        "the work is on the branch as it was before"
    )
    return workshop.put(worker._replace(status="error", error_reason=reason, rebase_onto=""))


def rebase(workshop: Workshop, worker: Worker, onto: str) -> Worker:
    """Bring the worker's commits onto ``onto``; a conflict becomes a prompt for the agent."""
    git = workshop.git
    head = worktrees.settle(git, worker.worktree, worker.branch)
    worker = worker._replace(commit_sha=head)
    if git.contains(head, onto):
        if planted("fast-forward-the-wrong-way"):
            git.change("update-ref", workshop.trunk, head)
        return workshop.put(worker)
    worker = workshop.put(worker)
    workshop.begin(Intent("rebase", worker.name, base=onto, head=head, task=worker.task_id or ""))
    label = f"{worker.task_id or 'work'}-before-rebase-{head[:8]}"
    worktrees.keep(git, worker.name, label, head)
    strategy = ("-X", "theirs") if planted("conflict-resolved-by-dropping") else ()
    result = git.write("rebase", "-q", "--no-fork-point", *strategy, onto, at=worker.worktree)
    if result.ok:
        head = git.head(worker.worktree)
        workshop.log(f"{worker.name}: rebased onto {onto[:10]}, now {head[:10]}")
        if not planted("stale-sha-after-rebase"):
            worker = worker._replace(commit_sha=head)
    elif result.code == 1 and _has_conflicts(workshop, worker):
        workshop.log(f"{worker.name}: the rebase onto {onto[:10]} has conflicts")
        text = delivery.CONFLICT_TEXT.format(branch=workshop.config.default_branch)
        prompt = delivery.new_prompt("conflict", text, worker.task_id or "")
        worker = worker._replace(status="rebasing", rebase_onto=onto, inbox=(prompt, *worker.inbox))
        worktrees.sync_stopped_rebase(git, worker.worktree, head, onto)
    else:
        worktrees.restore_branch(git, worker.worktree, worker.branch)
        workshop.end(worker.name)
        workshop.save()
        raise GitFailed(f"git rebase of worker '{worker.name}' failed: {result.last_words}")
    worker = workshop.put(worker)
    workshop.end(worker.name)
    workshop.save()
    return worker


def _has_conflicts(workshop: Workshop, worker: Worker) -> bool:
    """True when a rebase stopped properly at a conflict, rather than being cut off."""
    if not workshop.git.in_rebase(worker.worktree):
        return False
    return bool(workshop.git.ask("ls-files", "--unmerged", at=worker.worktree))


def agent_died(workshop: Workshop, worker: Worker) -> Worker:
    """The agent is proven dead: end its children, and finish or queue again what it had."""
    agent = worker.agent
    if agent is not None:
        processes.terminate(agent.pid, agent.spawn, grace_s=0.0)
        workshop.log(f"{worker.name}: agent {agent.pid} is dead")
    workshop.git.clear_worktree_locks(worker.worktree, worker.branch)
    worker = worker._replace(agent=None)
    inflight = worker.inflight
    if inflight is not None and inflight.stage == RECEIVED and _looks_done(workshop, worker):
        workshop.log(f"{worker.name}: its work was complete")
        return finish(workshop, worker)
    if planted("prompt-lost-on-session-death") and inflight is not None:
        return workshop.put(worker._replace(inflight=None))
    worker = delivery.after_death(worker, workshop.config.max_attempts)
    if worker.status == "error":
        workshop.log(f"{worker.name}: {worker.error_reason}")
        workshop.book.state = workshop.book.state.with_task_state(worker.task_id, "failed")
    return workshop.put(worker)


def _looks_done(workshop: Workshop, worker: Worker) -> bool:
    """Committed since the delivery, clean and not in the middle of anything."""
    git = workshop.git
    inflight = worker.inflight
    if inflight is None or git.in_rebase(worker.worktree):
        return False
    if git.checked_out(worker.worktree) != worker.branch or git.is_dirty(worker.worktree):
        return False
    head = git.head(worker.worktree)
    if inflight.prompt.kind == "conflict":
        return bool(worker.rebase_onto) and git.contains(head, worker.rebase_onto)
    return head != inflight.head


def looks_done_while_alive(workshop: Workshop, worker: Worker) -> str:
    """A fingerprint of finished-looking work, or nothing: the same for long means a missed end."""
    if not _looks_done(workshop, worker) or worker.agent is None:
        return ""
    import os

    try:
        talk = os.stat(worker.agent.transcript)
        talked = f"{talk.st_mtime_ns}:{talk.st_size}"
    except OSError:
        talked = "no transcript"
    return f"{workshop.git.head(worker.worktree)} {talked}"
