"""What the fake model API is to answer: a script of steps, checked as a whole before it is used.

Insight: a step describes one answer, with at most one fault, so that a test reads like the
conversation it stages. Each rule of a script counts its own requests; its last step repeats for
ever, so that a script never runs out.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

SCRIPT_VERSION = 1

FAULTS = {
    "429": "HTTP 429 rate_limit_error, with retry-after when `retry_after_s` is set",
    "529": "HTTP 529 overloaded_error",
    "500": "HTTP 500 api_error",
    "hang": "the request is read and never answered",
    "reset": "the connection is reset (RST) before any header",
    "close": "the connection is closed (FIN) before any header",
    "reset-midway": "reset after `after_events` events, or in the middle of a plain answer",
    "close-midway": "closed after `after_events` events, or in the middle of a plain answer",
    "stall": "nothing more comes after `after_events` events, or in the middle of a plain answer",
    "slow-start": "the first byte of the body comes `delay_ms` late",
    "malformed-json": "an answer that is not JSON, under status 200",
    "malformed-event": "one event in the middle that is not JSON",
    "truncated": "fewer bytes than content-length promises; in a stream, no end of the last chunk",
    "split-utf8": "every byte in a chunk of its own, also inside a character",
    "error-event": "an error event (overloaded) in the middle of the stream",
}
"""Every fault by name, and what the client sees."""


class ScriptError(ValueError):
    """The script has mistakes; the text lists all of them."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One call of a tool in an answer."""

    name: str
    input: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One answer."""

    text: str = "Done."
    tools: tuple[Tool, ...] = ()
    fault: str | None = None
    delay_ms: int = 0
    """Waits so long before the first byte of the body."""
    event_delay_ms: int = 0
    """Waits so long before each event of a stream."""
    after_events: int = 3
    """How many events pass before a fault in the middle of a stream."""
    retry_after_s: int | None = None
    in_text: bool = False
    """Tools are called in the text, as models do that know no function calls."""
    over: bool = False
    """Its fault is put on what the rules behind it would answer, halfway through a stream; its tools are
    called beside theirs, where they call some.
    """


@dataclass(frozen=True, slots=True)
class Rule:
    """Steps for the requests that match: path, model and last are patterns (`*` stands for anything)."""

    steps: tuple[Step, ...]
    path: str = "*"
    model: str = "*"
    last: str = "*"
    """The last text of the request: what is asked decides, however often other things were asked."""
    times: int = 0
    """It answers so many requests and then lets the next rule do it; 0: all."""
    without: str = ""
    """Only conversations in which this text is nowhere: what was said decides, also after a crash."""

    def matches(self, path: str, model: str, last: str, count: int, said: str = "") -> bool:
        """Whether a request in the conversation `said` is for this rule, which has answered `count`."""
        return (
            (not self.times or count < self.times)
            and not (self.without and self.without in said)
            and fnmatch.fnmatchcase(path, self.path)
            and fnmatch.fnmatchcase(model, self.model)
            and fnmatch.fnmatchcase(last, self.last)
        )


@dataclass(frozen=True, slots=True)
class Script:
    """Rules in order; the first that matches answers. Without a match: the plain answer of
    `Step()`.
    """

    rules: tuple[Rule, ...] = ()


def simple_script(*steps: Step) -> Script:
    """The same steps for every path and model."""
    return Script((Rule(steps),))


def read_script(data: object) -> Script:
    """Check a script as it comes from JSON.

        {"version": 1, "rules": [{"path": "/v1/messages", "steps": [{"fault": "429"}, {}]}]}

    Raises:
        ScriptError: It has mistakes; all of them are listed.
    """
    if not isinstance(data, dict) or data.get("version") != SCRIPT_VERSION:
        raise ScriptError(f"a script is an object with version {SCRIPT_VERSION}")
    problems: list[str] = []
    problems += [f"unknown field {key!r}" for key in sorted(set(data) - {"version", "rules"})]
    rules = data.get("rules", [])
    read: list[Rule] = []
    if not isinstance(rules, list):
        raise ScriptError("rules is not a list")
    for number, entry in enumerate(rules):
        where = f"rules[{number}]"
        if not isinstance(entry, dict):
            problems.append(f"{where} is not an object")
            continue
        unknown = sorted(set(entry) - {"path", "model", "last", "times", "steps", "without"})
        problems += [f"{where}: unknown field {key!r}" for key in unknown]
        steps = entry.get("steps")
        if not isinstance(steps, list) or not steps:
            problems.append(f"{where}.steps is not a list with at least one step")
            continue
        made = tuple(
            _read_step(step, f"{where}.steps[{i}]", problems) for i, step in enumerate(steps)
        )
        path, model, last = (str(entry.get(key, "*")) for key in ("path", "model", "last"))
        times = entry.get("times", 0)
        if not isinstance(times, int) or isinstance(times, bool) or times < 0:
            problems.append(f"{where}: times is not a whole number from 0")
            continue
        read.append(Rule(made, path, model, last, times, str(entry.get("without", ""))))
    if problems:
        raise ScriptError("; ".join(problems))
    return Script(tuple(read))


_STEP_FIELDS = {item.name for item in fields(Step)}
_WHOLE_NUMBERS = ("delay_ms", "event_delay_ms", "after_events", "retry_after_s")


def _read_step(data: object, where: str, problems: list[str]) -> Step:
    if not isinstance(data, dict):
        problems.append(f"{where} is not an object")
        return Step()
    before = len(problems)
    problems += [f"{where}: unknown field {key!r}" for key in sorted(set(data) - _STEP_FIELDS)]
    fault = data.get("fault")
    if fault is not None and fault not in FAULTS:
        problems.append(f"{where}: unknown fault {fault!r} (known: {', '.join(FAULTS)})")
    for name in _WHOLE_NUMBERS:
        value = data.get(name, 0)
        if value is not None and (
            not isinstance(value, int) or isinstance(value, bool) or value < 0
        ):
            problems.append(f"{where}: {name} is not a whole number from 0")
    problems += [
        f"{where}: {name} is neither true nor false"
        for name in ("in_text", "over")
        if not isinstance(data.get(name, False), bool)
    ]
    if not isinstance(data.get("text", ""), str):
        problems.append(f"{where}: text is not a text")
    tools = _read_tools(data.get("tools", []), where, problems)
    if len(problems) > before:
        return Step()
    return Step(**{**data, "tools": tools})


def _read_tools(data: object, where: str, problems: list[str]) -> tuple[Tool, ...]:
    if not isinstance(data, Sequence) or isinstance(data, str):
        problems.append(f"{where}: tools is not a list")
        return ()
    made = []
    for number, entry in enumerate(data):
        if isinstance(entry, Tool):
            made.append(entry)
        elif isinstance(entry, dict) and isinstance(entry.get("name"), str):
            made.append(Tool(entry["name"], entry.get("input", {})))
        else:
            problems.append(f"{where}.tools[{number}] has no name")
    return tuple(made)
