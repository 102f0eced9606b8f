"""What target files of all contracts are checked for, beyond the types of their values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from posixpath import normpath

from mutiny.errors import nearest

INSIDE = {
    "box": "/box",
    "home": "/box/home",
    "source": "/box/source",
    "tmp": "/box/tmp",
}
"""Where the placeholders of a path lead, as far as a check needs to know."""
_TEMPORARY = ("/tmp/", "/var/tmp/")
"""The box has its own."""


def check_inside(where: str, text: str) -> list[str]:
    """A file of the target lies in its box: Mutiny looks at it, and faults damage it."""
    if not text:
        return [f"{where}: is empty; say where the file lies, for example {{home}}/mine/state.json"]
    filled = re.sub(r"\{([a-z_]+)\}", lambda match: INSIDE.get(match[1], match[0]), text)
    path = normpath(filled)
    if "\0" not in text and (path.startswith(("/box/", *_TEMPORARY)) or path == "/box"):
        return []
    return [
        f"{where}: {text!r} does not lie in the box; begin it with {{home}}, {{source}}, {{tmp}} or {{box}}"
    ]


def check_mounts(mounts: Iterable[str]) -> list[str]:
    """Directories of the machine have one meaning wherever Mutiny is started."""
    return [
        f"mounts: {text!r} must begin with / or ~/"
        for text in mounts
        if not text.startswith(("/", "~/")) or "\0" in text or normpath(text) == "/"
    ]


def check_regex(where: str, pattern: str) -> list[str]:
    """A pattern that can be compiled."""
    shown = repr(pattern) if len(pattern) <= 60 else repr(pattern[:60]) + "..."
    try:
        re.compile(pattern)
    except re.error as error:
        return [f"{where}: {shown} is not a regular expression: {error}"]
    except (RecursionError, OverflowError):
        return [f"{where}: {shown} is too large for a regular expression"]
    return []


def with_line(text: str, problem: str) -> str:
    """Put the line of the key in front, as far as it can be found: TOML readers keep no positions."""
    path = problem.partition(":")[0]
    keys = [
        part for part in re.split(r"[.\[]", path.replace("]", "")) if part and not part.isdigit()
    ]
    if keys and problem.endswith(": is missing"):
        if re.search(rf'^\s*{re.escape(keys[-1])}\s*=\s*""', text, re.MULTILINE):
            problem = problem.replace(": is missing", ": is empty")
        else:
            keys.pop()  # what is not there has no line, but its table has one
    lines = text.splitlines()
    position = 0
    found: int | None = None
    for key in keys:
        pattern = re.compile(
            rf'^\s*(?:\[+[^\]]*\b{re.escape(key)}\b[^\]]*\]+|(?:[\w."-]+\.)?"?{re.escape(key)}"?\s*=)'
        )
        for index in range(position, len(lines)):
            if pattern.search(lines[index]) or re.search(
                rf'[{{,]\s*"?{re.escape(key)}"?\s*=', lines[index]
            ):
                found = position = index
                break
    return f"line {found + 1}: {problem}" if found is not None else problem


def check_excuses(
    excused: Mapping[str, str], rules: Collection[str], binding: Collection[str]
) -> list[str]:
    """What is wrong with the table `profile.not_applicable`."""
    problems = []
    for rule, reason in excused.items():
        where = f"profile.not_applicable.{rule}"
        if rule not in rules:
            problems.append(f"{where}: unknown rule{nearest(rule, list(rules))}")
        elif rule in binding:
            problems.append(
                f"{where}: nobody is excused from this rule: without it a target that does nothing "
                "could pass"
            )
        if not reason.strip():
            problems.append(f"{where}: say why the target does not promise it")
    return problems
