"""What a text summons: the mentions in it, and nothing that only looks like one.

A mention is `@name` at the beginning of a word. Mail addresses, paths, code, quotes and what is escaped
with a backslash start nobody.
"""

from __future__ import annotations

import re

HUMAN = "human"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_CODE = re.compile(r"(`+)(?:(?!\1).)*\1")
_MENTION = re.compile(r"(?<![\w.\-/+@\\`])@([A-Za-z0-9][A-Za-z0-9_-]*)")


def names_in(text: str) -> tuple[str, ...]:
    """The names that a text mentions, each once, in their order, in small letters."""
    found = (match[1].rstrip("-").lower() for match in _MENTION.finditer(_spoken(text)))
    return tuple(dict.fromkeys(found))


def agents_in(text: str) -> tuple[str, ...]:
    """The same without the human."""
    return tuple(name for name in names_in(text) if name != HUMAN)


def calls_human(text: str) -> bool:
    """Does it say `@human`?"""
    return HUMAN in names_in(text)


def is_name(name: str) -> bool:
    """Can somebody, or a channel, be called this?"""
    return NAME.fullmatch(name) is not None and not name.endswith("-")


def _spoken(text: str) -> str:
    """The text without code and quotes."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith(">"):
            lines.append(line)
    return _CODE.sub(" ", "\n".join(lines))
