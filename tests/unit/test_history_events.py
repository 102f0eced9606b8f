"""Histories as text: invoke, ok, fail and info lines, and mistakes with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutiny.errors import FormatError, UsageError
from mutiny.history.events import (
    Entry,
    history_lines,
    parse_history,
    read_history,
    write_history,
)
from mutiny.history.simulate import SimulatedBoard, SimulatedRegisters, simulate
from mutiny.seeds import stream

LINES = """
{"type": "invoke", "process": "a", "operation": "claim", "arguments": {"worker": "a"}, "time": 1}
{"type": "invoke", "process": 7, "operation": "read", "time": 1.5, "key": "x"}
{"type": "ok", "process": "a", "answer": {"ok": true, "task": "t1", "epoch": 1}, "time": 2}

{"type": "info", "process": 7, "operation": "read", "time": 3}
{"type": "invoke", "process": 7, "operation": "write", "arguments": {"value": 3}, "time": 4}
{"type": "fail", "process": 7, "time": 5}
{"type": "invoke", "process": 7, "operation": "cancel", "arguments": {"task": "t1"}, "time": 6}
{"type": "fail", "process": 7, "answer": {"ok": false, "error": "wrong_status"}, "time": 7}
{"type": "invoke", "process": "a", "operation": "read", "time": 8}
"""


def test_lines_become_entries() -> None:
    claim, lost, cancel, last = parse_history(LINES.splitlines(), where="here")
    assert claim == Entry(
        "a", "claim", {"worker": "a"}, {"ok": True, "task": "t1", "epoch": 1}, 1.0, 2.0
    )
    assert lost == Entry("7", "read", {}, None, 1.5, None, "x")
    assert cancel.answer == {"ok": False, "error": "wrong_status"}
    assert cancel.returned == 7.0
    assert last.returned is None  # the file ended first


def test_a_failed_operation_without_an_answer_never_happened() -> None:
    operations = [entry.operation for entry in parse_history(LINES.splitlines(), where="here")]
    assert "write" not in operations


@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_what_is_written_is_read(tmp_path: Path, lost: float) -> None:
    path = tmp_path / "history.jsonl"
    for target in (SimulatedBoard(), SimulatedRegisters(keys=3)):
        entries = simulate(target, stream(1, "text"), operations=200, processes=5, lost=lost)
        write_history(path, entries)
        assert read_history(path) == entries


def test_equal_times_keep_each_process_in_order() -> None:
    entries = [
        Entry("a", "write", {"value": 1}, None, 1.0, 1.0),
        Entry("a", "write", {"value": 2}, None, 1.0, 1.0),
        Entry("a", "write", {"value": 3}, None, 1.0, None),
    ]
    assert parse_history(history_lines(entries), where="here") == entries


def test_all_mistakes_are_told_with_their_lines() -> None:
    lines = [
        "{",
        "[]",
        '{"type": "invoke", "process": "a", "operation": "read", "time": 1}',
        '{"type": "invoke", "process": "a", "operation": "read", "time": 2}',
        '{"type": "ok", "process": "b", "time": 3}',
        '{"type": "ok", "process": "a", "operation": "write", "time": 0}',
        '{"type": "done", "proces": "a", "time": "now", "arguments": [1], "key": 5}',
        '{"type": "invoke", "process": true, "time": 1}',
    ]
    with pytest.raises(FormatError) as caught:
        parse_history(lines, where="run.jsonl")
    problems = caught.value.problems
    assert [problem.split(":")[0] for problem in problems] == [
        *("line 1", "line 2", "line 4", "line 5", "line 6", "line 6"),
        *["line 7"] * 6,
        *["line 8"] * 2,
    ]
    text = str(caught.value)
    assert "process a is still busy with line 3" in text
    assert "process b has nothing to end" in text
    assert "ends 'write', but line 4 began 'read'" in text
    assert "did you mean 'process'?" in text


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the history"):
        read_history(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="cannot write the history"):
        write_history(tmp_path / "none" / "x.jsonl", [])


def test_an_entry_makes_sense() -> None:
    with pytest.raises(ValueError, match="answer without a return"):
        Entry("a", "read", {}, 1, 0.0, None)
    with pytest.raises(ValueError, match="before it was invoked"):
        Entry("a", "read", {}, 1, 2.0, 1.0)


def test_an_entry_for_people() -> None:
    claim = Entry("p1", "claim", {"worker": "a"}, {"ok": True, "task": "t1", "epoch": 2}, 1.5, 2.25)
    assert str(claim) == "p1 [1.5, 2.25] claim worker=a -> ok task=t1 epoch=2"
    lost = Entry("p1", "cancel", {"task": "t1"}, None, 3.0, None)
    assert str(lost) == "p1 [3, ...] cancel task=t1 -> no answer"
    refusal = Entry("p2", "cancel", {"task": "t1"}, {"ok": False, "error": "busy"}, 3.0, 4.0)
    assert str(refusal).endswith("-> busy")
