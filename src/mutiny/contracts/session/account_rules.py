"""Rules about accounts: metrics, bytes and logs against what the agents and the model's API wrote down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from mutiny.contracts.session.accounts import (
    WRITTEN_S,
    account_of,
    around,
    at_moment,
    contradictions,
    logs_kept,
    tokens,
)
from mutiny.contracts.session.looking import (
    BOOK,
    SessionCheck,
    before_of,
    begins_task,
    ends,
    failed,
    life_of,
    lives,
    session_of,
    slack_s,
    stood_still_s,
    task_of,
)
from mutiny.contracts.session.observation import ENDED, Row, SessionView, at_of
from mutiny.contracts.session.operations import OUT_OF_BOUNDS, SECRET
from mutiny.kit.checking import Found

NEW_LINES = 6
"""So many of the lines that are new are looked at: each costs a count of everything before it."""
SPENT = ("total_tokens_consumed", "tool_calls", "model_calls")
"""Counters that no crash and no restore takes back."""
OF_EVENTS = ("errors_encountered", "consensus_votes_cast", "tasks_completed")
"""Counters of what a log of events tells."""


@BOOK.rule(eventual=True)
def metrics_add_up(check: SessionCheck) -> Iterator[Found]:
    """Tokens, calls, tasks and checkpoints; of a session at its end without a crash exactly."""
    one = session_of(check)
    if one is None:
        return
    rows = ends(one.calls, "model")
    spent = sum(map(tokens, rows))
    answered = [request for request in check.seen.api if not failed(request)]
    served = sum(tokens(request) for request in answered)
    largest = max((tokens(request) for request in answered), default=0)
    lost = one.agents * (len({life_of(row) for row in one.calls}) or 1) * largest
    alone = len(check.seen.names) == 1
    unwritten = served - spent > lost + largest and not check.model.cramped
    if alone and (spent > served or unwritten):
        yield one.name, f"It says that it used {spent} tokens; the API gave {served}."
    last = one.metrics[-1] if one.metrics else None
    if last is not None and one.status in (*ENDED, "paused"):
        for name, due in _due(one).items():
            told = last.get(name)
            if name in OF_EVENTS and check.model.cramped:
                continue  # what there was no room for is counted, and stands nowhere
            if isinstance(told, int | float) and told > due:
                yield one.name, f"The last metrics say {name} {told}; it is {due}."
        moment = at_of(last) - WRITTEN_S * max(1.0, check.seen.rate)
        told, due = last.get("total_tokens_consumed"), _spent_by(one, moment)
        if isinstance(told, int) and told < due and not check.model.faults:
            text = f"The last metrics say total_tokens_consumed {told}"
            yield one.name, f"{text}; {due} were used before they were written."
    cut = any(word in text for word in ("SweepPoint", "Damage") for text in check.model.faults)
    for first, second in pairwise(() if cut else one.metrics):  # what the disk lost is lost
        for name in SPENT:
            was, told = first.get(name), second.get(name)
            if isinstance(was, int) and isinstance(told, int) and told < was:
                number = second.get("number")
                text = f"Metrics line {number} says {name} {told}; it was {was} before that."
                yield one.name, f"{text} What is spent stays spent."
                return
    model = check.model
    if logs_kept(model.faults) and not (model.cramped or model.jumped or check.seen.damaged):
        yield from _lines(check, one)
    yield from _points(check, one)


def _points(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """What each new checkpoint says was used until then; calls may end while it is written."""
    was = before_of(check)
    known = () if was is None else was.points
    written = {row.get("checkpoint"): row for row in one.of("checkpoint.written")}
    most_each = max(map(tokens, ends(one.calls, "model")), default=0)
    for point in (each for each in one.points if each.valid and each not in known):
        row = written.get(point.number)
        if row is None or str(point.number) in check.seen.damaged:
            continue
        least, most = around(one, life_of(row), at_of(row), _margin_s(check))
        told = (
            ("total_tokens_consumed", "tokens", point.tokens, one.agents * most_each),
            ("tool_calls", "tool calls", point.tool_calls, one.agents),
        )
        for name, what, used, slack in told:
            low, high = least.whole[name] - slack, most.whole[name] + slack
            if not low <= used <= high:
                text = f"Checkpoint {point.number} says {used} {what}; {low} to {high} were used"
                yield one.name, f"{text} until then."
                return


def _margin_s(check: SessionCheck) -> float:
    """By so much a log may be behind or ahead of what it is about."""
    return WRITTEN_S * max(1.0, check.seen.rate) + slack_s(check)


def _lines(check: SessionCheck, one: SessionView) -> Iterator[Found]:
    """New lines of metrics: what they count, and that their parts agree."""
    was = before_of(check)
    known = 0 if was is None else len(was.metrics)
    for row in one.metrics[max(known, len(one.metrics) - NEW_LINES) :]:
        for text in (
            *contradictions(row, one, check.model.measured.__contains__),
            *at_moment(one, row, _margin_s(check)),
        ):
            yield one.name, f"Metrics line {row.get('number')} says {text}."
            return


def _spent_by(one: SessionView, moment: float) -> int:
    """The tokens of all calls that had ended by then; of a session that has only lived once."""
    if len({life_of(row) for row in one.calls}) > 1:
        return 0
    return sum(tokens(row) for row in ends(one.calls, "model") if at_of(row) <= moment)


def _due(one: SessionView) -> Mapping[str, int]:
    """Counters by what was written down."""
    return {
        **account_of(one).whole,
        "checkpoint_count": max((point.number for point in one.points), default=0) + 1,
        "tasks_completed": len(one.told_done | one.done),
    }


def _begins(row: Row) -> bool:
    return row.get("state") == "begin"


REFUSED = 400
"""The API's word for a request that is wrong in itself: trying it again changes nothing."""


