"""What changed in the state, and the part of a long state that matters."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mutiny.engine.journal import Step

SHORT_LINES = 60
"""A state that is not longer is shown as it is."""
LONGEST = 80
"""A value is shown with so many characters at most."""
NOTHING = object()
"""In place of a field that is not there."""


@dataclass(frozen=True)
class Change:
    """One field before and after."""

    path: tuple[str, ...]
    before: object
    after: object
    whose: frozenset[str] = frozenset()
    """Texts of the entry of a list that it is a field of: they say whom the entry is about."""

    def __str__(self) -> str:
        return f"`{'.'.join(self.path)}`: {_shown(self.before)} -> {_shown(self.after)}"

    def about(self, names: Iterable[str]) -> bool:
        """Is it about one of these: in its path, in its entry, or in its values?"""
        values = f"{self.before} {self.after}"
        known = {*self.path, *self.whose}
        return any(name in known or (len(name) > 5 and name in values) for name in names)


def changes(before: object, after: object, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """The fields that differ, outermost missing parts as a whole. Entries of a list are told one by one:
    by their id where they have one, else where the whole list is too long to be shown.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            old, new = before.get(key, NOTHING), after.get(key, NOTHING)
            yield from changes(old, new, (*path, str(key)))
    elif before == after:
        return
    elif isinstance(before, list) and isinstance(after, list):
        yield from _entries(before, after, path)
    else:
        yield Change(path, before, after)


def _entries(before: list[object], after: list[object], path: tuple[str, ...]) -> Iterator[Change]:
    """What differs between two lists."""
    old, new = _by_id(before), _by_id(after)
    if old is not None and new is not None:
        for name in dict.fromkeys((*old, *new)):
            was, now = old.get(name, NOTHING), new.get(name, NOTHING)
            texts = {
                one
                for entry in (was, now)
                if isinstance(entry, dict)
                for one in entry.values()
                if isinstance(one, str)
            }
            for one in changes(was, now, (*path, name)):
                yield replace(one, whose=frozenset(texts))
        return
    gone = [one for one in before if one not in after]
    come = [one for one in after if one not in before]
    if (len(_text(before)) <= LONGEST and len(_text(after)) <= LONGEST) or not (gone or come):
        yield Change(path, before, after)
        return
    yield from (Change(path, one, NOTHING) for one in gone)
    yield from (Change(path, NOTHING, one) for one in come)


def _by_id(entries: list[object]) -> dict[str, object] | None:
    """Entries by their id; None where one has none, or where two have the same."""
    found: dict[str, object] = {
        str(one["id"]): one for one in entries if isinstance(one, dict) and "id" in one
    }
    return found if len(found) == len(entries) else None


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _shown(value: object) -> str:
    if value is NOTHING:
        return "(not there)"
    text = _text(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def last_change(steps: Sequence[Step], names: Sequence[str]) -> tuple[Step, list[Change]] | None:
    """The last step that changed something about these; None when nothing ever did."""
    for step in reversed(steps):
        found = [
            one
            for one in changes(step.pre_state, step.post_state)
            if step.pre_state and one.about(names)
        ]
        if found:
            return step, found
    return None


def excerpt(
    state: Mapping[str, object], found: Sequence[Change], names: Sequence[str]
) -> tuple[object, int]:
    """A state as it is when it is short; else only what changed or is asked for, and how many entries
    were left out.
    """
    if len(json.dumps(state, indent=4, default=str).splitlines()) <= SHORT_LINES:
        return dict(state), 0
    paths = [change.path for change in found]
    return _pruned(state, paths, names)


def _pruned(
    value: object, paths: Sequence[tuple[str, ...]], names: Sequence[str]
) -> tuple[object, int]:
    if not isinstance(value, dict):
        return value, 0
    kept: dict[str, object] = {}
    left_out = 0
    for key, inner in value.items():
        below = [path[1:] for path in paths if path and path[0] == key]
        if str(key) in names or () in below:
            kept[key] = inner
        elif below or any(_mentions(inner, name) for name in names):
            # Of one entry that changed in a field, the whole entry is worth seeing.
            flat = isinstance(inner, dict) and not any(isinstance(v, dict) for v in inner.values())
            part, fewer = (inner, 0) if flat else _pruned(inner, below, names)
            kept[key] = part
            left_out += fewer
        elif isinstance(inner, dict | list) and inner:
            left_out += len(inner)
        else:
            kept[key] = inner
    return kept, left_out


def _mentions(value: object, name: str) -> bool:
    if isinstance(value, dict):
        return name in value or any(_mentions(inner, name) for inner in value.values())
    return bool(name) and value == name
