"""Workers come and go: `add`, `nuke`, `reset`, and the end of all agents at `down`.

Each writes down what it is about to do, so a crash in the middle is finished (nuke, reset) or taken
back (add) by whoever takes the lock next.
"""

from __future__ import annotations

import os
import time

from longboat.errors import GitFailed, Rejection
from longboat.planting import planted
from longboat.workers import agents, processes, tmuxctl, worktrees
from longboat.workers.state import Intent, Worker, idle
from longboat.workers.store import replace_file
from longboat.workers.transaction import Transaction

_CTRL_C_GRACE_S = 0.4


def add(transaction: Transaction, name: str, model: str, command: str) -> Worker:
    """A new worker with worktree and branch; the daemon starts its agent."""
    git, home = transaction.git, transaction.home
    branch, worktree = f"longboat/{name}", home.worktree(name)
    if planted("add-takes-live-worktree"):
        make_room(transaction, name, branch, worktree)
    if name in transaction.book.state.workers:
        raise Rejection(f"Worker '{name}' already exists")
    base = transaction.trunk_commit()
    make_room(transaction, name, branch, worktree)
    transaction.begin(Intent("add", name, base=base))
    worktrees.create(git, worktree, branch, base)
    worker = Worker(
        name=name,
        status="offline",
        branch=branch,
        worktree=worktree,
        session=f"longboat-{name}",
        model=model,
        command=command,
        since_generation=transaction.book.state.generation,
    )
    agents.write_settings(transaction, worker)
    if planted("settings-in-the-way") and git.read("ls-files", agents.SETTINGS, at=worktree).out:
        worker = worker._replace(status="error", error_reason="settings are in the way")
    worker = transaction.put(worker)
    transaction.end(name)
    transaction.save()
    transaction.log(f"{name}: added, branch {branch}")
    return worker