@BOOK.rule(eventual=False)
def requests_readable(check: SessionCheck) -> Iterator[Found]:
    """No request was refused for what it says; damage that a fault did may end up in one."""
    one = session_of(check)
    if one is None or check.seen.damaged or any("Damage" in text for text in check.model.faults):
        return
    for number, request in enumerate(check.seen.api, 1):
        if request.get("status") == REFUSED:
            yield one.name, f"The model's API refused request {number}: {request.get('error')}"
            return


@BOOK.rule(eventual=False)
def metrics_regular(check: SessionCheck) -> Iterator[Found]:
    """Numbers one after the other, each with all that is measured, and within a life one line for each
    span.
    """
    one = session_of(check)
    if one is None:
        return
    for row in one.metrics:
        missing = [name for name in check.model.measured if name not in row]
        if missing:
            yield one.name, f"Metrics line {row.get('number')} does not say {missing[0]}."
            return
    numbers = [row.get("number") for row in one.metrics]
    for first, second in pairwise(numbers):
        if isinstance(first, int) and isinstance(second, int) and second != first + 1:
            yield one.name, f"Behind metrics line {first} comes line {second}."
            return
    span = max(knobs.metrics_s for knobs in check.model.settings)
    if not span or check.model.lasting:
        return
    stalls = {life_of(row) for row in one.of("session.pause", "checkpoint.failed")}
    for life, rows in lives(one.metrics):
        for last, row in pairwise(rows):
            gap = at_of(row) - at_of(last)
            late = gap > 2 * span + slack_s(check) and life not in stalls
            if late and gap - stood_still_s(check, one, life, at_of(last), at_of(row)) > span:
                text = f"Between metrics line {last.get('number')} and the next lie {gap:.0f} s; "
                yield one.name, f"{text}there is one every {span:g} s."
                return


@BOOK.rule(eventual=True)
def bytes_as_asked(check: SessionCheck) -> Iterator[Found]:
    """What the model asked for, what the agents wrote, and what a checkpoint holds."""
    one = session_of(check)
    if one is None or len(check.seen.names) != 1:
        return
    asked, by_task = _asked(check.seen.api)
    for row in ends(one.calls, "tool"):
        path, written = row.get("path"), row.get("sha256")
        if row.get("ok") and path in OUT_OF_BOUNDS.values():
            yield str(path), f"{row.get('agent')} wrote {path}, which is none of the project's."
            return
        if row.get("ok") and path in asked and written is not None and written not in asked[path]:
            yield (
                str(path),
                f"{row.get('agent')} wrote {path} with other bytes than were asked for.",
            )
            return
    state = one.last_valid
    for path, found in {**({} if state is None else state.files), **(one.written or {})}.items():
        if path in asked and found not in asked[path]:
            yield path, f"{path} holds other bytes than were asked for."
            return
    done = set() if state is None else {k for k, word in state.tasks.items() if word == "done"}
    for task in sorted(done & set(by_task)):
        missing = [path for path in by_task[task] if path not in state.files]  # type: ignore[union-attr]
        if missing:
            yield (
                missing[0],
                f"Task {task} is done, and {missing[0]}, which it wrote, is not there.",
            )
            return


