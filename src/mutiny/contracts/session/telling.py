"""What the answers of commands say of a session, held against what the session has written down.

Only answers of commands for which a target's file names parts (`[profile.answers]`) are looked at: whoever
does says that parts with the names of `docs/session.md` mean what that says. Between the look before a
command and the one after it a session goes on; so a counter lies between the two, and what may change
twice is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.accounts import (
    COUNTED,
    OF_AGENTS,
    OF_EVENTS,
    account_of,
    contradictions,
    goes_back,
    number_of,
    strangers,
)
from mutiny.contracts.session.checkpoints import Point
from mutiny.contracts.session.observation import ENDED, Row, SessionView
from mutiny.kit.telling import untrue
from mutiny.model.operation import Operation

LATE = 2
"""So many lines may have been written, and not been counted yet, when an answer was given."""
UNSEEN = "(nobody looked)"
VOTES = {
    "vote.open": "open",
    "vote.won": "won",
    "vote.priority": "priority",
    "vote.decided": "decided",
    "vote.escalated": "escalated",
}


@dataclass(frozen=True)
class Told:
    """An answer, and the session before and after it."""

    operation: Operation
    said: Mapping[str, Any]
    first: SessionView
    one: SessionView
    sure: bool = True
    """Nothing has happened to the session for which its accounts could be wrong."""
    written: object = UNSEEN
    """What stands in the file that it was to be written into; None: nothing."""
    slack_s: float = 5.0
    """By so many seconds of its time its logs may be behind."""

    def has(self, name: str) -> bool:
        """Is there such a part in the answer?"""
        return name in self.said

    def number(self, name: str) -> float | None:
        """A number that the answer promises to tell."""
        return number_of(self.said, name) if self.has(name) else None

    @property
    def at_rest(self) -> bool:
        """Nobody drove it, before and after."""
        return self.first.alive is False and self.one.alive is False

    @property
    def late(self) -> int:
        """By so many lines the looks may be behind the answer."""
        return 0 if self.at_rest else LATE

    def rows(self, name: str) -> list[Row]:
        """A list of the answer."""
        value = self.said.get(name)
        return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def lies(told: Told) -> Iterator[tuple[str, str]]:
    """What is told and never was so: the rule that it breaks, and a sentence."""
    rule, checks = CHECKS.get(type(told.operation), ("", ()))
    for check in (_names, *checks) if checks else ():
        for text in check(told):
            yield rule, f"It says {text}."


def _in_file(told: Told) -> Iterator[str]:
    """What was to be written into a file, too, stands there."""
    wanted = getattr(told.operation, "written", False) and told.written is not UNSEEN
    if wanted and told.written != dict(told.said):
        there = "nothing" if told.written is None else "something else"
        yield f"more than it has written into the file that was named: {there} stands there"


def _names(told: Told) -> Iterator[str]:
    """Which session it is about: the one that was named, else the newest."""
    for name in ("session", "session_id"):
        if told.has(name) and told.said.get(name) != told.one.name:
            yield f"that this is session {told.said.get(name)}; it is {told.one.name}"


# --- start, status, health -------------------------------------------------------------------------------


def _as_asked(told: Told) -> Iterator[str]:
    for name in ("agents", "hours"):
        asked, said = getattr(told.operation, name, None), told.said.get(name)
        if told.has(name) and asked and said != asked:
            yield f"{name} {said}; {asked} were asked for"
    phases, due = told.said.get("phases"), list(told.one.plan.phases)
    if told.has("phases") and due and phases != due:
        yield f"the phases {phases}; the project has {due}"


def _driver(told: Told) -> Iterator[str]:
    """Who drives it: whoever has written down last that it began."""
    starts = [row for one in (told.first, told.one) for row in one.of("supervisor.start")]
    for name in ("pid", "start"):
        pids = {row.get(name) for row in starts[-1:]} | {
            row.get(name) for row in list(told.first.of("supervisor.start"))[-1:]
        }
        said = told.said.get(name)
        if told.has(name) and said and starts and said not in pids and told.sure:
            yield f"that its driver has {name} {said}; it has written down {starts[-1].get(name)}"


def _agents(told: Told) -> Iterator[str]:
    rows = told.rows("agents")
    yield from strangers(rows, "name", told.one)
    for row in rows:
        trust = row.get("trust")
        if isinstance(trust, int | float) and not 0 <= trust <= 1:
            yield f"that {row.get('name')} has trust {trust:g}"
    starts = [row for one in (told.first, told.one) for row in one.of("agent.start")]
    for row in (each for each in rows if each.get("pid") and starts and told.sure):
        pids = [one.get("pid") for one in starts if one.get("agent") == row.get("name")]
        if row.get("pid") not in pids:
            yield f"that {row.get('name')} has pid {row.get('pid')}; it was started as {pids[-1:]}"
    seen = [one.processes.agents for one in (told.first, told.one) if one.processes is not None]
    if told.has("agents") and len(set(seen)) == 1 and len(rows) < seen[0] and told.one.alive:
        yield f"{len(rows)} agents; {seen[0]} are running"


def _votes(told: Told) -> Iterator[str]:
    said = told.said.get("votes")
    if not told.has("votes") or not isinstance(said, Mapping):
        return
    for vote, status in said.items():
        known = [VOTES[row["type"]] for row in told.one.of(*VOTES) if row.get("vote") == vote]
        if told.one.plan.votes and vote not in told.one.plan.votes:
            yield f"that there is a vote {vote}; the project has none of that name"
        elif status not in known and told.sure and known:
            yield f"that vote {vote} is {status}; it was {known[-1]} at last"


def _place(told: Told) -> Iterator[str]:
    """The commit, the deltas and the errors of where it stands."""
    commit, heads = told.said.get("git_commit"), set[str | None]()
    for one in (told.first, told.one):
        heads |= {None if one.git is None else one.git.head}
        heads |= {point.commit for point in one.points[-2:]}
    still = told.first.git == told.one.git and told.sure and None not in heads
    if told.has("git_commit") and commit and still and commit not in heads:
        yield f"git_commit {commit}; its branch and its last checkpoints are elsewhere"
    stands = told.one.last_valid
    known = {} if stands is None else {"deltas": stands.deltas, "checkpoint": stands.number}
    for name, due in known.items() if told.at_rest and told.first.last_valid == stands else ():
        if told.has(name) and told.said.get(name) != due:
            yield f"{name} {told.said.get(name)}; its last valid checkpoint has {due}"
    yield from _between(told, "errors", "errors_encountered")
    yield from _between(told, "recoveries")
    yield from _age(told)
    rest, due_s = told.number("remaining_s"), told.one.hours * 3600
    if rest is not None and due_s and not -1 <= rest <= due_s + 1:
        yield f"remaining_s {rest:g}; the whole session is to take {due_s:g} s"


def _between(told: Told, name: str, counter: str = "") -> Iterator[str]:
    """A counter that only goes up."""
    said = told.said.get(name)
    if not told.has(name) or not isinstance(said, int) or not told.sure:
        return
    most = account_of(told.one).whole[counter or name]
    back = told.at_rest or goes_back(told.one)
    least = 0 if back else account_of(told.first).whole[counter or name] - told.late
    if not least <= said <= most:
        yield f"{name} {said}; what was written down makes {least} to {most}"


def _unwell(told: Told) -> Iterator[str]:
    """All is well, and in the same answer something is not."""
    checks = told.said.get("checks")
    for name, well in checks.items() if isinstance(checks, Mapping) else ():
        if well is False:
            yield f"that all is well, and that {name} is not"
    status = told.said.get("status")
    known = {told.first.status, told.one.status, told.first.told, told.one.told, "running"}
    if told.has("status") and isinstance(status, str) and not known & set(status.split("|")):
        yield f"that it is {status}; it is {told.one.status}"


# --- metrics ---------------------------------------------------------------------------------------------


def _metrics(told: Told) -> Iterator[str]:
    yield from _as_written(told.said, told)
    if not told.at_rest:
        yield from _age(told)
    lives = [row.get("life") for row in told.one.of("supervisor.start")]
    known = told.sure and not told.at_rest and lives
    if told.has("life") and known and told.said.get("life") not in lives:
        yield f"life {told.said.get('life')}; it has begun {lives[-1]} times"
    if told.sure:
        yield from contradictions(told.said, told.one, told.has)
        yield from _spent(told.said, told)


def _as_written(row: Row, told: Told) -> Iterator[str]:
    """A line that is told is the line that was written, if it says that it is that line."""
    key = tuple(row.get(name) for name in ("life", "number", "ts"))
    for line in reversed(told.one.metrics if None not in key else ()):
        if tuple(line.get(name) for name in ("life", "number", "ts")) == key:
            wrong = untrue({name: row[name] for name in row if name in line}, line, line)
            if wrong is not None:
                yield f"of line {row.get('number')} {wrong}"
            return


def _spent(row: Row, told: Told) -> Iterator[str]:
    """What was spent, in all and by each agent, lies between the two looks."""
    least, most = account_of(told.first), account_of(told.one)
    for name in COUNTED:
        said = row.get(name)
        low, high = least.whole[name] - told.late, most.highest(name, told.one)
        low = 0 if told.at_rest or (name in OF_EVENTS and goes_back(told.one)) else low
        if told.has(name) and isinstance(said, int) and not low <= said <= high:
            yield f"{name} {said}; what was written down makes {low} to {high}"
    for each in told.rows("agent_utilization"):
        for name in OF_AGENTS:
            said, agent = each.get(name), each.get("agent")
            low, high = least.of(agent, name) - told.late, most.of(agent, name)
            low = 0 if told.at_rest else low
            wrong = isinstance(said, int) and not low <= said <= high
            if wrong:
                yield f"{name} {said} of {agent}; what was written down makes {low} to {high}"


def _age(told: Told) -> Iterator[str]:
    """How long it has lasted: since it was looked at it has not become younger, nor much older."""
    for name in ("elapsed_seconds", "duration_seconds", "elapsed_s"):
        said, stands = told.number(name), told.one.last_valid
        least, most = told.first.elapsed_s - 1, told.one.elapsed_s + told.slack_s
        if told.at_rest and stands is not None:  # where it would go on from
            least = min(least, stands.elapsed_s - 1)
        if said is not None and told.sure and not least <= said <= most:
            yield f"{name} {said:g}; by what it has written down it is {least + 1:g} to {most:g}"


# --- report and verify -----------------------------------------------------------------------------------


def _history(told: Told) -> Iterator[str]:
    """Each checkpoint as it lies there."""
    name = "checkpoint_history" if isinstance(told.operation, op.Report) else "checkpoints"
    rows = told.rows(name)
    was = {point.number: point for point in told.first.points}
    numbers = [row.get("checkpoint") for row in rows]
    for point in told.one.points:
        if point == was.get(point.number) and point.number not in numbers and rows:
            yield f"nothing of checkpoint {point.number}; it is there"
    for row in rows:
        number = row.get("checkpoint")
        there = next((one for one in told.one.points if one.number == number), None)
        if there is None and number not in was:
            yield f"something of checkpoint {number}; there is none"
        elif there is not None and there == was.get(there.number) and there.valid:
            wrong = untrue(row, None, _as_row(there, told.one))
            if wrong is not None:
                yield f"of checkpoint {number} {wrong}"
    stands, said = told.one.last_valid, told.said.get("last_valid")
    same = stands is not None and told.first.last_valid == stands
    if told.has("last_valid") and isinstance(said, Mapping) and stands is not None and same:
        wrong = untrue(said, None, {"checkpoint": stands.number, "deltas": stands.deltas})
        if wrong is not None:
            yield f"of the last valid checkpoint {wrong}"


def _as_row(point: Point, one: SessionView) -> Row:
    phases, places = one.plan.phases, {state.phase for state in point.states}
    known: dict[str, object] = {
        "valid": True,
        "trigger": point.trigger,
        "deltas_valid": point.states[-1].deltas,
    }
    if len(places) == 1 and max(places) < len(phases):
        known["phase"] = phases[max(places)]
    if not point.why and not point.cut:
        known |= {"why": "", "deltas": point.states[-1].deltas}
    return known


def _checklist(told: Told) -> Iterator[str]:
    """What a checkpoint is told to pass, and a machine sees that it does not."""
    checks, stands = told.said.get("checks"), told.one.last_valid
    if not told.has("checks") or not isinstance(checks, Mapping) or stands is None:
        return
    point = next((each for each in told.one.points if each.number == stands.number), None)
    for name, passed in checks.items():
        wrong = () if point is None else point.unfit
        if passed is True and name in wrong and told.first.points == told.one.points:
            yield f"that checkpoint {stands.number} passes {name}; it does not"
        elif passed is False:
            yield f"that all is well, and that {name} is not"


def _reported(told: Told) -> Iterator[str]:
    if told.has("project_type") and told.said.get("project_type") != told.one.project:
        yield f"project_type {told.said.get('project_type')}; it is {told.one.project}"
    lines = told.said.get("metrics")
    row: Row = lines if isinstance(lines, Mapping) else {}
    yield from _as_written(row, told)
    yield from _age(told)
    if told.sure and row:
        yield from contradictions(row, told.one, lambda _name: True)
        most = account_of(told.one)
        for name in COUNTED:
            said, high = row.get(name), most.highest(name, told.one)
            if isinstance(said, int) and said > high:
                yield f"{name} {said}; what was written down makes {high}"
    yield from _recovered(told)
    yield from _performance(told)
    known = [row for one in (told.first, told.one) for row in one.of("error")]
    for row in told.rows("error_log") if told.sure and not told.late else ():
        if not any(row.items() <= error.items() for error in known):
            yield f"that there was an error {row.get('text') or row.get('kind')}; nobody wrote it down"
    yield from _quality(told)


def _recovered(told: Told) -> Iterator[str]:
    """Of what kinds of trouble it has recovered, and how often."""
    said, counts = told.said.get("recoveries"), Counter[object]()
    if (
        not told.has("recoveries")
        or not isinstance(said, Mapping)
        or not (told.at_rest and told.sure)
    ):
        return
    for row in told.one.of("recovered", "session.restore"):
        counts[row.get("kind") if row["type"] == "recovered" else "crash"] += 1
    found = {kind: row.get("count") for kind, row in said.items() if isinstance(row, Mapping)}
    if found != dict(counts):
        yield f"that it has recovered from {found}; what was written down is {dict(counts)}"


def _performance(told: Told) -> Iterator[str]:
    rows = told.rows("agent_performance")
    yield from strangers(rows, "name", told.one)
    account, tasks = account_of(told.one), told.one.plan.tasks
    whole_life = len(list(told.one.of("supervisor.start"))) == 1
    ended = told.at_rest and told.one.told in ENDED and whole_life and told.sure
    for row in rows:
        agent = row.get("name")
        for name in OF_AGENTS:
            said, high = row.get(name), account.of(agent, name)
            right = isinstance(said, int) and (said == high or (said < high and not ended))
            if told.sure and not told.late and not right:
                yield f"{name} {said} of {agent}; what was written down makes {high}"
        begun = sum(start.get("agent") == agent for start in told.one.of("agent.start"))
        again, busy = number_of(row, "restarts"), number_of(row, "busy_s")
        if again is not None and told.sure and again > begun + told.late:
            yield f"{again:g} restarts of {agent}, who was started {begun} times"
        if busy is not None and ended and busy > told.one.elapsed_s + 1:
            yield f"that {agent} was busy for {busy:g} s of {told.one.elapsed_s:g} s"
    listed = [task for row in rows for task in row.get("tasks") or ()]
    if tasks and listed:
        for task in (each for each in listed if each not in tasks):
            yield f"that somebody did {task}; the project has no such task"
        twice = next((task for task in listed if listed.count(task) > 1), None)
        if twice is not None:
            yield f"that two agents did {twice}"
        if ended and told.one.told == "complete" and set(tasks) - set(listed):
            yield f"of {min(set(tasks) - set(listed))} nobody who did it; it is done"


def _quality(told: Told) -> Iterator[str]:
    """Of a session at its end: what its last checkpoint holds."""
    said, stands = told.said.get("code_quality"), told.one.last_valid
    if not isinstance(said, Mapping) or stands is None or not told.at_rest or not told.sure:
        return
    point = next((each for each in told.one.points if each.number == stands.number), None)
    due: dict[str, object] = {"files": len(stands.files)}
    if stands.tests is not None:
        due |= {"tests": stands.tests[0], "tests_passed": stands.tests[0] - stands.tests[1]}
    if point is not None and not stands.deltas:
        due |= {"test_coverage": point.coverage}
        due |= {"compiles": False} if "tests_compile" in point.unfit else {}
    wrong = untrue(said, None, due) if told.first.last_valid == stands else None
    if wrong is not None:
        yield f"of the code {wrong}"


Checks = tuple[Callable[[Told], Iterator[str]], ...]
CHECKS: Mapping[type[Operation], tuple[str, Checks]] = {
    op.StartSession: ("status_true", (_as_asked, _driver)),
    op.Status: ("status_true", (_driver, _agents, _votes, _place)),
    op.Health: ("health_true", (_unwell,)),
    op.Metrics: ("metrics_add_up", (_in_file, _metrics)),
    op.VerifyCheckpoint: ("verify_true", (_history, _checklist)),
    op.Report: ("report_true", (_in_file, _history, _reported)),
    op.Recover: ("status_true", (_driver,)),
    op.Pause: ("status_true", (_names,)),
    op.Continue: ("status_true", (_names,)),
    op.Checkpoint: ("status_true", (_names,)),
    op.Restore: ("status_true", (_names,)),
}
