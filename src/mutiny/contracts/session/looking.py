"""What the rules about state share: the session that is judged, its lives, and how exact time is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mutiny.contracts.session.checkpoints import Point
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import Row, SessionSeen, SessionView, at_of
from mutiny.kit.checking import Check, RuleBook, Unreadable

SessionCheck = Check[SessionModel, SessionSeen]
BOOK: RuleBook[SessionCheck] = RuleBook("session")
LAG_S = 1.0
"""Real seconds by which anything may be late on an idle machine."""
MOST_STILL_S = 30.0
"""Real seconds for which a crowded machine may let nothing of a session run."""
_VOTED = re.compile(r"Vote (\S+) by (\S+):")
_ASKED = re.compile(r"(?:Task|Results of) (\S+?):")
_BEGUN = re.compile(r"Task \S+?:")


def session_of(check: SessionCheck) -> SessionView | None:
    """The session that is judged; None: there is none."""
    if check.seen.error is not None:
        raise Unreadable(check.seen.error)
    hurt = check.model.killed or check.model.damaged or check.model.lasting
    if check.seen.session is None and check.model.names and not hurt:
        # A program that only says that it has begun one must not pass for there being nothing to judge.
        raise Unreadable("the session that was begun: there is none to be seen")
    return check.seen.session


def before_of(check: SessionCheck) -> SessionView | None:
    """The same session before the operation."""
    now, was = check.seen.session, check.before.session
    return was if now is not None and was is not None and was.name == now.name else None


def slack_s(check: SessionCheck) -> float:
    """Seconds of session time that prove nothing: the machine is slow, and its time is stretched."""
    return check.seen.pace.stretched(LAG_S) * max(1.0, check.seen.rate)


def stood_still_s(
    check: SessionCheck, one: SessionView, life: int, start: float, end: float
) -> float:
    """How long a session that tells metrics all the time wrote nothing at all between two moments: on a
    crowded machine what drives it may have no turn for seconds, and makes no checkpoint then. Not for ever.
    """
    usual = 2 * max(knobs.metrics_s for knobs in check.model.settings)
    most = MOST_STILL_S * max(1.0, check.seen.rate)
    told = [at_of(row) for row in one.metrics if life_of(row) == life]
    if not usual or len(told) < 2:
        return 0.0
    start, end = max(start, told[0]), min(end, told[-1])
    rows = (row for log in (one.events, one.calls, one.metrics) for row in log)
    marks = sorted(at_of(row) for row in rows if life_of(row) == life and start < at_of(row) < end)
    spans = (later - sooner for sooner, later in pairwise((start, *marks, end)))
    return sum(span for span in spans if usual < span <= most)


def own_points(check: SessionCheck, one: SessionView) -> Iterator[Point]:
    """Checkpoints that nobody but the session has written."""
    return (point for point in one.points if str(point.number) not in check.seen.damaged)


def planned_s(one: SessionView, task: str) -> float:
    """How long a task is meant to take: an agent may think for all of it before it says a word."""
    planned, whole = one.plan.tasks.get(task, {}).get("minutes", 0), sum(one.plan.minutes)
    return float(planned) * 60 * (one.hours * 60 / whole if whole else 1.0)


def life_of(row: Row) -> int:
    """Which of the session's lives a line was written in."""
    value = row.get("life", 1)
    return value if isinstance(value, int) else 1


def lives(rows: Sequence[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Lines by the life that they were written in: within one, time only goes forward."""
    found: dict[tuple[int, int], list[Row]] = {}
    restored = 0
    for row in rows:
        if row.get("type") in ("session.restore", "checkpoint.invalid"):
            restored += 1  # written while nothing runs, each at the time of what is restored
        elif row.get("type") == "supervisor.start":
            restored = 0
        found.setdefault((life_of(row), restored), []).append(row)
    yield from ((life, listed) for (life, _), listed in sorted(found.items()))


def ends(rows: Sequence[Row], kind: str) -> list[Row]:
    """Calls of a kind that came to their end."""
    return [row for row in rows if row.get("state") == "end" and row.get("kind") == kind]


def between(rows: Sequence[Row], start: float, end: float) -> list[Row]:
    """Lines behind one moment, up to another one."""
    return [row for row in rows if start < at_of(row) <= end]


def task_of(request: Row) -> str:
    """The task that a request to the model was about; empty: none."""
    found = _ASKED.search(str(request.get("last", "")))
    return found[1] if found else ""


def begins_task(request: Row) -> bool:
    """Was the model asked for a task from its beginning?"""
    return _BEGUN.search(str(request.get("last", ""))) is not None


def vote_of(request: Row) -> str:
    """The vote that a request was about, with its voter; empty: none."""
    found = _VOTED.search(str(request.get("last", "")))
    return f"{found[1]}/{found[2]}" if found else ""


def about_of(request: Row) -> str:
    """The task that a request was about, or the vote with its voter; empty: neither."""
    return task_of(request) or vote_of(request)


def failed(request: Row) -> bool:
    """Was it answered with a fault that leaves no whole answer?"""
    return request.get("fault") not in (None, "slow-start", "split-utf8")
