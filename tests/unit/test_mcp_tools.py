"""The tools for agents: what each call becomes on the command line, and how short the answers are."""

from __future__ import annotations

from typing import Any

import click
import pytest

from mutiny.cli.main import mutiny
from mutiny.errors import UsageError
from mutiny.mcp.answers import MOST_ROWS, brief
from mutiny.mcp.tools import TOOLS, Parameter, command_of

SAMPLES: dict[str, Any] = {
    "string": "x",
    "integer": 2,
    "number": 1.5,
    "boolean": True,
    "strings": ["a", "b"],
}
OTHERS = {"string": 1, "integer": True, "number": "1", "boolean": 1, "strings": "a"}


def sample(parameter: Parameter) -> object:
    return parameter.one_of[0] if parameter.one_of else SAMPLES[parameter.kind]


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_is_one_of_the_command(name: str) -> None:
    given = {word: sample(one) for word, one in TOOLS[name].parameters.items()}
    words = [*command_of(name, given, "runs"), "--json"]
    command: click.Command = mutiny
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command, **mutiny.context_settings), words.pop(0))
        assert found is not None
        command = found
    params = command.make_context(command.name, words, **mutiny.context_settings).params
    assert params["as_json"]
    for word in given:
        assert any(
            word in key or key in ("program", "wanted", "source", "scenarios") for key in params
        )


@pytest.mark.parametrize("name", TOOLS)
def test_values_of_another_kind_are_refused(name: str) -> None:
    tool = TOOLS[name]
    needed = {word: sample(one) for word, one in tool.parameters.items() if one.needed}
    for word, parameter in tool.parameters.items():
        with pytest.raises(UsageError, match=f"^{word}: "):
            tool.words({**needed, word: OTHERS[parameter.kind]})
    with pytest.raises(UsageError, match="unknown argument 'nonsense'"):
        tool.words({**needed, "nonsense": 1})
    for word in needed:
        with pytest.raises(UsageError, match=f"the argument '{word}' is needed"):
            tool.words({one: value for one, value in needed.items() if one != word})


def test_words_of_a_caller_are_never_options() -> None:
    assert command_of("replay", {"file": "--times=9"}, "r") == ["replay", "./--times=9", "--runs=r"]
    words = command_of("run", {"target": "--json", "scenarios": ["--all-scenarios"]}, "r")
    assert words == ["run", "--target=--json", "--scenario=--all-scenarios", "--runs=r"]


def test_a_long_answer_is_cut_and_says_so() -> None:
    runs = [
        {
            "title": f"s{number}",
            "verdict": "bug",
            "directory": f"runs/{number}",
            "error": {
                "rule": "toy.rule",
                "operation": {"type": "Add"},
                "violations": [{"message": "x" * 5000}],
                "minimal_replay": "minimal_replay.json",
                "minimal_length": 3,
            },
        }
        for number in range(50)
    ]
    told = brief("run", {"verdict": "bug", "exit_code": 1, "error": None, "runs": runs})
    assert len(told["failed"]) == MOST_ROWS
    assert told["failed_in_all"] == 50
    assert told["runs"] == {"bug": 50}
    assert len(told["failed"][0]["said"]) < 500
    assert "runs/0/minimal_replay.json" in told["next"]


def test_what_proved_nothing_names_its_doubt_and_no_replay() -> None:
    run = {
        "title": "s",
        "verdict": "inconclusive",
        "directory": "d",
        "error": {"rule": None, "violations": [], "inconclusive": ["could not look"]},
    }
    told = brief("run", {"verdict": "inconclusive", "exit_code": 3, "runs": [run]})
    assert told["failed"][0]["said"] == "could not look"
    assert "replay" not in told["failed"][0]
    assert "next" not in told


def test_an_error_is_all_that_is_told() -> None:
    error = {"kind": "usage", "message": "no such target"}
    told = brief("run", {"verdict": None, "exit_code": 2, "error": error})
    assert told == {"exit_code": 2, "error": "no such target"}
