"""The model's API in a box: what it is to answer, how it is made to fail, and what it wrote down."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

from mutiny import doubles
from mutiny.box.box import Box
from mutiny.box.results import Spawned
from mutiny.contracts.session.single_file import said_of
from mutiny.errors import TargetMissing
from mutiny.system.files import BoxPath
from mutiny.targets.session.tails import Tail

START_S = 20.0
FAULTS = {
    "rate_limit": "429",
    "overload": "529",
    "server": "500",
    "malformed": "malformed-event",
    "stall": "stall",
    "hang": "hang",
    "reset": "reset",
    "cut": "close-midway",
    "error_event": "error-event",
    "split": "split-utf8",
}
"""The contract's word -> the double's."""
NEVER_ENDS = ("sleep", "100000")
BROKEN = {
    "raises": "raise RuntimeError('this does not work')\n",
    "endless": "import time\n\nwhile True:\n    time.sleep(1)\n",
}
BEGINS = {
    "later": (
        "import os\nimport tempfile\nimport time\n\n"
        "ran = os.path.join(tempfile.gettempdir(), 'tests-ran')\n"
        "while os.path.exists(ran):\n    time.sleep(1)\nopen(ran, 'w').close()\n\n"
    ),
    "slow": "import time\n\ntime.sleep(3)\n\n",
}
"""What stands before the tests that were asked for."""
Tools: TypeAlias = list[dict[str, Any]]
Spoiler: TypeAlias = Callable[[Tools], Tools]


def _written(fits: Callable[[str], bool], become: Callable[[str], str]) -> Spoiler:
    """Another content for the first file that fits."""

    def spoil(tools: Tools) -> Tools:
        for place, tool in enumerate(tools):
            if fits(str(tool["input"].get("path", ""))):
                content = become(tool["input"].get("content", ""))
                other = {**tool, "input": {**tool["input"], "content": content}}
                return [*tools[:place], other, *tools[place + 1 :]]
        return tools

    return spoil


def _one_review_less(tools: Tools) -> Tools:
    """All reviews but the last; a single one stays, or nothing would be done at all."""
    reviews = [one for one in tools if str(one["input"].get("key", "")).startswith("review.")]
    return [one for one in tools if one is not reviews[-1]] if len(reviews) > 1 else tools


SPOILERS: dict[str, Spoiler] = {
    "dangerous": _written(
        lambda path: path.endswith(".py") and not path.startswith("tests/"),
        lambda text: f"{text}\nCHECKED = eval('True')\n",
    ),
    "uncompilable": _written(
        lambda path: path.endswith(".py") and not path.startswith("tests/"),
        lambda text: f"{text}\ndef unfinished(:\n",
    ),
    "undocumented": _written(lambda path: path == "README.md", lambda _text: " \n"),
    "unreleased": _written(lambda path: path == "VERSION", lambda _text: "99.0.0\n"),
    "unreviewed": _one_review_less,
}
"""What each kind of bad work makes of what was asked for."""
ODD_FILE = "odd.txt"
ODD = {
    "markup": "<p>&amp; &lt;b&gt; &quot;</p>\n<name>x</name>\nif name>3 and tool>4: # arguments>\n",
    "lines": "a\r\nb\n\n  c  \t\n\n\td\\n\\t\n  the end without an end of line  ",
    "letters": "Caf\u00e9, na\u00efve, \u4e16\u754c, \U0001f3f4, \u2028, \ufeff, e\u0301\n" * 3,
}
_SERVE = (
    "import sys; sys.path.append({root!r}); "
    "from mutiny.doubles.model_api.api import main; sys.exit(main(sys.argv[1:]))"
)


@dataclass
class Trouble:
    """A rule in front of all others, and how its answers are recognised."""

    rule: dict[str, Any]
    is_mine: Callable[[Mapping[str, Any]], bool]
    since: int
    """So many requests had been answered before."""


class ModelApi:
    """One server in one box; another box goes on with the same files."""

    def __init__(self, place: BoxPath, *, keeps_requests: bool = False) -> None:
        place.mkdir(exist_ok=True)
        self._bodies = place / "requests.jsonl" if keeps_requests else None
        self._kept = Tail(place / "requests.jsonl")
        self._said: tuple[tuple[str, ...], ...] = ()
        self._script = place / "api-script.json"
        self._log = place / "api.jsonl"
        self._output = place / "api.out"
        self._tail = Tail(self._log)
        self._rules: list[dict[str, Any]] = []
        self._troubles: list[Trouble] = []
        self._spawned: Spawned | None = None
        self._lock = threading.Lock()
        self.url = ""

    @property
    def requests(self) -> tuple[Mapping[str, Any], ...]:
        """What it was asked, in order."""
        return self._tail.rows()

    @property
    def said(self) -> tuple[tuple[str, ...], ...]:
        """What each of them said, as digests of its messages; only where requests are kept."""
        rows = self._kept.rows() if self._bodies is not None else ()
        fresh = rows[len(self._said) :]
        self._said = (*self._said, *(said_of(row["body"].get("messages")) for row in fresh))
        return self._said

    @property
    def pid(self) -> int:
        """Its process; 0: it does not run."""
        return 0 if self._spawned is None else self._spawned.pid

    @property
    def knows_answers(self) -> bool:
        """Has it been told what to answer?"""
        return bool(self._rules)

    def answer_by(self, script: Mapping[str, Any]) -> None:
        """Answer by this from now on."""
        self._rules = list(script["rules"])
        self._write()

    def serve(self, box: Box) -> None:
        """Be there for a box."""
        with self._lock:  # of two commands at once one starts it
            if self._spawned is None:
                self._start(box)

    def _start(self, box: Box) -> None:
        root, python = str(Path(doubles.__file__).parents[2]), str(Path(sys.executable).resolve())
        self._output.unlink(missing_ok=True)
        argv = [python, "-IS", "-c", _SERVE.format(root=root), "--script", box.inside(self._script)]
        argv += ["--log", box.inside(self._log)]
        if self._bodies is not None:
            argv += ["--bodies", box.inside(self._bodies)]
        self._spawned = box.spawn(argv, output=box.inside(self._output))
        for _ in range(round(START_S / 0.02)):
            said = self._output.read_said()
            if "listening on " in said:
                self.url = said.split("listening on ", 1)[1].split()[0]
                return
            if box.wait_ended(self._spawned, 0.02) is not None:
                break
        raise TargetMissing(f"the model's API did not start: {self._output.read_said()[-400:]}")

    def died(self) -> None:
        """Its box has ended."""
        self._spawned = None

    # --- trouble -------------------------------------------------------------------------------------

    def fail(self, error: str, times: int, model: str, retry_after_s: int) -> Trouble:
        """The next answers are errors, or come broken."""
        fault = FAULTS[error]
        step: dict[str, Any] = {"fault": fault, "over": True}
        if retry_after_s:
            step["retry_after_s"] = retry_after_s
        return self._add({"model": model, "times": times, "steps": [step]}, _has_fault(fault))

    def call_that_never_ends(self, times: int) -> Trouble:
        """The next tasks are answered with a tool call that never ends."""
        tool = {"name": "run", "input": {"argv": list(NEVER_ENDS)}}
        step = {"text": "One moment.", "tools": [tool]}
        rule = {"last": "*Task *", "times": times, "steps": [step]}
        return self._add(rule, _never_ends)

    def bad_work(self, how: str) -> Trouble | None:
        """The next task that writes code writes some that does not work, or tests that take too long; or
        the next one that could spoils what a gate asks for.
        """
        if how in SPOILERS:
            return self._spoilt(SPOILERS[how])
        for rule in self._rules:
            tools = [tool for step in rule["steps"] for tool in step.get("tools", ())]
            code = [tool for tool in tools if _is_code(tool, tests=how != "raises")]
            asked = any(_fits(rule, row) for row in self.requests)
            if not code or asked or "Task" not in str(rule.get("last", "")):
                continue
            path = code[0]["input"]["path"]
            content = BROKEN.get(how) or BEGINS[how] + code[0]["input"]["content"]
            broken = {"name": "write_file", "input": {"path": path, "content": content}}
            others = [tool for tool in tools if tool is not code[0]]
            step = {"text": "Done.", "tools": [broken, *others]}
            return self._add({**rule, "times": 1, "steps": [step]}, _holds(content))
        return None

    def _spoilt(self, spoil: Spoiler) -> Trouble | None:
        """The next task in which something can be spoilt."""
        for rule in self._rules:
            tools = [tool for step in rule["steps"] for tool in step.get("tools", ())]
            others = spoil(tools)
            asked = any(_fits(rule, row) for row in self.requests)
            if others == tools or asked or "Task" not in str(rule.get("last", "")):
                continue
            step = {"text": "Done.", "tools": others}
            return self._add({**rule, "times": 1, "steps": [step]}, _works_on(rule))
        return None

    def one_more(self, path: str, content: str, *, late: bool = False) -> Trouble | None:
        """With the next work one more file is to be written, or once the results of its tools are told."""
        names = [
            tool["name"]
            for rule in self._rules
            for step in rule["steps"]
            for tool in step.get("tools", ())
            if {"path", "content"} <= set(tool.get("input", {}))
        ]
        if not names:
            return None
        tool = {"name": names[0], "input": {"path": path, "content": content}}
        asked = {"last": "*Results of *"} if late else {}
        rule = {**asked, "times": 1, "steps": [{"over": True, "tools": [tool]}]}
        return self._add(rule, _holds(content))

    def one_look(self, tool: str, path: str) -> Trouble:
        """With the next work one more file is to be read."""
        asked = {"name": tool, "input": {"path": path}}
        rule = {"times": 1, "steps": [{"over": True, "tools": [asked]}]}
        return self._add(rule, _reads(path))

    def split_votes(
        self, votes: Mapping[str, Mapping[str, Any]], agents: list[str]
    ) -> list[dict[str, Any]]:
        """Every agent votes for another option, as far as there are some; the rules that say so."""
        made = []
        for name, vote in votes.items():
            options = [str(one) for one in vote.get("options") or ()]
            for place, agent in enumerate(agents if options else ()):
                step = {"text": options[place % len(options)]}
                rule = {"last": f"*Vote {name} by {agent}:*", "steps": [step]}
                self._add(rule, lambda row: "Vote " in str(row.get("last")))
                made.append(rule)
        return made

    def mute_voter(self, votes: Iterable[str], agent: str) -> None:
        """This agent names no option in any of these votes."""
        for name in votes:
            rule = {"last": f"*Vote {name} by {agent}:*", "steps": [{"text": "I cannot say."}]}
            self._add(rule, lambda row: "Vote " in str(row.get("last")))

    def fired(self, trouble: Trouble) -> int:
        """How often a trouble was met."""
        return sum(1 for row in self.requests[trouble.since :] if trouble.is_mine(row))

    def over(self, trouble: Trouble) -> bool:
        """Has it happened as often as was asked?"""
        return bool(trouble.rule.get("times")) and self.fired(trouble) >= trouble.rule["times"]

    def _add(self, rule: dict[str, Any], is_mine: Callable[[Mapping[str, Any]], bool]) -> Trouble:
        """One more in front; what is left of the others counts on, because counts begin anew."""
        left = []
        for trouble in self._troubles:
            times = trouble.rule.get("times")
            rest = times - self.fired(trouble) if times else 0
            if not times or rest > 0:
                rule_left = {**trouble.rule, "times": rest} if times else trouble.rule
                left.append(Trouble(rule_left, trouble.is_mine, len(self.requests)))
        made = Trouble(rule, is_mine, len(self.requests))
        self._troubles = [*left, made]
        self._write()
        return made

    def drop(self, rules: list[dict[str, Any]]) -> None:
        """These are over."""
        self._troubles = [one for one in self._troubles if one.rule not in rules]
        self._write()

    def _write(self) -> None:
        rules = [*(trouble.rule for trouble in reversed(self._troubles)), *self._rules]
        self._script.replace_bytes(json.dumps({"version": 1, "rules": rules}).encode())


def _is_code(tool: Mapping[str, Any], *, tests: bool) -> bool:
    path = str(tool.get("input", {}).get("path", ""))
    return path.endswith(".py") and (not tests or "/test_" in path)


def _holds(content: str) -> Callable[[Mapping[str, Any]], bool]:
    mark = hashlib.sha256(content.encode()).hexdigest()
    return lambda row: any(tool.get("sha256") == mark for tool in row.get("tools") or ())


def _reads(path: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: any(
        tool.get("path") == path and tool.get("sha256") is None for tool in row.get("tools") or ()
    )


def _works_on(rule: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], bool]:
    """Was this task answered with some work?"""
    return lambda row: _fits(rule, row) and bool(row.get("tools"))


def _never_ends(row: Mapping[str, Any]) -> bool:
    return any(tool.get("name") == "run" for tool in row.get("tools") or ())


def _has_fault(fault: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda row: row.get("fault") == fault


def _fits(rule: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return fnmatchcase(str(row.get("last", "")), str(rule.get("last", "")))
