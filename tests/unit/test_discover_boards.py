"""What `target init` finds out about a board beyond its commands: claims without a name, ids, refusals."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_discover import SEEN, Program, trying

from mutiny.targets.board.proposal import HINTS as BOARD_HINTS
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.discover.help_text import Usage, usage_in
from mutiny.targets.discover.program import Discovery, Found, Source, Tried, spoken
from mutiny.targets.discover.proposal import pattern_of, proposed
from mutiny.targets.discover.records import Place, no_log
from mutiny.targets.workers.spec import TargetSpec

NEXT = """\
Usage: qu next [OPTIONS]

Return owned task or claim the most urgent one

Options:
      --session <SESSION>
          Force an owner session
      --json  Print JSON
"""


def test_a_claim_that_finds_its_task_itself_is_told_from_a_look() -> None:
    commands: dict[tuple[str, ...], Usage] = {("next",): usage_in(NEXT, ("next",))}
    assert spoken(BOARD_HINTS, commands)["claim"] == ("next", "--session", "{worker}", "--json")
    only_looks = NEXT.replace("Return owned task or claim", "Show").replace("an owner", "a")
    assert "claim" not in spoken(BOARD_HINTS, {("next",): usage_in(only_looks, ("next",))})


def test_an_id_is_read_from_its_own_key_although_another_one_has_the_same_value(
    tmp_path: Path,
) -> None:
    source = Source("file", "{home}/s.json", Place("tasks", "title", {"id": "1", "title": "x"}))
    said = '{"revision": 1, "id": 1, "title": "x"}'
    commands = {"add": ("add", "{description}"), "claim": ("next",), "complete": ("done", "{task}")}
    found = Found(
        "qu", "", {}, {**commands, "list": ("list",)}, {"add": Tried(("add",), True, "", said)},
        source=source, answers={"claim": said},
    )  # fmt: skip
    path = tmp_path / "mine.toml"
    path.write_text(proposed(BoardSpec, found, "mine.toml"))
    spec = BoardSpec.load(path)
    for verb in ("add", "claim"):
        named = re.search(spec.commands[verb].answer, '{"revision": 1, "id": 31}')
        assert named is not None
        assert named["task"] == "31"
    assert not spec.profile.names_tasks


def test_one_refusal_may_stand_for_several_reasons() -> None:
    said = {
        ("done", "mu-7", "probe-two"): ["no owner"],
        ("done", "mu-7", "probe-one"): ["", "is over"],
        ("fail", "mu-7"): ["is over"],
    }

    class Done(Program):
        def run(self, *words: str) -> Any:
            told = said[words].pop(0)
            self.record |= {} if told else {"status": "done"}
            return SimpleNamespace(exit_code=int(bool(told)), stderr=told, stdout="")

    program = Done()
    source = Source("file", "x", Place("", "title", dict(program.record)))
    verbs = {"complete": ("done", "{task}", "{worker}"), "fail": ("fail", "{task}")}
    refusals: dict[str, tuple[tuple[str, str], ...]] = {}
    trying(program)._followed(Found("bd", "", {}, verbs), BOARD_HINTS, source, refusals)
    assert refusals == {
        "not_owner": (("no owner", "mu-7"),),
        "wrong_status": (("is over", "mu-7"), ("is over", "mu-7")),
    }


@pytest.mark.parametrize(
    ("name", "records"),
    [
        ("home/.local/share/mine/audit/probe-one-904.jsonl", False),
        ("home/.mine/events.jsonl", False),
        ("home/.mine/tasks.jsonl", True),
        ("home/.mine/catalogue.json", True),
        ("home/.mine/blog/tasks.json", True),
    ],
)
def test_what_was_done_when_is_no_record_of_what_there_is(name: str, records: bool) -> None:
    assert no_log(name) is records


def test_a_crash_is_no_refusal() -> None:
    said = 'Traceback (most recent call last):\n  File "/x/y.py", line 8, in <module>\nKeyError: 1'
    refusals: dict[str, tuple[tuple[str, str], ...]] = {}
    Discovery._refused(refusals, "unknown_task", Tried(("done",), False, said), "mu-7")
    assert refusals == {}


def test_a_refusal_of_one_word_is_the_whole_line() -> None:
    assert pattern_of("null", "mu-7") == "(?m)^null$"


def test_a_command_that_asks_has_not_gone_well(tmp_path: Path) -> None:
    asked = Tried(("create", "probe-one"), True, "Directory not found\nCreate it? [y/N] Aborted.")
    text = proposed(TargetSpec, replace(SEEN, tried={"add": asked}), "par.toml")
    (line,) = (line for line in text.splitlines() if line.startswith("add ="))
    assert line.endswith('# tried: it asks; say what it is told: stdin = "y\\n"')
