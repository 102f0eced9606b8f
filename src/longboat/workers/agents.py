"""Agents: start them, recognise them, end them, and know when they are dead.

An agent is the process of its tmux pane itself (number plus start time), and carries a mark in its
environment that every hook brings back, so a late word of a dead agent is never taken for the new
one's.
"""

from __future__ import annotations

import json
import os
import sys
import time

from longboat.errors import LongboatError
from longboat.planting import planted
from longboat.workers import processes, tmuxctl, worktrees
from longboat.workers.state import Agent, Worker
from longboat.workers.store import replace_file
from longboat.workers.tmuxctl import Listing
from longboat.workers.transaction import Transaction

HOOK_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
SETTINGS = ".claude/settings.json"
LOCAL_SETTINGS = ".claude/settings.local.json"
_TERMINATE_GRACE_S = 0.3


def is_dead(worker: Worker) -> bool:
    """True when the worker's agent is proven dead: its process is gone, reused or a zombie."""
    return worker.agent is not None and not processes.is_alive(worker.agent.identity)


def write_settings(transaction: Transaction, worker: Worker) -> None:
    """Put our hooks where the agent reads them, in a file that git does not see."""
    name = SETTINGS
    if transaction.git.read("ls-files", "--error-unmatch", SETTINGS, at=worker.worktree).ok:
        name = LOCAL_SETTINGS  # the project's own settings stay as they are
    if not planted("settings-shown-to-git"):
        worktrees.ignore_settings(transaction.git, (SETTINGS, LOCAL_SETTINGS))
    path = os.path.join(worker.worktree, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    document = {"hooks": {event: _hook(transaction, worker, event) for event in HOOK_EVENTS}}
    data = (json.dumps(document, indent=1) + "\n").encode()
    try:
        with open(path, "rb") as file:
            if file.read() == data:
                return
    except FileNotFoundError:
        pass
    replace_file(path, data)


def _hook(transaction: Transaction, worker: Worker, event: str) -> list[dict[str, object]]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    package_parent = os.path.dirname(package)
    program = (
        f"import sys; sys.path.insert(0, {package_parent!r}); "
        "from longboat.workers.hook import main; sys.exit(main())"
    )
    words = [sys.executable, "-IS", "-c", program, event]
    words += ["--worker", worker.name, "--home", transaction.home.path]
    command = " ".join(map(tmuxctl.shell_quote, words))
    return [{"hooks": [{"type": "command", "command": command, "timeout": 10}]}]


def command_line(transaction: Transaction, worker: Worker) -> str:
    """What the pane runs; ``exec`` makes the agent the pane's own process."""
    if worker.command:
        compound = any(sign in worker.command for sign in ";&|<>()")
        return worker.command if compound else f"exec {worker.command}"
    asked = worker.model and not planted("model-forgotten")
    model = f" --model {tmuxctl.shell_quote(worker.model)}" if asked else ""
    return f"exec {transaction.config.agent_command} --dangerously-skip-permissions{model}"


def _environment(transaction: Transaction, worker: Worker, spawn: str) -> dict[str, str]:
    variables = {
        "LONGBOAT_HOME": transaction.home.path,
        "LONGBOAT_SPAWN": spawn,
        "LONGBOAT_WORKER": worker.name,
        # An agent's commits must survive a power cut as well as ours do.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsync",
        "GIT_CONFIG_VALUE_0": "all",
    }
    for name in ("PATH", "LONGBOAT_PLANT"):
        if os.environ.get(name):
            variables[name] = os.environ[name]
    return variables


def start(transaction: Transaction, worker: Worker, *, again: bool = False) -> Worker:
    """Start an agent, or adopt one whose start was interrupted; unknown answers change nothing.

    ``again`` says that an earlier agent of this worker died.
    """
    listing = tmuxctl.list_panes()
    if not listing.known:
        transaction.log(f"{worker.name}: tmux does not answer ({listing.complaint}); not started")
        return worker
    panes = listing.of_session(worker.session)
    if panes:
        mark = tmuxctl.mark(worker.session, "LONGBOAT_SPAWN")
        if mark is not None and mark == worker.spawning:
            return adopt(transaction, worker, panes[0], listing)
        if not end_session(transaction, worker, listing):
            return worker
        transaction.log(f"{worker.name}: a session of an earlier agent was in the way; ended it")
    spawn = os.urandom(6).hex()
    worker = transaction.put(worker._replace(spawning=spawn))
    transaction.save()
    write_settings(transaction, worker)
    shell_only = again and planted("session-without-agent")
    started = tmuxctl.start_session(
        worker.session,
        worker.worktree,
        _environment(transaction, worker, spawn),
        "exec sh" if shell_only else command_line(transaction, worker),
    )
    if isinstance(started, str):
        transaction.log(f"{worker.name}: tmux did not start the session: {started}")
        return worker
    identity = processes.identify(started.pid) or processes.Identity(started.pid, 0)
    worker = _enrol(transaction, worker, identity, started.pane, started.server_pid)
    if shell_only and worker.agent is not None:
        worker = worker._replace(agent=worker.agent._replace(ready=True))
    return worker


def adopt(transaction: Transaction, worker: Worker, pane: tmuxctl.Pane, listing: Listing) -> Worker:
    """Take over an agent that was started just before its starter died."""
    identity = processes.identify(pane.pid)
    if identity is None:
        return worker
    transaction.log(f"{worker.name}: adopted agent {pane.pid}")
    return _enrol(transaction, worker, identity, pane.pane, listing.server_pid)


def _enrol(
    transaction: Transaction,
    worker: Worker,
    identity: processes.Identity,
    pane: str,
    server_pid: int,
) -> Worker:
    server = tmuxctl.identify_server(server_pid)
    agent = Agent(
        pid=identity.pid,
        start=identity.start,
        spawn=worker.spawning,
        pane=pane,
        server_pid=server.pid,
        server_start=server.start,
        since=time.monotonic(),
    )
    worker = transaction.put(worker._replace(agent=agent, spawning=""))
    transaction.save()
    transaction.log(f"{worker.name}: agent {agent.pid} started in session {worker.session}")
    return worker


def end(transaction: Transaction, worker: Worker) -> Worker:
    """End the worker's agent and all of its children, and prove it; the session goes with it."""
    agent = worker.agent
    if agent is not None:
        survivors = processes.terminate(agent.pid, agent.spawn, grace_s=_TERMINATE_GRACE_S)
        if survivors:
            numbers = ", ".join(str(one.pid) for one in survivors)
            raise LongboatError(f"agent of worker '{worker.name}' does not die: process {numbers}")
    elif worker.spawning:
        processes.terminate(-1, worker.spawning, grace_s=_TERMINATE_GRACE_S)
    listing = tmuxctl.list_panes()
    if listing.known:
        end_session(transaction, worker, listing)
    transaction.git.clear_worktree_locks(worker.worktree, worker.branch)
    return worker._replace(agent=None, spawning="")


def end_session(transaction: Transaction, worker: Worker, listing: Listing) -> bool:
    """Remove the worker's session and whatever runs in it; False when it may not be touched."""
    panes = listing.of_session(worker.session)
    if not panes:
        return True
    owner = tmuxctl.mark(worker.session, "LONGBOAT_HOME")
    if owner != transaction.home.path:
        # None: it vanished or tmux went silent. Anything else: another home has such a worker.
        if owner is not None:
            transaction.log(f"{worker.name}: session {worker.session} belongs to {owner}")
        return False
    for pane in panes:
        processes.terminate(pane.pid, "", grace_s=_TERMINATE_GRACE_S)
    tmuxctl.kill_session(worker.session)
    return True


def command_is_missing(command: str) -> bool:
    """True when the program of a command line is certainly not on the PATH."""
    words = command.removeprefix("exec ").split()
    if not words or any(c in words[0] for c in "$'\"`(;&|"):
        return False
    if "/" in words[0]:
        return not os.access(words[0], os.X_OK)
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return not any(os.access(os.path.join(place, words[0]), os.X_OK) for place in places)
