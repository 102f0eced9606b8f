"""What was tested, and how it is called again."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from mutiny.box.results import CommandResult
from mutiny.errors import MutinyError
from mutiny.report.origin import Origin, replay_command
from mutiny.targets import registry
from mutiny.targets.kit.version import program_version


class Asked:
    """A box in which one program answers as it is told."""

    inside_root = "/box"

    def __init__(self, answer: CommandResult | Exception) -> None:
        self.answer = answer
        self.calls: list[tuple[tuple[str, ...], dict[str, Any]]] = []

    def run(self, argv: tuple[str, ...], **options: Any) -> CommandResult:
        self.calls.append((argv, options))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def answer(stdout: str = "", stderr: str = "", exit_code: int = 0) -> CommandResult:
    return CommandResult(("tool",), exit_code, None, stdout, stderr, 0.1, False, 1, 1, False)


def asked(tmp_path: Path, given: CommandResult | Exception) -> tuple[str, Asked]:
    program = tmp_path / "tool"
    program.write_bytes(b"#!/bin/sh\n")
    box: Any = Asked(given)
    return program_version(box, program), box


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (answer("longboat 0.1.0\n"), "longboat 0.1.0"),
        (answer("git version 2.39.5"), "git version 2.39.5"),
        (answer("", "tool 3.1\n"), "tool 3.1"),
        (answer("\x1b[1mtool 3.1\n"), "tool 3.1"),
        (answer("tool 3.1\n", exit_code=2), None),
        (answer("usage: tool COMMAND\n"), None),
        (answer("\n".join(f"line {n} 1.2" for n in range(40))), None),
        (answer(""), None),
        (MutinyError("not executable"), None),
    ],
)
def test_a_program_that_says_its_version_is_believed_every_other_is_hashed(
    tmp_path: Path, given: CommandResult | Exception, told: str | None
) -> None:
    found, _ = asked(tmp_path, given)
    if told is not None:
        assert found == told
    else:
        assert found.startswith("sha256 "), found


def test_the_version_is_asked_in_a_home_of_its_own_with_a_limit_and_once(tmp_path: Path) -> None:
    found, box = asked(tmp_path, answer("tool 1.0"))
    ((argv, options),) = box.calls
    assert argv[1:] == ("--version",)
    assert options["env"] == {"HOME": "/box/tmp"}
    assert options["cwd"] == "/box/tmp"
    assert 0 < options["timeout_s"] <= 5
    again: Any = Asked(answer("tool 2.0"))
    assert program_version(again, tmp_path / "tool") == found
    assert again.calls == []


def test_a_program_that_is_gone_is_unknown(tmp_path: Path) -> None:
    box: Any = Asked(answer("tool 1.0"))
    assert program_version(box, tmp_path / "gone").startswith("unknown")


def test_the_command_survives_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--bin", "/opt/it's here/$x")
    words = shlex.split(replay_command(Path("our runs/minimal replay.json"), options))
    assert words[1:] == ["replay", f"{tmp_path}/our runs/minimal replay.json", *options]


def test_mutiny_is_called_by_its_path_where_the_shell_does_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/opt/venv/bin/mutiny", "run"])
    assert replay_command(Path("/x"), ()) == "/opt/venv/bin/mutiny replay /x"
    (tmp_path / "mutiny").write_text("#!/bin/sh\n")
    (tmp_path / "mutiny").chmod(0o755)
    assert replay_command(Path("/x"), ()) == "mutiny replay /x"


def test_a_shipped_target_on_the_path_needs_no_words_another_one_is_named(tmp_path: Path) -> None:
    spec, place = registry.find_spec("longboat")
    program = registry.find_program(spec, None)
    assert registry.spoken_again(place, spec, program) == ()
    other = tmp_path / "tool"
    assert registry.spoken_again(place, spec, other) == ("--bin", str(other))
    own = str(tmp_path / "own.toml")
    assert registry.spoken_again(own, spec, program) == ("--target", own)


def test_own_code_is_known_by_the_names_of_target_and_program() -> None:
    assert Origin("coordination-a", "/opt/my-tool.py").names == (
        "coordination-a",
        "my-tool",
        "my_tool",
    )
