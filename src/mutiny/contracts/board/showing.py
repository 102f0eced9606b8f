"""What a board tells of its guards, leaders, workers and rests, held against what is believed.

Only a board whose file says `tells_guards` promises it. Every time is known as a span: what is too close
to tell may be told either way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from mutiny.contracts.board import operations as op
from mutiny.contracts.board.limits import rest_s
from mutiny.contracts.board.model import BoardModel
from mutiny.contracts.board.observation import BoardObservation
from mutiny.contracts.board.tasks import Leader
from mutiny.contracts.board.texts import UNNAMED, description_of, payload_of
from mutiny.kit.answer import Answer
from mutiny.kit.beliefs import Span, older
from mutiny.model.operation import Operation

CLOSED, OPEN, HALF_OPEN = "closed", "open", "half_open"
SHOWN = (
    *("status", "owner", "epoch", "attempts", "max_attempts", "priority", "completions"),
    *("output", "reason"),
)
"""What a list tells of a task that looks tell, too."""
ROUNDED_S = 0.002
"""Seconds in answers are rounded."""


def untrue_guards(
    model: BoardModel, operation: Operation, answer: Answer, when: Span
) -> Iterator[str]:
    """What an answer tells and nobody could believe; the command was alone, and no fault is on."""
    if not model.profile.tells_guards or model.damaged or model.guessed or model.loose:
        return
    said = answer.said
    if isinstance(operation, op.LeaderCommand):
        yield from _other_token(model, operation, answer)
    elif isinstance(operation, op.Checkpoint):
        name = said.get("checkpoint")
        if isinstance(name, str) and name.lower() != operation.name.lower():
            yield f"it names checkpoint {name}"
    elif isinstance(operation, op.Fail):
        yield from _other_rest(model, operation, answer)
    elif isinstance(operation, op.List):
        yield from _other_texts(model, said)
    elif isinstance(operation, op.Status) and not model.lasting:
        for tells in (_breaker, _limiter, _leader, _workers):
            yield from tells(model, said, when)


def _other_token(model: BoardModel, operation: op.LeaderCommand, answer: Answer) -> Iterator[str]:
    """Who was served with a token is told that token."""
    if isinstance(operation, op.Elect) or not model.tokens.get(operation.node):
        return
    token = model.token_used(operation.node, stale=operation.stale, borrowed=operation.borrowed)
    told = answer.number("token")
    if told is not None and told != token:
        yield f"it names token {told}, and {operation.node} has shown token {token}"


def _other_rest(model: BoardModel, operation: op.Fail, answer: Answer) -> Iterator[str]:
    """Who failed is told how long the task rests."""
    task, told = model.tasks.get(operation.task), answer.said.get("retry_in_s")
    if task is None or not _number(told) or answer.said.get("status") != "available":
        return
    if not told:
        return  # it tells that it does not rest: whether it has to, the next claim shows
    least_s, most_s = rest_s(model, task.attempts)
    if not least_s - ROUNDED_S <= told <= most_s + ROUNDED_S:
        yield f"it says that {task.id} rests for {told} s, not for {least_s:.2f} to {most_s:.2f} s"


def _other_texts(model: BoardModel, said: Mapping[str, Any]) -> Iterator[str]:
    """A list shows with each task the texts that it was added with, and the order of their coming."""
    rows = said.get("tasks")
    order: list[tuple[int, float]] = []
    for row in rows if isinstance(rows, list) else ():
        task = model.tasks.get(str(row.get("id"))) if isinstance(row, Mapping) else None
        if task is None:
            continue
        text, payload = row.get("description"), row.get("payload", 0) or ""
        due = description_of(task.id if task.named else UNNAMED)
        if isinstance(text, str) and due not in text:
            yield f"the description of {task.id} is {text[:60]!r}"
        given = None if task.size is None or "payload" not in row else payload_of(task.size)
        if given is not None and isinstance(payload, str) and payload != given:
            yield f"the payload of {task.id} has {len(payload)} bytes, not {task.size}"
        if _number(row.get("order")):
            order.append((task.order, row["order"]))
    told = [place for _, place in sorted(order)]
    if told != sorted(told):
        yield f"its tasks have come in the order {told}"


def untrue_list(
    model: BoardModel, said: Mapping[str, Any], before: BoardObservation, seen: BoardObservation
) -> Iterator[str]:
    """A list that shows a task otherwise than the looks before and after it, which agree."""
    rows, was, tasks = said.get("tasks"), before.tasks, seen.tasks
    told = model.profile.tells_guards and isinstance(rows, list)
    if not told or model.loose or was is None or tasks is None or set(was) != set(tasks):
        return
    shown = {str(row.get("id")): row for row in rows if isinstance(row, Mapping)}  # type: ignore[union-attr]
    for name in sorted(set(tasks) ^ set(shown)):
        yield f"task {name} is {'not ' if name in shown else ''}there"
    for name in sorted(set(tasks) & set(shown)):
        for field in SHOWN:
            due = getattr(tasks[name], field)
            told_of_it = shown[name].get(field, due)
            if due == getattr(was[name], field) and due is not None and told_of_it != due:
                yield f"it says that the {field} of {name} is {told_of_it!r}, not {due!r}"


# --- a status -------------------------------------------------------------------------------------------


def _breaker(model: BoardModel, said: Mapping[str, Any], when: Span) -> Iterator[str]:
    told, known = said.get("breaker"), model.breaker
    if not model.profile.breaker or known.unsure or not isinstance(told, Mapping):
        return
    state = told.get("state")
    if known.opened is None:
        right, counts = {CLOSED}, {"failures": known.failures, "successes": 0}
    else:
        figures, tolerance_s = model.profile.figures, model.profile.limits.tolerance_s
        over = older(when, known.opened, figures.breaker_open_s, tolerance_s)
        right = {OPEN, HALF_OPEN} if over is None else {HALF_OPEN if over else OPEN}
        counts = {"successes": known.successes}
    if state not in right:
        yield f"it says that the breaker is {state}, which is {' or '.join(sorted(right))}"
        return
    for name, due in counts.items():
        if _number(told.get(name)) and told[name] != due:
            yield f"it says that the breaker has counted {told[name]} {name}, not {due}"


def _limiter(model: BoardModel, said: Mapping[str, Any], _when: Span) -> Iterator[str]:
    told, figures = said.get("limiter"), model.profile.figures
    if not isinstance(told, Mapping):
        return
    for name, due in {"rate": figures.rate_limit, "burst": figures.rate_burst}.items():
        if _number(told.get(name)) and told[name] != due:
            yield f"it says that the limit has the {name} {told[name]}, not {due}"


def _leader(model: BoardModel, said: Mapping[str, Any], when: Span) -> Iterator[str]:
    token, leader = said.get("token"), model.leader
    if _number(token) and (
        token < model.top_token or (token > model.top_token and not model.faults)
    ):
        yield f"it says that token {token} was given last, and that was {model.top_token}"
    if "leader" not in said or model.faults:
        return
    told = said["leader"]
    gone = model.leader_gone(when)
    if gone is not False and told is None:
        return
    if gone is True:
        yield f"it says that {told} leads, and nobody does"
    elif told is None and leader is not None:
        yield f"it says that nobody leads, but {leader.node} does"
    elif isinstance(told, Mapping) and leader is not None and _names_other(told, leader):
        yield f"it says that {told} leads, but {leader.node} does with token {leader.token}"


def _names_other(told: Mapping[str, Any], leader: Leader) -> bool:
    return (told.get("node"), told.get("token")) != (leader.node, leader.token)


def _workers(model: BoardModel, said: Mapping[str, Any], when: Span) -> Iterator[str]:
    """Who is alive, and when each was heard of."""
    told, limits = said.get("workers"), model.profile.limits
    if model.faults or not model.profile.leases:
        return
    for name, shown in told.items() if isinstance(told, Mapping) else ():
        heard = model.heard.get(name)
        if heard is None or not isinstance(shown, Mapping):
            continue
        stale, alive = model.stale(name, when), shown.get("alive")
        if stale is not None and isinstance(alive, bool) and alive is stale:
            yield f"it says that {name} is {'alive' if alive else 'not alive'}"
        age = shown.get("last_heartbeat_age_s")
        least_s = when.earliest - heard.latest - limits.tolerance_s
        most_s = when.latest - heard.earliest + limits.tolerance_s
        if _number(age) and not least_s <= age <= most_s and not math.isnan(least_s):
            yield f"it says that {name} was heard of {age} s ago, not {least_s:.2f} to {most_s:.2f} s"


def _number(told: object) -> TypeGuard[float]:
    return isinstance(told, int | float) and not isinstance(told, bool)
