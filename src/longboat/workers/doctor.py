"""`doctor`: look at everything that can be wrong, and with --repair put right what can be.

Repair is judged by a second look, not by its own word: what it reports as repaired is gone from the
findings afterwards. It never destroys work: whatever it takes away is archived first.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from longboat.errors import LongboatError, StateUnreadable
from longboat.planting import planted
from longboat.workers import (
    agents,
    control,
    lifecycle,
    processes,
    recovery,
    store,
    tmuxctl,
    worktrees,
)
from longboat.workers.commands import Answer
from longboat.workers.config import Config
from longboat.workers.rebuild import rebuild
from longboat.workers.state import State, Worker
from longboat.workers.store import Book, Home, HomeLock, Loaded
from longboat.workers.tmuxctl import Listing
from longboat.workers.transaction import Transaction

_TICK_TIMEOUT_S = 10.0
_AT_REST = ("idle", "needs_review", "no_changes")


class Finding(NamedTuple):
    """One thing that is wrong; without a remedy only a person can help."""

    text: str
    remedy: Callable[[], str] | None = None


def doctor(home: Home, config: Config, *, repair: bool) -> Answer:
    """Check, and repair when asked; exit 0 when nothing is wrong (any more)."""
    problems: list[str] = []
    if store.daemon_is_alive(home) and control.ask(home, "tick", _TICK_TIMEOUT_S) is None:
        problems.append("the daemon does not answer; is it stopped?")
    lock = HomeLock(home, config.lock_timeout_secs, "doctor")
    try:
        findings, notes = _inspect(home, config, lock)
        repairs: list[str] = []
        if repair and planted("doctor-lies"):
            repairs, findings = [f"repaired: {one.text}" for one in findings], []
        elif repair and findings:
            repairs = _repair(home, findings)
            findings, notes = _inspect(home, config, lock)
    finally:
        lock.release()
    problems += [one.text for one in findings]
    if repairs:
        control.poke(home)
    data = {
        "healthy": not problems,
        "problems": problems,
        "repairs": repairs,
        "notes": notes,
    }
    return Answer(data, _report(problems, repairs, notes, repair), 1 if problems else 0)


def _report(problems: list[str], repairs: list[str], notes: list[str], repair: bool) -> str:
    lines = [f"repaired: {one}" for one in repairs]
    lines += [f"problem: {one}" for one in problems]
    lines += [f"note: {one}" for one in notes]
    if not problems:
        lines.append("healthy")
    elif not repair:
        lines.append("`longboat doctor --repair` puts right what can be put right")
    return "\n".join(lines)


def _repair(home: Home, findings: list[Finding]) -> list[str]:
    done = []
    for one in findings:
        if one.remedy is None:
            continue
        try:
            done.append(one.remedy())
        except (LongboatError, OSError) as error:
            store.write_log(home, f"doctor: could not repair '{one.text}': {error}")
    for text in done:
        store.write_log(home, f"doctor: {text}")
    return done


def _inspect(home: Home, config: Config, lock: HomeLock) -> tuple[list[Finding], list[str]]:
    """All findings and notes; changes nothing."""
    findings: list[Finding] = []
    notes: list[str] = []
    try:
        loaded = store.read_state(home)
    except StateUnreadable as error:
        book = Book(home, lock, Loaded(State()))
        transaction = Transaction(home, config, book, lock)
        return [Finding(str(error).split(". Run")[0], lambda: rebuild(transaction))], notes
    book = Book(home, lock, Loaded(loaded.state))
    transaction = Transaction(home, config, book, lock)
    findings += _files(transaction, loaded)
    source = _source(transaction)
    findings += source
    trusting = planted("doctor-trusts-the-flag")
    alive = loaded.state.daemon_running if trusting else store.daemon_is_alive(home)
    if loaded.state.daemon_running and not alive:
        findings.append(
            Finding("the daemon died without stopping", lambda: _forget_daemon(transaction))
        )
    if not alive:
        notes.append("the daemon is not running (longboat up)")
    if source:
        return findings, notes
    listing = tmuxctl.list_panes()
    if not listing.known:
        findings.append(Finding(f"tmux does not answer: {listing.complaint}"))
    for name, intent in loaded.state.intents.items():
        text = f"an interrupted {intent.kind} of worker '{name}'"
        findings.append(Finding(text, lambda name=name: _recover(transaction, name)))  # type: ignore[misc]
    for worker in loaded.state.workers.values():
        if worker.name not in loaded.state.intents:
            findings += _worker(transaction, worker, listing, alive)
            if worker.status == "error":
                notes.append(f"worker '{worker.name}' is in error: {worker.error_reason}")
    findings += _orphans(transaction, listing)
    return findings, notes


def _files(transaction: Transaction, loaded: Loaded) -> list[Finding]:
    home = transaction.home
    found = [Finding(text, lambda: _rewrite_state(transaction)) for text in loaded.problems]
    try:
        with open(home.backup, "rb") as file:
            store.parse_state(file.read())
    except (OSError, ValueError) as error:
        text = f"the backup of the state is unreadable ({error})"
        found.append(Finding(text, lambda: _rewrite_state(transaction)))
    for name in ("spool", "logs", "worktrees"):
        if not os.path.isdir(home.file(name)):
            path = home.file(name)
            found.append(Finding(f"{path} is missing", lambda path=path: _make(path)))  # type: ignore[misc]
    return found


def _make(path: str) -> str:
    os.makedirs(path, exist_ok=True)
    return f"made {path}"


def _rewrite_state(transaction: Transaction) -> str:
    home = transaction.home
    for path in (home.state, home.backup):
        try:
            with open(path, "rb") as file:
                store.parse_state(file.read())
        except FileNotFoundError:
            continue
        except ValueError:
            store.set_aside(home, path)
    transaction.book.rewrite()
    return "wrote both copies of the state"


def _source(transaction: Transaction) -> list[Finding]:
    from longboat.workers.gitops import open_source

    try:
        open_source(transaction.config.source, transaction.config.default_branch)
    except LongboatError as error:
        return [Finding(str(error))]
    return []


def _forget_daemon(transaction: Transaction) -> str:
    state = transaction.book.state
    transaction.book.state = state._replace(daemon=None, daemon_running=False)
    transaction.save()
    return "noted that the daemon is not running"


def _recover(transaction: Transaction, name: str) -> str:
    intent = transaction.book.state.intents[name]
    recovery.recover_one(transaction, intent)
    return f"finished the interrupted {intent.kind} of worker '{name}'"


def _worker(
    transaction: Transaction, worker: Worker, listing: Listing, daemon_alive: bool
) -> list[Finding]:
    """What is wrong with one worker."""
    git, name = transaction.git, worker.name
    if not worktrees.is_sound(git, worker.worktree, worker.branch):
        text = f"the worktree of worker '{name}' is missing or broken"
        return [Finding(text, lambda: _remake_worktree(transaction, name))]
    found = []
    if not daemon_alive and agents.is_dead(worker):
        text = f"the agent of worker '{name}' is dead"
        found.append(Finding(text, lambda: _mark_offline(transaction, name)))
    has_session = bool(listing.of_session(worker.session))
    if worker.agent is None and not worker.spawning and has_session:
        text = f"session {worker.session} runs although worker '{name}' has no agent"
        found.append(Finding(text, lambda: _end_stray(transaction, worker)))
    admin = git.admin_directory(worker.worktree) or ""
    locks = [lock for lock in os.listdir(admin) if lock.endswith(".lock")]
    if locks and worker.inflight is None:
        text = f"stale {', '.join(locks)} in the worktree of worker '{name}'"
        found.append(Finding(text, lambda: _unlock(transaction, worker)))
    if worker.status in _AT_REST:
        found += _at_rest(transaction, worker)
    return found


def _at_rest(transaction: Transaction, worker: Worker) -> list[Finding]:
    """A worker that waits must have a quiet tree."""
    git, name = transaction.git, worker.name
    if git.in_rebase(worker.worktree):
        text = f"worker '{name}' is {worker.status} in the middle of a rebase"
        return [Finding(text, lambda: _end_rebase(transaction, name))]
    if git.checked_out(worker.worktree) != worker.branch:
        text = f"the worktree of worker '{name}' is not on {worker.branch}"
        return [Finding(text)]
    if worker.status == "idle" and git.is_dirty(worker.worktree):
        text = f"worker '{name}' is idle with uncommitted changes"
        return [Finding(text, lambda: _archive_leftovers(transaction, name))]
    if worker.status == "needs_review" and git.head(worker.worktree) != worker.commit_sha:
        text = f"worker '{name}' has commits that its state does not know"
        return [Finding(text, lambda: _note_head(transaction, name))]
    return []


def _remake_worktree(transaction: Transaction, name: str) -> str:
    worker = agents.end(transaction, transaction.worker(name))
    transaction.put(worker)
    transaction.save()
    lifecycle.repair_worktree(transaction, worker)
    return f"made the worktree of worker '{name}' again from its branch"


def _mark_offline(transaction: Transaction, name: str) -> str:
    worker = agents.end(transaction, transaction.worker(name))
    transaction.put(lifecycle.offline(worker))
    transaction.save()
    return f"marked worker '{name}' offline (its work goes on at the next up)"


def _end_stray(transaction: Transaction, worker: Worker) -> str:
    if not agents.end_session(transaction, worker, tmuxctl.list_panes()):
        raise LongboatError(f"session {worker.session} is not ours")
    return f"ended session {worker.session}"


def _unlock(transaction: Transaction, worker: Worker) -> str:
    cleared = transaction.git.clear_worktree_locks(worker.worktree, worker.branch)
    names = ", ".join(os.path.basename(lock) for lock in cleared)
    return f"removed {names or 'no lock (git is at work)'} of worker '{worker.name}'"


def _end_rebase(transaction: Transaction, name: str) -> str:
    worker = transaction.worker(name)
    head = transaction.git.head(worker.worktree)
    worktrees.keep(transaction.git, name, f"rebase-{head[:12]}", head)
    tip = worktrees.restore_branch(transaction.git, worker.worktree, worker.branch)
    if worker.status == "needs_review":
        transaction.put(worker._replace(commit_sha=tip))
        transaction.save()
    return f"took back the unfinished rebase of worker '{name}'"


def _archive_leftovers(transaction: Transaction, name: str) -> str:
    lifecycle.prepare_for_task(transaction, transaction.worker(name))
    return f"archived the uncommitted changes of worker '{name}' and cleaned its tree"


def _note_head(transaction: Transaction, name: str) -> str:
    worker = transaction.worker(name)
    head = transaction.git.head(worker.worktree)
    transaction.put(worker._replace(commit_sha=head))
    transaction.save()
    return f"noted {head[:10]} as the commit of worker '{name}'"


def _orphans(transaction: Transaction, listing: Listing) -> list[Finding]:
    """Sessions, processes and worktrees of this home that belong to no worker."""
    state, home = transaction.book.state, transaction.home
    known = set(state.workers) | set(state.intents)
    found = []
    sessions = {pane.session for pane in listing.panes if pane.session.startswith("longboat-")}
    for session in sorted(sessions):
        if session.removeprefix("longboat-") in known:
            continue
        if tmuxctl.mark(session, "LONGBOAT_HOME") == home.path:
            text = f"session {session} belongs to no worker"
            found.append(Finding(text, lambda s=session: _end_orphan(s)))  # type: ignore[misc]
    if not found:
        found += _orphan_processes(transaction)
    try:
        directories = sorted(os.listdir(home.file("worktrees")))
    except FileNotFoundError:
        directories = []
    for name in directories:
        if name not in known:
            text = f"worktree {home.worktree(name)} belongs to no worker"
            found.append(Finding(text, lambda name=name: _archive_orphan(transaction, name)))  # type: ignore[misc]
    return found


def _orphan_processes(transaction: Transaction) -> list[Finding]:
    """Agents of this home that no worker knows (recognised by the mark in their environment)."""
    spawns = set()
    for worker in transaction.book.state.workers.values():
        spawns |= {worker.spawning, worker.agent.spawn if worker.agent else ""}
    strangers = processes.marked_with_home(transaction.home.path, spawns)
    if not strangers:
        return []
    numbers = ", ".join(str(one.pid) for one in strangers)
    text = f"process {numbers} belongs to an agent that no worker has"
    return [Finding(text, lambda: _end_processes(strangers))]


def _end_processes(strangers: list[processes.Identity]) -> str:
    import signal

    for one in strangers:
        processes.send(one, signal.SIGKILL)
    processes.wait_dead(strangers, 2.0)
    return f"ended process {', '.join(str(one.pid) for one in strangers)}"


def _end_orphan(session: str) -> str:
    listing = tmuxctl.list_panes()
    for pane in listing.of_session(session):
        processes.terminate(pane.pid, "", grace_s=0.3)
    tmuxctl.kill_session(session)
    return f"ended session {session}"


def _archive_orphan(transaction: Transaction, name: str) -> str:
    lifecycle.make_room(transaction, name, f"longboat/{name}", transaction.home.worktree(name))
    return f"archived and removed the worktree of '{name}'"
