"""Rules about checkpoints: what they hold, when they come, and that one can go on from each of them."""

from __future__ import annotations

from collections.abc import Iterator

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.accounts import tokens
from mutiny.contracts.session.checkpoints import TORN, State
from mutiny.contracts.session.looking import (
    BOOK,
    SessionCheck,
    before_of,
    between,
    ends,
    life_of,
    lives,
    own_points,
    session_of,
    slack_s,
    stood_still_s,
)
from mutiny.contracts.session.observation import Row, SessionView, at_of
from mutiny.kit.checking import Found, inner_of
from mutiny.kit.operations import PowerLossAt

_MINUTE_S = 60.0
ROUNDED_S = 0.01
"""Times in logs are rounded."""
FALLBACKS = 2
"""However few are kept: the newest, and one to fall back to."""


@BOOK.rule(eventual=True)
def checkpoint_whole(check: SessionCheck) -> Iterator[Found]:
    """What was announced is on disk, with its digest; a chain of deltas has no bad line.

    Old ones go as `keep` says, or to make room. Then the newest one that was announced may go, too, once
    there are two valid ones to go on from that are newer: a restore writes a checkpoint, and tells it as a
    restore.
    """
    one = session_of(check)
    if one is None:
        return
    points = {point.number: point for point in one.points}
    written = {row.get("checkpoint"): row for row in one.of("checkpoint.written")}
    numbers = sorted(number for number in written if isinstance(number, int))
    for point in own_points(check, one):
        said = written.get(point.number)
        if said is not None and not point.valid:
            yield one.name, f"Checkpoint {point.number} was announced, and {point.why}."
        elif said is not None and said.get("digest") not in (None, point.digest):
            text = f"Checkpoint {point.number} was announced with another digest than it has."
            yield one.name, text
        damaged = f"{point.number}.delta" in check.seen.damaged
        torn = point.cut == TORN or (check.model.killed or check.model.lasting)
        if point.cut and not damaged and not torn:
            yield one.name, f"The deltas of checkpoint {point.number} are damaged: {point.cut}."
    lost = [n for n in numbers if n not in points and str(n) not in check.seen.damaged]
    if lost and not _may_go(check, one):
        yield one.name, f"Checkpoint {lost[0]} was announced, and is not there: all are to be kept."
        return
    newer = sum(point.valid and point.number > numbers[-1] for point in one.points if numbers)
    if lost and lost[-1] == numbers[-1] and newer < FALLBACKS:
        yield one.name, f"Checkpoint {lost[-1]} was announced, and is not there."
    yield from _made_by_a_restore(check, one)


