"""Boards that answer in words, give ids themselves and know no blocked tasks: how they are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.contract import BoardContract
from mutiny.contracts.board.explain import explain
from mutiny.contracts.board.invariants import Check, add_kept
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation, TaskView
from mutiny.contracts.board.outcomes import outcomes
from mutiny.contracts.board.profile import BoardProfile
from mutiny.contracts.board.tasks import Task
from mutiny.doubles.speech import (
    about_task,
    all_shown,
    answered,
    looks_first,
    shown,
    spoken,
    unnamed,
)
from mutiny.errors import FormatError
from mutiny.history.board import BoardModel as HistoryModel
from mutiny.history.checker import Limits, Verdict, check
from mutiny.history.events import Entry
from mutiny.kit.answer import Answer, Words, answer_of, text_answer
from mutiny.kit.beliefs import ANYTIME
from mutiny.model.result import OperationResult
from mutiny.probes.records import field_of
from mutiny.probes.sources import record_files
from mutiny.system.files import BoxPath
from mutiny.targets.board.history import History
from mutiny.targets.board.naming import as_waiting, named_in, ours_among
from mutiny.targets.board.observer import BoardObserver
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.kit.naming import Names

ADD = {"argv": ["p", "add"], "answer": r"#(?P<task>\d+)", "rejections": {"busy": ["locked"]}}
CLAIM = {
    "argv": ["p", "claim", "{task}"],
    "rejections": {"task_not_available": ["already claimed"]},
    "pick": {"argv": ["p", "free"], "answer": r"(?m)^(?P<task>\d+) ", "claims": False},
}


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "said"),
    [
        (0, "made\n#12 task a\n", "", {"ok": True, "task": "12"}),
        (1, "", "database is locked", {"ok": False, "error": "busy"}),
        (1, "", "Traceback: ouch", None),
        (-9, "#12", "", None),
        (None, "", "", None),
    ],
)
def test_an_answer_in_words(
    code: int | None, stdout: str, stderr: str, said: dict[str, Any] | None
) -> None:
    heard = answered(ADD, code, stdout, stderr)
    if said is None:
        assert heard is None
    else:
        assert heard is not None
        assert {key: heard[key] for key in said} == said


def test_an_answer_that_does_not_fit_is_no_answer() -> None:
    heard = answered(ADD, 0, "all right", "")
    assert heard is not None
    assert "not understood" in heard["unable"]


def test_a_refusal_that_exits_like_a_success() -> None:
    template = {**ADD, "refusal": "already done", "rejections": {"wrong_status": ["already"]}}
    heard = answered(template, 0, "#3 already done", "")
    assert heard is not None
    assert (heard["ok"], heard["error"]) == (False, "wrong_status")


def test_a_refusal_that_exits_like_a_success_is_none_without_a_class_either() -> None:
    template = {**ADD, "answer": "", "refusal": "already done", "rejections": {}}
    heard = answered(template, 0, "#1 already done", "")
    assert heard == {"ok": False, "error": "", "message": "#1 already done"}
    result = OperationResult(exit_code=0, stdout="#1 already done", details={"answer": heard})
    answer = answer_of(result, Words(texts=True))
    assert (answer.ok, answer.classes, answer.message) == (False, frozenset(), "#1 already done")
    done = Entry("w", "complete", {"task": "a", "worker": "w"}, {"ok": True}, invoked=2, returned=3)
    entries = [
        Entry("p", "add", {"id": "a"}, {"ok": True}, invoked=0.0, returned=0.1),
        Entry("w", "claim", {"worker": "w"}, {"ok": True, "task": "a"}, invoked=1, returned=2),
        *(done, replace(done, answer=heard, invoked=4, returned=5)),
    ]
    assert check(entries, HistoryModel(), Limits(seconds=5)).verdict is Verdict.LINEARIZABLE


def test_one_text_for_several_refusals_is_any_of_them() -> None:
    rejections = {
        "not_owner": ["not yours"],
        "task_not_available": ["Cannot go from"],
        "wrong_status": ["Cannot go from", "not"],
    }
    template = {**ADD, "rejections": rejections}
    for text, error in (
        ("Cannot go from done to new", "task_not_available|wrong_status"),
        ("it is not yours", "not_owner"),  # the narrow one is listed first
        ("it is not so", "wrong_status"),
    ):
        heard = answered(template, 1, "", text)
        assert heard is not None
        assert heard["error"] == error
        words = Words(rejections={name: tuple(known) for name, known in rejections.items()})
        assert answer_of(OperationResult(exit_code=1, stderr=text), words).error == error


def test_json_of_its_own_beside_a_failure_is_no_answer_of_ours() -> None:
    printed = '{"error": {"code": "invalid_input", "message": "disk is full"}}'
    result = OperationResult(exit_code=1, stdout=printed, stderr="Usage: td create")
    heard = answer_of(result, Words(rejections={"busy": ("locked",)}, texts=True))
    assert (heard.ok, heard.error, heard.said) == (False, "", {})
    assert answer_of(result, Words()).said


def test_who_must_name_a_task_looks_first() -> None:
    assert looks_first(CLAIM)
    assert not looks_first({**CLAIM, "pick": {**CLAIM["pick"], "claims": True}})  # type: ignore[dict-item]
    assert spoken(unnamed(CLAIM), {}) == ["p", "free"]
    assert shown(CLAIM, 0, "ID  Subject\n7   task a\n", "") == {"ok": True, "task": "7"}
    assert shown(CLAIM, 0, "No tasks found.", "") == {"ok": False, "error": "nothing_to_claim"}
    assert shown(CLAIM, 1, "", "Traceback") is None


def test_what_is_shown_and_cannot_be_had_is_passed_over() -> None:
    text = "7   task a\n8   task b\n7   task a\n"
    assert all_shown(CLAIM, text) == ("7", "8")
    assert about_task("dependencies_open")
    assert about_task("task_not_available|wrong_status")
    assert not about_task("busy")
    assert not about_task(None)


def test_a_look_that_names_a_task_which_its_pattern_does_not_find() -> None:
    assert named_in('[{"id":"td-7047e9"}]', ["td-1", "td-7047e9"]) == "td-7047e9"
    assert named_in("td-7047e9-2", ["td-7047e9"]) is None
    assert named_in("not a task", ["a"]) is None


def test_tasks_get_our_names_back() -> None:
    views = [
        TaskView("task a", "available", own="1"),
        TaskView("task b", "available", depends=("1",), own="2"),
        TaskView("notes", "available", own="3"),
    ]
    named = {view.id: view for view in ours_among(views, "^task (?P<name>.+)$")}
    assert set(named) == {"a", "b"}
    assert named["b"].depends == ("a",)
    assert [one.status for one in as_waiting(named).values()] == ["available", "blocked"]
    prefixed = ours_among([TaskView("mu-b", "available", depends=("mu-a",))], "^mu-(?P<name>.+)$")
    assert prefixed == [TaskView("b", "available", depends=("a",))]


def test_names_go_both_ways() -> None:
    names = Names()
    names.learn("a", "TASK-1")
    assert (names.own("a"), names.ours("TASK-1")) == ("TASK-1", "a")
    assert (names.own("b"), names.ours("TASK-9")) == ("b", "TASK-9")
    names.learn("1", "3")
    names.learn("3", "1")
    assert [names.ours(names.own(one)) for one in ("1", "3")] == ["1", "3"]
    same = Names("999")
    same.learn("7", "7")
    assert same.own("7") == "7"
    assert Names("TASK-999").own("b") == "TASK-999", "in the form of the board's own ids"


def test_two_tasks_of_one_id_cannot_be_told_apart() -> None:
    model = BoardModel(
        BoardProfile(), initialised=True, tasks={name: Task(name) for name in ("a", "b")}
    )

    def found(*own: str) -> list[str]:
        views = {
            name: TaskView(name, "available", own=one) for name, one in zip("ab", own, strict=True)
        }
        seen = BoardObservation(tasks=views, absent=False)
        return [one.message for one in add_kept(Check(model, seen, seen, op.List()))]

    assert found("1", "2") == []
    assert "one id" in found("1", "1")[0]


def test_markdown_with_front_matter_is_a_record(tmp_path: Path) -> None:
    (tmp_path / "task-1.md").write_text("---\nid: TASK-1\ndependencies:\n  - TASK-2\n---\n\ntext\n")
    (tmp_path / "torn.md").write_text("---\nid: TASK-3\ntitle: half of")
    (tmp_path / "odd.md").write_text("---\nid: [\n---\n")
    (tmp_path / "README.md").write_text("nothing\n")
    rows = record_files(BoxPath(tmp_path), "*.md").data
    assert rows == [{"name": "task-1", "id": "TASK-1", "dependencies": ["TASK-2"]}]


def test_a_field_of_records_in_a_record() -> None:
    row = {"depends": [{"id": "a"}, {"id": "b"}], "by": {"name": "w"}, "a.b": 1}
    assert field_of(row, "depends.id") == ["a", "b"]
    assert (field_of(row, "by.name"), field_of(row, "a.b"), field_of(row, "x.y")) == ("w", 1, None)


def test_a_list_in_words_shows_no_order() -> None:
    entries = [
        Entry("p", "add", {"id": "a"}, {"ok": True}, invoked=0.0, returned=0.1),
        Entry("p", "list", {}, {"ok": True}, invoked=1.0, returned=1.1),
    ]
    assert check(entries, HistoryModel(), Limits(seconds=5)).verdict is Verdict.LINEARIZABLE


def test_a_circle_that_is_said_one_by_one_is_an_unknown_dependency() -> None:
    circle = op.AddBatch(("x:y", "y:x"))
    told = {}
    for batches in (True, False):
        model = BoardModel(BoardProfile(batches=batches), initialised=True)
        right = outcomes(model, circle, ANYTIME)
        told[batches] = explain(model, circle, Answer(True), right, ANYTIME).rule
    assert told == {True: "board.cycles_refused", False: "board.rejects_illegal"}


def test_what_got_an_id_of_its_own_is_not_added_again() -> None:
    broken = op.AddTask("a")
    for given, again in ((True, True), (False, False)):
        steps = BoardContract(BoardProfile(names_new_tasks=given)).recovery(
            broken, world_ended=True
        )
        assert (broken in steps) is again


def test_a_look_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutiny.targets.board.observer.BUSY_PAUSE_S", 0.001)
    path = tmp_path / "w.toml"
    asked = 'command = ["{program}", "list"]\ndirectory = "{home}/w"'
    text = FILE.replace('glob = "{home}/w/*.md"', asked)
    path.write_text(
        text.replace(
            "[state]", "[rejections]\nbusy = ['locked']\nnot_initialised = ['no board']\n[state]"
        )
    )
    spec = BoardSpec.load(path)
    answers = [OperationResult(1, stderr="it is locked")] * 3 + [OperationResult(0, "[]")]

    class Live:
        def ask(self, name: str) -> OperationResult:
            return OperationResult(1)

        def look_by(self, argv: Sequence[str]) -> OperationResult:
            return answers.pop(0)

        def filled(self, text: str) -> str:
            return text

        def limit(self, given_s: float) -> float:
            return given_s

        def outside(self, inside: str) -> BoxPath:
            return BoxPath(tmp_path)

    assert BoardObserver(spec, Live()).read().tasks == {}
    answers[:] = [OperationResult(1, stderr="ouch"), OperationResult(0, "[]")]
    assert "ouch" in (BoardObserver(spec, Live()).read().trouble or ""), "only who is busy"
    answers[:] = [OperationResult(1, stderr="there is no board here")]
    assert BoardObserver(spec, Live()).read().absent


def test_who_is_always_too_late_is_slow_and_not_stuck(tmp_path: Path) -> None:
    def told(*errors: str) -> bool:
        history = History(tmp_path / "history.jsonl")
        for error in errors:
            begun = history.begin("w", "claim", {"worker": "w"})
            answer = {"ok": False, "error": error} if error else {"ok": True, "task": "a"}
            history.end(begun, answer, heard="answer")
        return history.contended((), since=0.0)

    assert told("busy", "", "busy")
    assert not told("busy", "busy"), "a lock that nobody lets go is another matter"
    assert not told("", "nothing_to_claim")


FILE = """
format = 1
name = "w"
contract = "board"
program = "w"
texts = true
priorities = { 1 = "high", 9 = "low" }
[pick]
argv = ["{program}", "free"]
answer = '(?P<task>x)'
[commands]
add = { argv = ["{program}", "add"] }
claim = { argv = ["{program}", "claim", "{task}"] }
complete = { argv = ["{program}", "done"] }
list = { argv = ["{program}", "list"] }
[state]
glob = "{home}/w/*.md"
[profile]
batches = false
"""


def test_the_file_of_such_a_board(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(FILE)
    spec = BoardSpec.load(path)
    assert (spec.priority(1), spec.priority(2), spec.priority(5)) == ("high", "high", "high")
    assert spec.priority(8) == "low"
    assert "AddBatch" not in spec.profile.lacks, "it is told one task after the other"
    assert "CorruptBoard" in spec.profile.lacks, "there is no single file"
    claim = spec.template("claim")
    assert claim is not None
    assert "pick" in claim


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [
        ("(?P<task>x)", "x", "pick.answer: needs a group"),
        ('1 = "high"', 'one = "high"', "priorities.one: is no number"),
        ("batches = false", 'picks = "best"', "profile.picks: 'best'"),
        ("[state]", "[state]\nnames = 'x'", "state.names: needs a group"),
    ],
)
def test_what_such_a_file_may_not_say(tmp_path: Path, right: str, wrong: str, problem: str) -> None:
    path = tmp_path / "w.toml"
    path.write_text(FILE.replace(right, wrong))
    with pytest.raises(FormatError) as told:
        BoardSpec.load(path)
    assert problem in str(told.value)


@pytest.mark.parametrize(
    ("looks", "living", "seen"),
    [
        (["", "", "{}"], frozenset({"w"}), {"a"}),
        ([""], frozenset({"w"}), set()),  # what is missing for good is missing
        ([""], frozenset[str](), set()),  # nobody is at work who could be writing
    ],
    ids=["in passing", "for good", "nobody writes"],
)
def test_a_file_that_is_written_just_now_is_looked_at_again(
    looks: list[str],
    living: frozenset[str],
    seen: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mutiny.targets.board.observer.BUSY_PAUSE_S", 0.001)
    file = tmp_path / "tasks.jsonl"
    path = tmp_path / "w.toml"
    path.write_text(
        FILE.replace('glob = "{home}/w/*.md"', 'file = "{home}/w/tasks.jsonl"\nlist = "."')
    )
    spec = BoardSpec.load(path)
    record = json.dumps({spec.state.fields.id: "a", "status": "available"})

    class Live:
        def ask(self, name: str) -> OperationResult:
            return OperationResult(1)

        def look_by(self, argv: Sequence[str]) -> OperationResult:
            return OperationResult(1)

        def filled(self, text: str) -> str:
            return text

        def limit(self, given_s: float) -> float:
            return 60.0 if len(looks) > 1 else 0.01

        def outside(self, inside: str) -> BoxPath:
            look = looks.pop(0) if len(looks) > 1 else looks[0]
            file.write_text(record if look else "")
            return BoxPath(tmp_path, "tasks.jsonl")

    observer = BoardObserver(spec, Live())
    observer._known = frozenset({"a"})
    found = observer.observe(servers=None, living=living, serving=True)
    assert set(found.tasks or ()) == seen


def test_a_refusal_is_told_by_the_line_that_says_what_failed() -> None:
    said = "Preparing worktree\nfatal: cannot lock ref\nremove the file"
    for words in (Words(texts=True), Words()):
        assert answer_of(OperationResult(1, stderr=said), words).message == "fatal: cannot lock ref"
    assert text_answer(OperationResult(1, stderr=said), {}).message == "fatal: cannot lock ref"
    assert text_answer(OperationResult(1, stderr="no such task\nerror"), {}).message == "error"
    assert text_answer(OperationResult(1, stderr="no such task\nerrors"), {}).message != "errors"
