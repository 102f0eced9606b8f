"""How commands of a contract are usually called, so that a target file can be proposed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """A general command that does, with these options, what others have a command of its own for."""

    words: tuple[str, ...]
    """Names that it may have: `update`."""
    options: tuple[str, ...] = ()
    """What is said behind the task; the program must have all that begin with `--`."""
    names: bool = True
    """It is told which task; without, it finds one itself."""
    means: str = ""
    """A regular expression that its help has to have: the name alone says too little."""


@dataclass(frozen=True)
class Hint:
    """One command of a contract, as programs may call it."""

    words: tuple[str, ...]
    """Names that it may have, the likeliest first."""
    says: tuple[str, ...] = ()
    """Values that have to be said with it, in the order of its arguments; `=word`: that word itself."""
    may: tuple[str, ...] = ()
    """Those of them that are left out where the command has no place for them."""
    forms: tuple[str, ...] = ()
    """Options that make its answer readable; the first that it has is said."""
    whole: tuple[str, ...] = ()
    """Options without which it would leave something out; those that it has are said."""
    ways: tuple[Way, ...] = ()
    """How it may be said where there is no command of such a name."""
    again: str = ""
    """The class of refusals when it is said twice."""
    nobody: str = ""
    """The class of refusals when its subject does not exist."""
    groups: tuple[str, ...] = ()
    """Groups of commands below which it is looked for first: `task create`."""
    starts: bool = False
    """It starts an agent: an option that says which one is said with the double's name."""
    asks: bool = False
    """It may ask whether it is meant: an option that says so is said."""
    begins: bool = False
    """It sets the program up: an option that asks for the repository is said with it."""
    instead: str = ""
    """Without that command it is also given the prompt, where it has an option for it."""
    follows: bool = False
    """It is given about what was made, after what was tried: the record shows the words for that."""
    others: str = ""
    """The class of refusals when somebody else says it of the same subject."""
    empty: str = ""
    """The same where it is not told which: then there is nothing left."""
    stranger: str = ""
    """The class of refusals when somebody says it whose it is not."""
    over: str = ""
    """The class of refusals when it is said of what is done."""
    early: str = ""
    """The class of refusals when nothing was set up yet."""
    tried: bool = False
    """It is tried once, with a name of our own: what it makes shows where the program keeps its records."""


@dataclass(frozen=True)
class OwnLines:
    """What only files of one contract say, from what was seen of a program."""

    head: tuple[str, ...] = ()
    """Below the name of the program."""
    tail: tuple[str, ...] = ()
    """At the end."""
    answers: Mapping[str, str] = field(default_factory=dict)
    """Command -> a regular expression of what its answer names."""
    state: tuple[str, ...] = ()
    """More of `[state]`, in the place of its fields."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What stands in commands for a word of the contract: `{done}` -> `closed`."""


SAMPLES = {
    **dict.fromkeys(("worker", "task", "agent", "project", "name", "channel"), "probe-one"),
    **dict.fromkeys(("prompt", "message", "description", "text"), "Create probe.txt"),
    "source": ".",
}
"""What is said when a command is tried, in the repository."""
OTHER = "probe-two"
"""Another worker than the one of the samples."""
SPEAKERS = ("--worker", "--actor", "--agent", "--as")
"""Options that say who speaks."""
SPEAKING = re.compile(r"(?im)^ *(?:-\w, )?(--session)\b.*(?:\n +[^-\s].*)?\b(?:own|claim)")
"""An option that says who speaks only where its help tells of owners."""
OPTIONS = {"worker": (*SPEAKERS, "--assignee", "--owner")}
"""Options by which a value may be said that has no option of its own name."""
SOURCES = ("--source", "--repo", "--repository")
"""Options that say which repository is worked on."""
UNATTENDED = (
    *("--non-interactive", "--defaults", "--yes", "--no-input"),
    *("--bg", "--background", "--detach", "--detached", "--no-attach", "--no-open"),
)
"""With these a command asks nobody anything, and opens no terminal."""
MEANT = ("--yes", "--assume-yes")
"""With these a command does not ask whether it is meant, and does nothing else than without."""
FORCED = ("--yes", "--force", "--no-confirm")
"""With one of these a command that asks for a confirmation does without."""
AGENTS = ("--agent", "--run", "--tool", "--cli", "--command", "--cmd")
"""Options that say which agent is started."""
NOBODY = "nobody-there"