def _made_by_a_restore(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """A restore that was answered has made a checkpoint: also when the power went right behind it."""
    was = before_of(check)
    plain = isinstance(check.operation, op.Restore | PowerLossAt)
    if was is None or not (plain and check.succeeded and check.gave(op.Restore)):
        return
    last = max((point.number for point in was.points), default=-1)
    for point in own_points(check, one):
        if point.number > last and not point.valid:
            text = f"Checkpoint {point.number} was made by a restore that was answered"
            yield one.name, f"{text}, and {point.why}."


def _may_go(check: SessionCheck, one: SessionView) -> bool:
    """May old checkpoints be removed? By a setting, or because there was too little room."""
    if check.model.cramped or any(knobs.keep for knobs in check.model.settings):
        return True
    return any(
        row["type"] == "checkpoint.failed"
        or row.get("kind") == "disk_full"
        or row.get("limit") == "disk"
        or "dropped_before" in row
        for row in one.events
    )


@BOOK.rule(eventual=False)
def checkpoint_complete(check: SessionCheck) -> Iterator[Found]:
    """Everything that the plan lists, of every agent and every file."""
    one = session_of(check)
    if one is None:
        return
    for point in own_points(check, one):
        if not point.valid:
            continue
        for missing in point.missing:
            yield one.name, f"Checkpoint {point.number} does not hold {missing}."
        if point.session != one.name:
            yield one.name, f"Checkpoint {point.number} is of session {point.session}."
        unknown = sorted(_at_work(one, point.number) - set(point.state.agents))
        if unknown:
            yield one.name, f"Checkpoint {point.number} does not know the agent {unknown[0]}."
        if point.state.files and point.commit is None:
            yield one.name, f"Checkpoint {point.number} has files and names no commit."
        if one.plan.tasks and set(point.state.tasks) != set(one.plan.tasks):
            lost = sorted(set(one.plan.tasks) ^ set(point.state.tasks))
            yield one.name, f"Checkpoint {point.number} does not know the task {lost[0]}."


def _at_work(one: SessionView, number: int) -> set[str]:
    """The agents that ran when a checkpoint was announced."""
    found: set[str] = set()
    for row in one.events:
        kind, agent = row["type"], str(row.get("agent"))
        if kind == "checkpoint.written" and row.get("checkpoint") == number:
            return found
        if kind == "agent.start":
            found.add(agent)
        elif kind in ("agent.end", "agent.lost"):
            found.discard(agent)
        elif kind == "supervisor.start":
            found = set()
    return set()


@BOOK.rule(eventual=False)
def checkpoint_valid(check: SessionCheck) -> Iterator[Found]:
    """The checklist, by machine: what is committed is what is saved, and nothing was under way."""
    one = session_of(check)
    if one is None:
        return
    told = {row.get("checkpoint"): row for row in one.of("checkpoint.written")}
    for point in own_points(check, one):
        if not point.valid:
            continue
        for unfit in point.unfit:
            yield one.name, f"Checkpoint {point.number}: {unfit}."
        tree = None if one.git is None or point.commit is None else one.git.trees.get(point.commit)
        if tree is not None and dict(tree) != dict(point.blobs):
            names = {*tree, *point.blobs}
            wrong = sorted(name for name in names if tree.get(name) != point.blobs.get(name))
            text = f"Checkpoint {point.number}: nothing_uncommitted: {wrong[0]} is not the one"
            yield one.name, f"{text} of its commit {str(point.commit)[:12]}."
        row = told.get(point.number)
        if row is not None:
            for call in _under_way(one, life_of(row), point.state.elapsed_s):
                text = f"Checkpoint {point.number}: no_active_tools: {call} was under way."
                yield one.name, text


def _under_way(one: SessionView, life: int, moment: float) -> Iterator[str]:
    """Tool calls that were begun before a moment, and ended after it."""
    begun: dict[object, float] = {}
    for row in one.calls:
        if row.get("kind") != "tool" or life_of(row) != life:
            continue
        if row.get("state") == "begin":
            begun[row.get("call")] = at_of(row)
        elif begun.get(row.get("call"), moment) < moment < at_of(row):
            yield str(row.get("call"))


@BOOK.rule(eventual=False)
def checkpoint_chain(check: SessionCheck) -> Iterator[Found]:
    """Numbers without a gap, each with the digest of the one before, and time goes forward."""
    one = session_of(check)
    if one is None:
        return
    points = {point.number: point for point in one.points}
    numbers = sorted(points)
    lowest = numbers[0] if numbers else 0
    if numbers and numbers != list(range(lowest, numbers[-1] + 1)):
        gone = next(n for n in range(lowest, numbers[-1]) if n not in points)
        if str(gone) not in check.seen.damaged:
            yield one.name, f"There is no checkpoint {gone} between {lowest} and {numbers[-1]}."
    if lowest > 0 and len(numbers) < FALLBACKS and not check.seen.damaged:
        yield one.name, f"Only checkpoint {lowest} is left: there is none to fall back to."
    for number, point in points.items():
        last = points.get(number - 1)
        if last is None or not (last.valid and point.valid):
            continue
        if point.restored_from is None and not check.seen.damaged:
            if point.previous != last.digest:
                yield one.name, f"Checkpoint {number} does not name the digest of the one before."
            if point.state.elapsed_s < last.state.elapsed_s:
                yield one.name, f"Checkpoint {number} is of an earlier time than the one before."


@BOOK.rule(eventual=False)
def tests_kept(check: SessionCheck) -> Iterator[Found]:
    """What is kept of the tests is what the last run of them has told, in whichever way it is kept."""
    one = session_of(check)
    if one is None or not check.model.keeps_tests or check.seen.damaged or check.model.damaged:
        return
    ran: dict[int, list[Row]] = {}
    for row in ends(one.calls, "tool"):
        if row.get("name") in ("run_tests", "batch"):  # nobody tells what a batch held
            ran.setdefault(life_of(row), []).append(row)
    for life, state in _kept_in(one):
        past = [row for row in ran.get(life, ()) if at_of(row) < state.elapsed_s - ROUNDED_S]
        last = past[-1] if past else {}
        if not last.get("ok") or last.get("name") == "batch" or state.tests is None:
            continue  # tests that were ended, or that failed, may leave what there was before
        total, wrong = state.tests
        if wrong or not total:
            text = f"All tests passed at {at_of(last):g} s; checkpoint {state.number} with"
            said = f"{wrong} of {total} did not" if total else "none were run"
            yield one.name, f"{text} {state.deltas} deltas says that {said}."
            return


def _kept_in(one: SessionView) -> Iterator[tuple[int, State]]:
    """States with the life in which they were kept, where that is told of their checkpoint."""
    told = {row.get("checkpoint"): life_of(row) for row in one.of("checkpoint.written")}
    for point in one.points if one.points and not one.bad_lines else ():
        if point.number == 0:
            told.setdefault(0, 1)
        for state in point.states if point.number in told else ():
            yield told[point.number], state


# --- triggers ---------------------------------------------------------------------------------------------


def _written(one: SessionView) -> Iterator[tuple[int, list[Row], list[Row], list[float]]]:
    """Each life: its events, its calls, and when its checkpoints were taken, beginning with what it was
    begun from.
    """
    calls = dict(lives(one.calls))
    states = {point.number: point.state.elapsed_s for point in one.points if point.valid}
    for life, rows in lives(one.events):
        if rows[0]["type"] in ("session.restore", "checkpoint.invalid"):
            continue  # written while nothing ran
        taken = [
            states.get(row["checkpoint"], at_of(row))
            for row in rows
            if row["type"] == "checkpoint.written"
        ]
        yield life, rows, calls.get(life, []), [at_of(rows[0]), *taken]


@BOOK.rule(eventual=False)
def checkpoint_by_time(check: SessionCheck) -> Iterator[Found]:
    """From one to the next, and from the last to now; while tools run, or it is paused, none is due."""
    one = session_of(check)
    if one is None or check.model.lasting or not check.model.names:
        return
    for life, rows, calls, taken in _written(one):
        over = at_of(rows[-1]) if rows else 0.0
        over = max([over, *(at_of(row) for row in calls[-1:])])
        for start, end in zip(taken, [*taken[1:], over], strict=True):
            interval = _interval_s(check, one, rows, start)
            if interval is None:
                continue
            due = start + interval
            if end <= due + slack_s(check) or _in_trouble(rows, start, end):
                continue
            busy = max([due, *_ends_of_calls_at(calls, rows, due)])
            if end > busy + stood_still_s(check, one, life, start, end) + slack_s(check):
                text = f"From {start:.0f} to {end:.0f} s no checkpoint was taken (life {life}); "
                yield one.name, f"{text}one is due every {interval:.0f} s."
                return


def _interval_s(
    check: SessionCheck, one: SessionView, rows: list[Row], moment: float
) -> float | None:
    """The longest time until the next checkpoint that is right at a moment."""
    values = {knobs.interval_s for knobs in check.model.settings}
    given = [value for value in values if value]
    if 0.0 in values:
        if not one.plan.checkpoint_minutes:
            return None
        place = 0
        for row in rows:
            if row["type"] == "phase.start" and at_of(row) <= moment + slack_s(check):
                place = _index(one, row)
        given += [minutes * _MINUTE_S for minutes in one.plan.checkpoint_minutes[: place + 1]]
    return max(given)


def _index(one: SessionView, row: Row) -> int:
    name = row.get("phase")
    return one.plan.phases.index(name) if name in one.plan.phases else 0


def _in_trouble(rows: list[Row], start: float, end: float) -> bool:
    """Did something keep it from writing?"""
    kinds = ("checkpoint.failed", "session.pause")
    return any(row["type"] in kinds and start <= at_of(row) <= end for row in rows)


def _ends_of_calls_at(calls: list[Row], rows: list[Row], moment: float) -> Iterator[float]:
    """When the calls ended that were under way at a moment; that of an agent that was lost, with it."""
    ended = {row.get("call"): at_of(row) for row in calls if row.get("state") == "end"}
    lost = [row for row in rows if row["type"] == "agent.lost" and at_of(row) > moment]
    for row in calls:
        if row.get("state") != "begin" or at_of(row) > moment:
            continue
        own = (at_of(one) for one in lost if one.get("agent") == row.get("agent"))
        end = ended.get(row.get("call")) or next(own, moment)
        if end > moment:
            yield end


@BOOK.rule(eventual=False)
def checkpoint_by_calls(check: SessionCheck) -> Iterator[Found]:
    """What agents had begun when it was due may still be finished."""
    limit = check.model.most("calls_interval")
    one = session_of(check)
    if one is None or not limit or check.model.lasting:
        return
    for _, rows, calls, taken in _written(one):
        done = ends(calls, "tool")
        for start, end in zip(taken, [*taken[1:], float("inf")], strict=True):
            used = len(between(done, start, end))
            if used > limit + 2 * one.agents and not _in_trouble(rows, start, end):
                text = f"{used} tool calls were done from {start:.0f} s on without a checkpoint; "
                yield one.name, f"{text}one is due after {limit:.0f}."
                return


@BOOK.rule(eventual=False)
def checkpoint_by_tokens(check: SessionCheck) -> Iterator[Found]:
    """The same for tokens; each agent may have been in the middle of a call."""
    limit = check.model.most("tokens_interval")
    one = session_of(check)
    if one is None or not limit or check.model.lasting:
        return
    for _, rows, calls, taken in _written(one):
        done = ends(calls, "model")
        largest = max((tokens(row) for row in done), default=0)
        for start, end in zip(taken, [*taken[1:], float("inf")], strict=True):
            used = sum(tokens(row) for row in between(done, start, end))
            if used > limit + 2 * one.agents * largest and not _in_trouble(rows, start, end):
                text = f"{used} tokens were used from {start:.0f} s on without a checkpoint; "
                yield one.name, f"{text}one is due after {limit:.0f}."
                return


@BOOK.rule(eventual=True)
def checkpoint_by_phase(check: SessionCheck) -> Iterator[Found]:
    """Between the gate of a phase and what comes after it."""
    one = session_of(check)
    if one is None:
        return
    passed: Row | None = None
    for row in one.events:
        kind = row["type"]
        if kind == "phase.gate" and row.get("passed"):
            passed = row
        elif kind in ("checkpoint.written", "supervisor.start", "checkpoint.failed"):
            passed = None
        elif kind in ("phase.start", "session.complete") and passed is not None:
            text = f"Phase {passed.get('phase')} was left without a checkpoint."
            yield one.name, text
            return


@BOOK.rule(eventual=False)
def looks_only(check: SessionCheck) -> Iterator[Found]:
    """Of a session that nothing drives, a look changes no byte."""
    one, was = session_of(check), before_of(check)
    if one is None or was is None or not inner_of(check.operation).looks:
        return
    still = one.alive is False and was.alive is False
    if still and was.digest and one.digest != was.digest:
        yield one.name, f"{check.operation} has changed what the session keeps."
