"""The behaviours of the doubles and the script file that assigns them, one per turn.

The script is read again at every turn, so a fault is injected by rewriting one small file.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SCRIPT_VERSION = 1

BEHAVIOURS: dict[str, str] = {
    "obey": "Does what the prompt names, commits it, and ends the turn.",
    "slow": "Waits the given number of milliseconds, then obeys (`slow:400`).",
    "hang": "Falls silent and never ends the turn; Ctrl-C interrupts it.",
    "exit": "Exits with code 1 as soon as the prompt arrives, without running a hook.",
    "exit-at-start": "Exits with code 1 as soon as it starts, before any hook; uses up the turn.",
    "crash-in-commit": "Dies by SIGKILL in the middle of `git commit`, so `index.lock` stays.",
    "dirty": "Does the work, does not commit it, and ends the turn.",
    "nothing": "Changes nothing and ends the turn.",
    "stays": "Changes nothing, says so, and stays until it is ended, also where others go then.",
    "stray": "Obeys, and commits a file that nobody asked for as well.",
    "reshape": "Obeys, and removes a file, makes one executable, and adds odd ones and a link.",
    "reshape-dirty": "Does the same, does not commit it, and ends the turn.",
    "resolve": "Obeys; in a conflict keeps both sides (the same as `obey`).",
    "give-up": "Ends the turn without touching a conflict; obeys any other prompt.",
    "ignore-ctrl-c": "Obeys, and ignores Ctrl-C and SIGINT until its next turn.",
    "will-not-go": "Obeys, and stays when it is told to end or its terminal is gone; only SIGKILL ends it.",
    "swallow": "Takes the prompt, does nothing with it, and waits for the next one.",
    "garbage": "Prints binary rubbish and escape codes, then obeys.",
    "read-stdin": "Reads standard input to its end first, then obeys.",
    "no-stop": "Obeys, but never runs the Stop hook.",
    "late-stop": "Obeys, and runs the Stop hook so many milliseconds later (`late-stop:400`).",
    "double-stop": "Obeys, and runs the Stop hook twice.",
    "unfinished": "Writes its files, and commits them so many milliseconds later (`unfinished:400`).",
    "late-commit": "Runs the Stop hook first, and commits its work so many milliseconds later.",
    "die-dirty": "Does half of the work, and dies by SIGKILL without committing it.",
    "die-elsewhere": "Commits the work to a branch of its own, and dies there by SIGKILL.",
    "die-detached": "Commits the work to no branch at all, and dies there by SIGKILL.",
    "die-locked": "Commits the work, and dies by SIGKILL with git's `index.lock` left behind.",
    "busy-git": "Commits nothing, and a git command of its own works on for so long (`busy-git:400`).",
    "signs": "Obeys, and is the author of its commit by its worker's name.",
    "fail": "Says that it could not do it (an error, where results are told), and ends the turn.",
    "leave-child": "Starts a process in a session of its own that outlives it, then obeys.",
}
"""Every behaviour with one sentence about what the agent then does."""

_WITH_MILLISECONDS = frozenset({"slow", "unfinished", "late-stop", "late-commit", "busy-git"})


class UnknownBehaviour(ValueError):
    """A script names a behaviour that does not exist."""

    def __init__(self, behaviour: str, hint: str = "") -> None:
        valid = ", ".join(
            f"{name}:MS" if name in _WITH_MILLISECONDS else name for name in BEHAVIOURS
        )
        super().__init__(f"unknown behaviour {behaviour!r}{hint}; valid are: {valid}")


def parse_behaviour(text: str) -> tuple[str, int]:
    """Split a behaviour into its name and its milliseconds (0 when it takes none).

    Raises:
        UnknownBehaviour: The name does not exist, or its argument is missing or wrong.
    """
    name, colon, argument = text.partition(":")
    if name not in BEHAVIOURS:
        raise UnknownBehaviour(text)
    if name not in _WITH_MILLISECONDS:
        if colon:
            raise UnknownBehaviour(text, f" ({name} takes no argument)")
        return name, 0
    if not (argument.isascii() and argument.isdigit()):
        raise UnknownBehaviour(text, f" ({name} needs milliseconds)")
    return name, int(argument)


def check_behaviours(behaviours: Iterable[str]) -> list[str]:
    """Return the behaviours as a list, or raise ``UnknownBehaviour`` for the first wrong one."""
    checked = list(behaviours)
    for behaviour in checked:
        parse_behaviour(behaviour)
    if not checked:
        raise UnknownBehaviour("", " (the list of behaviours is empty)")
    return checked


def behaviour_for(script: object, worker: str, turn: int) -> str:
    """Return what the script says for a worker's turn (counted from 0); the last one repeats.

    Raises:
        ValueError: The script does not have the form of a script.
    """
    if not isinstance(script, dict) or script.get("version") != SCRIPT_VERSION:
        raise ValueError(f"not a script of version {SCRIPT_VERSION}")
    workers = script.get("workers", {})
    behaviours = workers.get(worker) or workers.get("*") or script.get("default") or ["obey"]
    if not isinstance(behaviours, list):
        raise ValueError(f"the behaviours of {worker} are not a list")
    return str(behaviours[min(turn, len(behaviours) - 1)])


def read_behaviour(path: str, worker: str, turn: int) -> tuple[str, int, str]:
    """Read the script file; return name, milliseconds, and what is wrong with the file if it is.

    A missing script means ``obey``. A wrong one too, but then the third value says so.
    """
    try:
        with open(path, "rb") as file:
            script = json.loads(file.read())
        return (*parse_behaviour(behaviour_for(script, worker, turn)), "")
    except FileNotFoundError:
        return "obey", 0, ""
    except (OSError, ValueError, AttributeError) as error:
        return "obey", 0, f"{os.path.basename(path)}: {type(error).__name__}: {error}; obeying"


def garbage() -> bytes:
    """Return rubbish that a terminal survives: every byte, broken UTF-8, half escape codes."""
    rubbish = [
        b"\x1b]0;not a title\x1b\\",
        bytes(range(0x80, 0x100)) * 4,
        b"\x1b[?1049h\x1b[999;999H\x1b[31;5;7m",
        b"\xe2\x82\xf0\x9f\xc3\x28",
        b"\x1b[c\x1b[6n\x1b[;;;;m\x1b[99999999999999d",
        b"\x00\x07\x0b\x0c\x0e\x0f" * 16,
        b'{"type":"result","result":' + b"[" * 64,
        # Leave a screen that can be read again; what the terminal answers is ignored as keys.
        b"\x1b\\\x1b[?1049l\x1b[0m\x1b[?25h\x1b[?2004h\r\n",
    ]
    return b"".join(rubbish)
