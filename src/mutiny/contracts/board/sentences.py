"""Registered sentences about a board, with parameters: what `Verify` and experiments can say.

A sentence is words with numbers and names in it; understanding it gives a function over one look at
the board. What could not be looked at is neither true nor false: `None`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mutiny.contracts.board.observation import BoardObservation, TaskView

HELD = ("claimed", "in_progress")
TERMINAL = ("done", "failed", "cancelled")
_STATUSES = "blocked|available|claimed|in_progress|done|failed|cancelled"
_UNITS = {"ms": 0.001, "s": 1.0, "second": 1.0, "seconds": 1.0, "minute": 60.0, "minutes": 60.0}


class Finding(NamedTuple):
    """Does a sentence hold? None: it could not be told. `text` says what was seen."""

    holds: bool | None
    text: str


Test = Callable[[BoardObservation, "re.Match[str]"], Finding]


@dataclass(frozen=True)
class Sentence:
    """One sentence that can be said."""

    form: str
    """How it is written, with placeholders."""
    pattern: re.Pattern[str]
    test: Test


@dataclass(frozen=True)
class Understood:
    """A sentence with its parameters."""

    text: str
    sentence: Sentence
    match: re.Match[str]

    def check(self, seen: BoardObservation) -> Finding:
        """Is it true of what was seen?"""
        return self.sentence.test(seen, self.match)


def understand(text: str) -> Understood:
    """The sentence that a text says; ValueError with the nearest one when there is none."""
    plain = " ".join(text.strip().rstrip(".").split())
    for sentence in SENTENCES:
        match = sentence.pattern.fullmatch(plain)
        if match is not None:
            return Understood(plain, sentence, match)
    forms = [sentence.form for sentence in SENTENCES]
    close = difflib.get_close_matches(plain.lower(), forms, n=1, cutoff=0.3)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ValueError(f"unknown sentence {text!r}{hint}")


def _tasks(seen: BoardObservation) -> list[TaskView] | None:
    return None if seen.tasks is None else list(seen.tasks.values())


def _unknown(seen: BoardObservation) -> Finding:
    if seen.absent:
        return Finding(None, "there is no board")
    return Finding(None, seen.state_error or "the board could not be looked at")


def _names(views: list[TaskView]) -> str:
    shown = ", ".join(view.id for view in views[:5])
    return f"{shown}, ... ({len(views)})" if len(views) > 5 else shown


def _none_of(bad: list[TaskView], what: str) -> Finding:
    return Finding(not bad, f"{what}: {_names(bad)}" if bad else f"none is {what}")


def _seconds(number: str, unit: str) -> float:
    return float(number) * _UNITS[unit.lower()]


def _stuck(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    limit_s = _seconds(match["number"], match["unit"])
    statuses = HELD if match["status"].lower() == "held" else (match["status"].lower(),)
    bad = [one for one in tasks if one.status in statuses and one.unchanged_s > limit_s]
    return _none_of(bad, f"{match['status'].lower()} for more than {limit_s:g} s")


def _all_are(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    if not tasks:  # then it is true of anything, and nothing is said
        return Finding(None, "there is no task on the board")
    wanted = match["status"].lower()
    statuses = {"settled": TERMINAL, "held": HELD}.get(wanted, (wanted,))
    return _none_of([one for one in tasks if one.status not in statuses], f"not {wanted}")


def _none_is(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    wanted = match["status"].lower()
    statuses = {"settled": TERMINAL, "held": HELD, "lost": ()}.get(wanted, (wanted,))
    return _none_of([one for one in tasks if one.status in statuses], wanted)


def _count(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    wanted = (match["status"] or "").lower()
    statuses = {"settled": TERMINAL, "held": HELD, "": None}.get(wanted, (wanted,))
    found = len([one for one in tasks if statuses is None or one.status in statuses])
    bound = (match["bound"] or "").lower()
    number = int(match["number"])
    holds = {"at least": found >= number, "at most": found <= number}.get(bound, found == number)
    return Finding(holds, f"{found} {wanted or 'there'}")


def _task_is(seen: BoardObservation, match: re.Match[str]) -> Finding:
    if seen.tasks is None:
        return _unknown(seen)
    view = seen.tasks.get(match["task"])
    if view is None:
        return Finding(False, f"task {match['task']} is not there")
    negated = match["not"] is not None
    holds = (view.status == match["status"].lower()) != negated
    return Finding(holds, f"task {view.id} is {view.status}")


def _owner_is(seen: BoardObservation, match: re.Match[str]) -> Finding:
    if seen.tasks is None:
        return _unknown(seen)
    view = seen.tasks.get(match["task"])
    if view is None:
        return Finding(False, f"task {match['task']} is not there")
    holds = view.status in HELD and view.owner == match["worker"]
    return Finding(holds, f"task {view.id} is {view.status}, owner {view.owner or 'nobody'}")


def _worker_holds(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    held = [one for one in tasks if one.status in HELD and one.owner == match["worker"]]
    number = 0 if match["number"].lower() in ("no", "nothing") else int(match["number"])
    return Finding(len(held) == number, f"{match['worker']} holds {len(held)}")


def _one_owner(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    bad = [one for one in tasks if one.status in HELD and not one.owner]
    return _none_of(bad, "held by nobody in particular")


def _once(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    if tasks and all(one.completions is None for one in tasks):
        return Finding(None, "the board does not count completions")
    return _none_of([one for one in tasks if (one.completions or 0) > 1], "completed twice")


def _bounded(seen: BoardObservation, match: re.Match[str]) -> Finding:
    tasks = _tasks(seen)
    if tasks is None:
        return _unknown(seen)
    if tasks and all(one.attempts is None for one in tasks):
        return Finding(None, "the board does not count attempts")
    bad = [one for one in tasks if one.max_attempts and (one.attempts or 0) > one.max_attempts]
    return _none_of(bad, "tried more often than allowed")


def _ordered(seen: BoardObservation, match: re.Match[str]) -> Finding:
    if seen.tasks is None:
        return _unknown(seen)
    bad = [
        one
        for one in seen.tasks.values()
        if one.status in (*HELD, "done")
        and any(seen.status_of(other) not in ("done", None) for other in one.depends)
    ]
    return _none_of(bad, "begun before its dependencies were done")


def _readable(seen: BoardObservation, match: re.Match[str]) -> Finding:
    if seen.state_error is not None:
        return Finding(False, seen.state_error)
    return _unknown(seen) if seen.tasks is None else Finding(True, "it was read")


def _leader(seen: BoardObservation, match: re.Match[str]) -> Finding:
    if seen.tasks is None and seen.token is None:
        return _unknown(seen)
    if seen.leader is None and seen.token is None:
        return Finding(None, "the board does not show who leads")
    wanted = match["node"].lower()
    if wanted == "nobody":
        return Finding(seen.leader is None, f"{seen.leader or 'nobody'} leads")
    return Finding(seen.leader == match["node"], f"{seen.leader or 'nobody'} leads")


def _servers(seen: BoardObservation, match: re.Match[str]) -> Finding:
    if seen.servers is None:
        return Finding(None, "the board has no server")
    wanted = match["number"].lower()
    if wanted == "at most one":
        return Finding(seen.servers <= 1, f"{seen.servers} run")
    number = {"no": 0, "one": 1}.get(wanted)
    return Finding(
        seen.servers == (int(wanted) if number is None else number), f"{seen.servers} run"
    )


def _alive(seen: BoardObservation, match: re.Match[str]) -> Finding:
    holds = match["worker"] in seen.living
    return Finding(holds, f"{match['worker']} is {'alive' if holds else 'not alive'}")


def _sentence(form: str, pattern: str, test: Test) -> Sentence:
    return Sentence(form, re.compile(pattern, re.IGNORECASE), test)


_NAME = r"[A-Za-z0-9._-]+"
_STATUS_WORDS = rf"{_STATUSES}|settled|held"
SENTENCES: tuple[Sentence, ...] = (
    _sentence(
        "no tasks stuck in STATUS > NUMBER UNIT",
        rf"no tasks? (?:is |are )?(?:stuck )?(?:in )?(?P<status>{_STATUSES}|held)"
        r" (?:> ?|(?:for )?(?:more than|longer than) )(?P<number>\d+(?:\.\d+)?) ?"
        r"(?P<unit>ms|s|seconds?|minutes?)",
        _stuck,
    ),
    _sentence(
        "all tasks are STATUS",
        rf"(?:all tasks are|every task is) (?P<status>{_STATUS_WORDS})",
        _all_are,
    ),
    _sentence("no task is STATUS", rf"no tasks? (?:is|are) (?P<status>{_STATUS_WORDS})", _none_is),
    _sentence(
        "NUMBER tasks are STATUS",
        rf"(?:(?P<bound>at least|at most|exactly) )?(?P<number>\d+) tasks? (?:is|are)"
        rf" (?P<status>{_STATUS_WORDS})",
        _count,
    ),
    _sentence(
        "there are NUMBER tasks",
        r"there (?:is|are) (?:(?P<bound>at least|at most|exactly) )?(?P<number>\d+) tasks?(?P<status>)",
        _count,
    ),
    _sentence(
        "task NAME is STATUS",
        rf"task (?P<task>{_NAME}) is (?P<not>not )?(?P<status>{_STATUSES})",
        _task_is,
    ),
    _sentence(
        "task NAME belongs to WORKER",
        rf"task (?P<task>{_NAME}) (?:belongs to|is owned by) (?P<worker>{_NAME})",
        _owner_is,
    ),
    _sentence(
        "worker NAME holds NUMBER tasks",
        rf"worker (?P<worker>{_NAME}) holds (?P<number>\d+|no|nothing)(?: tasks?)?",
        _worker_holds,
    ),
    _sentence("no task has two owners", r"no tasks? (?:has|have) two owners", _one_owner),
    _sentence(
        "no task is completed twice", r"no tasks? (?:is|are|was|were) completed twice", _once
    ),
    _sentence(
        "no task is tried more often than allowed",
        r"no tasks? (?:is|are) tried more often than allowed",
        _bounded,
    ),
    _sentence("dependencies are respected", r"(?:all )?dependencies are respected", _ordered),
    _sentence("the board is readable", r"the (?:board|state) is readable", _readable),
    _sentence("NODE leads", rf"(?P<node>{_NAME}) leads", _leader),
    _sentence(
        "NUMBER servers run",
        r"(?P<number>no|one|\d+|at most one) servers? (?:runs?|is running|are running)",
        _servers,
    ),
    _sentence("worker NAME is alive", rf"worker (?P<worker>{_NAME}) is alive", _alive),
)
"""All sentences; `docs/board.md` lists them."""
