"""House rules that a program can check: sizes, docstrings, and traces of one machine."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from parsing import parsed

ROOT = Path(__file__).parents[2]
MODULE_LINES = {"src": 600, "tests": 750, "benchmarks": 600}
FUNCTION_LINES = 70
SLEEPS_THAT_ARE_INPUT = {"tests/acceptance/test_claude_double.py": 1}
"""Silence between keystrokes is what the double is given there, not a wait for a verdict."""


@cache
def files() -> tuple[Path, ...]:
    """Everything that git knows or would take in."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name]
    if listed.returncode != 0:  # not a clone: take the directories that matter
        names = [
            str(path.relative_to(ROOT))
            for part in ("src", "tests", "docs", "tools", "benchmarks")
            for path in (ROOT / part).rglob("*")
        ]
    return tuple(ROOT / name for name in names if (ROOT / name).is_file())


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python(*parts: str) -> list[Path]:
    """Our Python; what agents of longboat's sessions write is none of it."""
    return [
        path
        for path in files()
        if path.suffix == ".py"
        and named(path).split("/")[0] in parts
        and not named(path).startswith("src/longboat/session/projects/")
    ]


def text_files() -> list[tuple[Path, str]]:
    found = []
    for path in files():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def test_there_is_something_to_check() -> None:
    assert len(python("src")) > 80
    assert ROOT / "pyproject.toml" in files()


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        named(path)
        for path in python("src", "tests", "benchmarks")
        if path.stat().st_size > 0 and not ast.get_docstring(parsed(path))
    ]
    assert silent == []


def test_every_public_name_says_what_it_is_for() -> None:
    silent = []
    for path in python("src"):
        for node in parsed(path).body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            rule = isinstance(node, ast.FunctionDef) and any(
                isinstance(item, ast.Call) for item in node.decorator_list
            )
            if public and not rule and not ast.get_docstring(node):  # type: ignore[arg-type]
                silent.append(f"{named(path)}: {node.name}")  # type: ignore[attr-defined]
    assert silent == []


def test_no_module_is_too_long() -> None:
    long = {
        named(path): lines
        for path in python(*MODULE_LINES)
        if (lines := len(path.read_text(encoding="utf-8").splitlines()))
        > MODULE_LINES[named(path).split("/")[0]]
    }
    assert long == {}


def test_no_function_is_too_long() -> None:
    long = {
        f"{named(path)}: {node.name}": lines
        for path in python("src", "tests", "benchmarks")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


def found_in(pattern: str, *, suffixes: tuple[str, ...] = ()) -> list[str]:
    searched = re.compile(pattern)
    return [
        f"{named(path)}:{number}: {line.strip()[:80]}"
        for path, text in text_files()
        if path != Path(__file__) and (not suffixes or path.suffix in suffixes)
        for number, line in enumerate(text.splitlines(), 1)
        if searched.search(line)
    ]


OF_ONE_MACHINE = r"(?<!/box)(?<![\w}])/(root/|home/[a-z]+\b|work/)"
"""A box has /box/home/..., which every machine has."""


@pytest.mark.parametrize("text", ["|root/x", "see |home/anna", "'|work/main'", "=|home/x/y"])
def test_a_path_of_one_machine_would_be_found(text: str) -> None:
    text = text.replace("|", "/")  # written so that this file names no such path itself
    assert re.search(OF_ONE_MACHINE, text)
    assert not re.search(OF_ONE_MACHINE, "/box/home/x {home}/y /homework /network/")


def test_no_path_of_one_machine() -> None:
    assert found_in(OF_ONE_MACHINE) == []


def test_processes_are_never_ended_by_name() -> None:
    assert found_in(r"\b(pkill|killall)\b", suffixes=(".py", ".sh", ".toml", "")) == []


def test_nothing_is_left_to_do_in_passing() -> None:
    assert found_in(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b", suffixes=(".py", ".md", ".sh")) == []


def test_an_ignored_type_error_says_which() -> None:
    assert found_in(r"#\s*type:\s*ignore(?!\[)", suffixes=(".py",)) == []


def test_a_silenced_lint_says_which() -> None:
    assert found_in(r"#\s*noqa(?!: [A-Z])", suffixes=(".py",)) == []


def sleeps(path: Path) -> list[int]:
    """Lines of sleeps outside of loops: a poll in a loop has a deadline, a bare sleep is a hope."""
    found = []

    def visit(node: ast.AST, in_loop: bool) -> None:
        inside = in_loop or isinstance(node, ast.While | ast.For)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = False
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "sleep"):
            found.extend([] if inside else [node.lineno])
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(parsed(path), False)
    return found


def test_no_test_sleeps_for_its_verdict() -> None:
    hoping = {named(path): len(lines) for path in python("tests") if (lines := sleeps(path))}
    assert hoping == SLEEPS_THAT_ARE_INPUT


@pytest.mark.parametrize("kind", ["unit", "property", "repo"])
def test_pure_tests_do_not_sleep_at_all(kind: str) -> None:
    here = [path for path in python("tests") if named(path).split("/")[1] == kind]
    sleeping = [
        named(path)
        for path in here
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep"
    ]
    assert here
    assert sleeping == []


def names_of(node: ast.stmt) -> list[str]:
    """The names that a statement of a module gives a value."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [one.id for one in targets if isinstance(one, ast.Name)]


def test_no_module_says_a_name_twice() -> None:
    """Two that worked side by side may each have brought theirs; then the first is read for nothing."""
    twice = [
        f"{named(path)}: {name}"
        for path in python("src", "tests", "tools")
        for name, times in Counter(
            name
            for node in parsed(path).body
            for name in names_of(node)
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign)
        ).items()
        if times > 1
    ]
    assert twice == []
