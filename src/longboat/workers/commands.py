"""What each command does; every function returns what `--json` prints and a text for people.

Commands do their work themselves, under the lock; the daemon is only needed to talk to agents.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from longboat.errors import (
    LongboatError,
    Rejection,
    UsageError,
    no_such_worker,
    not_in_review,
    wrong_status,
)
from longboat.planting import planted
from longboat.workers import control, store
from longboat.workers.config import Config
from longboat.workers.opening import opened
from longboat.workers.state import State, Worker
from longboat.workers.store import Home
from longboat.workers.transaction import Transaction

MESSAGEABLE = ("working", "needs_review", "rejected", "rebasing", "error", "no_changes")


class Answer(NamedTuple):
    """The outcome of a command."""

    data: dict[str, Any]
    text: str
    exit_code: int = 0


def init(home: Home, source: str, settings: list[str], *, force: bool) -> Answer:
    """Make a home; an existing one is only changed with --force, and its workers stay."""
    from longboat.workers import config as config_module
    from longboat.workers.gitops import Git, open_source

    values = dict(config_module.parse_setting(one) for one in settings)
    source = os.path.realpath(source)
    branch = str(values.get("default_branch", ""))
    if not branch:
        head = Git(source).read("symbolic-ref", "--short", "-q", "HEAD")
        branch = head.out.strip() if head.ok and head.out.strip() else "master"
    open_source(source, branch)
    config = config_module.build(
        {**values, "source": source, "default_branch": branch}, where="init"
    )
    if os.path.exists(home.config):
        if not force:
            raise Rejection(f"{home.path} is already a longboat home (use --force to change it)")
        _refuse_other_source(home, source)
    for name in ("", "spool", "logs", "worktrees", "rescued"):
        os.makedirs(home.file(name), exist_ok=True)
    lock = store.HomeLock(home, config.lock_timeout_secs, "init")
    try:
        if not os.path.exists(home.state) and not os.path.exists(home.backup):
            store.write_state(home, State(generation=1))
        # The settings come last: a home without them is not a home yet.
        store.replace_file(home.config, config_module.render(config).encode())
    finally:
        lock.release()
    data = {"home": home.path, "source": source, "default_branch": branch}
    return Answer(data, f"Initialised {home.path} for {source} (branch {branch})")


def _refuse_other_source(home: Home, source: str) -> None:
    from longboat.workers import config as config_module

    if config_module.load(home.config).source != source and store.read_state(home).state.workers:
        raise LongboatError("This home has workers of another source; nuke them first")


def up(home: Home, config: Config, *, foreground: bool) -> Answer:
    """Start the daemon; returns when it answers and has looked at every worker."""
    from longboat.workers import daemon
    from longboat.workers.agents import command_is_missing
    from longboat.workers.gitops import open_source

    if os.environ.get("LONGBOAT_SPAWN"):
        raise UsageError("up must not run inside an agent's session: it would end with that agent")
    if command_is_missing("tmux"):
        raise LongboatError("tmux is not installed (or not on the PATH); longboat needs it")
    open_source(config.source, config.default_branch)
    store.read_state(home)  # a daemon without a readable state could only complain
    pid = daemon.start(home, config, foreground=foreground)
    return Answer({"daemon": {"pid": pid}}, f"Daemon started (pid {pid})")


def down(home: Home, config: Config) -> Answer:
    """Stop the daemon and all agents; unfinished tasks go on at the next `up`."""
    from longboat.workers import daemon

    stopped = daemon.stop(home, config)
    names = ", ".join(stopped) or "no agents"
    return Answer({"stopped": stopped}, f"Daemon stopped, ended: {names}")


def add(home: Home, config: Config, name: str, model: str, command: str) -> Answer:
    """Add a worker."""
    from longboat.workers import agents, lifecycle

    check_name(name)
    with opened(home, config, f"add {name}") as transaction:
        worker = lifecycle.add(transaction, name, model, command)
        program = agents.command_line(transaction, worker)
    control.poke(home)
    data = {"worker": name, "branch": worker.branch, "worktree_path": worker.worktree}
    text = f"Added worker '{name}' on branch {worker.branch}"
    if not store.daemon_is_alive(home):
        text += "; its agent starts with `longboat up`"
    if agents.command_is_missing(program):
        text += f"; WARNING: no such command: {program.removeprefix('exec ').split()[0]}"
    return Answer({**data, "model": model, "status": worker.status}, text)


def check_name(name: str) -> None:
    """Names become branches, sessions and directories: only what is safe in all three."""
    if not name or len(name) > 40 or not name[0].isalnum() or not name.isascii():
        raise UsageError(f"'{name}' is not a worker name (1-40 letters, digits, '-' and '_')")
    if not all(c.isalnum() or c in "-_" for c in name):
        raise UsageError(f"'{name}' is not a worker name (1-40 letters, digits, '-' and '_')")


def confirm(question: str, *, yes: bool) -> None:
    """Ask a person before something is taken away; a script must say --yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Say --yes when nobody can be asked")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise LongboatError("Cancelled; nothing was changed")


