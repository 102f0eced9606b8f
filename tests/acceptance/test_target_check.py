"""`mutiny target check` and `target init --from` on real programs, described wrongly and not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mutiny.engine.loop import Outcome
from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.modes.checkup import Checkup, Tried
from mutiny.targets.discover.program import Discovery
from mutiny.targets.discover.proposal import hints_of, proposed
from mutiny.targets.registry import find_target
from mutiny.targets.workers.spec import TargetSpec
from sampling import sampled, sampled_rows

pytestmark = pytest.mark.deep

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


@pytest.mark.parametrize(
    ("text", "said", "change"),
    sampled_rows(
        [
            (STATE, "status.json", "file = '{home}/longboat/state.json', list = 'workers'"),
            (LIST, "state.file with the list 'crew'", "workers"),
            (SESSIONS, "sessions = '^mine-'", "change sessions"),
            (FIELD, "state.fields.worktree = 'tree'", "worktree = 'worktree"),
            (COMMAND, '"hire"', "change commands.add"),
        ],
        every=2,
    ),
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


@pytest.mark.parametrize("way", sampled(WAYS, every=3))
def test_agents_are_started_as_a_configuration_says(way: str, tmp_path: Path) -> None:
    tried = checked(tmp_path, TINY_FILE.replace("WAY", WAYS[way]), TINY)
    assert tried.exit_code == 0, tried


ASKING = TINY_FILE.replace('"{worker}"] }', '"{worker}", "--ask={prompt}"] }', 1).replace(
    'start = { argv = ["{program}", "tell", "{worker}", "{prompt}"] }',
    'message = { argv = ["{program}", "tell", "{worker}", "{message}"] }\n'
    'nuke = { argv = ["{program}", "rm", "{worker}"] }',
)
"""The command that makes a room also says what its agent is to do."""
MERGING = f"""\
{ASKING.replace('level = "sessions"', 'level = "review"')}\
not_needs_review = ["nothing is ready"]
source_dirty = ["has changes"]
[commands.accept]
argv = ["{{program}}", "merge", "{{worker}}"]
[[state.rules]]
status = "offline"
where = {{ "@session" = "gone" }}
[[state.rules]]
status = "offline"
where = {{ "@agent" = "none" }}
[[state.rules]]
status = "working"
where = {{ "@agent" = "busy" }}
[[state.rules]]
status = "needs_review"
where = {{ "@head" = "other" }}
[[state.rules]]
status = "idle"
[profile]
accept_removes = true
start_is_immediate = false
[profile.not_applicable]
"workers.working_has_prompt" = "nobody shows prompts"
"workers.review_has_commit" = "nobody shows commits"
"""
"""The same, whose `merge` takes the work over and removes the room."""


def ran(tmp_path: Path, text: str, program: Path, scenario: str) -> Outcome:
    target = find_target(str(_written(tmp_path, text)), program=str(program))
    trial = RunDirectory.create(tmp_path, latest=False)
    steps = target.contract().scenarios[scenario]
    return Bench(target, tmp_path).try_once(steps, 1, trial)


@pytest.mark.parametrize("text", [ASKING, MERGING], ids=["asking", "merging"])
def test_a_prompt_given_with_the_worker_and_a_merge_that_removes_it(
    text: str, tmp_path: Path
) -> None:
    text = text.replace("WAY", "")
    tried = checked(tmp_path, text, TINY)
    assert tried.exit_code == 0, tried
    outcome = ran(tmp_path, text, TINY, "basic_lifecycle")
    assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]


@pytest.mark.slow
def test_a_prompt_that_the_agent_never_hears_is_lost(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    saying = 'f"{agent} -- {shlex.quote(text)}"'
    whole = TINY.read_text("utf-8")
    assert saying in whole
    deaf.write_text(whole.replace(saying, "agent"), "utf-8")
    deaf.chmod(0o755)
    text = f"{ASKING.replace('WAY', '')}[profile.limits]\ncomplete_s = 1.0\nrecover_s = 1.0\n"
    outcome = ran(tmp_path, text, deaf, "basic_lifecycle")
    assert outcome.rule == "workers.nothing_lost", outcome.steps[-1]


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
