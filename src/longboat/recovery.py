"""Finish, or take back, what somebody else was killed in the middle of.

Every change with more than one step left an intent in the state before its first step. Recovery is
the first thing that happens under the lock, and it may itself be killed: each step can be repeated.
"""

from __future__ import annotations

from longboat import landing, lifecycle, worktrees
from longboat.errors import LongboatError
from longboat.planting import planted
from longboat.state import Intent
from longboat.workshop import Workshop


def recover(workshop: Workshop) -> None:
    """Deal with every intent; one that cannot be dealt with now blocks only its own worker."""
    workshop.git.clear_reference_locks()
    for intent in list(workshop.book.state.intents.values()):
        try:
            recover_one(workshop, intent)
        except (LongboatError, OSError) as error:
            workshop.book.roll_back()
            workshop.log(f"{intent.worker}: the interrupted {intent.kind} stays: {error}")


def recover_one(workshop: Workshop, intent: Intent) -> None:
    """Deal with one intent."""
    if intent.kind == "add":
        lifecycle.take_back_add(workshop, intent)
    elif intent.kind == "nuke":
        lifecycle.finish_nuke(workshop, intent)
    elif intent.kind == "reset":
        lifecycle.finish_reset(workshop, intent)
    elif intent.kind == "accept":
        landing.recover(workshop, intent)
    elif intent.kind == "rebase":
        _take_back_rebase(workshop, intent)
    else:
        raise LongboatError(f"unknown interrupted change '{intent.kind}'")


def _take_back_rebase(workshop: Workshop, intent: Intent) -> None:
    """A rebase that was cut off did not happen, unless git had already moved the branch."""
    worker = workshop.book.state.workers[intent.worker]
    if planted("rebase-left-half-done"):
        workshop.end(intent.worker)
        return
    head = worktrees.restore_branch(workshop.git, worker.worktree, worker.branch)
    if worker.status == "needs_review":
        workshop.put(worker._replace(commit_sha=head))
    workshop.end(intent.worker)
    workshop.save()
    workshop.log(f"{intent.worker}: an interrupted rebase was taken back to {head[:10]}")