def nuke(home: Home, config: Config, name: str, *, yes: bool) -> Answer:
    """Remove a worker."""
    from longboat.workers import lifecycle

    _must_exist(home, name)
    confirm(f"Remove worker '{name}', its session, worktree and branch?", yes=yes)
    with opened(home, config, f"nuke {name}") as transaction:
        kept = lifecycle.nuke(transaction, transaction.worker(name))
    control.poke(home)
    return Answer({"worker": name, "kept": kept}, _with_kept(f"Nuked worker '{name}'", kept))


def reset(home: Home, config: Config, name: str, *, yes: bool) -> Answer:
    """Give a worker a fresh start."""
    from longboat.workers import lifecycle

    _must_exist(home, name)
    confirm(f"Discard the task of worker '{name}' and start afresh?", yes=yes)
    with opened(home, config, f"reset {name}") as transaction:
        before = transaction.worker(name).status
        kept = lifecycle.reset(transaction, transaction.worker(name))
    control.poke(home)
    data = {"worker": name, "previous_status": before, "new_status": "offline", "kept": kept}
    return Answer(data, _with_kept(f"Reset worker '{name}'", kept))


def _with_kept(text: str, kept: list[str]) -> str:
    return text + (f"; unmerged work kept as {', '.join(kept)}" if kept else "")


def _must_exist(home: Home, name: str) -> Worker:
    worker = store.read_state(home).state.workers.get(name)
    if worker is None:
        raise no_such_worker(name)
    return worker


def start(home: Home, config: Config, name: str, prompt: str) -> Answer:
    """Give an idle worker a task. Once this returns the task is never lost."""
    from longboat.workers import delivery, lifecycle, tmuxctl
    from longboat.workers.tick import give_task

    if not prompt.strip():
        raise UsageError("The prompt is empty")
    with opened(home, config, f"start {name}") as transaction:
        if planted("error-is-only-a-key") and name not in transaction.book.state.workers:
            raise LongboatError(f"{name!r}")
        worker = transaction.worker(name)
        if worker.status != "idle":
            raise Rejection(f"Worker '{name}' is not idle (status: {worker.status})")
        _need_daemon(home)
        lifecycle.prepare_for_task(transaction, worker)
        worker = give_task(transaction, worker, prompt)
        if planted("reset-keeps-messages") and os.path.exists(home.file(f"kept-{name}")):
            with open(home.file(f"kept-{name}"), encoding="utf-8") as file:
                prompt = f"{prompt}\n{file.read()}"
        task = delivery.new_prompt("task", prompt, worker.task_id or "")
        if planted("prompt-only-queued"):
            worker = worker._replace(current_prompt="")
        worker = transaction.put(
            worker._replace(status="working", inbox=(task,), error_reason=None)
        )
        transaction.log(f"{name}: task {worker.task_id} accepted")
        if planted("session-renamed-for-task"):
            tmuxctl.rename_session(worker.session, f"{worker.session}-{worker.task_id}")
    control.poke(home)
    data = {"worker": name, "status": worker.status, "task_id": worker.task_id}
    data |= {"branch": worker.branch, "worktree_path": worker.worktree}
    return Answer(data, f"Started worker {name} on task {worker.task_id}")


def _need_daemon(home: Home) -> None:
    if not store.daemon_is_alive(home):
        raise Rejection("Daemon is not running")


