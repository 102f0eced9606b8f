"""What a target wrote is read in bounded time and memory, and never held against it for Python's sake."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from mutiny.doubles.speech import answer_in
from mutiny.foreign import DEEPEST, lines, parse, parse_beginning
from mutiny.kit.answer import Words, answer_of
from mutiny.model.result import OperationResult
from mutiny.probes import sources
from mutiny.probes.records import MOST_RECORDS, parse_json, rows_of
from mutiny.probes.sources import front_matter, record_files, sqlite_tables
from mutiny.system import trees
from mutiny.system.files import BoxPath, UnsafeFile
from mutiny.targets.session import tails
from mutiny.targets.session.tails import Tail

ODD = "a\u2028b\x85c\u2029d"
"""To Python four lines; to JSON, and to whoever writes it, one text."""


@pytest.mark.parametrize("depth", [DEEPEST + 1, 100_000])
@pytest.mark.parametrize("read", [parse, parse_beginning, parse_json])
def test_what_is_nested_without_end_is_an_ordinary_mistake(
    read: Callable[[str], object], depth: int
) -> None:
    with pytest.raises(ValueError, match="nested"):
        read("[" * depth + "]" * depth)


def test_what_is_nested_as_people_do_is_read() -> None:
    assert parse("[" * DEEPEST + "]" * DEEPEST) is not None


def test_lines_end_where_files_end_them() -> None:
    assert lines(f"{ODD}\n\r\nb\rc") == [ODD, "", "b", "c"]
    assert lines("a\nb\n") == ["a", "b"]


def test_answers_hold_any_text() -> None:
    said = json.dumps({"ok": True, "note": ODD}, ensure_ascii=False)
    assert parse_json(f"{said}\n{said}") == [json.loads(said)] * 2
    assert answer_in(f"noise\n{said}") == json.loads(said)
    assert answer_of(OperationResult(0, f"noise\n{said}\n"), Words()).said == json.loads(said)
    deep = '{"a":' * 100_000
    assert answer_in(deep) is None
    assert answer_of(OperationResult(0, deep), Words()).said == {}


def test_a_log_of_a_session_holds_any_text(tmp_path: Path) -> None:
    row = {"type": "note", "text": ODD}
    (tmp_path / "log").write_text(json.dumps(row, ensure_ascii=False) + "\n" + "[" * 100_000 + "\n")
    tail = Tail(BoxPath(tmp_path, "log"), ("type",))
    assert tail.rows() == (row,)
    assert len(tail.bad) == 1


def test_a_log_of_nothing_but_mistakes_costs_little(tmp_path: Path) -> None:
    """Once each bad line copied all that were before it: three million took for ever."""
    (tmp_path / "log").write_text("x\n" * 20_000)
    tail = Tail(BoxPath(tmp_path, "log"))
    assert tail.rows() == ()
    assert len(tail.bad) == tails.MOST_BAD
    (tmp_path / "log").write_text("{}\n" * (tails.MOST_ROWS + 1))
    with pytest.raises(UnsafeFile, match="lines"):
        Tail(BoxPath(tmp_path, "log")).rows()


def test_a_tree_without_end_is_not_gone_through(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / "refs" / f"d{number}").mkdir(parents=True)
        for one in range(5):
            (tmp_path / "refs" / f"d{number}" / f"f{one}").touch()
    place = BoxPath(tmp_path)
    found = [str(one) for one in place.files(most=25)]
    assert found == sorted(found)
    assert len(found) == 20
    with pytest.raises(UnsafeFile, match="more than 24 files"):
        list(place.files(most=24))


def test_a_directory_without_end_is_not_listed(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / str(number)).touch()
    assert len(BoxPath(tmp_path).names(most=9)) == 9
    with pytest.raises(UnsafeFile, match="more than 8 files"):
        BoxPath(tmp_path).names(most=8)


def test_records_without_end_are_unknown_not_wrong() -> None:
    with pytest.raises(UnsafeFile, match="records"):
        rows_of({str(number): {} for number in range(MOST_RECORDS + 1)}, "", "id")


# --- databases ---------------------------------------------------------------------------------------


def database(directory: Path, *script: str) -> BoxPath:
    made = sqlite3.connect(directory / "some.db")
    for one in script:
        made.execute(one)
    made.commit()
    made.close()
    return BoxPath(directory, "some.db")


VIEWS = {
    "a huge text": "SELECT hex(zeroblob(400000000)) AS name",
    "many rows": "SELECT a.x || b.x AS name FROM t a, t b, t c",
    "no end": "SELECT count(*) AS name FROM t a, t b, t c, t d, t e, t f, t g",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_table_that_is_a_program_is_bounded(
    tmp_path: Path, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "QUERY_LIMIT_S", 0.3)
    rows = ",".join(["('" + "y" * 500 + "')"] * 100)
    path = database(
        tmp_path,
        "CREATE TABLE t(x)",
        f"INSERT INTO t VALUES {rows}",
        f"CREATE VIEW names AS {VIEWS[view]}",
    )
    with pytest.raises(UnsafeFile):
        sqlite_tables(path, {"names": "SELECT name FROM names"})


def test_a_check_that_is_a_program_is_bounded(tmp_path: Path) -> None:
    path = database(
        tmp_path,
        "CREATE TABLE t(x CHECK (length(hex(zeroblob(x))) >= 0))",
        "PRAGMA ignore_check_constraints = 1",
        "INSERT INTO t VALUES (400000000)",
    )
    with pytest.raises(UnsafeFile):
        sqlite_tables(path, {"t": "SELECT x FROM t"})


def test_a_damaged_database_is_still_damaged(tmp_path: Path) -> None:
    (tmp_path / "some.db").write_bytes(b"no database at all" * 100)
    assert sqlite_tables(BoxPath(tmp_path, "some.db"), {"t": "SELECT 1"}).error is not None


# --- records in files --------------------------------------------------------------------------------

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    "table",
    [BOMB, "a: &a [*a]\n", "x" * (sources.MOST_TABLE + 1) + ": 1\n", "a: " + "[" * 5000 + "\n"],
)
def test_a_table_that_unfolds_without_end_is_unknown(tmp_path: Path, table: str) -> None:
    (tmp_path / "one.md").write_text(f"---\n{table}---\n")
    with pytest.raises(UnsafeFile):
        front_matter(BoxPath(tmp_path, "one.md"))


@pytest.mark.parametrize("table", ["on: 2024-13-45\n", "a: !!int x\n"])
def test_a_table_that_cannot_be_is_no_record(tmp_path: Path, table: str) -> None:
    (tmp_path / "one.md").write_text(f"---\n{table}---\n")
    assert not front_matter(BoxPath(tmp_path, "one.md")).exists


def test_many_large_records_are_not_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "READ_LIMIT", 1000)
    for number in range(12):
        (tmp_path / f"{number}.json").write_text(json.dumps({"text": "x" * 100}))
    with pytest.raises(UnsafeFile, match="more records"):
        record_files(BoxPath(tmp_path), "*.json")


# --- what is kept ------------------------------------------------------------------------------------


def test_a_hole_is_copied_as_a_hole(tmp_path: Path) -> None:
    """A file of a terabyte that takes no room must not fill the disk of whoever keeps it."""
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 40)
        file.write(b"end")
    root = BoxPath(tmp_path)
    assert trees.copy(root / "huge", root / "whole", with_links=False, most=None) == []
    copy = tmp_path / "whole"
    assert copy.stat().st_size == huge.stat().st_size
    assert copy.stat().st_blocks < 100
    with copy.open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(1 << 40)
        assert file.read() == b"end"
    trees.copy(root / "huge", root / "last", with_links=False, most=trees.Most(10))
    assert (tmp_path / "last").read_bytes() == b"\0" * 7 + b"end"


@pytest.mark.parametrize("most", [trees.Most(files=5), trees.Most(of_all=30)])
def test_of_a_tree_without_end_a_part_is_kept(tmp_path: Path, most: trees.Most) -> None:
    (tmp_path / "logs").mkdir()
    for number in range(20):
        (tmp_path / "logs" / str(number)).write_text("0123456789")
    root = BoxPath(tmp_path)
    (told,) = trees.copy(root / "logs", root / "kept", with_links=False, most=most)
    assert "and the rest" in told
    assert 1 <= len(list((tmp_path / "kept").iterdir())) <= 5


def test_lines_that_come_regularly_are_kept_briefly(tmp_path: Path) -> None:
    """Twelve hours of them are 1,440: only the last tells what each agent does."""
    path = tmp_path / "metrics.jsonl"
    line = {"elapsed_seconds": 1, "phase": "one", "agent_utilization": [{"agent": "a"}] * 7}
    tail = Tail(BoxPath(tmp_path, "metrics.jsonl"), ("elapsed_seconds",), regular=True)
    assert tail.rows() == ()
    for number in range(3):
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**line, "number": 2 * number}) + "\n")
            file.write(json.dumps({**line, "number": 2 * number + 1}) + "\n")
        *earlier, last = tail.rows()
        assert last == {**line, "number": 2 * number + 1}
        assert [row["number"] for row in earlier] == list(range(2 * number + 1))
        assert {len(row["agent_utilization"]) for row in earlier} == {7}
        assert all(row.keys() == last.keys() for row in earlier)
        assert not any(row["agent_utilization"][0] for row in earlier)
        assert all("nothing" not in row and row.get("nothing") is None for row in earlier)
    assert tail.rows() == (*earlier, last), "nothing is new"


def test_a_regular_line_takes_little_memory(tmp_path: Path) -> None:
    """What is as in the line before is there once; a line of another form is kept as it is."""
    path = tmp_path / "metrics.jsonl"
    same = {f"figure_{place}": 1000.5 + place for place in range(20)}
    lines = [
        {"elapsed_seconds": 1000 + number, "done": number > 1500, **same} for number in range(2000)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    tail = Tail(BoxPath(tmp_path, "metrics.jsonl"), ("elapsed_seconds",), regular=True)
    tracemalloc.start()
    try:
        rows = tail.rows()
        each = tracemalloc.get_traced_memory()[0] / len(rows)
    finally:
        tracemalloc.stop()
    assert list(map(dict, rows)) == lines
    assert each < 400, "a dict of its own with its own figures takes 1,200 bytes and more"
    with path.open("a", encoding="utf-8") as file:
        file.write('{"elapsed_seconds": 1}\n{"elapsed_seconds": 2}\n')
    assert [dict(row) for row in tail.rows()[-3:]] == [
        lines[-1],
        {"elapsed_seconds": 1},
        {"elapsed_seconds": 2},
    ]
