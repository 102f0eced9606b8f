"""Names of agents, channels and speakers: safe in a path, in a mention and in a table."""

from __future__ import annotations

import re

from longboat.board.values import Refused

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38}[A-Za-z0-9_])?")


def check(kind: str, name: str) -> str:
    """The name, or a refusal."""
    if _NAME.fullmatch(name) is None:
        text = "letters, digits, _ and - (not at its ends), at most 40"
        raise Refused("bad_input", f"{name!r} cannot be the name of a {kind}: {text}")
    return name
