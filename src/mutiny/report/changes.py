"""What changed in the state, and the part of a long state that matters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mutiny.engine.journal import Step

SHORT_LINES = 60
"""A state that is not longer is shown as it is."""
NOTHING = object()
"""In place of a field that is not there."""


@dataclass(frozen=True)
class Change:
    """One field before and after."""

    path: tuple[str, ...]
    before: object
    after: object

    def __str__(self) -> str:
        return f"`{'.'.join(self.path)}`: {_shown(self.before)} -> {_shown(self.after)}"

    def about(self, names: Iterable[str]) -> bool:
        """Is it about one of these: in its path, or in its values?"""
        values = f"{self.before} {self.after}"
        return any(name in self.path or (len(name) > 5 and name in values) for name in names)


def changes(before: object, after: object, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """The fields that differ, outermost missing parts as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}, key=str):
            old, new = before.get(key, NOTHING), after.get(key, NOTHING)
            yield from changes(old, new, (*path, str(key)))
    elif before != after:
        yield Change(path, before, after)


def _shown(value: object) -> str:
    if value is NOTHING:
        return "(not there)"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


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
