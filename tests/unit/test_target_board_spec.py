"""A board's target file: every mistake is named; how commands are spoken and answers are read."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.sentences import understand
from mutiny.doubles.mcp_client import answer_in
from mutiny.doubles.speech import spoken
from mutiny.errors import FormatError, UsageError
from mutiny.kit.answer import Words, answer_of
from mutiny.model.result import OperationResult
from mutiny.targets.board.spec import BoardSpec

TEXT = files("mutiny.targets.files").joinpath("longboat-board.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[commands.claim]", "[commands.clame]", "did you mean 'claim'?"),
        ("{priority}", "{prority}", "did you mean 'priority'?"),
        ('defaults = { priority = "5" }', 'defaults = { task = "a" }', "'task' is always said"),
        ("lease_s = 2.0", "lease_z = 2.0", "did you mean 'lease_s'?"),
        ('probe = "file"', 'probe = "fille"', "neither 'file' nor 'list'"),
        ("[places]", '[errors]\nx = "not_ownr"\n[places]', "did you mean 'not_owner'?"),
        ("sure_calls = 6", 'lacks = ["Electt"]', "did you mean 'Elect'?"),
        ('"LONGBOAT_BOARD_JITTER"', '"X"\nspeed = "Y"', "configure.speed"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEXT
    path = tmp_path / "board.toml"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(FormatError) as caught:
        BoardSpec.load(path)
    assert said in str(caught.value)


def test_a_target_may_differ_from_another_in_a_few_words(tmp_path: Path) -> None:
    (tmp_path / "board.toml").write_text(TEXT)
    path = tmp_path / "mine.toml"
    path.write_text('extends = "board"\nname = "mine"\n[profile.figures]\nlease_s = 9.0\n')
    mine, base = BoardSpec.load(path), BoardSpec.load(tmp_path / "board.toml")
    assert (mine.name, mine.profile.figures.lease_s) == ("mine", 9.0)
    assert mine.profile.figures.retry_base_s == base.profile.figures.retry_base_s
    assert mine.commands == base.commands
    path.write_text('extends = "bord"\nname = "mine"\n')
    with pytest.raises(UsageError, match=r"bord\.toml: cannot read"):
        BoardSpec.load(path)


def test_agents_and_works_belong_together(tmp_path: Path) -> None:
    path = tmp_path / "board.toml"
    path.write_text(f"{TEXT}\n[agents]\nprompt = '(?P<task>a'\n")
    with pytest.raises(FormatError) as caught:
        BoardSpec.load(path)
    assert "profile.works: must be true with [agents]" in str(caught.value)
    assert "agents.prompt" in str(caught.value)


def test_optional_words_are_said_once_for_each_value() -> None:
    template = {"argv": ["b", "{task}"], "optional": {"depends": ["-d", "{depends}"]}}
    assert spoken(template, {"task": "a", "depends": ["x", "y"]}) == [
        "b",
        "a",
        "-d",
        "x",
        "-d",
        "y",
    ]
    assert spoken(template, {"task": "a", "depends": []}) == ["b", "a"]


def test_a_value_that_the_program_takes_anyway_is_left_unsaid() -> None:
    known = {"argv": ["b"], "defaults": {"priority": "5"}}
    line = {**known, "optional": {"priority": ["-p", "{priority}"]}}
    assert spoken(line, {"priority": 5}) == ["b"]
    assert spoken(line, {"priority": 6}) == ["b", "-p", "6"]
    tool = {**known, "tool": "add", "arguments": {"priority": "priority"}}
    assert spoken(tool, {"priority": 5}) == ["b", "add", "{}"]
    assert spoken(tool, {"priority": 6}) == ["b", "add", '{"priority": 6}']


def test_a_tool_gets_only_what_there_is() -> None:
    template = {
        "argv": ["c"],
        "tool": "claim",
        "arguments": {"worker": "worker", "task": "task"},
    }
    assert spoken(template, {"worker": "w", "task": None}) == ["c", "claim", '{"worker": "w"}']


def test_a_refusal_is_read_from_json_or_from_text() -> None:
    words = Words({"TAKEN": "not_owner"}, {"busy": ["is locked"]})
    json = OperationResult(1, '{"ok": false, "error": "TAKEN"}')
    assert answer_of(json, words).error == "not_owner"
    assert answer_of(OperationResult(1, stderr="board is locked"), words).error == "busy"
    assert answer_of(OperationResult(0, 'noise\n{"ok": true, "task": "a"}'), words).task == "a"
    assert not answer_of(OperationResult(1, '{"ok": true}'), words).ok


def test_an_error_of_the_protocol_is_no_success() -> None:
    assert answer_in({"error": {"message": "no such tool"}})["ok"] is False
    text = {"content": [{"text": '{"ok": false, "error": "cycle"}'}], "isError": True}
    assert answer_in({"result": text}) == {"ok": False, "error": "cycle", "isError": True}


def seen(**changes: object) -> BoardObservation:
    tasks = {
        "a": TaskView("a", "done", "w1", 1, completions=1),
        "b": TaskView("b", "claimed", "w1", 1, depends=("a",), unchanged_s=5.0, completions=0),
    }
    return BoardObservation(tasks=tasks, absent=False, leader="n1", token=1, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("No tasks stuck in CLAIMED > 10 minutes", True),
        ("no task is claimed for more than 2 s", False),
        ("all tasks are settled", False),
        ("1 task is done", True),
        ("at least 2 tasks are done", False),
        ("there are 2 tasks", True),
        ("task a is done", True),
        ("task b is not claimed", False),
        ("task b belongs to w1", True),
        ("worker w1 holds 1 task", True),
        ("worker w2 holds nothing", True),
        ("no task is completed twice", True),
        ("dependencies are respected", True),
        ("the board is readable", True),
        ("n1 leads", True),
        ("nobody leads", False),
        ("one server runs", None),
        ("worker w9 is alive", False),
    ],
)
def test_sentences(text: str, holds: bool | None) -> None:
    assert understand(text).of(seen()).so is holds


def test_what_cannot_be_seen_is_neither_true_nor_false() -> None:
    assert understand("all tasks are done").of(BoardObservation()).so is None
    empty = understand("all tasks are done").of(BoardObservation(tasks={}))
    assert empty.so is None, "of nothing everything is true"


def test_an_unknown_sentence_names_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean"):
        understand("every task is dun")


def test_who_has_no_words_for_dependencies_is_told_none() -> None:
    known = BoardSpec.load(Path(str(files("mutiny.targets.files").joinpath("longboat-board.toml"))))
    add = known.commands["add"]
    mute = replace(known, commands={**known.commands, "add": replace(add, optional={})})
    assert known.make_profile().says_dependencies
    assert not mute.make_profile().says_dependencies
    assert replace(mute, depend=("{program}", "dep")).make_profile().says_dependencies
