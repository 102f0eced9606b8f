"""Sequential specifications: what one operation after the other may answer.

A model is pure and small: a state, and a step that says what follows, or that this answer cannot
be. All that concurrency adds (which order?) is the checker's business and never the model's.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mutiny.errors import UsageError
from mutiny.history.events import Entry

State = Hashable
Action = Hashable


@dataclass(frozen=True, slots=True)
class Parts:
    """A history cut into pieces that can be checked one by one."""

    by_key: Mapping[str, Sequence[Entry]]
    left_out: Mapping[str, int]
    """How many entries are not checked, by the reason."""


class Model(Protocol):
    """What the checker needs to know. States and actions are values that can be compared."""

    @property
    def name(self) -> str:
        """What is modelled, for the report."""

    def partition(self, entries: Sequence[Entry]) -> Parts:
        """Cut the history: it is linearizable if and only if every part is."""

    def initial(self, key: str) -> State:
        """The state of a part before anything happened. Never None."""

    def action(self, entry: Entry) -> Action:
        """All that `step` needs to know of an entry; equal actions are interchangeable."""

    def step(self, state: State, action: Action) -> State | None:
        """The state afterwards; None when this cannot happen in this state with this answer."""

    def reads_only(self, action: Action) -> bool:
        """Does the action leave *every* state as it is? Then it need not be tried in other places."""

    def describe(self, state: State) -> str:
        """A state in a few words."""


def comparable(value: object) -> Hashable:
    """A JSON value as one that can be compared and hashed; 1, true and "1" stay different."""
    if value is None or type(value) in (str, int):
        return value
    return ("json", json.dumps(value, sort_keys=True))


def by_key(entries: Sequence[Entry]) -> Parts:
    """Cut a history by the key that each entry carries itself."""
    parts: dict[str, list[Entry]] = {}
    for entry in entries:
        parts.setdefault(entry.key or "", []).append(entry)
    return Parts(parts, {})


class _Call(NamedTuple):
    operation: str
    first: Hashable = None
    second: Hashable = None
    answer: Hashable = None
    answered: bool = True


def _call(entry: Entry, words: Mapping[str, tuple[str, ...]]) -> _Call:
    names = words.get(entry.operation)
    if names is None:
        known = ", ".join(words)
        raise UsageError(f"operation {entry.operation!r} of {entry}: this model has {known}")
    missing = [name for name in names if name not in entry.arguments]
    if missing:
        raise UsageError(f"{entry}: argument {missing[0]!r} is missing")
    first, second, *_ = [*(comparable(entry.arguments[name]) for name in names), None, None]
    answered = entry.returned is not None
    return _Call(entry.operation, first, second, comparable(entry.answer), answered)


@dataclass(frozen=True)
class Register:
    """One value for each key: `read`, `write value`, `cas old new` (answered true or false)."""

    start: object = None
    name: str = "register"

    def partition(self, entries: Sequence[Entry]) -> Parts:
        """Keys are independent."""
        return by_key(entries)

    def initial(self, key: str) -> State:
        """The value at the start, wrapped because it may be None."""
        return (comparable(self.start),)

    def action(self, entry: Entry) -> Action:
        """The operation with its arguments and its answer."""
        return _call(entry, {"read": (), "write": ("value",), "cas": ("old", "new")})

    def step(self, state: State, action: Action) -> State | None:
        """Reads tell the value; cas tells whether it was the old one."""
        assert isinstance(state, tuple)
        assert isinstance(action, _Call)
        if action.operation == "write":
            return (action.first,)
        if action.operation == "read":
            return state if not action.answered or action.answer == state[0] else None
        swapped = state[0] == action.first
        if action.answered and action.answer != comparable(swapped):
            return None
        return (action.second,) if swapped else state

    def reads_only(self, action: Action) -> bool:
        """Reads, and swaps that did not happen."""
        assert isinstance(action, _Call)
        lost = action.operation == "cas" and action.answer == comparable(False)
        return action.operation == "read" or lost

    def describe(self, state: State) -> str:
        """The value."""
        assert isinstance(state, tuple)
        return f"value {state[0]!r}"


@dataclass(frozen=True)
class KeyValue:
    """Texts by key: `get`, `put value`, `append value`; a key that was never written is empty."""

    name: str = "key-value store"

    def partition(self, entries: Sequence[Entry]) -> Parts:
        """Keys are independent."""
        return by_key(entries)

    def initial(self, key: str) -> State:
        """Nothing written."""
        return ""

    def action(self, entry: Entry) -> Action:
        """The operation with its argument and its answer."""
        return _call(entry, {"get": (), "put": ("value",), "append": ("value",)})

    def step(self, state: State, action: Action) -> State | None:
        """A get tells everything put and appended so far."""
        assert isinstance(state, str)
        assert isinstance(action, _Call)
        if action.operation == "get":
            return state if not action.answered or action.answer == state else None
        return str(action.first) if action.operation == "put" else state + str(action.first)

    def reads_only(self, action: Action) -> bool:
        """Gets."""
        assert isinstance(action, _Call)
        return action.operation == "get"

    def describe(self, state: State) -> str:
        """The text."""
        return f"text {state!r}"


@dataclass(frozen=True)
class Queue:
    """First in, first out: `enqueue value`, `dequeue` (answered with the value, or null when empty)."""

    name: str = "queue"

    def partition(self, entries: Sequence[Entry]) -> Parts:
        """Queues are independent."""
        return by_key(entries)

    def initial(self, key: str) -> State:
        """Empty."""
        return ()

    def action(self, entry: Entry) -> Action:
        """The operation with its argument and its answer."""
        return _call(entry, {"enqueue": ("value",), "dequeue": ()})

    def step(self, state: State, action: Action) -> State | None:
        """What leaves is what came first."""
        assert isinstance(state, tuple)
        assert isinstance(action, _Call)
        if action.operation == "enqueue":
            return (*state, action.first)
        head = state[0] if state else None
        if action.answered and action.answer != head:
            return None
        return state[1:]

    def reads_only(self, action: Action) -> bool:
        """Only a dequeue that found nothing."""
        assert isinstance(action, _Call)
        return action.operation == "dequeue" and action.answered and action.answer is None

    def describe(self, state: State) -> str:
        """Its content."""
        assert isinstance(state, tuple)
        return f"queue of {len(state)}: {list(state[:5])!r}"
