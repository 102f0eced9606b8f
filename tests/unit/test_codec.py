"""The boundary between text and values: every mistake is named with its place, nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from mutiny.codec import decode, decode_operation
from mutiny.contracts.workers import operations as op
from mutiny.contracts.workers.operations import OPERATIONS
from mutiny.errors import FormatError, UsageError, nearest
from mutiny.kit import operations as common


@dataclass(frozen=True)
class Inner:
    size: int
    ratio: float = 1.0


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    tags: tuple[str, ...] = ()
    table: Mapping[str, Inner] = field(default_factory=dict)
    maybe: int | None = None
    either: int | str = 0
    flag: bool = False
    anything: Any = None


def problems(data: object) -> tuple[str, ...]:
    with pytest.raises(FormatError) as caught:
        decode(Outer, data, where="file.toml")
    return caught.value.problems


def operation_problems(data: object) -> tuple[str, ...]:
    with pytest.raises(FormatError) as caught:
        decode_operation(data, OPERATIONS, where="replay")
    return caught.value.problems


def test_builds_nested_values_and_fills_in_defaults() -> None:
    made = decode(
        Outer,
        {
            "name": "x",
            "inner": {"size": 2, "ratio": 3},
            "tags": ["a", "b"],
            "table": {"k": {"size": 1}},
            "maybe": None,
            "either": "word",
        },
        where="w",
    )
    assert made == Outer("x", Inner(2, 3.0), ("a", "b"), {"k": Inner(1)}, None, "word")
    assert isinstance(made.inner.ratio, float)


def test_lists_every_mistake_with_its_place_at_once() -> None:
    found = problems(
        {
            "inner": {"size": "big", "rato": 1},
            "tags": ["fine", 3],
            "table": {"k": {"size": True}},
            "maybe": "no",
            "either": [],
            "flag": 1,
            "nam": "x",
        }
    )
    assert set(found) == {
        "nam: unknown key (did you mean 'name'?)",
        "name: is missing",
        "inner.size: expected a whole number, got 'big'",
        "inner.rato: unknown key (did you mean 'ratio'?)",
        "tags[1]: expected text, got 3",
        "table.k.size: expected a whole number, got True",
        "maybe: expected a whole number, got 'no'",
        "either: expected a whole number or text, got []",
        "flag: expected true or false, got 1",
    }


def test_the_message_names_the_file_in_front_of_each_mistake() -> None:
    with pytest.raises(UsageError) as caught:
        decode(Outer, {}, where="file.toml")
    assert str(caught.value).splitlines() == [
        "file.toml: name: is missing",
        "file.toml: inner: is missing",
    ]
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], "expected a table, got []"),
        ({"name": "x", "inner": 3}, "inner: expected a table, got 3"),
        ({"name": "x", "inner": {"size": 1}, "tags": "ab"}, "tags: expected a list, got 'ab'"),
        ({"name": "x", "inner": {"size": 1}, "table": []}, "table: expected a table, got []"),
        ({"name": None, "inner": {"size": 1}}, "name: expected text, got None"),
        ({"name": "x", "inner": {"size": 1.5}}, "inner.size: expected a whole number, got 1.5"),
        (
            {"name": "x", "inner": {"size": 1, "ratio": True}},
            "inner.ratio: expected a number, got True",
        ),
    ],
)
def test_wrong_kinds_are_refused(data: object, problem: str) -> None:
    assert problems(data) == (problem,)


def test_long_values_are_shortened() -> None:
    (found,) = problems({"name": "x", "inner": ["y" * 500]})
    assert len(found) < 100
    assert found.endswith("...")


def test_nearest_offers_only_words_that_are_close() -> None:
    assert nearest("longbaot", ["longboat", "llmc"]) == " (did you mean 'longboat'?)"
    assert nearest("zebra", ["longboat", "llmc"]) == ""
    assert nearest("x", []) == ""


# --- operations -----------------------------------------------------------------------------------


def test_an_operation_without_arguments_needs_no_args() -> None:
    assert decode_operation({"type": "Reset"}, OPERATIONS, where="w") == common.Reset()


def test_nested_operations_are_read_at_any_depth() -> None:
    data = {
        "type": "Parallel",
        "args": {
            "operations": [
                {"type": "Start", "args": {"worker": "a", "prompt": "p"}},
                {
                    "type": "PauseProcess",
                    "args": {"role": "daemon", "during": {"type": "Up", "args": {}}},
                },
            ]
        },
    }
    made = decode_operation(data, OPERATIONS, where="w")
    assert made == common.Parallel((op.Start("a", "p"), op.PauseProcess("daemon", during=op.Up())))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"type": "Strat", "args": {}}, "unknown operation 'Strat' (did you mean 'Start'?)"),
        ({"type": "Xyzzy"}, "unknown operation 'Xyzzy'"),
        ({"args": {}}, 'expected an operation {"type": ..., "args": {...}}, got {\'args\': {}}'),
        ("Reset", 'expected an operation {"type": ..., "args": {...}}, got \'Reset\''),
        (None, 'expected an operation {"type": ..., "args": {...}}, got None'),
        ({"type": "Reset", "arg": {}}, "unknown key 'arg' beside type and args"),
        ({"type": "Up", "args": []}, "Up: expected a table, got []"),
        ({"type": "Add", "args": {}}, "Add.worker: is missing"),
        ({"type": "Add", "args": {"worker": 7}}, "Add.worker: expected text, got 7"),
        (
            {"type": "Add", "args": {"worker": "a", "modell": "x"}},
            "Add.modell: unknown key (did you mean 'model'?)",
        ),
        (
            {"type": "CorruptState", "args": {"how": "burn"}},
            "CorruptState: how 'burn' is none of garbage, truncate, empty, delete",
        ),
        (
            {"type": "Choice", "args": {"options": [{"type": "Up"}, {"type": "Dwon"}]}},
            "Choice.options[1]: unknown operation 'Dwon' (did you mean 'Down'?)",
        ),
        (
            {"type": "ExpectError", "args": {"inner": {"type": "Add", "args": {"worker": []}}}},
            "ExpectError.inner.Add.worker: expected text, got []",
        ),
    ],
)
def test_mistakes_in_operations_are_named(data: object, expected: str) -> None:
    assert operation_problems(data) == (expected,)


def test_all_mistakes_inside_one_operation_are_listed() -> None:
    found = operation_problems(
        {"type": "Start", "args": {"worker": 1, "promt": "x"}, "extra": True}
    )
    assert set(found) == {
        "unknown key 'extra' beside type and args",
        "Start.worker: expected text, got 1",
        "Start.promt: unknown key (did you mean 'prompt'?)",
        "Start.prompt: is missing",
    }


def test_text_that_cannot_be_written_down_is_refused() -> None:
    """A lone surrogate is legal in JSON but not in UTF-8: the journal could not be written."""
    data = json.loads(r'{"type": "Start", "args": {"worker": "alpha", "prompt": "x \ud800 y"}}')
    (found,) = operation_problems(data)
    assert found.startswith("Start.prompt: ")
    assert "\ud800" not in found


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    (found,) = operation_problems({"type": "Sleep", "args": {"seconds": value}})
    assert found.startswith("Sleep.seconds: ")
