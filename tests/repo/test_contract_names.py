"""Nothing outside a contract's own folders names a contract: who wants one asks the catalogue."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from parsing import parsed
from test_layers import imports, modules, mutiny_modules

from mutiny.contracts.catalogue import own

NAMES = tuple(own())
PLACES = ("contracts", "targets")
FOLDERS = tuple(f"mutiny.{place}.{name}" for name in NAMES for place in PLACES)
"""What belongs to one contract."""
OTHER_MEANINGS = {
    "mutiny.engine.loading": "the number of workers of a load",
    "mutiny.report.load_page": "the number of workers of a load",
    "mutiny.doubles.agents.behaviours": "the workers of a script",
    "mutiny.doubles.boards.load": "the workers of a load",
    "mutiny.doubles.boards.lines": "tasks that are added to a board together",
    "mutiny.doubles.install": "the workers of a script",
    "mutiny.doubles.agents.records": "the session of an agent",
    "mutiny.targets.kit.state": "a session of tmux",
    "mutiny.targets.discover.proposal": "a session of tmux",
    "mutiny.doubles.providers.provider": "the session of an agent",
    "mutiny.targets.plants": "a part of longboat",
    "mutiny.web.follow": "figures of a long session",
    "mutiny.pytest_plugin": "a session of pytest",
}
"""Modules in which such a word is no contract but a key in data, with what it means there."""


def is_of_a_contract(module: str) -> bool:
    return module.startswith(tuple(f"{folder}." for folder in FOLDERS)) or module in FOLDERS


def others() -> list[str]:
    return [name for name in mutiny_modules() if not is_of_a_contract(name)]


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Every text in a module's code; docstrings are prose."""
    tree = parsed(path)
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def names_a_contract(text: str) -> bool:
    """`board`, `board.no_crash`, `mutiny.contracts.board.rules:RULES`."""
    words = text.replace(":", ".").split(".")
    if text.startswith("mutiny."):
        return any(word in NAMES for word in words[1:])
    return words[0] in NAMES and all(word.isidentifier() for word in words)


def test_there_is_something_to_check() -> None:
    assert {"workers", "board", "plain"} <= set(NAMES)
    assert "mutiny.modes.race" in others()
    assert names_a_contract("board")
    assert names_a_contract("workers.nothing_lost")
    assert names_a_contract("mutiny.contracts.plain.language")
    assert not names_a_contract("all workers")


def test_no_text_in_the_code_names_a_contract() -> None:
    found = [
        f"{module}, line {line}: {text!r}"
        for module in others()
        for line, text in literals(modules()[module])
        if names_a_contract(text)
        and not (text in ("workers", "batch", "session") and module in OTHER_MEANINGS)
    ]
    assert found == []


def test_no_import_names_a_contract() -> None:
    used = {
        module: {name for name in imports(module) if is_of_a_contract(name)} for module in others()
    }
    assert {module: names for module, names in used.items() if names} == {}


@pytest.mark.parametrize("name", NAMES)
def test_contracts_do_not_know_each_other(name: str) -> None:
    """Neither do their targets: what two of them need belongs to the kit."""
    mine = tuple(f"mutiny.{place}.{name}." for place in PLACES)
    for module in mutiny_modules():
        if module.startswith(mine):
            used = [one for one in imports(module) if is_of_a_contract(one) and name not in one]
            assert not used, f"{module} imports {sorted(used)}"
