"""Completion as a shell asks for it, and one line about every scenario."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mutiny.cli.completion import KINDS
from mutiny.cli.main import mutiny
from mutiny.cli.values import Name
from mutiny.contracts.catalogue import scenarios_about, with_targets
from mutiny.contracts.workers.scenarios import SCENARIOS
from mutiny.targets.board.spec import BoardSpec
from mutiny.targets.registry import find_spec, shipped

MUTINY = str(Path(sys.executable).parent / "mutiny")
SHELLS = ("bash", "zsh", "fish")


def offered(shell: str, *before: str, word: str = "") -> str:
    """What a shell is told, asked as its own script asks."""
    words = ["mutiny", *before, word]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        asked["COMP_CWORD"] = word
    done = subprocess.run(
        [MUTINY],
        env={**os.environ, "_MUTINY_COMPLETE": f"{shell}_complete", **asked},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


CASES = (
    ((), "sce", "scenarios"),
    (("run",), "--scen", "--scenario"),
    (("run", "--scenario"), "merge", "merge_conflict"),
    (("run", "--target", "longboat-board", "--scenario"), "stale_c", "stale_claim"),
    (("run", "--plant"), "nuke", "nuke-loses-commits"),
    (("run", "--target"), "longboat-bo", "longboat-board"),
    (("experiment",), "re", "report"),
    (("experiment", "run"), "killed-a", "killed-agent"),
    (("sweep",), "pre", "preempt"),
    (("replay", "x.json", "--expect"), "workers.nothing", "workers.nothing_lost"),
    (("explore", "--contract"), "bo", "board"),
)


@pytest.mark.parametrize(("before", "word", "wanted"), CASES)
def test_bash_is_offered_the_rest(before: tuple[str, ...], word: str, wanted: str) -> None:
    assert f"plain,{wanted}" in offered("bash", *before, word=word).splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_names_and_a_script(shell: str) -> None:
    assert "merge_conflict" in offered(shell, "run", "--scenario", word="merge")
    done = subprocess.run(
        [MUTINY],
        env={**os.environ, "_MUTINY_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert f"_MUTINY_COMPLETE={shell}_complete" in done.stdout


def test_what_is_no_name_may_be_a_file() -> None:
    assert "file," in offered("bash", "run", "--scenario", word="./my")


def test_a_mistake_before_it_does_not_complain_into_the_prompt() -> None:
    assert offered("bash", "run", "--target", "nonsense", "--scenario", word="m") == "file,m\n"


def every_option() -> Iterator[tuple[str, click.Parameter]]:
    """Every parameter of every command, with the command's name."""
    for words, command in mutiny.walk():
        yield from ((" ".join(words), parameter) for parameter in command.params)


NAMED = {
    "--target": "targets",
    "--plant": "plants",
    "--scenario": "scenarios",
    "--contract": "contracts",
}


def test_every_option_that_takes_a_name_is_completed() -> None:
    missing = {
        (command, parameter.opts[0])
        for command, parameter in every_option()
        if parameter.opts[0] in NAMED
        and getattr(parameter.type, "kind", "") != NAMED[parameter.opts[0]]
    }
    assert missing == set()
    used = {
        kind.kind for _, parameter in every_option() if isinstance(kind := parameter.type, Name)
    }
    assert used == set(KINDS)


# --- one line about every scenario ------------------------------------------------------------------


def test_every_scenario_of_the_workers_has_its_line() -> None:
    assert list(scenarios_about("workers")) == list(SCENARIOS)


def test_every_scenario_of_a_board_has_its_line() -> None:
    from mutiny.contracts.board.scenarios import scenarios_of

    known: set[str] = set()
    for name in shipped():
        spec, _ = find_spec(name)
        if isinstance(spec, BoardSpec):
            known |= set(scenarios_of(spec.profile))
    assert set(scenarios_about("board")) == known


@pytest.mark.parametrize("contract", list(with_targets()))
def test_the_lines_are_sentences_that_fit(contract: str) -> None:
    for name, about in scenarios_about(contract).items():
        assert about.endswith("."), name
        assert len(name) <= 29
        assert len(about) <= 72, name
