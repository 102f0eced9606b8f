"""`mutiny target check` and `target init --from` on real programs, described wrongly and not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.modes.checkup import Checkup, Tried
from mutiny.targets.discover.program import Discovery
from mutiny.targets.discover.proposal import hints_of, proposed
from mutiny.targets.registry import find_target
from mutiny.targets.workers.spec import TargetSpec

LONGBOAT = Path(sys.executable).with_name("longboat")
TINY = Path(__file__).with_name("tiny_sessions.py")
STATE = 'extends = "longboat"\nname = "mine"\n[state]\nfile = "{home}/longboat/status.json"\n'
LIST = 'extends = "longboat"\nname = "mine"\n[state]\nworkers = "crew"\n'
SESSIONS = 'extends = "longboat"\nname = "mine"\nsessions = "^mine-"\n'
FIELD = 'extends = "longboat"\nname = "mine"\n[state.fields]\nworktree = "tree"\n'
COMMAND = 'extends = "longboat"\nname = "mine"\n[commands.add]\nargv = ["{program}", "hire", "{worker}"]\n'


def _written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def checked(tmp_path: Path, text: str, program: Path = LONGBOAT) -> Tried:
    target = find_target(str(_written(tmp_path, text)), program=str(program))
    return Checkup(target, RunDirectory.create(tmp_path, latest=False)).run()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("text", "said", "change"),
    [
        (STATE, "status.json", "file = '{home}/longboat/state.json', list = 'workers'"),
        (LIST, "state.file with the list 'crew'", "workers"),
        (SESSIONS, "sessions = '^mine-'", "change sessions"),
        (FIELD, "state.fields.worktree = 'tree'", "worktree = 'worktree"),
        (COMMAND, '"hire"', "change commands.add"),
    ],
    ids=["state", "list", "sessions", "field", "command"],
)
def test_a_wrong_word_is_told_with_its_change(
    text: str, said: str, change: str, tmp_path: Path
) -> None:
    tried = checked(tmp_path, text)
    assert tried.exit_code == 2
    assert any(said in one.said and change in one.change for one in tried.advice), tried


WAYS = {
    "another agent": 'agents = ["codex"]\n[files]\n"{home}/tiny/agent" = "codex --full-auto"\n',
    "a wrapper": '[files]\n"{home}/tiny/agent" = "{home}/run"\n'
    '"{home}/run" = "#!/bin/sh\\nexec claude --verbose\\n"\n',
}
TINY_FILE = """\
format = 1
name = "tiny"
contract = "workers"
level = "sessions"
program = "tiny"
sessions = "^tiny-"
WAY
[commands]
add = { argv = ["{program}", "new", "{worker}"] }
start = { argv = ["{program}", "tell", "{worker}", "{prompt}"] }
[state]
file = "{home}/tiny/rooms.json"
list = "."
[state.fields]
branch = "git_branch"
worktree = "path"
session = "tmux_name"
[rejections]
no_such_worker = ["no room"]
already_exists = ["already"]
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", WAYS)
def test_agents_are_started_as_a_configuration_says(way: str, tmp_path: Path) -> None:
    tried = checked(tmp_path, TINY_FILE.replace("WAY", WAYS[way]), TINY)
    assert tried.exit_code == 0, tried


@pytest.mark.timeout(120)
def test_a_proposed_file_is_accepted_and_a_correct_program_passes(tmp_path: Path) -> None:
    """Not a line has to be edited, and nothing is called a bug that is none."""
    with Discovery(TINY, tmp_path / "box") as discovery:
        found = discovery.find(hints_of(TargetSpec.vocabulary))
    text = proposed(TargetSpec, found, "mine.toml")
    spec = TargetSpec.load(_written(tmp_path, text))
    assert (spec.level, spec.sessions) == ("sessions", "^tiny-")
    tried = checked(tmp_path, text, TINY)
    assert tried.exit_code == 0, tried
    target = find_target(str(tmp_path / "mine.toml"), program=str(TINY))
    steps = target.contract().scenarios["shorter_name_first"]
    trial = RunDirectory.create(tmp_path, latest=False)
    outcome = Bench(target, tmp_path).try_once(steps, 1, trial)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]
