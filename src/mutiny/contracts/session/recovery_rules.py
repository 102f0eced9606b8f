"""Rules about recovery: the last valid checkpoint, exactly, and no work twice; errors by their severity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mutiny.contracts.session import operations as op
from mutiny.contracts.session.checkpoints import Point, State
from mutiny.contracts.session.looking import (
    BOOK,
    SessionCheck,
    about_of,
    before_of,
    failed,
    life_of,
    lives,
    planned_s,
    session_of,
    slack_s,
    vote_of,
)
from mutiny.contracts.session.observation import Row, SessionView, at_of
from mutiny.contracts.session.single_file import within
from mutiny.kit.checking import Found

SEVERITIES = {
    "network_timeout": "transient",
    "rate_limit": "recoverable",
    "overload": "recoverable",
    "parse_failure": "recoverable",
    "tool_timeout": "recoverable",
    "test_failure": "degraded",
    "disk_full": "critical",
    "deadlock": "critical",
    "corruption": "fatal",
}
"""What an error of a kind is, by the plan."""
_ANSWERED = {"429": "rate_limit", "529": "overload"}
"""What an answer of the model means."""
RECOVERY_S = {
    "tool_timeout": 300.0,
    "network_timeout": 120.0,
    "rate_limit": 120.0,
    "overload": 120.0,
    "parse_failure": 120.0,
    "memory_pressure": 120.0,
    "deadlock": 300.0,
    "crash": 60.0,
}
"""How long recovery may take, in session time, by the plan."""
_ENDS_WORK = (
    *("session.pause", "session.stop", "session.failed", "session.complete", "session.restore"),
    "supervisor.start",
)
"""Events behind which nobody works on, or everything begins anew."""


def _restores(check: SessionCheck) -> Iterator[Row]:
    """Recoveries that happened in this step."""
    one, was = session_of(check), before_of(check)
    if one is None:
        return
    known = 0 if was is None else len(list(was.of("session.restore")))
    yield from list(one.of("session.restore"))[known:]


def _due(check: SessionCheck, was: SessionView) -> Point | None:
    """The checkpoint that has to be restored."""
    named = [
        part.checkpoint
        for part in (check.operation, *check.operation.children())
        if isinstance(part, op.Restore) and part.checkpoint != op.NEWEST
    ]
    whole = [point for point in was.points if point.valid]
    if named:
        return next((point for point in whole if point.number == named[0]), None)
    return whole[-1] if whole else None


@BOOK.rule(eventual=False)
def restores_last_valid(check: SessionCheck) -> Iterator[Found]:
    """What was read from the files before is what is there afterwards, and what the model is told."""
    one, was = session_of(check), before_of(check)
    restored = list(_restores(check))
    if one is not None:
        yield from _told_again(check, one)
    if one is None or was is None or was.alive is not False or len(restored) != 1:
        return
    row, due = restored[0], _due(check, was)
    if due is None:
        yield one.name, f"Checkpoint {row.get('checkpoint')} was restored; none was valid."
        return
    state = due.states[-1]
    told = (row.get("checkpoint"), row.get("deltas"))
    if told != (state.number, state.deltas):
        text = f"Checkpoint {told[0]} with {told[1]} deltas was restored; the last valid one is "
        yield one.name, f"{text}{state.number} with {state.deltas}."
        return
    made = [point for point in one.points if point.restored_from == state.number and point.valid]
    fresh = [point for point in made if point.number not in {old.number for old in was.points}]
    for point in fresh[:1]:
        for text in state.differences(point.state):
            yield one.name, f"What was restored is not checkpoint {state.number}: {text}."


def _told_again(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """The first request of a session that was brought back holds all that its checkpoint held."""
    owed, asked = check.model.owed, check.seen.asked[check.model.owed_since :]
    if not owed or not asked:
        return
    known = within(owed, asked[0])
    if known < len(owed):
        text = f"Of {len(owed)} messages in its last valid checkpoint the model was told {known}"
        yield one.name, f"{text} when it was brought back."


@BOOK.rule(eventual=False)
def fallback_told(check: SessionCheck) -> Iterator[Found]:
    """Newer checkpoints that were not valid are named."""
    one, was = session_of(check), before_of(check)
    restored = list(_restores(check))
    if one is None or was is None or was.alive is not False or len(restored) != 1:
        return
    row = restored[0]
    told = {item.get("checkpoint") for item in row.get("fell_back") or () if isinstance(item, dict)}
    number = row.get("checkpoint")
    if not isinstance(number, int):
        return
    asked = any(
        isinstance(part, op.Restore) and part.checkpoint != op.NEWEST
        for part in (check.operation, *check.operation.children())
    )
    for point in was.points:
        if point.number > number and not point.valid and point.number not in told and not asked:
            text = f"Checkpoint {point.number} was left out ({point.why}), and that is not told."
            yield one.name, text
        cut = point.number == number and bool(point.cut)
        if cut and number not in told:
            text = (
                f"Deltas of checkpoint {number} were left out ({point.cut}), and that is not told."
            )
            yield one.name, text


@BOOK.rule(eventual=True)
def work_kept(check: SessionCheck) -> Iterator[Found]:
    """What was told as done is in the last valid state, and is not begun again."""
    one = session_of(check)
    if one is None or one.last_valid is None:
        return
    yield from _cost(check, one)
    yield from _taken_up(check, one)
    done: set[str] = set()
    harmed = bool(check.seen.damaged) or check.model.damaged
    states = {point.number: point for point in one.points if point.valid}
    for row in one.events:
        kind, task = row["type"], str(row.get("task", ""))
        if kind == "session.restore":
            done = _done_at(states.get(row.get("checkpoint", -1)), row.get("deltas"), done)
        elif kind in ("task.done", "task.flagged"):
            done.add(task)
        elif kind == "task.start" and task in done:
            yield one.name, f"Task {task} was done, and is begun again."
            return
    lost = sorted(done - one.done)
    # While it lives it may keep it yet: to wait for that would hide what a crash costs now.
    if lost and one.alive is False and not harmed and not check.model.lasting:
        text = f"Task {lost[0]} was told as done, and is not in the last valid checkpoint."
        yield one.name, text


def _cost(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """Of what tasks have written, at most an interval is not in the last valid checkpoint; after a command
    that ended the session nothing.
    """
    model = check.model
    if one.written is None or one.alive is not False or len(check.seen.names) != 1:
        return
    if check.seen.damaged or model.damaged or model.cramped:
        return
    lost = [
        task
        for task, row in one.plan.tasks.items()
        if row.get("path") in one.written and task not in one.done
    ]
    most = 0 if model.ended_by_word else model.most("calls_interval") + 1
    if len(lost) > most:
        text = (
            f"{len(lost)} tasks are done and not in the last valid checkpoint, such as {lost[0]}; "
        )
        yield one.name, f"{text}{most:.0f} are the most."


_SLOWER = 0.25
"""By this part a task may take longer than is planned for it."""


def _taken_up(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """A task that a crash broke off is not worked on for all of its time again, as far as that was kept.

    An error, a limit or a task that goes to somebody else takes time of its own: then nothing is said.
    """
    model = check.model
    harmed = check.seen.damaged or model.damaged or model.cramped or model.lasting
    if not model.keeps_progress or harmed:
        return
    began: dict[str, float] = {}
    spent: dict[str, float] = {}
    for row in one.events:
        kind, task, now = row["type"], str(row.get("task", "")), at_of(row)
        if kind in ("error", "limit.reached", "task.reassigned"):
            return
        if kind == "session.restore":  # its time is that of the state that was restored
            for name, since in began.items():
                spent[name] = spent.get(name, 0.0) + max(0.0, now - since)
            began = {}
        elif kind == "task.start":
            began[task] = now
        elif kind in ("task.done", "task.flagged") and task in began:
            before, after = spent.pop(task, 0.0), now - began.pop(task)
            planned = planned_s(one, task)
            if before and planned and before + after > planned * (1 + _SLOWER) + slack_s(check):
                text = f"Task {task} takes {planned:.0f} s; {before:.0f} s before a crash were kept"
                yield one.name, f"{text}, and it took another {after:.0f} s."
                return


def _done_at(point: Point | None, deltas: object, known: set[str]) -> set[str]:
    """What is done in a state that was restored; unknown when its checkpoint is gone."""
    if point is None or not isinstance(deltas, int) or deltas >= len(point.states):
        return set()
    state: State = point.states[deltas]
    return {name for name, status in state.tasks.items() if status in ("done", "flagged")}


@BOOK.rule(eventual=True)
def one_supervisor(check: SessionCheck) -> Iterator[Found]:
    """Two that drive the same session would do everything twice."""
    one = session_of(check)
    if one is not None and one.processes is not None and one.processes.supervisors > 1:
        yield one.name, f"{one.processes.supervisors} processes drive it."


@BOOK.rule(eventual=False)
def severity_obeyed(check: SessionCheck) -> Iterator[Found]:
    """The severity of each kind, and what each severity leads to."""
    one = session_of(check)
    if one is None:
        return
    critical = False
    unheeded: Row | None = None
    """The first error that was to pause or to end it, and has not yet."""
    fatal = False
    for row in one.events:
        kind, severity = str(row.get("kind")), row.get("severity")
        if row["type"] == "error":
            due = SEVERITIES.get(kind)
            if due is not None and severity != due:
                yield one.name, f"An error of the kind {kind} is called {severity}; it is {due}."
            critical = critical or severity in ("critical", "fatal")
            if row.get("action") == "pause" or severity == "fatal":
                unheeded = unheeded or row
            fatal = fatal or severity == "fatal"
        elif row["type"] in ("limit.reached", "vote.escalated", "checkpoint.failed"):
            critical = True
        elif row["type"] == "session.pause":
            if row.get("reason") != "asked" and not critical:
                yield one.name, f"It paused ({row.get('reason')}) without a critical error."
            critical = False
        elif row["type"] == "session.failed" and not fatal:
            yield one.name, "It failed without a fatal error."
        if row["type"] in _ENDS_WORK:
            unheeded = None
    yield from _called_otherwise(check, one)
    if unheeded is not None and one.elapsed_s > at_of(unheeded) + slack_s(check):
        text = f"The error {unheeded.get('kind')} is {unheeded.get('severity')}"
        yield one.name, f"{text}, and did not stop it: it is {one.told}."


def _called_otherwise(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """What the model has answered with is told as what it is: once it was met and asked again about."""
    told = {row.get("kind") for row in one.of("error")}
    for place, row in enumerate(check.seen.api if told else ()):
        kind = _ANSWERED.get(str(row.get("fault")))
        about = about_of(row)
        if kind is None or kind in told or not about:
            continue
        if any(about_of(later) == about for later in check.seen.api[place + 1 :]):
            yield one.name, f"The model answered with {row.get('fault')}, and no {kind} is told of."
            return


def _streaks(requests: tuple[Row, ...], key: str) -> Iterator[tuple[str, list[Row]]]:
    """Requests about one task or of one voter (and, with `model`, to one model) that failed one after the
    other.
    """
    running: dict[str, list[Row]] = {}
    for request in requests:
        task = about_of(request)
        if not task:
            continue
        name = f"{task} {request.get('model')}" if key == "model" else task
        if failed(request):
            running.setdefault(name, []).append(request)
        else:
            for known in [one for one in running if one.split(" ")[0] == task]:
                yield known, running.pop(known)
    yield from running.items()


@BOOK.rule(eventual=False)
def retries_bounded(check: SessionCheck) -> Iterator[Found]:
    """With both models and all attempts, so often and no more."""
    model = check.model
    each = 1 + model.most("retries") + model.most("backoffs")
    for task, rows in _streaks(check.seen.api, "task"):
        again = model.most("vote_rounds" if vote_of(rows[0]) else "task_attempts")
        most = 2 * each * max(1.0, again) + each
        if len(rows) > most and not model.killed:
            text = f"The model was asked {len(rows)} times about {task}, always in vain; "
            yield task, f"{text}{most:.0f} times are the most."
            return
    yield from _given_up_early(check)


def _given_up_early(check: SessionCheck) -> Iterator[Found]:
    """The model that takes over is waited for as often as the first one."""
    one, least = session_of(check), int(check.model.least("backoffs"))
    tries: dict[object, int] = {}
    for row in () if one is None else one.of("error"):
        agent, action = row.get("agent"), row.get("action")
        if action == "switch":
            tries[agent] = 0
        elif action == "give_up" and tries.pop(agent, least) < least:
            text = f"{agent} gave {row.get('task')} up before the other model was waited for"
            yield str(row.get("task")), f"{text} {least} times."
            return
        elif agent in tries:
            tries[agent] += 1


@BOOK.rule(eventual=False)
def switches_model(check: SessionCheck) -> Iterator[Found]:
    """A model that fails as often as is allowed is not asked once more before the other one was, and nobody
    gives up before that, either.
    """
    model, one = check.model, session_of(check)
    most = 1 + model.most("retries") + model.most("backoffs")
    if model.killed:
        return
    given_up = model.has_fallback and one is not None and one.told in ("paused", "failed")
    asked, api = {row.get("model") for row in check.seen.api}, check.seen.api
    if given_up and len(asked) == 1 and len(api) > most and all(map(failed, api[-int(most) :])):
        text = f"Model {asked.pop()} failed {most:.0f} times and more, the session was given up"
        yield "", f"{text}, and no other one was asked."
        return
    for name, rows in _streaks(check.seen.api, "model"):
        run = 0
        for row in check.seen.api:
            if about_of(row) != name.split(" ")[0]:
                continue
            run = run + 1 if failed(row) and row.get("model") == rows[0].get("model") else 0
            if run > most + 1:
                text = f"Model {row.get('model')} failed {run} times in a row about "
                yield name, f"{text}{name.split(' ')[0]}, and no other one was asked."
                return


@BOOK.rule(eventual=False)
def backs_off(check: SessionCheck) -> Iterator[Found]:
    """Between a recoverable error and the next try lies a wait that grows, and that is waited; what passes
    by itself is tried again at once before that, as often as is said.
    """
    one = session_of(check)
    if one is None:
        return
    yield from _too_soon(check)
    settings = check.model.settings
    base = min(knobs.backoff_s for knobs in settings)
    cap = min(knobs.backoff_cap_s for knobs in settings)
    for life, rows in lives(one.events):
        asked = [row for row in one.calls if life_of(row) == life and _asks(row)]
        waits: dict[tuple[object, object], int] = {}
        again: dict[object, int] = {}
        for row in rows:
            whose = (row.get("agent"), row.get("task"))
            waits = _going_on(waits, row)
            if row["type"] in ("recovered", "task.done", "model.switched", "task.start"):
                waits.pop(whose, None)
                if row.get("kind") != "memory_pressure":  # who was too large has his errors still
                    again.pop(row.get("agent"), None)
            if row["type"] == "error" and row.get("action") in ("retry", "restart"):
                again[row.get("agent")] = again.get(row.get("agent"), 0) + 1
            if row["type"] == "error" and row.get("action") not in ("backoff", "retry"):
                waits.pop(whose, None)
            if row.get("severity") == "recoverable" and row.get("action") == "retry":
                yield (
                    one.name,
                    f"{row.get('kind')} is to be waited for, and was tried again at once.",
                )
                return
            if row["type"] != "error" or row.get("action") != "backoff":
                continue
            tried, least = again.get(row.get("agent"), 0), min(knobs.retries for knobs in settings)
            if row.get("severity") == "transient" and tried < least:
                text = f"What passes by itself ({row.get('kind')}) was tried again at once {tried}"
                yield one.name, f"{text} times before it was waited for; {least} times are due."
                return
            wait = float(row.get("wait_s") or 0)
            due = min(cap, base * 2 ** waits.get(whose, 0))
            waits[whose] = waits.get(whose, 0) + 1
            if wait < due * 0.9:
                text = (
                    f"After error {waits[whose]} in a row ({row.get('kind')}) it waits {wait:g} s"
                )
                yield one.name, f"{text}; {due:g} s are due."
                return
            told = _retry_after(check, row)
            if told is not None and wait < told * 0.9:
                yield one.name, f"It waits {wait:g} s, and was told to come back after {told:g} s."
                return
            until = _opened_anew(rows, row)
            later = [
                at_of(call)
                for call in asked
                if (call.get("agent"), call.get("task")) == whose
                and at_of(row) < at_of(call) < until
            ]
            if later and later[0] - at_of(row) < wait * 0.9 - 0.05:
                text = f"It says that it waits {wait:g} s ({row.get('kind')})"
                yield one.name, f"{text}, and tries again after {later[0] - at_of(row):g} s."
                return


def _going_on(
    waits: dict[tuple[object, object], int], row: Row
) -> dict[tuple[object, object], int]:
    """The waits that still count behind an event: a vote that was withdrawn begins anew."""
    if row["type"] != "vote.open":
        return waits
    return {key: many for key, many in waits.items() if key[1] != row.get("vote")}


def _opened_anew(rows: Sequence[Row], error: Row) -> float:
    """When the vote that an error was about was opened once more; never, if it was not."""
    opened = (row for row in rows if row["type"] == "vote.open" and at_of(row) > at_of(error))
    same = (at_of(row) for row in opened if row.get("vote") == error.get("task"))
    return next(same, float("inf"))


def _too_soon(check: SessionCheck) -> Iterator[Found]:
    """The same question again before the time that the model has asked for is over."""
    for place, row in enumerate(check.seen.api if check.seen.rate == 1 else ()):
        told = row.get("retry_after_s")
        if row.get("fault") != "429" or not told:
            continue
        again = [
            other for other in check.seen.api[place + 1 :] if other.get("last") == row.get("last")
        ]
        waited = float(again[0]["time"]) - float(row["time"]) if again else told
        if waited < told * 0.9:
            text = f"The model said: come back after {told:g} s. It was asked again after {waited:.1f} s."
            yield str(row.get("number")), text
            return


def _asks(row: Row) -> bool:
    return row.get("kind") == "model" and row.get("state") == "begin"


def _retry_after(check: SessionCheck, error: Row) -> float | None:
    """The shortest wait that the model has asked for, where it has always asked for one."""
    if error.get("kind") != "rate_limit":
        return None
    told = [row.get("retry_after_s") for row in check.seen.api if row.get("fault") == "429"]
    waits = [float(one) for one in told if isinstance(one, int | float)]
    return min(waits) if waits and len(waits) == len(told) else None


@BOOK.rule(eventual=False)
def recovers_in_time(check: SessionCheck) -> Iterator[Found]:
    """By the table of the plan, where the trouble itself did not last."""
    one = session_of(check)
    if one is None:
        return
    faults = sum(1 for request in check.seen.api if failed(request))
    brief = faults <= check.model.most("retries") + 1
    for row in one.of("recovered"):
        kind, took = str(row.get("kind")), row.get("took_s")
        limit = RECOVERY_S.get(kind)
        if limit is None or not isinstance(took, int | float):
            continue
        lasted = kind in ("network_timeout", "rate_limit", "overload", "parse_failure")
        if lasted and not brief:
            continue
        own = max(check.model.most("model_timeout_s"), check.model.most("tool_timeout_s"))
        if took > limit + own + slack_s(check):
            yield one.name, f"Recovery from {kind} took {took:.0f} s; {limit:.0f} s are allowed."
            return
