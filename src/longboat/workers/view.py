"""What people see: the status table and the help."""

from __future__ import annotations

from typing import Any

from longboat.planting import planted
from longboat.workers import store
from longboat.workers.commands import Answer
from longboat.workers.store import Home

HELP = """\
longboat - a small crew of coding agents, each in its own tmux session and git worktree

  longboat [--home DIR] COMMAND [--json]       home: --home, $LONGBOAT_HOME, or ~/longboat

Set up
  init --source REPO [--set KEY=VALUE]... [--force]
                                    make a home for a git repository
  up [--foreground]                 start the daemon (agents come up with it)
  down                              stop daemon and agents; unfinished tasks go on at the next up
  add NAME [--model M] [--command CMD]
                                    a new worker: branch longboat/NAME, session longboat-NAME
  nuke NAME [--yes]                 remove a worker; unmerged work stays in refs/longboat/archive/

Work
  start --worker NAME --prompt TEXT | --prompt-file FILE
                                    give an idle worker a task
  message NAME TEXT                 tell it more; delivered when its turn is over
  attach NAME [--print]             sit beside the agent (tmux)
  peek NAME [-l LINES]              see its terminal from here
  status                            who is doing what

Review
  review [NAME] [--name-only]       show the work (the oldest that waits), rebased if needed
  accept [NAME]                     squash it onto the default branch, all or nothing
  reject TEXT                       send the last reviewed worker back with this text
  rebase NAME                       bring its branch up to date
  reset NAME [--yes]                discard its task and start afresh; work stays in the archive

Health
  doctor [--repair] [--yes]         check everything; --repair never destroys work

Task boards (each has a --help of its own)
  board COMMAND ...                 a board of tasks in files, for any number of workers
  broker --stdio | --http PORT      the same board as an MCP server
  crew serve | COMMAND ...          an orchestrator that has agents of its own

A first run
  longboat init --source ~/project && longboat up
  longboat add alpha --model sonnet
  longboat start --worker alpha --prompt "Add a test for the parser"
  longboat status                   until alpha needs_review
  longboat review alpha && longboat accept alpha

Exit codes: 0 done, 1 not possible now (one line on stderr says why), 2 wrong usage.
"""


def status(home: Home) -> Answer:
    """Who is doing what; reads without any lock, so it never waits."""
    loaded = store.read_state(home)
    state = loaded.state
    alive = store.daemon_is_alive(home)
    if planted("status-says-healthy-when-daemon-dead"):
        alive = state.daemon_running
    daemon = {"pid": state.daemon.pid, "start": state.daemon.start} if state.daemon else None
    workers: list[dict[str, Any]] = []
    for worker in state.workers.values():
        workers.append(
            {
                "name": worker.name,
                "status": worker.status,
                "branch": worker.branch,
                "worktree_path": worker.worktree,
                "session": worker.session,
                "model": worker.model,
                "commit_sha": worker.commit_sha,
                "task_id": None if planted("status-hides-task") else worker.task_id,
                "current_prompt": worker.current_prompt,
                "error_reason": worker.error_reason,
                "queued": len(worker.inbox),
                "delivery": worker.inflight.stage if worker.inflight else None,
            }
        )
    data = {
        "daemon_running": alive,
        "daemon": daemon if alive else None,
        "last_reviewed": state.last_reviewed,
        "workers": workers,
        "problems": list(loaded.problems),
    }
    return Answer(data, _table(data))


def _table(data: dict[str, Any]) -> str:
    lines = [f"daemon: {'running' if data['daemon_running'] else 'not running'}"]
    if data["daemon"]:
        lines[0] += f" (pid {data['daemon']['pid']})"
    lines += [f"warning: {problem}" for problem in data["problems"]]
    if not data["workers"]:
        lines.append("no workers (longboat add NAME)")
    width = max((len(worker["name"]) for worker in data["workers"]), default=0)
    for worker in data["workers"]:
        words = worker["error_reason"] or " ".join(worker["current_prompt"].split())[:60]
        sha = (worker["commit_sha"] or "")[:10]
        queued = f"+{worker['queued']}" if worker["queued"] else ""
        line = f"{worker['name']:{width}}  {worker['status']:12} {sha:10} {queued:3} {words}"
        lines.append(line.rstrip())
    return "\n".join(lines)
