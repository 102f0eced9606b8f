"""From what a command printed to what the board answered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mutiny.contracts.board.observation import Answer
from mutiny.model.result import OperationResult


@dataclass(frozen=True)
class Words:
    """How a target's words become ours."""

    errors: Mapping[str, str] = field(default_factory=dict)
    """Its class of refusals -> ours, where they differ."""
    rejections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Class of refusals -> regular expressions, for a target that only prints texts."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Its name of an answer's field -> ours."""


def answer_of(result: OperationResult, words: Words) -> Answer:
    """The answer in a result. Without any JSON, exit code and text have to do."""
    told = result.details.get("answer")
    said = told if isinstance(told, Mapping) else _json(result.stdout)
    message = (result.stderr or result.stdout).strip()
    if said is None:
        error = "" if result.succeeded else _class_of(message, words)
        return Answer(result.succeeded, error, {}, _first_line(message))
    said = {words.names.get(str(key), str(key)): value for key, value in said.items()}
    ok = said.get("ok", True) is not False and result.exit_code == 0
    error = "" if ok else _word(said, message, words)
    text = said.get("message")
    return Answer(ok, error, said, text if isinstance(text, str) else _first_line(message))


def _word(said: Mapping[str, object], message: str, words: Words) -> str:
    given = said.get("error")
    if isinstance(given, str) and given:
        return words.errors.get(given, given)
    return _class_of(message, words)


def _class_of(text: str, words: Words) -> str:
    for name, patterns in words.rejections.items():
        if any(re.search(pattern, text) for pattern in patterns):
            return name
    return ""


def _json(text: str) -> Mapping[str, object] | None:
    """The last line that is a JSON object."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                return value
    return None


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else ""