@BOOK.rule(eventual=False)
def one_at_a_time(check: SessionCheck) -> Iterator[Found]:
    """An agent asks nothing while an earlier call of it is under way; who takes its place begins anew."""
    one = session_of(check)
    if one is None or not logs_kept(check.model.faults) or check.model.cramped:
        return
    starts = [(life_of(row), at_of(row), row.get("agent")) for row in one.of("agent.start")]
    under_way: dict[object, Row] = {}
    for row in one.calls:
        agent = row.get("agent")
        if row.get("state") == "end":
            if under_way.get(agent, {}).get("call") == row.get("call"):
                del under_way[agent]
            continue
        first = under_way.get(agent)
        if first is not None and row.get("kind") == "model" and life_of(first) == life_of(row):
            between = (life_of(row), at_of(first), agent), (life_of(row), at_of(row), agent)
            if not any(between[0] <= start <= between[1] for start in starts if start[2] == agent):
                text = f"{agent} asked the model ({row.get('call')}) while its call {first.get('call')}"
                yield one.name, f"{text} was under way."
                return
        under_way[agent] = row


@BOOK.rule(eventual=False)
def reads_own(check: SessionCheck) -> Iterator[Found]:
    """What stands in a file that is none of the project's is never said to the model."""
    one = session_of(check)
    for request in check.seen.api if one is not None else ():
        if SECRET in (request.get("marks") or ()):
            text = f"Request {request.get('number')} tells the model what stands in a file"
            yield str(request.get("number")), f"{text} outside of the project."
            return


def _asked(requests: tuple[Row, ...]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Path -> hashes of all contents that the model asked for; task -> the paths that it asked for when
    that was begun last.
    """
    found: dict[str, set[str]] = {}
    by_task: dict[str, set[str]] = {}
    for request in requests:
        for tool in request.get("meant") or ():  # who writes from a broken answer writes all of it
            if _writes(tool):
                found.setdefault(str(tool["path"]), set()).add(str(tool["sha256"]))
        if failed(request):
            continue
        if begins_task(request):  # whatever it has asked for before a crash or a restore
            by_task.pop(task_of(request), None)
        for tool in request.get("tools") or ():
            if _writes(tool):
                path = str(tool["path"])
                found.setdefault(path, set()).add(str(tool["sha256"]))
                task = task_of(request)
                if task and path not in OUT_OF_BOUNDS.values():
                    by_task.setdefault(task, set()).add(path)
    return found, by_task


def _writes(tool: Row) -> bool:
    """Is a content to become that of a file?"""
    return bool(tool.get("path")) and tool.get("sha256") is not None


@BOOK.rule(eventual=False)
def logs_whole(check: SessionCheck) -> Iterator[Found]:
    """Every line parses; within a life, time does not go back, and every call has a name of its own."""
    one = session_of(check)
    if one is None:
        return
    if one.bad_lines and not check.model.lasting:
        yield one.name, f"A line of its logs cannot be read: {one.bad_lines[0]}."
    for name, log in (("events", one.events), ("calls", one.calls), ("metrics", one.metrics)):
        for life, rows in lives(log):
            for last, row in pairwise(rows):
                if at_of(row) < at_of(last) - 0.01:
                    yield one.name, f"In {name} time goes back at {at_of(last):g} s (life {life})."
                    return
    for life, rows in lives([row for row in one.calls if _begins(row)]):
        (call, begun), *_ = Counter(row.get("call") for row in rows).most_common(1)
        if begun > 1:
            yield one.name, f"{begun} calls have one name: {call} (life {life})."
            return
