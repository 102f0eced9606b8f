"""Checkpoints of a program that keeps a session in one file: its conversation, with deltas beside it.

Such a program has one checkpoint that it goes on from, and perhaps a copy of the one before. What a delta
adds follows the version of what it is added to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from mutiny.contracts.session.checkpoints import TORN, Point, State, digest_of, opened
from mutiny.foreign import parse


@dataclass(frozen=True)
class Form:
    """The words of such files: the target's name of each field."""

    session: str = "session"
    created: str = "created"
    status: str = "status"
    version: str = "version"
    messages: str = "messages"
    calls: str = "calls"
    call_given: str = "given"
    """What a tool was called with, as an object or as its JSON text."""
    delta_from: str = "from"
    """The version that a delta is added to."""
    delta_to: str = "to"
    delta_messages: str = "messages"
    delta_calls: str = "calls"


@dataclass(frozen=True)
class Kept:
    """One file with its deltas, read."""

    point: Point
    created: float = 0.0
    status: str = ""
    """The target's own word, at the last valid delta."""


def said_of(messages: object) -> tuple[str, ...]:
    """Digests of messages, without those of the system: programs say these again in other words."""
    rows = messages if isinstance(messages, list) else []
    return tuple(
        digest_of([row.get("role"), _text(row.get("content"))])
        for row in rows
        if isinstance(row, Mapping) and row.get("role") != "system"
    )


def _text(content: object) -> object:
    """The words of a message, whether they come as one text or in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content


def within(part: Sequence[str], whole: Sequence[str]) -> int:
    """How many of `part` are in `whole`, in their order, before the first that is not."""
    rest = iter(whole)
    for place, one in enumerate(part):
        if one not in rest:
            return place
    return len(part)


def kept_of(
    number: int, text: str, deltas: str, key: bytes | None, form: Form, tasks: Mapping[str, str]
) -> Kept:
    """What a file and its deltas say; `tasks`: each with the file that it writes."""
    found = opened(text, key)
    if isinstance(found, str):
        return Kept(Point(number, False, found))
    payload, digest = dict(found[0]), found[1]
    try:
        states = [_state(number, payload, form, tasks)]
        cut = ""
        for delta in _deltas(deltas, key):
            if isinstance(delta, str):
                cut = delta
                break
            if delta[form.delta_to] <= payload[form.version]:
                continue  # left over from before this file was written: it holds all of it
            if cut := _misfit(payload, delta, form):
                break
            payload = _applied(payload, delta, form)
            states.append(replace(_state(number, payload, form, tasks), deltas=len(states)))
        point = Point(number, True, digest=digest, states=tuple(states), cut=cut)
        point = replace(point, session=str(payload[form.session]))
        return Kept(point, _when(payload[form.created]), str(payload[form.status]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Kept(Point(number, False, f"its payload is not one of a session: {error!r}", digest))


def _deltas(text: str, key: bytes | None) -> Iterator[Mapping[str, Any] | str]:
    """Each line's payload, or why it has none."""
    for place, line in enumerate(text.split("\n")[:-1], 1):
        found = opened(line, key)
        yield f"line {place}: {found}" if isinstance(found, str) else found[0]
    if text and not text.endswith("\n"):
        yield TORN


def _misfit(payload: Mapping[str, Any], delta: Mapping[str, Any], form: Form) -> str:
    """Why a delta does not belong to what is before it; empty: it does."""
    due, is_so = delta.get(form.delta_from), payload.get(form.version)
    return "" if due == is_so else f"a delta is added to version {due}, and this is {is_so}"


def _applied(payload: Mapping[str, Any], delta: Mapping[str, Any], form: Form) -> dict[str, Any]:
    status = delta.get(form.status)
    return {
        **payload,
        form.status: payload[form.status] if status is None else status,
        form.version: delta[form.delta_to],
        form.messages: [*payload[form.messages], *delta[form.delta_messages]],
        form.calls: [*payload[form.calls], *delta[form.delta_calls]],
    }


def _state(number: int, payload: Mapping[str, Any], form: Form, tasks: Mapping[str, str]) -> State:
    named = {_path(call.get(form.call_given)) for call in payload[form.calls]}
    return State(
        number,
        elapsed_s=float(payload[form.version]),  # what orders such files, whatever the clock does
        tasks={name: "done" if path in named else "waiting" for name, path in tasks.items()},
        messages=said_of(payload[form.messages]),
    )


def _path(given: object) -> object:
    """The file that a tool was called with."""
    if isinstance(given, str):
        try:
            given = parse(given)
        except ValueError:
            return None
    return given.get("path") if isinstance(given, Mapping) else None


def _when(value: object) -> float:
    """A moment, as a number or as ISO 8601."""
    if isinstance(value, int | float):
        return float(value)
    return datetime.fromisoformat(str(value)).timestamp()
