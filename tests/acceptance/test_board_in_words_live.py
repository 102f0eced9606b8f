"""A board without JSON, ids of ours or claims of whatever is free, driven by one file and no driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutiny.engine.rundir import RunDirectory
from mutiny.model.verdict import Verdict
from mutiny.modes.bench import Bench
from mutiny.targets.registry import find_target

pytestmark = pytest.mark.deep

TINY = Path(__file__).with_name("tiny_board.py")
FILE = """\
format = 1
name = "tiny"
contract = "board"
program = "tiny_board.py"
script = true
needs = []
texts = true
nobody = "T-999"
depend = ["{python}", "{program}", "after", "{task}", "{depends}"]
statuses = { open = "available", taken = "claimed" }
environment = { HOME = "{home}", TINY_GREEDY = "@", TINY_SHOWS_ALL = "@ALL" }

[pick]
argv = ["{python}", "{program}", "free"]
answer = '(?m)^(?P<task>T-\\d+) '

[commands]
init = { argv = ["{python}", "{program}", "init"] }
add = { argv = ["{python}", "{program}", "add", "{description}"], answer = '(?m)^ +(?P<task>T-\\d+):' }
claim = { argv = ["{python}", "{program}", "claim", "{task}", "{worker}"], refusal = 'not free|not ready' }
complete = { argv = ["{python}", "{program}", "done", "{task}", "{worker}"] }
list = { argv = ["{python}", "{program}", "list"] }

[rejections]
not_initialised = ['there is no board']
unknown_task = ['no such task']
task_not_available = ['not free']
dependencies_open = ['not ready']
not_owner = ['not yours']

[state]
glob = "{home}/tiny/*.md"
names = '^task (?P<name>.+)$'
derives_blocked = true
fields = { id = "title", own = "id", owner = "by", depends = "after" }

[profile]
picks = "any"
names_new_tasks = false
leases = false
fences = false
batches = false
counts_completions = false

[profile.not_applicable]
"board.no_stuck_claim" = "there are no leases"
"""


@pytest.mark.parametrize(
    ("scenario", "greedy", "shows_all", "rule"),
    [
        ("dependencies", "", "", None),
        ("dependencies", "", "1", None),
        ("workers", "", "", None),
        ("workers", "", "1", None),
        ("dependencies", "1", "", "board.dependencies_respected"),
    ],
)
def test_it_is_judged_like_any_other(
    scenario: str, greedy: str, shows_all: str, rule: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(FILE.replace("@ALL", shows_all).replace("@", greedy), encoding="utf-8")
    bench = Bench(find_target(str(path), program=str(TINY)), tmp_path)
    sequence = bench.target.contract().scenarios[scenario]
    outcome = bench.try_once(sequence, 1, RunDirectory.create(tmp_path, latest=False))
    if rule is None:
        assert outcome.verdict is Verdict.SUCCESS, outcome.steps[-1]
    else:
        assert rule in outcome.rules, outcome.steps[-1]
