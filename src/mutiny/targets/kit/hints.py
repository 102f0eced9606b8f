"""How commands of a contract are usually called, so that a target file can be proposed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Hint:
    """One command of a contract, as programs may call it."""

    words: tuple[str, ...]
    """Names that it may have, the likeliest first."""
    says: tuple[str, ...] = ()
    """Values that have to be said with it, in the order of its arguments."""
    again: str = ""
    """The class of refusals when it is said twice."""
    nobody: str = ""
    """The class of refusals when its subject does not exist."""
    groups: tuple[str, ...] = ()
    """Groups of commands below which it is looked for first: `task create`."""
    tried: bool = False
    """It is tried once, with a name of our own: what it makes shows where the program keeps its records."""


SAMPLES = {
    **dict.fromkeys(("worker", "task", "agent", "project", "name", "channel"), "probe-one"),
    **dict.fromkeys(("prompt", "message", "description", "text"), "Create probe.txt"),
}
"""What is said when a command is tried."""
NOBODY = "nobody-there"
