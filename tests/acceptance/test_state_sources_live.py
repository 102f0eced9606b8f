"""One real orchestrator and one real board, looked at by every source that a target file may name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target
from sampling import sampled_rows

pytestmark = pytest.mark.deep

LONGBOAT = Path(sys.executable).with_name("longboat")
COMMAND = """\
extends = "longboat"
name = "by-command"

[state]
command = ["{program}", "status", "--json"]
list = "workers"
daemon_flag = ""
directory = "{home}/longboat"

[state.known]
worktree = "{home}/longboat/worktrees/{worker}"
branch = "longboat/{worker}"
session = "longboat-{worker}"

[profile.not_applicable]
"workers.working_has_prompt" = "its status shows no prompt"
"workers.review_has_commit" = "its status shows no commit"
"""
TMUX_AND_GIT = """\
extends = "longboat"
name = "by-git"
status_daemon = ""

[state]
worktrees = '/worktrees/(?P<name>[^/]+)$'
directory = "{home}/longboat"
daemon_flag = ""

[state.known]
session = "longboat-{worker}"

[[state.rules]]
status = "offline"
where = { "@session" = "gone" }

[[state.rules]]
status = "offline"
where = { "@agent" = "none" }

[[state.rules]]
status = "working"
where = { "@agent" = "busy" }

[[state.rules]]
status = "needs_review"
where = { "@head" = "other" }

[[state.rules]]
status = "idle"

[profile]
start_is_immediate = false

[profile.not_applicable]
"workers.working_has_prompt" = "nobody shows prompts"
"workers.review_has_commit" = "nobody shows commits"
"""
SQLITE = """\
extends = "longboat-broker"
name = "by-sqlite"

[state]
probe = "file"
sqlite = "{home}/board/broker.db"
query = \"\"\"select id, status, priority, document ->> 'owner' as owner, document ->> 'epoch' as epoch,
  document ->> 'attempts' as attempts, document ->> 'max_attempts' as max_attempts,
  document -> 'depends' as depends, document ->> 'completions' as completions from tasks\"\"\"
"""
BOARD_COMMAND = """\
extends = "longboat-board"
name = "board-by-command"

[state]
command = ["{program}", "board", "--json", "list"]
list = "tasks"
"""


@pytest.mark.parametrize(
    ("text", "scenario"),
    sampled_rows(
        [
            (COMMAND, "basic_lifecycle"),
            (TMUX_AND_GIT, "basic_lifecycle"),
            (SQLITE, "ready_tasks"),
            (BOARD_COMMAND, "ready_tasks"),
        ],
        every=2,
    ),
    ids=["command", "tmux and git", "sqlite", "board command"],
)
def test_every_source_shows_the_same_target(text: str, scenario: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    bench = Bench(find_target(str(path), program=str(LONGBOAT)), tmp_path)
    sequence = bench.target.contract().scenarios[scenario]
    outcome = bench.try_once(sequence, 1, RunDirectory.create(tmp_path, latest=False))
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]
