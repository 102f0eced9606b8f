"""Imports go one way: what is low knows nothing of what is high."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

import pytest
from parsing import parsed

SOURCE = Path(__file__).parents[2] / "src"

LAYERS = (
    *("model", "errors", "codec", "seeds", "stopping", "foreign", "documents"),
    *("history", "kit", "contracts"),
    *("system", "doubles", "box", "syscalls", "probes", "faults"),
    *("engine", "targets", "report", "experiments", "modes", "web", "mcp", "cli", "pytest_plugin"),
    "__main__",
)
"""From low to high: a layer imports only from those before it."""

ONLY = {
    "model": set(),
    "errors": set(),
    "seeds": set(),
    "stopping": set(),
    "documents": {"errors", "foreign"},
    "foreign": set(),
    "codec": {"model", "errors"},
    "history": {"errors", "codec"},
    "kit": {"model", "errors", "seeds", "codec", "foreign"},
    "contracts": {"model", "errors", "seeds", "codec", "foreign", "kit", "history"},
    "doubles": set(),
    "system": {"errors"},
    "engine": {
        "model",
        "errors",
        "codec",
        "seeds",
        "stopping",
        "documents",
        "kit",
        "contracts",
        "system",
    },
    "report": {"model", "errors", "codec", "kit", "contracts", "engine"},
}
"""Layers that may use less than everything below them."""

OUTSIDE = ("mutiny.doubles.install", "mutiny.doubles.providers.install")
"""The modules of the doubles that Mutiny itself uses: they never run in a box, but reach into one."""


@cache
def modules() -> dict[str, Path]:
    """Every module of both packages by its dotted name; what agents write for longboat is none of ours."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if "projects" in path.parts:
            continue
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports(module: str) -> frozenset[str]:
    """Every module that a module imports, wherever in it the import stands."""
    path = modules()[module]
    found: set[str] = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            assert node.module is not None
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules() else node.module for name in names}
    return frozenset(found)


def layer(module: str) -> str | None:
    """The layer of a Mutiny module; None for everything else."""
    parts = module.split(".")
    if parts[0] != "mutiny" or len(parts) == 1:
        return None
    return parts[1]


def mutiny_modules() -> list[str]:
    return [name for name in modules() if layer(name) is not None]


def test_there_is_something_to_check() -> None:
    assert len(mutiny_modules()) > 60
    assert "mutiny.model.operation" in imports("mutiny.engine.loop")


def test_every_layer_has_its_place() -> None:
    """A new package belongs into `LAYERS` before anything imports it."""
    assert {layer(name) for name in mutiny_modules()} - set(LAYERS) == set()


def test_imports_go_down() -> None:
    for module in mutiny_modules():
        own = layer(module)
        assert own is not None
        below = set(LAYERS[: LAYERS.index(own)]) & ONLY.get(own, set(LAYERS))
        below |= {"system"} if module in OUTSIDE else set()
        used = {layer(name) for name in imports(module)} - {None, own}
        assert used <= below, f"{module} ({own}) may not import {sorted(used - below)}"  # type: ignore[type-var]


def test_contracts_know_no_target_and_targets_know_no_mode() -> None:
    """The two sentences of the design, spelled out."""
    for module in mutiny_modules():
        used = {layer(name) for name in imports(module)}
        if layer(module) == "contracts":
            assert not used & {"targets", "engine", "box", "faults", "modes", "cli"}, module
        if layer(module) == "targets":
            assert not used & {"modes", "cli", "report", "engine"}, module
        if layer(module) == "engine":
            assert not used & {"targets", "modes", "cli", "box", "faults", "doubles"}, module


def test_the_engine_knows_contracts_only_by_their_protocol() -> None:
    for module in mutiny_modules():
        if layer(module) == "engine":
            assert not {name for name in imports(module) if name.startswith("mutiny.contracts")}


@pytest.mark.parametrize("package", ["model", "doubles"])
def test_some_layers_use_the_standard_library_alone(package: str) -> None:
    for module in mutiny_modules():
        if layer(module) != package or module in OUTSIDE:
            continue
        foreign = {name for name in imports(module) if layer(name) != package}
        roots = {name.split(".")[0] for name in foreign}
        assert roots <= set(sys.stdlib_module_names), f"{module} imports {sorted(roots)}"


def test_only_known_libraries_are_used() -> None:
    roots = {name.split(".")[0] for module in modules() for name in imports(module)}
    assert roots - set(sys.stdlib_module_names) <= {
        "mutiny",
        "longboat",
        "click",
        "jinja2",
        "ruamel",
        "mcp",
        "anyio",
        "dask",
        "distributed",
        "pytest",
        "starlette",
        "uvicorn",
    }


def test_longboat_is_a_program_of_its_own() -> None:
    for module in modules():
        roots = {name.split(".")[0] for name in imports(module)}
        if module.split(".")[0] == "longboat":
            extra = {"mcp", "uvicorn"} if module == "longboat.board.broker" else set()
            assert roots <= {*sys.stdlib_module_names, "longboat", *extra}, module
        else:
            used = {name for name in imports(module) if name.split(".")[0] == "longboat"}
            assert used <= {"longboat.plants"}, module


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, directly or by way of others (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for used in sorted(graph[module]):
            if used not in order:
                visit(used)
                lowest[module] = min(lowest[module], lowest[used])
            elif used in stack:
                lowest[module] = min(lowest[module], order[used])
        if lowest[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return found


def test_cycles_are_found() -> None:
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]
    assert cycles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Neither late, inside a function, nor for its types alone."""
    known = modules()
    graph = {module: set(imports(module)) & set(known) - {module} for module in known}
    assert cycles(graph) == []