def message(home: Home, config: Config, name: str, text: str) -> Answer:
    """Queue a message; it is typed when the agent's current turn is over."""
    from longboat.workers import delivery
    from longboat.workers.tick import give_task

    if not text.strip():
        raise UsageError("The message is empty")
    with opened(home, config, f"message {name}") as transaction:
        if planted("crash-traceback"):
            worker = transaction.book.state.workers[name]
        worker = transaction.worker(name)
        if worker.status not in MESSAGEABLE:
            raise wrong_status("message", worker.status)
        _need_daemon(home)
        if worker.task_id is None:
            worker = give_task(transaction, worker, text)
        prompt = delivery.new_prompt("message", text, worker.task_id or "")
        again = tuple(one._replace(attempts=0) for one in worker.inbox)
        if not (planted("message-dropped-while-working") and worker.inflight is not None):
            newest = planted("messages-newest-first")
            inbox = (prompt, *again) if newest else (*again, prompt)
            worker = worker._replace(inbox=inbox)
        if worker.status in ("needs_review", "error", "no_changes"):
            told = worker.error_reason if planted("old-error-told") else None
            worker = worker._replace(status="working", error_reason=told, spawn_failures=0)
            state = transaction.book.state.with_task_state(worker.task_id, "active")
            transaction.book.state = state
        transaction.put(worker)
        transaction.log(f"{name}: message {prompt.id} queued")
    control.poke(home)
    return Answer({"worker": name, "message_id": prompt.id}, f"Message for worker '{name}' queued")


def attach(home: Home, name: str, *, print_only: bool) -> Answer:
    """Show the agent's terminal."""
    from longboat.workers import tmuxctl

    worker = _must_exist(home, name)
    listing = tmuxctl.list_panes()
    if listing.known and not listing.of_session(worker.session):
        raise Rejection(f"Session '{worker.session}' does not exist (worker: {worker.status})")
    command = tmuxctl.attach_command(worker.session)
    if print_only:
        return Answer({"worker": name, "command": command}, " ".join(command))
    if not sys.stdin.isatty():
        raise UsageError("attach needs a terminal (use --print to see the tmux command)")
    return os.execvp(command[0], command)


def peek(home: Home, name: str, lines: int) -> Answer:
    """The last lines of the agent's terminal."""
    from longboat.workers import tmuxctl

    worker = _must_exist(home, name)
    listing = tmuxctl.list_panes()
    if listing.known and not listing.of_session(worker.session):
        raise wrong_status("peek", worker.status)
    text = tmuxctl.capture(worker.session, lines)
    return Answer({"worker": name, "lines": text.splitlines()}, text)


def review(home: Home, config: Config, name: str, *, name_only: bool) -> Answer:
    """Show what a worker did, brought up to date with the trunk first."""
    from longboat.workers import turns

    with opened(home, config, f"review {name}") as transaction:
        worker = transaction.worker(name) if name else _oldest_in_review(transaction)
        name = worker.name
        if worker.status != "needs_review":
            raise not_in_review(name, worker.status)
        trunk = transaction.trunk_commit()
        worker = turns.rebase(transaction, worker, trunk)
        if worker.status == "needs_review":
            transaction.book.state = transaction.book.state._replace(last_reviewed=name)
        if planted("review-session-left", "review-takes-the-terminal"):
            _open_planted_terminal(transaction, worker)
    if worker.status == "rebasing":
        control.poke(home)
        return _conflict(worker, config)
    head = worker.commit_sha or ""
    files = transaction.git.ask("diff", "--name-only", f"{trunk}...{head}").splitlines()
    if planted("review-hides-a-file"):
        del files[-1:]
    data = {"worker": name, "status": worker.status, "commit_sha": head, "changed_files": files}
    if name_only:
        return Answer(data, "\n".join(files))
    shown = transaction.git.ask("log", "--stat", "-p", "--reverse", f"{trunk}..{head}")
    return Answer(data, f"Worker '{name}': {worker.current_prompt.strip()}\n\n{shown}")


def _open_planted_terminal(transaction: Transaction, worker: Worker) -> None:
    """Plants only: a terminal for whoever reviews, new or the agent's own."""
    from longboat.workers import processes, tmuxctl

    if planted("review-session-left"):
        tmuxctl.start_session(f"{worker.session}-review", worker.worktree, {}, "exec sh")
    if planted("review-takes-the-terminal") and worker.agent is not None:
        shell = tmuxctl.respawn(worker.agent.pane, "exec sh")
        processes.wait_dead([worker.agent.identity], 5.0)
        agent = worker.agent._replace(pid=shell.pid, start=shell.start)
        transaction.put(worker._replace(agent=agent))


