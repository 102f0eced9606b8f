"""What only the file of a workers target says, from what was seen of its program."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mutiny.targets.kit.hints import SAMPLES, Hint, OwnLines

if TYPE_CHECKING:
    from mutiny.targets.discover.program import Found

HINTS = {
    "init": Hint(("init", "setup"), begins=True, tried=True),
    "up": Hint(("up",)),
    "down": Hint(("down",)),
    "add": Hint(
        ("add", "new", "create", "start", "spawn", "launch"),
        ("worker",),
        again="already_exists",
        starts=True,
        instead="start",
        tried=True,
    ),
    "start": Hint(
        ("start", "send", "prompt", "tell", "assign", "run"),
        ("worker", "prompt"),
        nobody="no_such_worker",
    ),
    "message": Hint(("message", "msg", "say"), ("worker", "message")),
    "nuke": Hint(
        ("nuke", "rm", "remove", "delete", "destroy", "kill"),
        ("worker",),
        nobody="no_such_worker",
        asks=True,
    ),
    "review": Hint(("review",), ("worker",)),
    "accept": Hint(("accept", "merge", "land"), ("worker",)),
    "reject": Hint(("reject",), ("message",)),
    "rebase": Hint(("rebase", "sync"), ("worker",)),
    "reset": Hint(("reset",), ("worker",), asks=True),
    "doctor": Hint(("doctor", "health")),
    "status": Hint(("status", "ls", "list", "ps")),
}
"""How the commands of such programs are usually called."""


def own_lines(found: Found) -> OwnLines:
    """At the head of the file its level and its sessions, at the end how its agents are started."""
    tail = () if found.made.agents else _AGENTS
    return OwnLines(tuple(_head(found)), (*(_NAMES if found.source is None else ()), *tail))


_NAMES = (
    "[profile]",
    'names = "[a-z][a-z0-9-]*"  # no record shows its names: others may be changed on their way',
    "",
)


_AGENTS = (
    "# No agent was started. If its configuration says how, lay it into the box, with `claude` as agent:",
    "# [files]",
    '# "{source}/.mine.yaml" = "agent: claude\\n"',
)


def _head(found: Found) -> Iterator[str]:
    record = found.source.place.record if found.source is not None else {}
    shown = any(word in key.lower() for key in record for word in ("status", "state"))
    level = "review" if "accept" in found.verbs else "workers" if shown else "sessions"
    why = {"review": "it has `accept`", "workers": "its records have a status"}
    yield f'level = "{level}"  # {why.get(level, "its records have no status")}'
    mine = [one for one in sorted(found.made.sessions) if SAMPLES["worker"] in one]
    begin = re.match(r"[^-_]*[-_]", mine[0].partition(SAMPLES["worker"])[0]) if mine else None
    seen = f"saw {mine[0]}" if mine else "saw none: say how they are called"
    yield f'sessions = "^{re.escape(begin[0]) if begin else ""}"  # {seen}'.replace("\\-", "-")
