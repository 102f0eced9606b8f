"""The last resort: a state from nothing but the worktrees.

What was asked of each worker is lost with the state; what it did is not, because that is in git.
Everything unmerged comes back as work that needs review.
"""

from __future__ import annotations

import os

from longboat.workers import agents, store, tmuxctl, worktrees
from longboat.workers.state import State, Task, Worker
from longboat.workers.transaction import Transaction


def rebuild(transaction: Transaction) -> str:
    """Put both bad files aside and write a state that git can vouch for."""
    home, git = transaction.home, transaction.git
    for path in (home.state, home.backup):
        store.set_aside(home, path)
    transaction.book.state = State()
    try:
        names = sorted(os.listdir(home.file("worktrees")))
    except FileNotFoundError:
        names = []
    for name in names:
        if git.admin_directory(home.worktree(name)) is not None:
            _bring_back(transaction, name)
    transaction.book.rewrite()
    return f"rebuilt the state from {len(transaction.book.state.workers)} worktrees"


def _bring_back(transaction: Transaction, name: str) -> None:
    git = transaction.git
    worker = Worker(
        name=name,
        status="offline",
        branch=f"longboat/{name}",
        worktree=transaction.home.worktree(name),
        session=f"longboat-{name}",
    )
    # Nobody knows any more what an agent there was told: end it before its tree is settled.
    mark = tmuxctl.mark(worker.session, "LONGBOAT_SPAWN")
    worker = agents.end(transaction, worker._replace(spawning=mark or ""))
    if git.in_rebase(worker.worktree):
        head = git.head(worker.worktree)
        worktrees.keep(git, name, f"rebase-{head[:12]}", head)
        worktrees.restore_branch(git, worker.worktree, worker.branch)
    head = worktrees.settle(git, worker.worktree, worker.branch)
    if git.ahead(head, transaction.trunk) > 0:
        subject = git.ask("log", "-1", "--format=%s", head)
        task = Task(f"t{os.urandom(5).hex()}", name, subject, "active")
        transaction.book.state = transaction.book.state.with_task(task)
        worker = worker._replace(
            resume="needs_review", commit_sha=head, task_id=task.id, current_prompt=subject
        )
    transaction.book.state = transaction.book.state.with_worker(worker)
