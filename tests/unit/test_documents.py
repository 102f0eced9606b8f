"""What users hand over is refused in one line with exit code 2, whatever it is."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mutiny import documents
from mutiny.cli.main import main
from mutiny.errors import FormatError, UsageError
from mutiny.model.domain import misfit

LONGBOAT = files("mutiny.targets.files").joinpath("longboat.toml").read_text()
BOARD = files("mutiny.targets.files").joinpath("longboat-board.toml").read_text()


def op(kind: str, **args: Any) -> dict[str, Any]:
    return {"type": kind, "args": args}


def nested(levels: int) -> dict[str, Any]:
    inner = op("Status")
    for _ in range(levels):
        inner = op("ExpectError", inner=inner)
    return inner


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (op("Sleep", seconds=1e10), "seconds"),
        (op("Sleep", seconds=-1), "seconds"),
        (op("Sleep", seconds=10**400), "seconds"),
        (op("WaitForIdle", worker="alpha", timeout_seconds=-5), "timeout_seconds"),
        (op("PauseProcess", role="daemon", seconds=1e9), "seconds"),
        (op("SlowFiles", delay_ms=1e15, lasting=True), "delay_ms"),
        (op("SkewClock", offset_s=1e12, lasting=True), "offset_s"),
        (op("Interleave", operations=[op("Up"), op("Up")], schedule="0x99999999999"), "schedule"),
        (nested(400), "deep"),
        (nested(5), "only a command can be refused"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_operation_that_cannot_be(
    operation: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps([operation]))
    assert main(["replay", str(path)]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert str(path) in said


def test_an_unknown_box_is_named_with_those_that_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"format": 1, "isolation": "castle", "operations": [op("Reset")]}))
    assert main(["replay", str(path)]) == 2
    assert "known: bwrap" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("errno --only EBOGUS", "--only EBOGUS: the errno sweep knows ENOSPC"),
        ("errno --only kill", "--only kill"),
        ("torn --only ENOSPC", "--only ENOSPC"),
        ("crash --only ENOSPC", "nothing to choose"),
        ("preempt --only x", "nothing to choose"),
    ],
)
def test_what_a_sweep_does_not_know(
    words: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    kind, *rest = words.split()
    line = ["sweep", kind, "--scenario", "basic_lifecycle", "--at", "Accept", *rest]
    assert main(line) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "place", ["", "state.json", "~/x", "/etc/passwd", "{home}/../../x", "{source}/../..", "/box2/x"]
)
@pytest.mark.parametrize(
    ("text", "old"),
    [(LONGBOAT, "{home}/longboat/state.json"), (BOARD, "{home}/board/board.lock")],
    ids=["state.file", "places.lock"],
)
def test_a_targets_files_lie_in_the_box(
    text: str, old: str, place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`target check` names the line; Mutiny looks at these files, and its faults damage them."""
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(f'"{old}"', json.dumps(place), 1))
    line = next(n for n, one in enumerate(text.splitlines(), 1) if f'= "{old}"' in one)
    assert main(["target", "check", str(path)]) == 2
    said = capsys.readouterr().err
    assert f"line {line}: " in said
    assert "does not lie in the box" in said or "empty" in said


@pytest.mark.parametrize(
    "line",
    [
        f"a = {'[' * 3000}{']' * 3000}",
        f"a = {'[' * 100}{']' * 100}",
        f"{'.'.join(['a'] * 1500)} = 1",
        f"a = {'9' * 5000}",
        "a = 1e999999",
        f'sessions = "{"(" * 2000}{")" * 2000}"',
    ],
    ids=lambda line: line[:12],
)
def test_toml_that_is_too_much(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{line}\n{LONGBOAT.replace('sessions =', 'was_sessions =')}")
    assert main(["target", "check", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


@pytest.mark.parametrize(
    "summary",
    ["{}", "[]", "null", '"x"', '{"exit_code": 1}', '{"exit_code": "1"}', "[" * 5000, "1e999"],
)
def test_a_summary_that_is_none(
    summary: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "summary.json").write_text(summary)
    assert main(["report", str(tmp_path)]) == 2
    assert "summary.json" in capsys.readouterr().err


def test_a_summary_that_contradicts_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"title": "x", "verdict": "success", "operations": 1, "duration_s": 1, "exit_code": 1}
    (tmp_path / "summary.json").write_text(json.dumps(told))
    assert main(["report", str(tmp_path)]) == 2
    assert "'success' means 0, not 1" in capsys.readouterr().err


def test_a_file_is_bounded_and_named(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[1]")
    assert documents.read_json(path, "list") == [1]
    with pytest.raises(UsageError, match="more than 2 bytes"):
        documents.read_bytes(path, "list", largest=2)
    path.write_text("[\n1,\n")
    with pytest.raises(FormatError, match="line 3: not valid JSON"):
        documents.read_json(path, "list")
    with pytest.raises(UsageError, match="cannot read the list: Is a directory"):
        documents.read_json(tmp_path, "list")
    with pytest.raises(UsageError, match="cannot read the list"):
        documents.read_json(Path("a\0b"), "list")


@pytest.mark.parametrize("name", ["seconds", "timeout_seconds", "lease_s", "delay_ms", "rate_hz"])
def test_a_unit_has_its_bounds_under_every_name(name: str) -> None:
    assert misfit(name, 0) is None
    assert misfit(name, 1) is None
    assert misfit(name, -1) is not None
    assert misfit(name, 1e12) is not None
    assert misfit(name, float("nan")) is not None
    assert misfit("kilobits_per_s", 1e12) is None
    assert misfit("count", -1) is None, "what it means is its own operation's business"
