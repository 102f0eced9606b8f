"""Rules about the way of a session: phases, gates, tasks, limits, and what is left at its end."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterator, Sequence

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.accounts import tokens
from mutiny.contracts.session.checkpoints import Point
from mutiny.contracts.session.knobs import HOUR_S
from mutiny.contracts.session.looking import (
    BOOK,
    SessionCheck,
    ends,
    failed,
    life_of,
    lives,
    planned_s,
    session_of,
    slack_s,
)
from mutiny.contracts.session.model import SessionModel
from mutiny.contracts.session.observation import ENDED, Row, SessionView, at_of
from mutiny.kit.checking import Found

COVERAGE = re.compile(r"coverage\s*>=\s*(\d+)")
LEAST_LINES = 60
"""So many lines of metrics tell growth from noise."""
GROWN, GROWN_MB, GROWN_DESCRIPTORS = 1.3, 12.0, 12
ALERT = 0.8
MEASURED = 1.1
"""A limit is kept that is exceeded by less: tokens are counted before an answer is known."""
LARGEST_MB = 0.2
"""More than a session writes at once: a checkpoint, a commit, lines of its logs."""
_GOING_ON = ("session.continue", "session.recover", "session.restore", "session.start")
STRAYING = 2.0
EARLY = 0.5
"""Below this share of a limit nobody is near it: some warn early, and count more than can be seen."""
ROUNDED_S = 0.01
"""Times in logs are rounded."""


@BOOK.rule(eventual=False)
def phases_in_order(check: SessionCheck) -> Iterator[Found]:
    """One after the other; a task begins in its own phase, and behind what it needs."""
    one = session_of(check)
    if one is None or not one.plan.phases:
        return
    place, done, left = -1, set[str](), set[str]()
    states = {point.number: point for point in one.points if point.valid}
    for row in one.events:
        kind = row["type"]
        if kind == "session.restore":
            point, deltas = states.get(row.get("checkpoint", -1)), row.get("deltas")
            if point is None or not isinstance(deltas, int) or deltas >= len(point.states):
                return  # its checkpoint is gone: nobody knows where it went on
            state = point.states[deltas]
            place = state.phase
            done = {name for name, word in state.tasks.items() if word in ("done", "flagged")}
            left.clear()
        elif kind == "phase.start":
            at = _place(one, row)
            if at not in (place, place + 1):
                text = f"Phase {row.get('phase')} began behind phase {place}, out of order."
                yield one.name, text
                return
            place = at
        elif kind == "phase.complete":
            name = str(row.get("phase"))
            if name in left and not check.model.cramped:
                yield one.name, f"Phase {name} was left, and was left again."
                return
            left.add(name)
        elif kind == "session.continue":  # what could not be saved is done again
            left.clear()
        elif kind in ("task.done", "task.flagged"):
            done.add(str(row.get("task")))
        elif kind == "task.start" and row.get("task") in one.plan.tasks:
            task = str(row["task"])
            early = [name for name in one.plan.tasks[task].get("needs") or () if name not in done]
            if early:
                yield one.name, f"Task {task} began before {early[0]} was done."
                return
            if one.plan.phase_of(task) != place:
                yield one.name, f"Task {task} began outside of its phase."
                return


def _place(one: SessionView, row: Row) -> int:
    name = row.get("phase")
    return one.plan.phases.index(name) if name in one.plan.phases else -9


@BOOK.rule(eventual=False)
def gates_hold(check: SessionCheck) -> Iterator[Found]:
    """All criteria of the plan were asked and held, and what they say is so."""
    one = session_of(check)
    if one is None:
        return
    gates: dict[str, Row] = {}
    over: set[str] = set()
    taken = {point.number: point for point in one.points if point.valid}
    last = None
    for row in one.events:
        name = str(row.get("phase"))
        if row["type"] == "phase.gate":
            gates[name] = row
        elif row["type"] == "checkpoint.written":
            last = taken.get(row.get("checkpoint", -1))
            yield from _contradicted(check, one, last, over)
        elif row["type"] == "phase.complete" and name in one.plan.phases:
            gate = gates.get(name)
            if gate is None or not gate.get("passed"):
                yield one.name, f"Phase {name} was left, and its gate was not passed."
                return
            criteria = gate.get("criteria") or {}
            for word in one.plan.criteria[one.plan.phases.index(name)]:
                if criteria.get(word) is not True:
                    yield one.name, f"Phase {name} was left, and `{word}` does not hold."
                    return
            if "tests_pass" in criteria and _tests_failed(one, row):
                yield one.name, f"Phase {name} was left, and its tests have not passed."
                return
            over.add(name)
            yield from _contradicted(check, one, last, {name})
    left = [
        task
        for task, word in ({} if one.last_valid is None else one.last_valid.tasks).items()
        if one.told == "complete" and word not in ("done", "flagged")
    ]
    if left:
        yield one.name, f"The session is complete, and {left[0]} is not done."
    yield from _shut(check, one)


def _shut(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """A gate at which a session was given up although all went well: nothing was broken, and nothing else
    went wrong that anybody tells of.
    """
    gates, errors = list(one.of("phase.gate")), list(one.of("error"))
    undone = not (check.model.faults or check.model.met)
    well = undone and all(str(row.get("kind")).startswith("gate") for row in errors)
    given_up = bool(errors) and errors[-1].get("action") == "pause" and one.told == "paused"
    if not well or not given_up or not gates or gates[-1].get("passed"):
        return
    missing = [word for word, holds in (gates[-1].get("criteria") or {}).items() if not holds]
    text = f"Phase {gates[-1].get('phase')} was given up at its gate ({', '.join(missing)})"
    yield one.name, f"{text}, and nothing had gone wrong."


def _tests_failed(one: SessionView, end: Row) -> bool:
    """Did the last run of the tests before the end of a phase go wrong, or never end?"""
    ran = [
        row.get("ok")
        for row in one.calls
        if (row.get("name"), row.get("state"), life_of(row)) == ("run_tests", "end", life_of(end))
        and at_of(row) <= at_of(end)
    ]
    return bool(ran) and ran[-1] is False


def _contradicted(
    check: SessionCheck, one: SessionView, point: Point | None, over: set[str]
) -> Iterator[Found]:
    """What the checkpoint at the end of a phase that was left says; it is told before that, or after."""
    if point is None or point.trigger != "phase" or point.state.phase >= len(one.plan.phases):
        return
    name = one.plan.phases[point.state.phase]
    if name not in over:
        return
    for word in one.plan.criteria[point.state.phase]:
        for text in _untrue(check.model, point, word):
            yield one.name, f"Phase {name} was left with `{word}`; {text}."


def _untrue(model: SessionModel, point: Point, word: str) -> Iterator[str]:
    """What contradicts a criterion."""
    least = COVERAGE.match(word)
    if least is not None and point.coverage < float(least[1]):
        yield f"the coverage is {point.coverage:g}"
    if word == "tests_pass" and point.failing:
        yield f"{point.failing} tests fail"
    if word in model.criteria and word in point.against:
        yield point.against[word]


@BOOK.rule(eventual=False)
def pause_holds(check: SessionCheck) -> Iterator[Found]:
    """Between two looks at a paused session each agent may have ended what it was at, and begun nothing."""
    one, before = session_of(check), check.before.session
    if one is None or before is None or one.name != before.name:
        return
    went_on = list(one.of(*_GOING_ON)) != list(before.of(*_GOING_ON))
    if before.told != "paused" or went_on:
        return
    begun = _begun(one) - _begun(before)
    asked = len(check.seen.api) - len(check.before.api)
    if max(begun, asked) > one.agents:
        yield one.name, f"It is paused, and has begun {max(begun, asked)} calls all the same."


def _begun(one: SessionView) -> int:
    return sum(row.get("state") == "begin" for row in one.calls)


# --- limits -----------------------------------------------------------------------------------------------


def _in_an_hour(rows: Sequence[Row], weigh: Callable[[Row], int]) -> int:
    """The most that any hour of session time holds."""
    most = total = first = 0
    for row in rows:
        total += weigh(row)
        while at_of(rows[first]) <= at_of(row) - HOUR_S:
            total -= weigh(rows[first])
            first += 1
        most = max(most, total)
    return most


@BOOK.rule(eventual=False)
def agent_tokens(check: SessionCheck) -> Iterator[Found]:
    """In no hour more than the limit and the call that crossed it."""
    yield from _hourly(check, "agent_tokens_hour", "model", tokens, "tokens")


@BOOK.rule(eventual=False)
def agent_calls(check: SessionCheck) -> Iterator[Found]:
    """The same for tool calls; several at once count as one."""
    yield from _hourly(check, "agent_calls_hour", "tool", lambda _row: 1, "tool calls")


def _hourly(
    check: SessionCheck, knob: str, kind: str, weigh: Callable[[Row], int], what: str
) -> Iterator[Found]:
    one, limit = session_of(check), check.model.most(knob)
    if one is None or not limit:
        return
    for _, rows in lives(ends(one.calls, kind)):
        for agent in sorted({str(row.get("agent")) for row in rows}):
            mine = [row for row in rows if row.get("agent") == agent]
            used = _in_an_hour(mine, weigh)
            if used > limit + max(weigh(row) for row in mine):
                text = f"Agent {agent} used {used} {what} in one hour; {limit:.0f} are allowed."
                yield agent, text
                return


@BOOK.rule(eventual=False)
def context_bounded(check: SessionCheck) -> Iterator[Found]:
    """No request is larger than the context may be."""
    limit = check.model.most("context_tokens")
    for request in check.seen.api if limit else ():
        used = request.get("input_tokens")
        if isinstance(used, int) and used > limit * MEASURED:
            text = f"A request of {used} tokens was sent; the context may have {limit:.0f}."
            yield str(request.get("number")), text
            return


@BOOK.rule(eventual=False)
def idle_reassigned(check: SessionCheck) -> Iterator[Found]:
    """Who holds a task and does nothing loses it."""
    one = session_of(check)
    limit = check.model.most("idle_s")
    if one is None or not limit or check.model.lasting or one.status != "running":
        return
    rows = [*lives(one.events)]
    if not rows:
        return
    life, events = rows[-1]
    held: dict[str, tuple[str, float]] = {}
    for row in events:
        if row["type"] == "task.start":
            held[str(row.get("task"))] = (str(row.get("agent")), at_of(row))
        elif row["type"] in ("task.done", "task.flagged", "task.reassigned"):
            held.pop(str(row.get("task")), None)
    calls = dict(lives(one.calls)).get(life, [])
    for task, (agent, since) in held.items():
        own = [row for row in calls if row.get("agent") == agent]
        last = max([since, *map(at_of, own)])
        asked = bool(own) and own[-1].get("state") == "begin" and at_of(own[-1]) >= since
        thinks_s = 0.0 if asked else planned_s(one, task)
        if one.elapsed_s - last > STRAYING * limit + thinks_s + slack_s(check):
            text = f"Agent {agent} holds {task} and has done nothing for "
            yield task, f"{text}{one.elapsed_s - last:.0f} s; {limit:.0f} s are allowed."
            return


@BOOK.rule(eventual=True)
def total_tokens(check: SessionCheck) -> Iterator[Found]:
    """It warns before, and pauses at its limit."""
    one, limit = session_of(check), check.model.most("total_tokens")
    if one is None or not limit:
        return
    rows = ends(one.calls, "model")
    used, largest = sum(map(tokens, rows)), max(map(tokens, rows), default=0)
    if used > limit + 2 * one.agents * largest:
        yield one.name, f"{used} tokens were used; {limit:.0f} are allowed."
    elif used > limit * ALERT + 2 * one.agents * largest and not any(one.of("budget.alert")):
        yield one.name, f"{used} of {limit:.0f} tokens were used, and nobody was warned."


@BOOK.rule(eventual=True)
def agents_bounded(check: SessionCheck) -> Iterator[Found]:
    """As many processes as were asked for."""
    one = session_of(check)
    if one is None or one.processes is None:
        return
    if one.processes.agents > one.agents:
        yield one.name, f"{one.processes.agents} agents run; {one.agents} were asked for."
    limit = check.model.most("max_agents")
    if limit and one.agents > limit:
        yield one.name, f"It has {one.agents} agents; {limit:.0f} are allowed."


@BOOK.rule(eventual=True)
def disk_bounded(check: SessionCheck) -> Iterator[Found]:
    """The room that a session uses, also at its end; what it was just writing may be beyond."""
    one, limit = session_of(check), check.model.most("disk_mb")
    if one is None or not limit or one.status not in ("running", "complete"):
        return
    if one.size_mb > limit * MEASURED + LARGEST_MB:
        yield one.name, f"It uses {one.size_mb:.1f} MB; {limit:g} MB are allowed."


@BOOK.rule(eventual=False)
def memory_bounded(check: SessionCheck) -> Iterator[Found]:
    """Whoever has less memory than it uses compresses, restarts, says so or pauses."""
    one, lasted_s = session_of(check), check.seen.heedless_s
    if one is not None and lasted_s and check.gave(op.MemoryPressure):
        text = f"It went on for {lasted_s:.0f} s with less memory than it uses"
        yield one.name, f"{text}, and did nothing about it."


@BOOK.rule(eventual=False)
def tests_bounded(check: SessionCheck) -> Iterator[Found]:
    """A run of tests that takes too long is ended."""
    one, limit = session_of(check), check.model.most("test_time_s")
    if one is None or not limit:
        return
    for _, rows in lives(one.calls):
        begun: dict[object, Row] = {}
        now = at_of(rows[-1])
        for row in rows:
            if row.get("kind") != "tool":
                continue
            if row.get("state") == "begin" and row.get("name") == "run_tests":
                begun[row.get("call")] = row
            elif row.get("state") == "end" and row.get("call") in begun:
                took = at_of(row) - at_of(begun.pop(row.get("call")))
                if took > STRAYING * limit + slack_s(check):
                    yield one.name, f"Tests ran for {took:.0f} s; {limit:.0f} s are allowed."
                    return
        for row in begun.values():
            # Who is silent for too long loses his task, and then nobody tells how his tests ended.
            until = [at_of(later) for later in rows if _next_of(row, later)] or [now]
            told = one.status == "running" or (one.told == "complete" and _undisturbed(check))
            if told and until[0] - at_of(row) > STRAYING * limit + slack_s(check):
                yield one.name, f"Tests run for more than {limit:.0f} s, and nobody ends them."
                return


def _next_of(row: Row, later: Row) -> bool:
    """Is it a later call of the same agent?"""
    same = later.get("agent") == row.get("agent") and later.get("state") == "begin"
    return same and at_of(later) > at_of(row)


def _undisturbed(check: SessionCheck) -> bool:
    """Nobody was killed or held up: only the work of the model was bad."""
    return check.model.met <= {op.BadWork.__name__}


@BOOK.rule(eventual=False)
def limits_have_reason(check: SessionCheck) -> Iterator[Found]:
    """By what the calls show: a limit that acts has nearly been reached, and who lost a task was silent."""
    one = session_of(check)
    if one is None or check.model.jumped:
        return
    untold = any(map(failed, check.seen.api))
    calls = dict(lives(one.calls))
    for life, events in lives(one.events):
        for row in events:
            limit = _acted(row)
            least = check.model.least(limit) if limit else 0.0
            if (
                not least
                or (limit == "total_tokens" and life != 1)
                or (untold and limit != "idle_s")
            ):
                continue  # what former lives and failed requests have used is its own count
            mine = (str(row.get("agent")), calls.get(life, []), at_of(row))
            used, early = _used(limit, *mine), EARLY
            if limit == "agent_calls_hour" and check.model.uses_limits and _undisturbed(check):
                used, early = _calls_begun(*mine), 1.0  # they are counted when they begin
            if used + slack_s(check) * (limit == "idle_s") < least * early:
                text = f"{row['type']} at {used:.0f} of {least:.0f} ({limit})"
                yield one.name, f"{text}: nobody was near that limit."
                return


_LIMITS = {
    "agent_tokens_hour": "agent_tokens_hour",
    "agent_calls_hour": "agent_calls_hour",
    "idle": "idle_s",
}
_HOLD_UP = ("throttle", "wait", "reassign")


def _acted(row: Row) -> str:
    """The knob whose limit has acted in an event; empty: none that can be counted from outside."""
    if row["type"] == "budget.alert":
        return "total_tokens"
    held_up = row["type"] == "limit.reached" and row.get("action") in _HOLD_UP
    return _LIMITS.get(str(row.get("limit")), "") if held_up else ""


def _used(limit: str, agent: str, calls: Sequence[Row], now: float) -> float:
    """How much of it was used by then, and what was under way may have added as much as any before."""
    past = [row for row in calls if at_of(row) <= now]
    if limit == "total_tokens":
        rows = ends(past, "model")
        return sum(map(tokens, rows)) + max(map(tokens, rows), default=0)
    mine = [row for row in past if row.get("agent") == agent]
    if limit == "idle_s":
        return now - max(map(at_of, mine), default=0.0)
    recent = [row for row in mine if at_of(row) > now - HOUR_S]
    if limit == "agent_calls_hour":
        return len(ends(recent, "tool")) + 1
    rows = ends(recent, "model")
    return sum(map(tokens, rows)) + max(map(tokens, rows), default=0)


def _calls_begun(agent: str, calls: Sequence[Row], now: float) -> int:
    """How many tool calls an agent has begun in the hour before."""
    rows = (row for row in calls if row.get("kind") == "tool" and row.get("state") == "begin")
    times = [at_of(row) for row in rows if row.get("agent") == agent]
    return sum(now - HOUR_S - ROUNDED_S < at <= now + ROUNDED_S for at in times)


# --- ends -------------------------------------------------------------------------------------------------


@BOOK.rule(eventual=True)
def processes_end(check: SessionCheck) -> Iterator[Found]:
    """At its end nothing of a session runs."""
    one = session_of(check)
    if one is None or one.processes is None:
        return
    if one.told in ENDED and one.processes.supervisors + one.processes.agents:
        yield one.name, f"It is {one.told}, and {one.processes.agents} agents still run."
    elif one.told in ENDED and one.processes.others:
        yield one.name, f"It is {one.told}, and this still runs: {one.processes.others[0]}."
    left = one.processes.tools - _under_way(one.calls)
    if one.calls and left > 0:
        yield one.name, f"Its tool calls have ended; {left} that agents started still run."


def _under_way(calls: Sequence[Row]) -> int:
    """How many tool calls have begun and not ended, in the newest life."""
    life = life_of(calls[-1]) if calls else 0
    tools = [row for row in calls if row.get("kind") == "tool" and life_of(row) == life]
    begun, ended = (
        {row.get("call") for row in tools if row.get("state") == state}
        for state in ("begin", "end")
    )
    return len(begun - ended)


@BOOK.rule(eventual=False)
def no_growth(check: SessionCheck) -> Iterator[Found]:
    """Medians of the first and the last third of a phase: another one has other agents."""
    one = session_of(check)
    if one is None:
        return
    for rows in _phases(one.metrics):
        if len(rows) < LEAST_LINES:
            continue
        third = len(rows) // 3
        for name, least in (("memory_usage_mb", GROWN_MB), ("descriptors", GROWN_DESCRIPTORS)):
            first, last = (
                statistics.median(float(row.get(name) or 0) for row in part)
                for part in (rows[third // 3 : third], rows[-third:])
            )
            if last > first * GROWN and last - first > least:
                yield one.name, f"{name} grew from {first:g} to {last:g}."
                return


def _phases(metrics: Sequence[Row]) -> Iterator[list[Row]]:
    """Lines of one life in one phase with the same number of agents."""
    for _, rows in lives(metrics):
        found: dict[tuple[object, int], list[Row]] = {}
        for row in rows:
            crew = len(row.get("agent_utilization") or ())
            found.setdefault((row.get("phase"), crew), []).append(row)
        yield from found.values()


@BOOK.rule(eventual=False)
def project_works(check: SessionCheck) -> Iterator[Found]:
    """Built by hand, as its user would."""
    one, built = session_of(check), check.seen.built
    if one is None or built is None or one.told != "complete":
        return
    if check.gave(op.BuildProject) and not built.get("ok"):
        yield one.name, f"What a complete session has left does not work: {built.get('why')}"


@BOOK.rule(eventual=True)
def no_crash(check: SessionCheck) -> Iterator[Found]:
    """Nobody has killed it, and yet nothing drives it any more, or an agent has died."""
    one = session_of(check)
    if one is not None and not check.model.bereft:
        for row in one.of("error"):
            if row.get("kind") == "agent_lost" and row.get("action") == "restart":
                yield one.name, f"Agent {row.get('agent')} has died by itself: {row.get('text')}."
                return
    if one is None or one.status != "interrupted" or check.model.killed:
        return
    if check.model.lasting or check.model.now & {"interrupted"}:
        return
    yield one.name, "What drove the session has ended by itself, before its end."


@BOOK.rule(eventual=True)
def answers_truly(check: SessionCheck) -> Iterator[Found]:
    """The session is what the answers have said."""
    one = session_of(check)
    if one is None or one.status == "interrupted" or not check.model.agrees(check.seen):
        return
    if check.model.cramped and (
        check.model.lasting or any("dropped_before" in r for r in one.events)
    ):
        return  # what its status is by its events may be among those for which there was no room
    if one.status not in check.model.now:
        due = " or ".join(sorted(check.model.now))
        yield one.name, f"The session is {one.status}; by what was answered it is {due}."
    last = [row["type"] for row in one.of("session.pause", "session.continue", "session.restore")]
    back = one.status == "paused" and last[-2:] == ["session.continue", "session.restore"]
    if back and check.model.going and not (check.model.damaged or check.model.cramped):
        yield one.name, "It was told to go on, and was brought back paused."
