"""Laws of target files that hold for every contract: one loader, one way to name a mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mutiny.errors import FormatError, UsageError
from mutiny.targets.kit.files import TargetFile
from mutiny.targets.registry import find_spec, shipped

FILLED = re.compile(r"\{(program|home|source|tmp|box|worker|task)\}")
BASES = ("longboat", "longboat-board", "longboat-broker", "llmc", "coordination-a")
"""One of each kind, of both contracts."""


def text_of(name: str) -> str:
    return files("mutiny.targets.files").joinpath(f"{name}.toml").read_text(encoding="utf-8")


def form_of(name: str) -> type[TargetFile]:
    form = type(find_spec(name)[0])
    assert issubclass(form, TargetFile)
    return form


def mistakes(name: str, text: str, place: Path) -> tuple[str, ...]:
    path = place / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError) as caught:
        form_of(name).load(path)
    return caught.value.problems


def places(text: str) -> Iterator[tuple[int, str]]:
    """Each line with a placeholder, and the text with a wrong one there."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if FILLED.search(line.partition(" #")[0]) and not line.startswith("#"):
            wrong = FILLED.sub(lambda match: f"{{{match[1]}x}}", line, count=1)
            yield number + 1, "\n".join([*lines[:number], wrong, *lines[number + 1 :]])


@pytest.mark.parametrize("name", BASES)
def test_a_wrong_placeholder_is_found_wherever_it_stands(name: str, tmp_path: Path) -> None:
    checked = 0
    for number, text in places(text_of(name)):
        found = mistakes(name, text, tmp_path)
        assert any("unknown placeholder" in problem for problem in found), text.splitlines()[
            number - 1
        ]
        near = [int(problem[5:].partition(":")[0]) for problem in found if problem[:5] == "line "]
        # An array of several lines is named by the line of its key.
        assert any(number - 6 <= line <= number for line in near), (number, found)
        checked += 1
    assert checked > 5


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("[commands]", "[comands]", 1), "did you mean 'commands'?"),
        (lambda text: text + '\n[statuses]\nmine = "nonsense"\n', "unknown status 'nonsense'"),
        (lambda text: text + '\n[parties]\nx = 7\n', "expected text, got 7"),
        (lambda text: re.sub(r"(?m)^\[profile\]$", '[profile]\nlacks = ["Upp"]', text), "'Up'"),
        (lambda text: 'mounts = ["here"]\n' + text, "must begin with /"),
        (lambda text: 'extends = "nowhere"\n' + text, None),
    ],
)  # fmt: skip
def test_the_same_mistake_is_named_alike(
    name: str, change: Callable[[str], str], said: str | None, tmp_path: Path
) -> None:
    text = change(
        re.sub(r"(?ms)^\[(statuses|parties)\].*?(?=^\[)|^ *lacks = \[.*?\]$", "", text_of(name))
    )
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        form_of(name).load(path)
    assert (said or "nowhere.toml: cannot read") in str(caught.value)


@pytest.mark.parametrize("name", BASES)
def test_every_target_may_differ_from_another_in_a_few_words(name: str, tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(text_of(name), encoding="utf-8")
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "base"\nname = "mine"\n[environment]\nMINE = "1"\n')
    base = form_of(name).load(tmp_path / "base.toml")
    loaded = form_of(name).load(mine)
    assert (loaded.name, loaded.environment) == ("mine", {**base.environment, "MINE": "1"})
    assert loaded.commands == base.commands
    (tmp_path / "third.toml").write_text('extends = "mine"\nabout = "third"\n')
    assert form_of(name).load(tmp_path / "third.toml").name == "mine"
    (tmp_path / "base.toml").write_text('extends = "mine"\n')
    with pytest.raises(FormatError, match="goes in a circle"):
        form_of(name).load(mine)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_what_a_file_says_is_what_was_read(name: str) -> None:
    spec, origin = find_spec(name)
    assert isinstance(spec, TargetFile)
    told: dict[str, Any] = tomllib.loads(Path(origin).read_text(encoding="utf-8"))
    for word, command in told.get("commands", {}).items():
        assert list(spec.commands[word].argv) == command.get("argv", [])
        assert spec.commands[word].tool == command.get("tool", "")
    assert set(spec.missing) == set(spec.vocabulary.commands) - set(spec.commands)
