"""Every end of a command has its own exit code; none but a found bug exits with 1."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mutiny.cli import main as entry
from mutiny.cli.main import main, mutiny
from mutiny.cli.values import NumberRange
from mutiny.engine.rundir import storing

NONSENSE = ("-1", "nan", "inf", "-inf", "1e309", "9" * 30, "9" * 5000, "", " ", "x", "0x10")


def _numbers() -> Iterator[tuple[list[str], str, click.Parameter]]:
    plain = type(click.INT) | type(click.FLOAT)
    for line, command in mutiny.walk():
        for parameter in command.params:
            if isinstance(parameter.type, plain | click.IntRange | click.FloatRange):
                yield list(line), parameter.opts[0], parameter


@pytest.mark.parametrize(
    ("line", "flag", "parameter"),
    [pytest.param(*one, id=" ".join(one[0] + [one[1]])) for one in _numbers()],
)
@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: repr(value[:8]))
def test_no_number_is_taken_that_means_nothing(
    line: list[str],
    flag: str,
    parameter: click.Parameter,
    value: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Refused by its declared range, before anything is looked at or run."""
    assert isinstance(parameter.type, click.IntRange | NumberRange), "say its range: values.COUNT"
    assert main([*line, f"{flag}={value}"]) == 2
    assert f"Invalid value for '{flag}'" in capsys.readouterr().err


class _Odd(Exception):
    def __str__(self) -> str:
        raise ValueError("not even its text can be had")


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("division by zero"),
        RecursionError("maximum recursion depth exceeded"),
        MemoryError(),
        FileNotFoundError(2, "No such file or directory", "gone"),
        BrokenPipeError(32, "Broken pipe"),
        UnicodeEncodeError("utf-8", "\udc80", 0, 1, "surrogates not allowed"),
        AssertionError(),
        ValueError("many\nlines\n" + "x" * 5000),
        _Odd(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_nobody_foresaw_is_70_in_one_line(
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: list[str]) -> None:
        raise error

    monkeypatch.chdir(tmp_path)
    (tmp_path / "chaos_runs").mkdir()
    monkeypatch.setattr(entry, "_call", fail)
    assert main(["rules"]) == 70
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    (kept,) = (tmp_path / "chaos_runs").glob("crash-*.txt")
    assert type(error).__name__ in line
    assert str(kept) in line
    assert len(line) < 600
    assert "Traceback (most recent call last)" in kept.read_text()


@pytest.mark.parametrize("told", [False, True], ids=["as it came", "in other words"])
@pytest.mark.parametrize(("given", "code"), [("n" * 300, 2), ("short", 70)])
def test_a_name_that_no_file_can_have_is_the_users_mistake(
    told: bool,
    given: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ours are never too long by themselves: then it is a fault of Mutiny."""

    def fail(_: list[str]) -> None:
        with storing(tmp_path) if told else contextlib.nullcontext():
            (tmp_path / ("n" * 300)).mkdir()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(entry, "_call", fail)
    assert main(["run", "--runs", given]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert ("too long for a file" in line) == (code == 2)


def test_a_traceback_that_cannot_be_written_is_70_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_: list[str]) -> None:
        raise KeyError("x")

    import tempfile

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(entry, "_call", fail)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert main(["rules"]) == 70
    assert "could not be written" in capsys.readouterr().err


def test_an_interrupt_while_mutiny_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mutiny", "rules"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("words_", [["rules"], ["plants"], ["rules", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_bug(words_: list[str]) -> None:
    """`mutiny rules | head -1` ends as if SIGPIPE had ended it, without a word."""
    with subprocess.Popen(
        [sys.executable, "-m", "mutiny", *words_],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read().decode()
    assert (process.returncode, said) == (141, "")


@pytest.mark.parametrize("words_", [["rulez"], ["replay", "nowhere.json"], ["run", "--seed", "x"]])
def test_a_listener_that_goes_away_changes_no_exit_code(words_: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mutiny", *words_], stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        process.stderr.close()
    assert process.returncode == 2


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_was_closed_is_no_bug(closed: str) -> None:
    line = f'"$0" -m mutiny rules {closed}'
    assert subprocess.run(["sh", "-c", line, sys.executable], check=False).returncode == 0
    line = f'"$0" -m mutiny rulez {closed}'
    assert subprocess.run(["sh", "-c", line, sys.executable], check=False).returncode == 2


def test_a_full_disk_behind_the_output_is_mutinys_own_trouble() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -m mutiny rules > /dev/full', sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 70
    assert len(done.stderr.splitlines()) == 1
