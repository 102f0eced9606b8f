"""The journal survives a killed Mutiny and a full disk, and refuses what it cannot read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders import ok, step
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.engine.journal import JournalWriter, read_lines, read_operations
from mutiny.errors import FormatError, StoreError, UsageError
from mutiny.model.verdict import Verdict
from mutiny.model.violation import Violation

SEED_FIELDS = [
    "sequence_id",
    "timestamp_unix",
    "operation",
    "pre_state",
    "result",
    "post_state",
    "classification",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "operations.jsonl"


def write(path: Path, *steps: object) -> None:
    writer = JournalWriter(path)
    for item in steps:
        writer.append(item)  # type: ignore[arg-type]
    writer.close()


def problems(path: Path) -> tuple[str, ...]:
    with pytest.raises(FormatError) as caught:
        list(read_lines(path))
    return caught.value.problems


def test_a_line_begins_with_the_seeds_fields_in_the_seeds_order(path: Path) -> None:
    write(path, step(op.Start("alpha", "x")))
    (line,) = read_lines(path)
    assert list(line)[: len(SEED_FIELDS)] == SEED_FIELDS
    assert list(line["result"])[:4] == ["exit_code", "stdout", "stderr", "duration_ms"]
    assert line["operation"] == {"type": "Start", "args": {"worker": "alpha", "prompt": "x"}}
    assert line["classification"] == "success"
    assert line["format"] == 1


def test_a_line_tells_what_was_broken_and_how_a_fault_was_done(path: Path) -> None:
    violation = Violation("workers.nothing_lost", "It is gone.", "MT-0-1", {"kind": "task"})
    write(
        path,
        step(
            op.KillDaemon(),
            Verdict.RECOVERY_BUG,
            7,
            violation,
            result=ok(technique="SIGKILL by handle", fired=True, tokens=("MT-0-1",)),
            inconclusive=("x",),
        ),
    )
    (line,) = read_lines(path)
    assert line["violations"] == [violation.as_json()]
    assert line["technique"] == "SIGKILL by handle"
    assert line["tokens"] == ["MT-0-1"]
    assert line["inconclusive"] == ["x"]
    assert line["result"]["fired"] is True


def test_operations_come_back_as_they_were(path: Path) -> None:
    scenario = SCENARIOS["racing_commands"]
    write(path, *(step(item, sequence_id=n) for n, item in enumerate(scenario, 1)))
    assert tuple(read_operations(path, OPERATIONS)) == scenario


def test_every_line_is_in_the_kernels_hands_before_the_next_operation(path: Path) -> None:
    writer = JournalWriter(path)
    for number in range(1, 4):
        writer.append(step(op.Up(), sequence_id=number))
        assert len(path.read_bytes().splitlines()) == number  # nothing waits in a buffer
    writer.close()
    writer.close()


def test_texts_of_all_kinds_stay_on_their_line(path: Path) -> None:
    text = 'quotes " and\nlines\r and \x00 and \u2028 and ünï and 🦑 and \\'
    write(path, step(op.Start("alpha", text), result=ok(stdout=text)), step(op.Up()))
    first, _ = read_lines(path)
    assert first["result"]["stdout"] == text
    assert first["operation"]["args"]["prompt"] == text


# --- half lines and rubbish -----------------------------------------------------------------------


def test_every_half_of_a_last_line_is_passed_over(path: Path) -> None:
    """A killed Mutiny may leave any beginning of a line behind."""
    write(path, step(op.Up()), step(op.Start("alpha", "ünï")))
    whole = path.read_bytes()
    begin = whole.index(b"\n") + 1
    for cut in range(begin, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert [line["operation"]["type"] for line in read_lines(path)] == ["Up"]
    path.write_bytes(whole[:-1])
    assert len(list(read_lines(path))) == 2, "only the newline is missing"


def test_an_empty_journal_has_no_lines(path: Path) -> None:
    path.write_bytes(b"")
    assert list(read_lines(path)) == []


@pytest.mark.parametrize("bad", [b'{"a": ', b"\xff\xfe", b"nonsense"])
def test_a_broken_line_in_the_middle_is_refused_with_its_number(path: Path, bad: bytes) -> None:
    write(path, step(op.Up()))
    path.write_bytes(path.read_bytes() + bad + b"\n" + path.read_bytes())
    (problem,) = problems(path)
    assert problem.startswith("line 2: not valid JSON")


def test_a_broken_last_line_that_was_ended_is_refused(path: Path) -> None:
    path.write_bytes(b'{"format": 1}\n{"a": \n')
    (problem,) = problems(path)
    assert problem.startswith("line 2: ")


def test_a_line_that_is_no_object_is_refused(path: Path) -> None:
    path.write_text("[1, 2]\n")
    assert problems(path) == ("line 1: expected an object",)


def test_a_line_nested_too_deeply_is_refused(path: Path) -> None:
    path.write_text("[" * 100_000 + "\n{}\n")
    (problem,) = problems(path)
    assert problem.startswith("line 1: ")


def test_a_newer_format_is_refused(path: Path) -> None:
    path.write_text('{"format": 1}\n{"format": 2}\n')
    assert problems(path) == ("line 2: format 2 is newer than this Mutiny reads (1)",)


@pytest.mark.parametrize("version", ['"2"', "null", "1.5", "[]", "true", "0"])
def test_a_format_that_is_none_is_refused(path: Path, version: str) -> None:
    path.write_text(f'{{"format": {version}}}\n')
    (problem,) = problems(path)
    assert problem.startswith("line 1: format")


def test_mistakes_in_an_operation_are_named_with_their_line(path: Path) -> None:
    good = json.dumps({"operation": {"type": "Up", "args": {}}, "format": 1})
    bad = json.dumps({"operation": {"type": "Strat", "args": {}}, "format": 1})
    path.write_text(f"{good}\n\n{bad}\n")
    with pytest.raises(FormatError) as caught:
        read_operations(path, OPERATIONS)
    assert str(caught.value) == (
        f"{path}: line 3: unknown operation 'Strat' (did you mean 'Start'?)"
    )


def test_a_missing_journal_is_a_usage_error(path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the journal: No such file"):
        list(read_lines(path))


# --- a full disk ----------------------------------------------------------------------------------


def test_a_short_write_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(path)
    writer.append(step(op.Up()))
    whole = path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[: len(data) // 2]))
    with pytest.raises(StoreError, match=r"cannot write .*operations\.jsonl: No space left"):
        writer.append(step(op.Down()))
    assert path.read_bytes() == whole
    monkeypatch.undo()
    writer.append(step(op.Init()))
    writer.close()
    assert [line["operation"]["type"] for line in read_lines(path)] == ["Up", "Init"]


def test_a_refused_write_is_one_clear_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(path)

    def refuse(descriptor: int, data: bytes) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", refuse)
    with pytest.raises(StoreError, match=r"cannot write .*operations\.jsonl: Input/output error"):
        writer.append(step(op.Up()))


FULL_DISK = """
import resource, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from builders import step
from mutiny.contracts.workers import operations as op
from mutiny.engine.journal import JournalWriter
from mutiny.errors import StoreError

path = Path(sys.argv[1])
writer = JournalWriter(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
written = 0
try:
    for number in range(1, 1000):
        writer.append(step(op.Start("alpha", "x" * 300), sequence_id=number))
        written += 1
except StoreError as error:
    assert str(path) in str(error), error
    print(written)
"""


def test_the_kernel_itself_refuses(path: Path) -> None:
    """A real limit on the file's size: the line that did not fit is gone, all before it stays."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), *sys.path[1:]],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    written = int(done.stdout)
    assert written > 2
    assert [line["sequence_id"] for line in read_lines(path)] == list(range(1, written + 1))
    assert path.read_bytes().endswith(b"\n")


def test_a_directory_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot write .*nowhere"):
        JournalWriter(tmp_path / "nowhere" / "operations.jsonl")
