"""From what a command printed to what the target answered: served, or refused with which word."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mutiny.foreign import lines, parse
from mutiny.model.result import OperationResult

MARKED = "isError"
"""A tool's own mark that a call was refused, beside whatever its answer says."""


@dataclass(frozen=True)
class Answer:
    """What a target answered: `ok` with its words, or the class of its refusal."""

    ok: bool
    error: str = ""
    said: Mapping[str, object] = field(default_factory=dict)
    message: str = ""
    names: str = "task"
    """The field that says what it is about."""

    @property
    def classes(self) -> frozenset[str]:
        """The classes that a refusal may be of: one, unless the target leaves it open (`a|b`)."""
        return frozenset(word for word in self.error.split("|") if word)

    @property
    def clear(self) -> bool:
        """Does it say anything at all?"""
        return bool(self.error or self.message)

    @property
    def shown(self) -> str:
        """What it says, in one line."""
        return self.error or self.message or "(no text)"

    @property
    def task(self) -> str | None:
        """The task, or whatever else it is about, that it names."""
        value = self.said.get(self.names)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int | None:
        """A whole number of the answer."""
        value = self.said.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True)
class Words:
    """How a target's words become ours."""

    errors: Mapping[str, str] = field(default_factory=dict)
    """Its class of refusals -> ours, where they differ."""
    rejections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Class of refusals -> regular expressions, for a target that only prints texts."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Its name of an answer's field -> ours."""
    texts: bool = False
    """Only `rejections` tell its classes of refusals: it answers in texts."""

    def unheard(self, classes: frozenset[str]) -> frozenset[str]:
        """Those of some classes of refusals for which the target file gives no words."""
        return classes - self.rejections.keys() if self.texts else frozenset()


def text_answer(result: OperationResult, rejections: Mapping[str, Sequence[str]]) -> Answer:
    """The answer of a target that speaks by exit codes and texts."""
    text = result.stderr or result.stdout
    if result.exit_code == 0:
        return Answer(True, "", _whole_json(result.stdout), first_line(text))
    classes = "|".join(sorted(matched_classes(text, rejections)))
    return Answer(False, classes, {}, failing_line(text))


def answer_of(result: OperationResult, words: Words) -> Answer:
    """The answer of a target that prints JSON. Without any, exit code and text have to do: also where a
    target that answers in texts fails with JSON of its own, which is not in our words.
    """
    told = result.details.get("answer")
    foreign = words.texts and not result.succeeded
    said = told if isinstance(told, Mapping) else None if foreign else _json(result.stdout)
    message = (result.stderr or result.stdout).strip()
    if said is None:
        if result.succeeded:
            return Answer(True, "", {}, first_line(message))
        return Answer(False, _class_of(message, words), {}, failing_line(message))
    said = {words.names.get(str(key), str(key)): value for key, value in said.items()}
    ok = said.get("ok", True) is not False and result.exit_code == 0
    error = "" if ok else _word(said, message, words)
    text = said.get("message")
    return Answer(ok, error, said, text if isinstance(text, str) else first_line(message))


def matched_classes(text: str, patterns: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Classes of refusals whose patterns a text matches."""
    return frozenset(
        name
        for name, choices in patterns.items()
        if any(re.search(choice, text) for choice in choices)
    )


def _word(said: Mapping[str, object], message: str, words: Words) -> str:
    given = said.get("error")
    if isinstance(given, str) and given:
        return words.errors.get(given, given)
    return _class_of(message, words)


def _class_of(text: str, words: Words) -> str:
    """The first class that matches: where texts overlap, a target's file lists the narrow one first. One
    pattern in several classes means any of them (`a|b`).
    """
    for patterns in words.rejections.values():
        for pattern in patterns:
            if re.search(pattern, text):
                return "|".join(
                    name for name, known in words.rejections.items() if pattern in known
                )
    return ""


def _whole_json(text: str) -> Mapping[str, object]:
    """The JSON object that a text is; nothing when it is none."""
    if not text.startswith("{"):
        return {}
    try:
        value = parse(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _json(text: str) -> Mapping[str, object] | None:
    """The last line that is a JSON object."""
    for line in reversed(lines(text)):
        if line.startswith("{"):
            try:
                value = parse(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                return value
    return None


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def failing_line(text: str) -> str:
    """The first line that begins as an error does; what stands above it only told of the way."""
    lines = (line.strip() for line in text.splitlines())
    failed = (line for line in lines if re.match(r"(?i)\W*(?:fatal|error|panic)\b", line))
    return next(failed, first_line(text))


def says(said: object, name: str) -> bool:
    """Has an answer this field? `tasks.done`: where it has `tasks`, these have `done`, each of them where
    it is a list; `tasks.*.status`: each of a table has it.
    """
    first, _, rest = name.partition(".")
    if isinstance(said, list):
        return all(says(one, name) for one in said)
    if not isinstance(said, Mapping):
        return False
    if first == "*":
        return all(says(one, rest) for one in said.values())
    if not rest:
        return first in said
    return said.get(first) is None or says(said[first], rest)
