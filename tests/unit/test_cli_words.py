"""Plain lines are read without click, and mean the same as with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mutiny.cli import words
from mutiny.cli.main import COMMANDS, find_command, main
from mutiny.cli.words import NotPlain

SEEN: list[dict[str, Any]] = []


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise words.BadParameter("no numbers") from None


@words.command("probe")
@words.argument("files", nargs=-1, required=True)
@words.option("--kind", type=words.Choice(["a", "b"]))
@words.option("--count", type=words.IntRange(1, 9), default=3, show_default=True)
@words.option("--seed", type=int)
@words.option("--limit", default=1.5)
@words.option("--only", multiple=True)
@words.option("--root", "place", type=words.Path(file_okay=False), default=Path("x"))
@words.option("--fast/--slow", "fast", default=True)
@words.option("--json", "as_json", is_flag=True)
@words.option("--sizes", default="1,2", callback=_numbers)
def probe(**given: Any) -> int:
    """Take everything."""
    SEEN.append(given)
    return 7


PLAIN = (
    "f",
    "f g --kind b --count=9 --seed 12 --limit 2",
    "--only x --only=y f --slow --json --root /tmp",
    "--fast f --sizes 5,6",
)
NOT_PLAIN = (
    "",
    "--help",
    "f --kind c",
    "f --count 10",
    "f --count x",
    "f --seed -5",
    "f --seed",
    "f --unknown",
    "f --json=1",
    "f --sizes a",
    "-- f",
    "f --root /etc/passwd",
)


@pytest.mark.parametrize("line", PLAIN)
def test_both_readers_agree(line: str) -> None:
    SEEN.clear()
    assert probe.call(line.split()) == 7
    assert probe.built().main(line.split(), standalone_mode=False) == 7
    assert SEEN[0] == SEEN[1]


@pytest.mark.parametrize("line", NOT_PLAIN)
def test_everything_else_is_left_to_click_before_anything_is_done(line: str) -> None:
    SEEN.clear()
    with pytest.raises(NotPlain):
        probe.call(line.split())
    assert SEEN == []


def test_a_negative_number_goes_through_click() -> None:
    SEEN.clear()
    assert probe.built().main(["f", "--seed", "-5"], standalone_mode=False) == 7
    assert SEEN[0]["seed"] == -5


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_form_for_click(name: str) -> None:
    command = find_command(name)
    assert command is not None
    told = command.built()
    assert told.help
    assert all(parameter.is_plain for parameter in command.parameters)


def test_mistakes_are_told_by_click(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "--tasks", "5,x"]) == 2
    assert "'5,x' is no list of numbers" in capsys.readouterr().err
    assert main(["experimen"]) == 2
    assert "Did you mean 'experiment'?" in capsys.readouterr().err


def test_a_plain_line_loads_no_click() -> None:
    code = (
        "import sys; from mutiny.cli.main import main; main(['experiment', 'check', sys.argv[1]]); "
        "print(*sorted({'click', 'inspect', 'dataclasses', 'typing'} & set(sys.modules)))"
    )
    path = Path(__file__).with_name("trivial_experiment.json")
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == ""


def test_the_exit_code_of_the_program_is_the_answer(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "from mutiny.cli.main import main; main(); print('went on')"]
    done = subprocess.run(
        [*argv, "experiment", "check", "nowhere.json"], capture_output=True, text=True, check=False
    )
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
