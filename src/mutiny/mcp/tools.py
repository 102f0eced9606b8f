"""Which tools an agent has, as data: their words, and the command line that each call becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mutiny.errors import UsageError, nearest

INSTRUCTIONS = """\
Mutiny breaks multi-agent coding orchestrators on purpose and hands back the shortest sequence that does it.
The protocol: run until something breaks; read the report that the answer names; fix the program; replay the
minimal replay until it passes; run again. `explore` and `sweep` look where scenarios do not.
A verdict `bug` or `recovery_bug` is a broken promise of the target; `inconclusive` has shown nothing and is
no pass. Answers are short and name files: read those. Everything that is tested runs inside a box; nothing
outside of it is started, and nothing is touched but the run directories. No model is ever called."""


@dataclass(frozen=True)
class Parameter:
    """One argument of a tool, and how it is said on the command line."""

    kind: str
    """A type of JSON Schema: string, integer, number, boolean; `strings`: a list of them."""
    does: str
    flag: str = ""
    """Empty: it is a word by itself."""
    needed: bool = False
    one_of: tuple[str, ...] = ()

    def schema(self) -> dict[str, Any]:
        """As JSON Schema."""
        told: dict[str, Any] = {"type": self.kind, "description": self.does}
        if self.kind == "strings":
            told |= {"type": "array", "items": {"type": "string"}}
        return told | ({"enum": list(self.one_of)} if self.one_of else {})

    def words(self, value: object) -> list[str]:
        """On the command line. Words of a caller's own never look like an option."""
        if self.kind == "boolean":
            return [self.flag] if value else []
        given = value if isinstance(value, list) else [value]
        if not self.flag:
            return [_plain_word(str(one)) for one in given]
        return [f"{self.flag}={one}" for one in given]

    def problem(self, value: object) -> str | None:
        """Why a value cannot be taken; None when it can."""
        if self.one_of and value not in self.one_of:
            return f"{value!r} is none of {', '.join(self.one_of)}"
        return None if _fits(self.kind, value) else f"{value!r} is no {_NAMES[self.kind]}"


@dataclass(frozen=True)
class Tool:
    """One tool: a verb of Mutiny."""

    verb: tuple[str, ...]
    does: str
    parameters: Mapping[str, Parameter]
    keeps_runs: bool = True
    """It writes run directories, so it is told where."""

    def schema(self) -> dict[str, Any]:
        """Of its arguments."""
        return {
            "type": "object",
            "properties": {name: one.schema() for name, one in self.parameters.items()},
            "required": [name for name, one in self.parameters.items() if one.needed],
            "additionalProperties": False,
        }

    def words(self, given: Mapping[str, object]) -> list[str]:
        """The command line of a call; `UsageError` for one that cannot be meant."""
        for name in given:
            if name not in self.parameters:
                hint = nearest(name, list(self.parameters))
                raise UsageError(f"unknown argument {name!r}{hint}")
        words = list(self.verb)
        for name, parameter in self.parameters.items():
            value = given.get(name)
            if value is None:
                if parameter.needed:
                    raise UsageError(f"the argument {name!r} is needed: {parameter.does}")
                continue
            problem = parameter.problem(value)
            if problem is not None:
                raise UsageError(f"{name}: {problem}")
            words += parameter.words(value)
        return words


_NAMES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "strings": "list of texts",
}


def _fits(kind: str, value: object) -> bool:
    if kind == "strings":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if kind == "boolean" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    if kind == "string":
        return isinstance(value, str) and "\0" not in value
    return isinstance(value, int) or (kind == "number" and isinstance(value, float))


def _plain_word(word: str) -> str:
    """A file's name that begins like an option is one all the same."""
    return f"./{word}" if word.startswith("-") else word


_TARGET = {
    "target": Parameter("string", "a target's name (list_targets), or its TOML file", "--target"),
    "bin": Parameter("string", "the target's program, when it is not on PATH", "--bin"),
    "plant": Parameter("string", "a bug to plant into longboat, the reference", "--plant"),
}
_SEED = Parameter("integer", "seed of all choices; chosen and told when not given", "--seed")
_KNOWN = Parameter("string", "a file of known findings, which do not stop a run", "--known")
_QUICK = Parameter("boolean", "do not look for the shortest sequence", "--no-minimise")

