"""Where records can be read: whatever form a target shows them in, they become the same rows."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from mutiny.model.result import OperationResult
from mutiny.probes.records import StatusRule, at, listed, parse_json, rows_of, status_of
from mutiny.probes.sources import json_file, record_files, settled, sqlite_rows
from mutiny.system.files import BoxPath
from mutiny.targets.kit.state import StateSource, read_source, with_known

ROWS = [{"name": "alpha", "status": "idle"}, {"name": "beta", "status": "busy"}]
EXPECTED = {row["name"]: row for row in ROWS}


def read(place: Path, state: StateSource, result: OperationResult | None = None) -> Any:
    return read_source(
        state,
        lambda text: text.replace("{home}", "."),
        lambda inside: BoxPath(place, *(part for part in inside.split("/") if part != ".")),
        lambda _argv: result or OperationResult(),
    )


# --- JSON in all its forms ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROWS),
        json.dumps(ROWS, indent=2),
        "\n".join(json.dumps(row) for row in ROWS),
        "loading ...\n" + json.dumps(ROWS) + "\ndone in 3 ms\n",
        "loading ...\n" + json.dumps(ROWS, indent=2) + "\ndone\n",
    ],
    ids=["one line", "many lines", "a line each", "noise", "noise and many lines"],
)
def test_a_list_is_read_however_it_is_printed(text: str) -> None:
    assert rows_of(parse_json(text), "", "name") == EXPECTED


def test_an_object_a_line_that_is_alone_is_itself() -> None:
    assert parse_json('{"workers": []}\n') == {"workers": []}


@pytest.mark.parametrize("text", ["", "nothing", "[1, 2", '{"a": 1'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (whatever json says)
        parse_json(text)


def test_records_lie_at_a_path_as_a_table_or_a_list() -> None:
    assert rows_of({"a": {"b": ROWS}}, "a.b", "name") == EXPECTED
    assert rows_of({"a": [{"w": EXPECTED}]}, "a.0.w", "") == EXPECTED
    assert at({"a": 1}, "") == {"a": 1}
    assert rows_of(ROWS, ".", "name") == rows_of(ROWS, "", "name")
    assert rows_of([], ".", "name") == {}
    for wrong in ({"a": 5}, {"a": [5]}, {"a": [{"name": None}]}, {}):
        with pytest.raises((KeyError, TypeError)):
            rows_of(wrong, "a", "name")


@pytest.mark.parametrize("value", [["a", "b"], ("a", "b"), '["a", "b"]', "a, b"])
def test_several_names_in_one_field(value: object) -> None:
    assert listed(value) == ("a", "b")


# --- statuses -------------------------------------------------------------------------------------


def test_a_status_is_mapped_or_derived_by_the_first_rule_that_fits() -> None:
    rules = (
        StatusRule("error", {"failed": "true"}),
        StatusRule("working", {"prompt": ".+"}),
        StatusRule("idle"),
    )
    assert status_of({"failed": True, "prompt": "x"}, "status", {}, rules) == "error"
    assert status_of({"failed": False, "prompt": "x"}, "status", {}, rules) == "working"
    assert status_of({"prompt": None}, "status", {}, rules) == "idle"
    assert status_of({"status": "busy"}, "status", {"busy": "working"}, ()) == "working"
    assert status_of({"status": "busy"}, "status", {"busy": "working"}, rules[:1]) == "working"


def test_what_follows_from_a_name_is_added_and_never_overwrites() -> None:
    state = StateSource(file="x", known={"worktree": "{home}/{worker}", "name": "no"})
    rows = with_known(state, {"alpha": {"name": "alpha"}}, {"home": "/h"})
    assert rows == {"alpha": {"name": "alpha", "worktree": "/h/alpha"}}


# --- sources --------------------------------------------------------------------------------------


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"workers": EXPECTED}))
    raw = read(tmp_path, StateSource(file="{home}/state.json"))
    assert rows_of(raw.data, "workers", "name") == EXPECTED
    assert not read(tmp_path, StateSource(file="{home}/nowhere.json")).exists


def test_a_glob_reads_each_file_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "tasks"
    (place / "deep").mkdir(parents=True)
    for name in ("alpha", "beta"):
        (place / f"{name}.json").write_text(json.dumps({"status": EXPECTED[name]["status"]}))
    (place / "notes.txt").write_text("no record")
    state = StateSource(glob="{home}/tasks/*.json")
    assert rows_of(read(tmp_path, state).data, "", "name") == EXPECTED
    (place / "broken.json").write_text("{")
    assert "broken.json" in (read(tmp_path, state).error or "")
    assert not read(tmp_path, StateSource(glob="{home}/nowhere/*.json")).exists


def made(path: Path, *, wal: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute(f"pragma journal_mode = {'wal' if wal else 'delete'}")
    connection.execute("create table workers (name text, status text)")
    connection.executemany("insert into workers values (:name, :status)", ROWS)
    connection.commit()
    return connection


@pytest.mark.parametrize("wal", [False, True])
def test_a_database_is_read_while_somebody_writes_it(tmp_path: Path, wal: bool) -> None:
    connection = made(tmp_path / "board.db", wal=wal)
    state = StateSource(sqlite="{home}/board.db", query="select * from workers")
    connection.execute("begin immediate")
    connection.execute("insert into workers values ('gamma', 'idle')")
    before = sorted(path.name for path in tmp_path.iterdir())
    raw = read(tmp_path, state)
    assert rows_of(raw.data, "", "name") == EXPECTED, "what is not committed is not there"
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "looking leaves no trace"
    connection.commit()
    assert len(read(tmp_path, state).data) == 3


def test_what_is_in_a_database_but_was_never_committed_is_not_there(tmp_path: Path) -> None:
    connection = made(tmp_path / "board.db")
    connection.execute("pragma cache_size = 1")  # so that pages are written before the commit
    connection.execute("begin immediate")
    connection.execute("update workers set status = 'lost'")
    connection.executemany("insert into workers values (?, 'idle')", [("y" * 3000,)] * 200)
    left = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert b"lost" in left["board.db"], "a crash now would leave this"
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name, data in left.items():
        (crashed / name).write_bytes(data)
    raw = sqlite_rows(BoxPath(crashed, "board.db"), "select * from workers")
    assert rows_of(raw.data, "", "name") == EXPECTED
    assert {path.name: path.read_bytes() for path in crashed.iterdir()} == left, "nor taken back"


def test_a_query_can_only_look(tmp_path: Path) -> None:
    made(tmp_path / "board.db").close()
    path = BoxPath(tmp_path, "board.db")
    for query in (
        "delete from workers",
        "attach 'x' as y",
        "select load_extension('x')",
        "nonsense",
    ):
        assert sqlite_rows(path, query).error is not None
    assert len(sqlite_rows(path, "select * from workers").data) == 2
    assert not sqlite_rows(BoxPath(tmp_path, "nowhere.db"), "select 1").exists
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
    assert "cannot be read" in (
        sqlite_rows(BoxPath(tmp_path, "torn.db"), "select 1 from x").error or ""
    )


def test_a_command(tmp_path: Path) -> None:
    state = StateSource(command=("x", "list"), directory="{home}")
    raw = read(tmp_path, state, OperationResult(stdout=json.dumps({"workers": ROWS})))
    assert rows_of(raw.data, "workers", "name") == EXPECTED
    failed = read(tmp_path, state, OperationResult(1, stderr="no server"))
    assert failed.refused
    assert "no server" in (failed.error or "")
    assert "no JSON" in (read(tmp_path, state, OperationResult(stdout="hello")).error or "")


def test_tmux_and_git_alone(tmp_path: Path) -> None:
    state = StateSource(tmux="^mine-(?P<name>.+)$", directory="{home}")
    raw = read(tmp_path, state, OperationResult(stdout="mine-alpha\nother\nmine-beta\n"))
    assert [row["name"] for row in raw.data] == ["alpha", "beta"]
    nobody = OperationResult(1, stderr="no server running on /tmp/tmux-0/default")
    assert read(tmp_path, state, nobody).data == []
    assert read(tmp_path, state, OperationResult(1, stderr="lost")).refused
    text = (
        "worktree /box/source\nHEAD 1\nbranch refs/heads/master\n\n"
        "worktree /box/home/trees/alpha\nHEAD 2\nbranch refs/heads/mine/alpha\n\n"
        "worktree /box/home/trees/beta\nHEAD 3\ndetached\n"
    )
    state = StateSource(worktrees="/trees/(?P<name>[^/]+)$", directory="{home}")
    raw = read(tmp_path, state, OperationResult(stdout=text))
    assert raw.data == [
        {"name": "alpha", "worktree": "/box/home/trees/alpha", "branch": "mine/alpha"},
        {"name": "beta", "worktree": "/box/home/trees/beta", "branch": ""},
    ]


def test_somebody_in_the_middle_of_writing_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    texts = iter(["{", '{"a": 1}'])

    def look() -> Any:
        path.write_text(next(texts))
        return json_file(BoxPath(tmp_path, "state.json"))

    assert settled(look).data == {"a": 1}
    path.write_text("{")
    assert settled(lambda: json_file(BoxPath(tmp_path, "state.json"))).error is not None


def test_too_many_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mutiny.probes.sources.MOST_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.json").write_text("{}")
    assert "more than 3 files" in (record_files(BoxPath(tmp_path), "*.json").error or "")


# --- what a target file may say -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (StateSource(), "state.file: is missing"),
        (StateSource(glob="{home}/x/*.json", command=("x",), directory="{home}"), "give one of"),
        (StateSource(sqlite="{home}/x.db"), "sqlite and query belong together"),
        (StateSource(glob="{home}/x.json"), "has no *"),
        (StateSource(command=("x",)), "say where its files lie"),
        (StateSource(tmux="^x", directory="{home}"), "needs a group"),
        (StateSource(file="{home}/x", rules=(StatusRule("idel"),)), "did you mean 'idle'?"),
    ],
)
def test_mistakes_are_named(state: StateSource, said: str) -> None:
    assert said in "\n".join(state.problems(("idle", "working")))


def test_faults_mean_the_one_file_by_state_where_there_is_one() -> None:
    assert StateSource(file="{home}/a/s.json").stored == "{home}/a/s.json"
    assert StateSource(sqlite="{home}/a/s.db", query="q").stored == "{home}/a/s.db"
    assert StateSource(glob="{home}/a/t-*.json").place == "{home}/a"
    assert StateSource(command=("x",), directory="{home}/b").place == "{home}/b"
