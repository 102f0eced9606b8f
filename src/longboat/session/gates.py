"""Criteria: what must hold before the next phase begins, each looked at in the project itself."""

from __future__ import annotations

import ast
import json
import re

from longboat.planting import planted
from longboat.session.project import COVERAGE, Project
from longboat.session.values import Json

TESTED = ("tests_pass", "integration", "performance", "ci")
"""Criteria that need a fresh run of the tests; so does coverage."""
_DANGEROUS_NAMES = ("eval", "exec")
_DANGEROUS_CALLS = ("system", "popen", "loads_unsafe")
_DANGEROUS_MODULES = ("pickle", "marshal", "shelve")


def needs_tests(criteria: tuple[str, ...]) -> bool:
    """Must the tests run before these can be judged?"""
    return any(one in TESTED or COVERAGE.match(one) for one in criteria)


def judge(project: Project, criteria: tuple[str, ...], state: Json, checkpoint_valid: bool) -> Json:
    """Every criterion with its answer."""
    return {one: _holds(project, one, state, checkpoint_valid) for one in criteria}


def _holds(project: Project, criterion: str, state: Json, checkpoint_valid: bool) -> bool:
    files = {name: entry.get("text") or "" for name, entry in state["file_system_state"].items()}
    tests = state["test_results"]
    passed = bool(tests["total"] and tests["passed"] + tests["skipped"] == tests["total"])
    coverage = COVERAGE.match(criterion)
    if coverage:
        return bool(tests["coverage"] >= int(coverage[1]))
    match criterion:
        case "compiles":
            return bool(_modules(files)) and compiles(files)
        case "interfaces":
            return all("__all__" in text for text in _modules(files).values() if text.strip())
        case "ci":
            return "ci.sh" in files and compiles(files) and passed
        case "architecture":
            name = "" if planted("session-gate-stays-shut") else "ARCHITECTURE.md"
            page = files.get(name, "").lower()
            return bool(page) and all(name.lower() in page for name in project.components())
        case "tests_pass":
            return passed
        case "integration":
            return passed and any("test_integration" in name for name in files)
        case "performance":
            return passed and any("test_performance" in name for name in files)
        case "no_security_findings":
            return not security_findings(files)
        case "reviewed":
            memory = state["working_memory"]
            return all(f"review.{name}" in memory for name in _modules(files))
        case "documentation":
            return documented(files) == 1.0
        case "release":
            return _released(files)
        case "checkpoint_valid":
            return checkpoint_valid
        case _:
            left = [
                one for one in state["tasks"].values() if one["phase"] == state["phase"]["name"]
            ]
            return all(one["status"] in ("done", "flagged") for one in left)


def _modules(files: dict[str, str]) -> dict[str, str]:
    """The Python files that are no tests."""
    return {
        name: text
        for name, text in files.items()
        if name.endswith(".py") and not name.startswith("tests/")
    }


def compiles(files: dict[str, str]) -> bool:
    """Can every Python file be compiled, tests as well?"""
    for name, text in files.items():
        if not name.endswith(".py"):
            continue
        try:
            compile(text, name, "exec")
        except (SyntaxError, ValueError):
            return planted("session-compile-not-checked")
    return True


def security_findings(files: dict[str, str]) -> list[str]:
    """Calls that run text as a program, or read it as one."""
    found = []
    for name, text in _modules(files).items():
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue  # `compiles` says so
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _dangerous(node):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node.func)}")
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [one.name for one in node.names]
                module = node.module if isinstance(node, ast.ImportFrom) else ""
                found += [
                    f"{name}:{node.lineno}: {one}"
                    for one in _DANGEROUS_MODULES
                    if one in (*names, module)
                ]
    return found


def _dangerous(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in _DANGEROUS_NAMES
    shell = any(
        word.arg == "shell" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in call.keywords
    )
    return shell or (isinstance(call.func, ast.Attribute) and call.func.attr in _DANGEROUS_CALLS)


def documented(files: dict[str, str]) -> float:
    """How much is documented: every module and public thing has a docstring, and there is a README."""
    wanted, there = 1, int(bool(files.get("README.md", "").strip()))
    for text in _modules(files).values():
        try:
            tree = ast.parse(text)
        except SyntaxError:
            wanted += 1
            continue
        for node in ast.walk(tree):
            named = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if (named and not node.name.startswith("_")) or node is tree:  # type: ignore[attr-defined]
                wanted += 1
                there += bool(ast.get_docstring(node))  # type: ignore[arg-type]
    return there / wanted


def _released(files: dict[str, str]) -> bool:
    """A version, the same in the manifest, the change log and VERSION, and every module in the manifest."""
    version = files.get("VERSION", "").strip()
    try:
        manifest = json.loads(files.get("release.json", ""))
    except ValueError:
        return False
    listed = set(manifest.get("modules", [])) if isinstance(manifest, dict) else set()
    return (
        bool(re.fullmatch(r"\d+\.\d+\.\d+", version))
        and manifest.get("version") == version
        and version in files.get("CHANGELOG.md", "")
        and set(_modules(files)) <= listed
    )
