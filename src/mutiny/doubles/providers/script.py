"""What a provider does when it is started: steps, one list for each agent and turn.

The script is read at every start, so that a behaviour is changed by rewriting one small file.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

SCRIPT_VERSION = 1
SCRIPT_FILE = "script.json"

STEPS: dict[str, str] = {
    "reply": "Posts that it is done; mentions nobody.",
    "mention": "Posts one message that mentions these agents (`mention:prime,hailot`).",
    "human": "Posts that the task is complete, and mentions @human.",
    "echo": "Answers a completion with one: mentions whoever wrote to it, or these (`echo:prime`).",
    "flood": "Posts so many messages (`flood:5`), each with these mentions (`flood:5,prime`).",
    "post": "Posts these words (`post:write to a@prime.org`).",
    "in": "Posts in another channel from now on (`in:ops`).",
    "quiet": "Posts nothing.",
    "slow": "Waits so many milliseconds (`slow:400`).",
    "busy": "Works for so many milliseconds (`busy:4000`), and writes to its session all the time.",
    "hang": "Keeps no session file and never ends.",
    "silent": "Keeps a session file and never ends.",
    "tty": "Waits for a terminal, without a session file; where there is none, for ever.",
    "stdin": "Reads standard input to its end once more.",
    "exit": "Ends with this exit code (`exit:1`).",
    "die": "Dies by SIGKILL.",
    "leave": "Leaves a process behind that has a session of its own.",
    "bytes": "Prints bytes that are no text in any encoding of today.",
    "ignore-term": "Ignores SIGTERM from now on.",
}
"""Every step with one sentence about what the agent then does."""

_NUMBERS = frozenset({"slow", "busy", "exit"})
_NAMES = frozenset({"mention", "in"})
_OPTIONAL = frozenset({"echo"})
WITHOUT_SESSION = frozenset({"hang", "tty"})
"""Whoever begins so has no session file."""


class UnknownStep(ValueError):
    """A script names a step that does not exist."""

    def __init__(self, step: str, hint: str = "") -> None:
        super().__init__(f"unknown step {step!r}{hint}; valid are: {', '.join(STEPS)}")


def parse(behaviour: str) -> list[tuple[str, str]]:
    """The steps of a behaviour (`slow:300+reply`), each with its argument.

    Raises:
        UnknownStep: A step does not exist, or its argument is missing or wrong.
    """
    steps = []
    for text in behaviour.split("+"):
        name, colon, argument = text.partition(":")
        if name not in STEPS:
            raise UnknownStep(text)
        hint = _wrong(name, argument, given=bool(colon))
        if hint:
            raise UnknownStep(text, f" ({name} {hint})")
        steps.append((name, argument))
    return steps


def _wrong(name: str, argument: str, *, given: bool) -> str:
    if name in _NUMBERS:
        return "" if argument.isascii() and argument.isdigit() else "needs a number"
    if name == "flood":
        number = argument.partition(",")[0]
        return "" if number.isascii() and number.isdigit() else "needs a number first"
    if name in _NAMES or name == "post":
        return "" if argument else "needs words after a colon"
    return "" if name in _OPTIONAL or not given else "takes no argument"


def check(behaviours: Iterable[str]) -> list[str]:
    """The behaviours as a list, or `UnknownStep` for the first wrong one."""
    checked = list(behaviours)
    for behaviour in checked:
        parse(behaviour)
    if not checked:
        raise UnknownStep("", " (the list of behaviours is empty)")
    return checked


def behaviours_of(script: dict[str, Any], agent: str, tokens: list[str]) -> tuple[list[str], str]:
    """The behaviours of an agent for a task, and the token by which they were found (or nothing).

    With a token turns are counted by agent and token, else by agent.
    """
    for token in tokens:
        by_agent = script.get("tokens", {}).get(token, {})
        found = by_agent.get(agent) or by_agent.get("*")
        if found:
            return list(found), token
    agents = script.get("agents", {})
    found = agents.get(agent) or agents.get("*") or script.get("default") or ["reply"]
    return list(found), ""
