"""Small parts of `system` that stand in for heavier ones."""

from __future__ import annotations

import json
import platform
import shutil
from typing import Any

import pytest

from mutiny.system import wire
from mutiny.system.machine import machine_text
from mutiny.system.programs import find_program


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        [],
        {},
        {"a": [1, -2.5, 'ü\n"\\\x00\ud800', None, {"b": False}]},
        "text",
        10**30,
        1e300,
    ],
)
def test_wire_is_json(value: Any) -> None:
    assert wire.dumps(value) == json.dumps(value)
    assert wire.loads(json.dumps(value, indent=1)) == value
    assert wire.loads(json.dumps(value).encode()) == value


@pytest.mark.parametrize("text", ["", "{", "nul", '"\x01"'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        wire.loads(text)


def test_wire_refuses_what_json_refuses() -> None:
    with pytest.raises(TypeError, match="bytes"):
        wire.dumps({"a": b""})


def test_programs_are_found_as_the_shell_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sh", "true", "no-such-program"):
        assert find_program(name) == shutil.which(name)
    monkeypatch.setenv("PATH", "")
    assert find_program("no-such-program") is None


def test_the_machine_is_named_as_python_names_it() -> None:
    assert machine_text() == platform.platform()