TOOLS: dict[str, Tool] = {
    "list_targets": Tool(
        ("target", "list"),
        "Which targets there are, and whether their programs are here.",
        {},
        False,
    ),
    "list_scenarios": Tool(
        ("scenarios",),
        "The scenarios of a target, one line each.",
        {"target": _TARGET["target"]},
        False,
    ),
    "run": Tool(
        ("run",),
        "Run scenarios against a target in a box; each stops at its first broken promise.",
        {
            **_TARGET,
            "scenarios": Parameter("strings", "their names; default: all", "--scenario"),
            "until_error": Parameter("boolean", "with new seeds until it breaks", "--until-error"),
            "rounds": Parameter("integer", "with until_error: at most so many", "--rounds"),
            "fail_fast": Parameter("boolean", "stop after the first that fails", "--fail-fast"),
            "seed": _SEED,
            "known": _KNOWN,
            "quick": _QUICK,
        },
    ),
    "explore": Tool(
        ("explore",),
        "Run sequences that the model allows, with faults mixed in, one a seed.",
        {
            **_TARGET,
            "seed": _SEED,
            "seeds": Parameter("integer", "how many; default 1", "--seeds"),
            "ops": Parameter("integer", "operations a sequence; default 30", "--ops"),
            "minutes": Parameter("number", "start nothing new after so many", "--minutes"),
            "jobs": Parameter("integer", "side by side; default: two a core", "--jobs"),
            "keep_going": Parameter("boolean", "do not stop at a failure", "--keep-going"),
            "known": _KNOWN,
            "quick": _QUICK,
        },
    ),
    "sweep": Tool(
        ("sweep",),
        "Break one operation of a scenario at every system call, and judge what is left.",
        {
            "kind": Parameter(
                "string",
                "how it is broken",
                needed=True,
                one_of=("crash", "errno", "torn", "fsync", "preempt"),
            ),
            **_TARGET,
            "scenario": Parameter("string", "whose operation", "--scenario", needed=True),
            "at": Parameter("string", "which operation: Accept, Doctor#2", "--at", needed=True),
            "points": Parameter("integer", "at most so many points", "--points"),
            "until_bug": Parameter("boolean", "stop at the first bug", "--until-bug"),
            "jobs": Parameter("integer", "points side by side", "--jobs"),
            "known": _KNOWN,
        },
    ),
    "report": Tool(
        ("report",),
        "What a run found: the broken rule, the step, the files to read.",
        {"run": Parameter("string", "a run directory; default: the latest")},
    ),
    "replay": Tool(
        ("replay",),
        "Repeat a run or a minimal replay: does it still break?",
        {
            "file": Parameter("string", "minimal_replay.json or a run directory", needed=True),
            "times": Parameter("integer", "so often; default once", "--times"),
            "target": Parameter("string", "another target than the file's", "--target"),
            "bin": _TARGET["bin"],
            "plant": Parameter("string", "another plant; '' for none", "--plant"),
        },
    ),
    "minimise": Tool(
        ("minimise",),
        "Find the shortest sequence that breaks the same rule.",
        {
            "file": Parameter("string", "a run directory or a replay file", needed=True),
            "trials": Parameter("integer", "at most so many trial runs", "--trials"),
            "seconds": Parameter("number", "at most so many seconds", "--seconds"),
            "target": Parameter("string", "another target than the file's", "--target"),
            "bin": _TARGET["bin"],
            "plant": Parameter("string", "another plant; '' for none", "--plant"),
        },
        False,
    ),
    "doctor": Tool(("doctor",), "What this machine can isolate and inject, tried live.", {}, False),
}


def command_of(name: str, given: Mapping[str, object], runs: str) -> Sequence[str]:
    """The words of a call; run directories go below `runs`."""
    tool = TOOLS.get(name)
    if tool is None:
        raise UsageError(f"unknown tool {name!r}{nearest(name, list(TOOLS))}")
    words = tool.words(given)
    if name == "report" and not given.get("run"):
        words.append(f"{runs}/latest")
    return [*words, f"--runs={runs}"] if tool.keeps_runs else words