def _oldest_in_review(transaction: Transaction) -> Worker:
    waiting = [w for w in transaction.book.state.workers.values() if w.status == "needs_review"]
    if not waiting:
        raise Rejection("No worker is in needs_review state")
    if planted("review-takes-anybody"):
        return waiting[0]
    return min(waiting, key=lambda worker: worker.since_generation)


def _conflict(worker: Worker, config: Config) -> Answer:
    data = {"worker": worker.name, "status": worker.status, "needs_conflict_resolution": True}
    return Answer(
        data,
        f"Worker '{worker.name}' conflicts with {config.default_branch}: "
        "its agent was asked to resolve it, review again when it is done",
    )


def accept(home: Home, config: Config, name: str) -> Answer:
    """Merge a worker's commits into the default branch, all or nothing."""
    from longboat.workers import landing

    with opened(home, config, f"accept {name}") as transaction:
        if planted("accept-takes-the-next") and not name:
            name = _oldest_in_review(transaction).name
        name = name or transaction.book.state.last_reviewed or ""
        if not name:
            raise Rejection("No worker has been reviewed recently")
        worker = transaction.worker(name)
        if planted("refusal-blames-the-name") and worker.status != "needs_review":
            raise no_such_worker(name)
        task_id = worker.task_id
        worker = landing.accept(transaction, worker)
    control.poke(home)
    if worker.status == "rebasing":
        return _conflict(worker, config)
    task = transaction.book.state.tasks.get(task_id or "")
    commit = task.commit if task else None
    data = {"worker": name, "status": worker.status, "task_id": task_id, "commit_sha": commit}
    shown = f"{commit[:10]} on {config.default_branch}" if commit else config.default_branch
    return Answer(data, f"Accepted worker '{name}': {shown}")


def reject(home: Home, config: Config, text: str) -> Answer:
    """Send the last reviewed worker back to work."""
    from longboat.workers import delivery

    if not text.strip():
        raise UsageError("The rejection is empty")
    with opened(home, config, "reject") as transaction:
        name = transaction.book.state.last_reviewed
        if name is None or name not in transaction.book.state.workers:
            raise Rejection("No worker has been reviewed recently")
        worker = transaction.worker(name)
        if worker.status != "needs_review":
            raise not_in_review(name, worker.status)
        _need_daemon(home)
        shown = delivery.REJECT_TEXT.format(text=text)
        prompt = delivery.new_prompt("reject", shown, worker.task_id or "")
        inbox = () if planted("reject-message-lost") else (*worker.inbox, prompt)
        if planted("rejection-starts-over"):
            from longboat.workers import worktrees

            trunk = transaction.trunk_commit()
            worktrees.move_to(transaction.git, worker.worktree, worker.branch, trunk)
        if not planted("rejection-never-sent"):
            transaction.put(worker._replace(status="rejected", inbox=inbox))
        transaction.log(f"{name}: rejected, {prompt.id} queued")
    control.poke(home)
    data = {"worker": name, "previous_status": "needs_review", "new_status": "rejected"}
    return Answer(data, f"Rejected worker '{name}'; it goes back to work")


def rebase(home: Home, config: Config, name: str) -> Answer:
    """Bring a worker's commits onto the newest default branch."""
    from longboat.workers import turns

    with opened(home, config, f"rebase {name}") as transaction:
        worker = transaction.worker(name)
        if worker.status not in ("working", "needs_review"):
            raise wrong_status("rebase", worker.status)
        if worker.status == "working":
            transaction.put(worker._replace(rebase_wanted=True))
            data = {"worker": name, "status": "working", "deferred": True}
            return Answer(data, f"Worker '{name}' is working: rebase after its current turn")
        worker = turns.rebase(transaction, worker, transaction.trunk_commit())
    control.poke(home)
    if worker.status == "rebasing":
        return _conflict(worker, config)
    data = {"worker": name, "status": worker.status, "commit_sha": worker.commit_sha}
    return Answer(data, f"Worker '{name}' is up to date with {config.default_branch}")