def make_room(transaction: Transaction, name: str, branch: str, worktree: str) -> None:
    """Leftovers under this name (of a lost state) are kept elsewhere, never reused."""
    leftover = os.path.lexists(worktree) or transaction.git.ref(f"refs/heads/{branch}") is not None
    if not leftover:
        return
    label = f"found-{os.urandom(4).hex()}"
    kept = worktrees.preserve(
        transaction.git, transaction.home, name, branch, label, transaction.trunk
    )
    if os.path.lexists(worktree) and transaction.git.admin_directory(worktree) is None:
        target = transaction.home.file("rescued", f"{name}-{label}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(worktree, target)
        kept.append(target)
    worktrees.remove(transaction.git, worktree, branch)
    transaction.log(
        f"{name}: leftovers of an earlier worker kept as {', '.join(kept) or 'nothing'}"
    )


def take_back_add(transaction: Transaction, intent: Intent) -> None:
    """An `add` that was cut off never happened."""
    name = intent.worker
    branch, worktree = f"longboat/{name}", transaction.home.worktree(name)
    label = f"unfinished-{os.urandom(4).hex()}"
    tip = transaction.git.ref(f"refs/heads/{branch}")
    if tip is not None and not transaction.git.contains(transaction.trunk, tip):
        worktrees.keep(transaction.git, name, label, tip)
    worktrees.remove(transaction.git, worktree, branch)
    transaction.end(name)
    transaction.save()
    transaction.log(f"{name}: an interrupted add was taken back")


def nuke(transaction: Transaction, worker: Worker) -> list[str]:
    """Remove a worker; its unmerged work stays in the archive. Returns where."""
    transaction.begin(Intent("nuke", worker.name, phase="preserve", task=worker.task_id or ""))
    return finish_nuke(transaction, transaction.book.state.intents[worker.name])


def finish_nuke(transaction: Transaction, intent: Intent) -> list[str]:
    """Remove what is left of a worker that is being nuked."""
    worker = transaction.book.state.workers.get(intent.worker)
    if worker is None:
        transaction.end(intent.worker)
        transaction.save()
        return []
    kept = _stop_and_preserve(transaction, worker, intent)
    worktrees.remove(transaction.git, worker.worktree, worker.branch)
    state = transaction.book.state.with_task_state(worker.task_id, "discarded")
    transaction.book.state = state.without_worker(worker.name)
    transaction.end(worker.name)
    transaction.save()
    transaction.log(f"{worker.name}: nuked; kept: {', '.join(kept) or 'nothing to keep'}")
    return kept


def reset(transaction: Transaction, worker: Worker) -> list[str]:
    """Back to a fresh worker; its unmerged work stays in the archive. Returns where."""
    transaction.begin(Intent("reset", worker.name, phase="preserve", task=worker.task_id or ""))
    return finish_reset(transaction, transaction.book.state.intents[worker.name])


def finish_reset(transaction: Transaction, intent: Intent) -> list[str]:
    """Bring what is left of a worker that is being reset to a fresh start."""
    worker = transaction.book.state.workers[intent.worker]
    kept = _stop_and_preserve(transaction, worker, intent)
    if planted("reset-keeps-files"):
        transaction.git.change("reset", "-q", transaction.trunk, at=worker.worktree)
    elif not planted("worktree-reused-dirty"):
        worktrees.remove(transaction.git, worker.worktree, worker.branch)
        worktrees.create(
            transaction.git, worker.worktree, worker.branch, transaction.trunk_commit()
        )
    state = transaction.book.state.with_task_state(worker.task_id, "discarded")
    if state.last_reviewed == worker.name:
        state = state._replace(last_reviewed=None)
    transaction.book.state = state
    fresh = idle(worker)._replace(status="offline", agent=None, spawning="", spawn_failures=0)
    if planted("reset-keeps-messages"):
        kept_texts = "\n".join(prompt.text for prompt in worker.inbox)
        replace_file(transaction.home.file(f"kept-{worker.name}"), kept_texts.encode())
    worker = transaction.put(fresh)
    agents.write_settings(transaction, worker)
    transaction.end(worker.name)
    transaction.save()
    transaction.log(f"{worker.name}: reset; kept: {', '.join(kept) or 'nothing to keep'}")
    return kept


def _stop_and_preserve(transaction: Transaction, worker: Worker, intent: Intent) -> list[str]:
    """End the agent, then archive what only this worker has: once, before anything is removed."""
    if intent.kind == "nuke" and planted("nuke-ends-all-sessions"):
        tmuxctl.kill_server()
    if intent.kind == "nuke" and planted("orphan-session-after-nuke"):
        worker = worker._replace(agent=None)
    else:
        worker = agents.end(transaction, worker)
    if intent.phase != "preserve":
        return []
    label = worker.task_id or f"idle-{os.urandom(4).hex()}"
    kept = []
    if intent.kind == "nuke" and planted("archived-after-removal"):
        tip = transaction.git.ref(f"refs/heads/{worker.branch}") or ""
        worktrees.remove(transaction.git, worker.worktree, worker.branch)
        kept = [worktrees.keep(transaction.git, worker.name, label, tip)]
    elif not (intent.kind == "nuke" and planted("nuke-loses-commits")):
        kept = _preserve(transaction, worker, label)
    transaction.put(worker)
    transaction.begin(intent._replace(phase="remove"))
    return kept


def _preserve(transaction: Transaction, worker: Worker, label: str) -> list[str]:
    try:
        return worktrees.preserve(
            transaction.git, transaction.home, worker.name, worker.branch, label, transaction.trunk
        )
    except GitFailed:
        if planted("archive-error-swallowed"):
            return []
        raise


def stop_all(transaction: Transaction) -> list[str]:
    """End all agents (Ctrl-C, a moment, then surely) and remember where each worker was."""
    workers = list(transaction.book.state.workers.values())
    if planted("down-leaves-agents"):
        for worker in workers:
            transaction.put(offline(worker)._replace(agent=None))
        return [worker.name for worker in workers]
    living = [w for w in workers if w.agent is not None and not agents.is_dead(w)]
    tmuxctl.interrupt([worker.agent.pane for worker in living if worker.agent])
    processes.wait_dead([w.agent.identity for w in living if w.agent], _CTRL_C_GRACE_S)
    stopped = []
    for worker in workers:
        if worker.name in transaction.book.state.intents:
            continue
        if worker in living or worker.spawning:
            stopped.append(worker.name)
        if worker.agent is not None or worker.spawning:
            worker = agents.end(transaction, worker)
        transaction.put(offline(worker))
    transaction.save()
    if planted("down-ends-tmux"):
        tmuxctl.kill_server()
    return stopped


def offline(worker: Worker) -> Worker:
    """The worker without a session, with everything that it needs to go on later."""
    if worker.status == "offline":
        return worker
    if never_came_up(worker):
        return try_again(worker)
    inflight = worker.inflight
    if inflight is not None and inflight.prompt.attempts > 0:
        # Stopped on purpose: that is not the prompt's fault and no failed attempt.
        prompt = inflight.prompt._replace(attempts=inflight.prompt.attempts - 1)
        inflight = inflight._replace(prompt=prompt)
    if planted("task-forgotten-on-down"):
        return idle(worker)._replace(status="offline")
    return worker._replace(status="offline", resume=worker.status, inflight=inflight)


def never_came_up(worker: Worker) -> bool:
    """Was the worker given up because its agent could not be started?"""
    return worker.status == "error" and worker.spawn_failures > 0


def try_again(worker: Worker) -> Worker:
    """A worker whose agent never came up gets a new chance, and goes on where it was before."""
    return worker._replace(status="offline", spawn_failures=0, error_reason=None)


def prepare_for_task(transaction: Transaction, worker: Worker) -> None:
    """Put an idle worker's tree at the newest trunk; anything found there is archived first."""
    git = transaction.git
    trunk = transaction.trunk_commit()
    if planted("worktree-reused-dirty"):
        return
    sound = worktrees.is_sound(git, worker.worktree, worker.branch)
    if not sound:
        repair_worktree(transaction, worker)
    clean = not git.in_rebase(worker.worktree) and not git.is_dirty(worker.worktree)
    attached = git.checked_out(worker.worktree) == worker.branch
    newest = git.head(worker.worktree) == trunk or planted("task-begins-on-old-tree")
    if clean and attached and newest:
        return
    intent = Intent("prepare", worker.name)
    transaction.begin(intent)
    finish_prepare(transaction, intent)


def finish_prepare(transaction: Transaction, intent: Intent) -> None:
    """Bring the tree of an idle worker to the newest trunk, however far somebody else came."""
    git, worker = transaction.git, transaction.book.state.workers[intent.worker]
    label = f"idle-{int(time.time())}-{os.urandom(2).hex()}"
    worktrees.preserve(git, transaction.home, worker.name, worker.branch, label, transaction.trunk)
    if git.in_rebase(worker.worktree):
        worktrees.restore_branch(git, worker.worktree, worker.branch)
    worktrees.move_to(git, worker.worktree, worker.branch, transaction.trunk_commit())
    git.change("clean", "-q", "-f", "-d", at=worker.worktree)
    transaction.end(worker.name)
    transaction.save()


def repair_worktree(transaction: Transaction, worker: Worker) -> None:
    """Make a lost worktree again from the worker's branch (or from what the state knows)."""
    git = transaction.git
    tip = git.ref(f"refs/heads/{worker.branch}")
    known = [tip, worker.commit_sha, transaction.trunk_commit()]
    commit = next(c for c in known if c and git.read("cat-file", "-e", c).ok)
    if tip is not None and not git.contains(transaction.trunk, tip):
        worktrees.keep(git, worker.name, f"repaired-{tip[:12]}", tip)
    if os.path.lexists(worker.worktree):
        target = transaction.home.file("rescued", f"{worker.name}-{os.urandom(4).hex()}")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(worker.worktree, target)
    worktrees.remove(git, worker.worktree, worker.branch)
    worktrees.create(git, worker.worktree, worker.branch, commit)
    agents.write_settings(transaction, worker)
    transaction.log(f"{worker.name}: its worktree was lost and is made again at {commit[:10]}")
