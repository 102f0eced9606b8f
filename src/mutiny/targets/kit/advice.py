"""What is wrong with a target's file, from what was seen of the target: said, saw, change.

A file is written by hand, and most that looks like a bug on the first day is a word in it. So a target is
looked at step by step before anything is called a bug.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mutiny.kit.crash import crash_of
from mutiny.kit.operations import ExpectError
from mutiny.model.operation import Kind, Operation
from mutiny.model.result import OperationResult
from mutiny.targets.discover.proposal import pattern_of
from mutiny.targets.kit.files import TargetFile

_UNKNOWN_WORD = re.compile(
    r"no such (?:command|option)|unknown (?:command|option|flag)|unrecognized|invalid choice"
    r"|unexpected (?:extra )?argument|missing argument|usage:",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_USAGE = re.compile(r"usage:?|(?:try|see|run|use|for more)\b.*--help\b", re.IGNORECASE)
"""Many programs explain themselves below every refusal, or say how they can be asked to."""
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")


@dataclass(frozen=True)
class Advice:
    """One thing that the file says, what was seen instead, and what to change."""

    said: str
    saw: str
    change: str

    def __str__(self) -> str:
        return f"your file says {self.said}; I saw {self.saw}; {self.change}"


def last_line(result: OperationResult) -> str:
    """The line of an answer that says most: the last one of its errors, or of what it printed."""
    text = _COLOUR.sub("", result.stderr or result.stdout)
    lines = [line.strip(" │╰╯╭╮─") for line in text.splitlines()]
    begin = next((at for at, line in enumerate(lines) if _USAGE.match(line)), len(lines))
    said = [line for line in lines[:begin] if line] or [line for line in lines if line]
    return said[-1] if said else "nothing"


def about_command(
    spec: TargetFile, operation: Operation, result: OperationResult, due: Sequence[str] = ()
) -> Iterator[Advice]:
    """What a command's answer says about the words that the file has for it; `due`: the classes of
    refusals that were right, and that the file has no words for.
    """
    inner = operation.inner if isinstance(operation, ExpectError) else operation
    word = _word_of(spec, inner)
    if word is None or inner.kind is not Kind.COMMAND or result.harness_error is not None:
        return
    said = f"{word} = {json.dumps(list(spec.commands[word].argv), ensure_ascii=False)}"
    answer = last_line(result)
    if result.timed_out:
        change = (
            f"does it wait for something? Give commands.{word} a `stdin` or a larger `timeout_s`"
        )
        yield Advice(said, "that it did not end in time", change)
    elif not result.succeeded and not due and _UNKNOWN_WORD.search(result.stderr or result.stdout):
        yield Advice(said, f"exit {result.exit_code}: {answer}", f"change commands.{word}")
    elif crash_of(result.exit_code, result.stderr) is not None:
        return  # no word of the file makes a refusal of it: its verdict is `no_crash`
    elif (due or not result.succeeded) and not _known_refusal(spec, result):
        pattern = json.dumps(pattern_of(answer, _subject(inner)), ensure_ascii=False)
        classes = ", ".join(sorted(spec.vocabulary.refusals))
        change = f"if it refuses like this, add {pattern} to one of [rejections] ({classes})"
        asked = [one for one in _OPTION.findall(answer) if one not in spec.commands[word].argv]
        if asked:
            change = f"say {asked[0]} in commands.{word}; or, {change}"
        if due:
            lines = " or ".join(f"{one} = [{pattern}]" for one in dict.fromkeys(due))
            change = f"a refusal is right here: [rejections] {lines}"
        yield Advice(
            f"nothing of such an answer to {word}", f"exit {result.exit_code}: {answer}", change
        )


def _word_of(spec: TargetFile, operation: Operation) -> str | None:
    """The file's name of the command that carries out an operation."""
    names = [name for name, one in spec.vocabulary.commands.items() if one == operation.type]
    return next((name for name in names if name in spec.commands), None)


def _known_refusal(spec: TargetFile, result: OperationResult) -> bool:
    text = f"{result.stderr}\n{result.stdout}"
    patterns: Mapping[str, tuple[str, ...]] = spec.rejections
    return any(re.search(one, text) for group in patterns.values() for one in group)


def _subject(operation: Operation) -> str:
    """The name that a command is about; a word that no answer has when it names nobody."""
    given = (getattr(operation, name, None) for name in ("worker", "task", "agent", "name"))
    return next((one for one in given if isinstance(one, str)), "\0")
