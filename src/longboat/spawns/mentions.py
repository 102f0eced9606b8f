"""Who is mentioned in a text: what only looks like a mention starts nobody.

A mail address, a path, code, a quote and an escaped `\\@` are not meant for anybody.
"""

from __future__ import annotations

import re

from longboat.planting import planted

HUMAN = "human"
"""The name of whoever is not an agent; nobody else can have it."""

_FENCE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_QUOTE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_MENTION = re.compile(r"(?<![\w.\-/+@\\`])@([A-Za-z0-9][A-Za-z0-9_-]*)")
_ANYWHERE = re.compile(r"@([\w-]+)")


def mentioned(text: str) -> list[str]:
    """The names that a text mentions, in lower case, each once, in their order."""
    pattern = _ANYWHERE if planted("mentions-anywhere") else _MENTION
    for kind in () if planted("mentions-anywhere") else (_FENCE, _CODE, _QUOTE):
        text = kind.sub(" ", text)
    return list(dict.fromkeys(name.rstrip("-").lower() for name in pattern.findall(text)))
