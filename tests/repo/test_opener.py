"""Nobody reaches into a box but by the opener."""

from __future__ import annotations

import ast
from pathlib import Path

from parsing import parsed

SOURCE = Path(__file__).parents[2] / "src" / "mutiny"

REACHING = (
    "box/layout.py",
    "doubles/install.py",
    "faults",
    "probes",
    "targets",
    "modes/load.py",
)
"""Modules that work on files of a box from outside."""

OTHERWISE = {
    "faults/cgroups.py": "files of the kernel",
    "faults/clock.py": "the shim that is compiled once, and the target's program",
    "faults/disk.py": "what the kernel tells about processes; a program that runs inside",
    "faults/namespaces.py": "what the kernel tells about processes",
    "faults/process.py": "what the kernel tells about locks",
    "faults/proxy.py": "no files",
    "faults/resources.py": "what the kernel tells about processes",
    "doubles/install.py": "Mutiny's own modules",
    "targets/drivers": "they run inside",
    "targets/board/history.py": "the run directory",
    "targets/board/spec.py": "target files",
    "targets/session/recorder.py": "the run directory",
    "targets/registry.py": "target files",
    "targets/workers/spec.py": "target files",
    "targets/kit/starting.py": "the target's program",
}
"""Modules of these that open something else, and what."""

RAW = frozenset(
    [
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "unlink",
        "rename",
        "replace",
        "rmdir",
        "mkdir",
        "touch",
        "chmod",
        "iterdir",
        "glob",
        "rglob",
        "rmtree",
        "copytree",
        "copy",
        "copy2",
        "copyfile",
        "move",
        "listdir",
        "scandir",
        "walk",
        "remove",
        "removedirs",
        "makedirs",
        "truncate",
        "link",
        "symlink",
        "mkfifo",
    ]
)
OPENERS = frozenset({"os", "shutil", "io"})


def modules() -> list[str]:
    found = [
        str(path.relative_to(SOURCE))
        for place in REACHING
        for path in ([SOURCE / place] if place.endswith(".py") else (SOURCE / place).rglob("*.py"))
    ]
    return sorted(name for name in found if not name.startswith(tuple(OTHERWISE)))


def raw_calls(text: str) -> list[str]:
    """Calls of `open`, `os.remove`, `shutil.copy`, ..., and `Path(...)` that is used at once."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            found.append(f"line {node.lineno}: open")
        if isinstance(called, ast.Attribute) and called.attr in RAW:
            owner = called.value
            named = isinstance(owner, ast.Name) and owner.id in OPENERS
            made = (
                isinstance(owner, ast.Call)
                and isinstance(owner.func, ast.Name)
                and owner.func.id == "Path"
            )
            if named or made:
                found.append(f"line {node.lineno}: {called.attr}")
    return found


def test_files_of_a_box_are_opened_by_the_opener() -> None:
    found = {module: raw_calls((SOURCE / module).read_text()) for module in modules()}
    assert {module: calls for module, calls in found.items() if calls} == {}


def test_the_directory_of_a_box_is_only_named() -> None:
    """`box.files / "tmp"` can only be used safely; `box.directory / "tmp"` could be opened."""
    found = [
        f"{module}:{node.lineno}"
        for module in modules()
        for node in ast.walk(parsed(SOURCE / module))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if isinstance(node.left, ast.Attribute) and node.left.attr == "directory"
    ]
    assert found == []


def test_the_search_finds_what_it_looks_for() -> None:
    text = "open(x)\nos.remove(x)\nshutil.rmtree(x)\nPath(x).read_text()\nbox.files.read_text()\n"
    assert len(raw_calls(text)) == 4
    assert len(modules()) > 20


def test_exceptions_are_still_there() -> None:
    assert [name for name in OTHERWISE if not (SOURCE / name).exists()] in (
        [],
        ["targets/kit/starting.py"],
    )
