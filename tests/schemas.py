"""JSON Schemas of what a run writes, and a check of a whole run directory against them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema_rs

NAMES = ("journal-line", "summary", "plan", "replay")
"""What a run writes."""
OUTPUT = "output"
"""What `--json` prints."""


@cache
def schema(name: str) -> dict[str, Any]:
    """One of the schemas that ship with Mutiny."""
    text = files("mutiny").joinpath("schemas", f"{name}.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def _validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name))


def problems(name: str, value: object) -> list[str]:
    """Everything that is wrong with a value, each with its place."""
    return [
        f"{'/'.join(str(part) for part in error.instance_path) or '(top)'}: {error.message}"
        for error in _validator(name).iter_errors(value)
    ]


def validate_run(directory: Path) -> None:
    """Check every file of a run directory; an AssertionError lists all mistakes of all files."""
    found: list[str] = []
    journal = directory / "operations.jsonl"
    for number, line in enumerate(journal.read_text(encoding="utf-8").splitlines(), 1):
        found += [
            f"{journal.name} line {number}: {text}"
            for text in problems("journal-line", json.loads(line))
        ]
    for file, name, required in (
        ("plan.json", "plan", True),
        ("summary.json", "summary", True),
        ("minimal_replay.json", "replay", False),
    ):
        path = directory / file
        if not path.exists():
            found += [f"{file}: is missing"] if required else []
            continue
        value = json.loads(path.read_text(encoding="utf-8"))
        found += [f"{file}: {text}" for text in problems(name, value)]
    assert not found, "\n".join(found)
