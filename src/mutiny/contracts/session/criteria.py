"""Criteria of gates, looked at again: what the files of a checkpoint say against them.

Only what is certain: a criterion that nothing speaks against here may still not hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from mutiny.foreign import parse

JUDGED = ("compiles", "documentation", "no_security_findings", "release", "reviewed")
"""Criteria that a checkpoint alone can contradict; `[profile] criteria` names those that a target has."""
_DANGEROUS = ("eval", "exec")


def contradicted(payload: Mapping[str, Any]) -> dict[str, str]:
    """Criterion -> what speaks against it, for a checkpoint's payload."""
    files = {
        str(name): str(one.get("text") or "") for name, one in payload["file_system_state"].items()
    }
    memory = payload.get("working_memory") or {}
    return dict(reversed(list(_found(files, memory))))  # the first of each counts


def _found(files: Mapping[str, str], memory: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not files.get("README.md", "").strip():
        yield "documentation", "README.md says nothing"
    if not _same_version(files):
        yield "release", "VERSION and release.json do not agree"
    for name, text in sorted(files.items()):
        if not name.endswith(".py"):
            continue
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            yield "compiles", f"{name} cannot be compiled"
            continue
        if name.startswith("tests/"):
            continue
        if f"review.{name}" not in memory:
            yield "reviewed", f"nobody has reviewed {name}"
        if ast.get_docstring(tree) is None:
            yield "documentation", f"{name} has no docstring"
        called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if any(isinstance(one, ast.Name) and one.id in _DANGEROUS for one in called):
            yield "no_security_findings", f"{name} runs a text as a program"


def _same_version(files: Mapping[str, str]) -> bool:
    try:
        manifest = parse(files.get("release.json", ""))
    except ValueError:
        return False
    version = files.get("VERSION", "").strip()
    return bool(version) and isinstance(manifest, dict) and manifest.get("version") == version
