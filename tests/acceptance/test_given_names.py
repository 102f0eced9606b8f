"""A correct program that names its workers itself, in real boxes: nothing is called a bug that is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mutiny.contracts.workers import operations as op
from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.kit import operations as common
from mutiny.model.operation import Operation
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.modes.checkup import Checkup
from mutiny.targets.registry import Target, find_target

pytestmark = pytest.mark.deep

OTTERS = Path(__file__).with_name("naming_sessions.py")
FILE = """\
format = 1
name = "otters"
contract = "workers"
level = "sessions"
program = "otters"
sessions = "^den-"

[commands]
add = { argv = ["{program}", "hire", "{prompt}"], answer = 'hired (?P<worker>\\S+) for it' }
message = { argv = ["{program}", "tell", "{worker}", "{message}"] }
nuke = { argv = ["{program}", "rm", "{worker}"] }
status = { argv = ["{program}", "ls"] }

[state]
file = "{home}/tiny/rooms.json"
list = "."
names = '^room:(?P<name>.+)$'

[state.fields]
branch = "git_branch"
worktree = "path"
session = "tmux_name"

[rejections]
no_such_worker = ["no room"]
session_missing = ["has no session"]
"""
SILENT = f'{FILE}\n[environment]\nSILENT = "yes"\n'


def ran(tmp_path: Path, text: str, steps: Sequence[Operation] | str) -> Outcome:
    target = described(tmp_path, text)
    told = target.contract().scenarios[steps] if isinstance(steps, str) else steps
    trial = RunDirectory.create(tmp_path, latest=False)
    return Bench(target, tmp_path).try_once(told, 1, trial)


def described(tmp_path: Path, text: str) -> Target:
    path = tmp_path / "otters.toml"
    path.write_text(text, encoding="utf-8")
    return find_target(str(path), program=str(OTTERS))


def test_its_file_is_accepted(tmp_path: Path) -> None:
    tried = Checkup(described(tmp_path, FILE), RunDirectory.create(tmp_path, latest=False)).run()
    assert tried.exit_code == 0, tried


@pytest.mark.parametrize("scenario", ["nuke_and_return", "untidy_agents", "racing_adds"])
def test_a_correct_program_passes(scenario: str, tmp_path: Path) -> None:
    outcome = ran(tmp_path, FILE, scenario)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


def test_a_name_that_was_never_told_is_found_in_the_records(tmp_path: Path) -> None:
    """The world ends before the answer is heard; then its record is a single stranger."""
    add = op.Add("alpha", prompt="Create a.txt")
    broken = common.CrashAt(add, common.AFTER_LAST)
    steps = (common.Reset(), op.Init(), broken, common.Settle(), add, op.Nuke("alpha"))
    outcome = ran(tmp_path, FILE, steps)
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]
    assert "otter1" in " ".join(outcome.steps[-1].result.argv)


def test_an_answer_that_tells_no_name_accuses_nobody(tmp_path: Path) -> None:
    outcome = ran(tmp_path, SILENT, "basic_lifecycle")
    assert outcome.verdict is Verdict.INCONCLUSIVE, outcome.steps[-1]
    assert "what the target calls alpha" in outcome.steps[-1].result.stderr
    tried = Checkup(described(tmp_path, SILENT), RunDirectory.create(tmp_path, latest=False)).run()
    assert tried.exit_code == 2, tried
    assert "commands.add.answer" in str(tried.advice)
