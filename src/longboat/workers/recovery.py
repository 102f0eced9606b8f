"""Finish, or take back, what somebody else was killed in the middle of.

Every change with more than one step left an intent in the state before its first step. Recovery is
the first thing that happens under the lock, and it may itself be killed: each step can be repeated.
"""

from __future__ import annotations

from longboat.errors import LongboatError
from longboat.planting import planted
from longboat.workers import landing, lifecycle, worktrees
from longboat.workers.state import Intent
from longboat.workers.transaction import Transaction


def recover(transaction: Transaction) -> None:
    """Deal with every intent; one that cannot be dealt with now blocks only its own worker."""
    transaction.git.clear_reference_locks()
    for intent in list(transaction.book.state.intents.values()):
        try:
            recover_one(transaction, intent)
        except (LongboatError, OSError) as error:
            transaction.book.roll_back()
            transaction.log(f"{intent.worker}: the interrupted {intent.kind} stays: {error}")


def recover_one(transaction: Transaction, intent: Intent) -> None:
    """Deal with one intent."""
    if intent.kind == "add":
        lifecycle.take_back_add(transaction, intent)
    elif intent.kind == "nuke":
        lifecycle.finish_nuke(transaction, intent)
    elif intent.kind == "reset":
        lifecycle.finish_reset(transaction, intent)
    elif intent.kind == "prepare":
        lifecycle.finish_prepare(transaction, intent)
    elif intent.kind == "accept":
        landing.recover(transaction, intent)
    elif intent.kind == "rebase":
        _take_back_rebase(transaction, intent)
    else:
        raise LongboatError(f"unknown interrupted change '{intent.kind}'")


def _take_back_rebase(transaction: Transaction, intent: Intent) -> None:
    """A rebase that was cut off did not happen, unless git had already moved the branch."""
    worker = transaction.book.state.workers[intent.worker]
    if planted("rebase-left-half-done"):
        transaction.end(intent.worker)
        return
    head = worktrees.restore_branch(
        transaction.git, worker.worktree, worker.branch, cut_off_from=intent.base
    )
    if worker.status == "needs_review":
        transaction.put(worker._replace(commit_sha=head))
    transaction.end(intent.worker)
    transaction.save()
    transaction.log(f"{intent.worker}: an interrupted rebase was taken back to {head[:10]}")
