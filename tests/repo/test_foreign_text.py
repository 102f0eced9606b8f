"""What a target wrote is parsed in one place, which knows what a target may write."""

from __future__ import annotations

import ast
from pathlib import Path

from parsing import parsed

SOURCE = Path(__file__).parents[2] / "src" / "mutiny"
READING = ("contracts", "faults", "kit", "probes", "targets")
"""Modules that read what targets write or print."""
OTHERWISE = {
    "faults/network.py": "what nft prints",
    "targets/board/history.py": "our own history, with its own bound",
    "targets/board/live.py": "our own words",
    "targets/board/load.py": "what our own load program wrote",
    "targets/batch/desk.py": "our own notes",
    "targets/session/recorder.py": "our own record",
    "targets/drivers": "they run inside",
}


def found_in(path: Path) -> list[str]:
    return [
        f"line {node.lineno}"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        if isinstance(node.value, ast.Name)
        if node.value.id == "json" and node.attr in ("loads", "load", "JSONDecoder")
    ]


def test_foreign_json_is_parsed_by_the_one_that_expects_everything() -> None:
    wrong = {
        name: found
        for place in READING
        for path in sorted((SOURCE / place).rglob("*.py"))
        if not (name := str(path.relative_to(SOURCE))).startswith(tuple(OTHERWISE))
        if (found := found_in(path))
    }
    assert wrong == {}


def test_exceptions_are_still_needed() -> None:
    names = [name for name in OTHERWISE if name.endswith(".py")]
    assert [name for name in names if not found_in(SOURCE / name)] == []
