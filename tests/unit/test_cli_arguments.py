"""What commands take: values that mean something, the nearest word for a mistake, and one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mutiny.cli import values
from mutiny.cli.main import ALIASES, COMMANDS, main, mutiny


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("experimen", "'experiment'"),
        ("shrnk x", "Did you mean 'shrink'?"),
        ("experiment rnu", "No such command 'rnu'. Did you mean 'run'?"),
        ("target chekc x", "Did you mean 'check'?"),
        ("run --scenaro x", "'--scenario'"),
        ("run --isolation bwrop", "is not one of 'bwrap'"),
        ("run --isolation bwrop", "did you mean 'bwrap'?"),
        ("sweep crahs --scenario x --at y", "did you mean 'crash'?"),
        ("load --tasks 5,x", "'5,x' is no list of numbers"),
        ("load --tasks 0", "between 1 and 100000"),
        ("load --shape dga", "did you mean 'dag'?"),
        ("run --seed", "requires an argument"),
        ("run --json=1", "does not take a value"),
        ("sweep crash", "Missing option '--scenario'"),
        ("experiment run", "Missing argument 'EXPERIMENT...'"),
        ("rules left over", "unexpected extra argument"),
        ("run --runs /etc/passwd", "is a file"),
        ("minimise x --output /", "is a directory"),
        ("run --junit /", "is a directory"),
    ],
)
def test_a_mistake_is_told_with_what_was_meant(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert told in said.err
    assert said.err.startswith("mutiny: ")
    assert len(said.err.splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        "ci init made --target nowhere.toml",
        "ci init made --target nobody",
        "target init made --contract nope",
        "target init made --contract nope --from true",
    ],
)
def test_a_file_is_only_written_for_what_there_is(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_program_is_told_as_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("no program")
    made = tmp_path / "made.toml"
    for given in (notes, tmp_path):
        assert main(["target", "init", str(made), "--from", str(given)]) == 3
        assert "cannot be executed" in capsys.readouterr().err
    assert not made.exists()


def test_a_file_that_is_there_is_told_before_a_program_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("mine")
    assert main(["target", "init", "mine.toml", "--from", "no-such-program"]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "verb"),
    [
        ("experimen --json", ""),
        ("experiment rnu --json", "experiment"),
        ("experiment check --json", "experiment check"),
        ("run --json --seed x", "run"),
        ("shrink --json", "minimise"),
        ("target check --json nowhere.toml", "target check"),
    ],
)
def test_a_program_hears_of_a_mistake_in_one_document(
    line: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    document = json.loads(capsys.readouterr().out)
    assert (document["verb"], document["exit_code"]) == (verb, 2)
    assert document["error"]["kind"] == "usage"
    assert document["error"]["message"]


@click.command()
@click.option("--share", type=values.NumberRange(0.5, 2.0))
@click.option("--sizes", type=values.Numbers(1, 9), default="1,2")
@click.option("--kind", type=values.Choice(["a", "b"]), default="a")
@click.option("--target", type=values.TARGET, multiple=True)
def probe(share: float | None, sizes: tuple[int, ...], kind: str, target: tuple[str, ...]) -> None:
    click.echo(repr((share, sizes, kind, target)))


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("", (None, (1, 2), "a", ())),
        ("--share 2 --sizes 9,1,1 --kind b", (2.0, (9, 1, 1), "b", ())),
        ("--target=x.toml --target y", (None, (1, 2), "a", ("x.toml", "y"))),
    ],
)
def test_values_are_read_as_what_they_are(line: str, read: tuple[object, ...]) -> None:
    assert CliRunner().invoke(probe, line.split()).output.strip() == repr(read)


@pytest.mark.parametrize(
    "line", ["--share nan", "--share inf", "--share 0.4", "--sizes 0", "--sizes 1,,2", "--kind c"]
)
def test_values_that_mean_nothing_are_refused(line: str) -> None:
    assert CliRunner().invoke(probe, line.split()).exit_code == 2


@pytest.mark.parametrize("name", [*COMMANDS, *ALIASES])
def test_every_command_teaches(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "-h"]) == 0
    assert f"Usage: mutiny {name}" in capsys.readouterr().out


def test_every_command_says_what_it_does() -> None:
    for words, command in mutiny.walk():
        assert (command.help or "")[:1].isupper(), words


def test_no_line_of_any_help_is_wider_than_a_terminal() -> None:
    for words, command in mutiny.walk():
        context = click.Context(command, info_name=" ".join(words), terminal_width=80)
        wide = [line for line in command.get_help(context).splitlines() if len(line) > 80]
        assert not wide, words


def test_the_line_in_the_list_is_about_the_same_command() -> None:
    """Both begin with a verb; nobody has forgotten one of the two."""
    for name, lazy in COMMANDS.items():
        assert lazy.module == f"mutiny.cli.{name}"
        assert lazy.about.endswith(".")


def test_the_exit_code_of_the_program_is_the_answer() -> None:
    argv = [sys.executable, "-m", "mutiny", "experiment", "check", "nowhere.json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere.json" in done.stderr


def test_a_refused_experiment_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its box goes up while the file is checked; a mistake takes it down again."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"title": "x", "method": [], "steady-state-hypothesis": {}}')
    assert main(["experiment", "run", str(bad), "--runs", str(tmp_path / "runs")]) == 2
    assert "bad.json:1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [bad]


def test_a_targets_words_are_shown_and_never_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = {
        "title": "\x1b[2Jgone",
        "verdict": "success",
        "operations": 1,
        "duration_s": 1.0,
        "exit_code": 0,
    }
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("\\x1b[2Jgone: success")
