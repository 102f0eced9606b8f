"""Python files as trees, each read once: most house rules look at all of them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of one file."""
    return ast.parse(path.read_text(encoding="utf-8"))
